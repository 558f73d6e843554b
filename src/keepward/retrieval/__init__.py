"""Retrieval: analysis, index and fusion; pure, in numpy."""
