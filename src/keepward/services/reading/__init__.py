"""Reads: what a handle may see, recall, lists, contexts and receipts."""
