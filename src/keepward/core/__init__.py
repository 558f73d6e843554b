"""Pure values: what a memory is, how it changes, and what is kept of each change."""
