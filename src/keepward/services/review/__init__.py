"""Review: decide on proposals, edit memories, give feedback."""
