"""Writes: judge changes by the gates and store them, with messages, blobs and tombstones."""
