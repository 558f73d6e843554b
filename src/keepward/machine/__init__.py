"""What a machine has besides the store: keys, backups, files of blobs, clock and randomness."""
