"""The shell: reads what the pure packages need, asks them, and writes what they decide."""
