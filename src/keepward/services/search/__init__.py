"""What recall searches: the features of each memory, and the index of each tenant. It knows no caller."""
