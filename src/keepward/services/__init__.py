"""Services read the data that the pure packages need, call them, and write what they decide."""
