"""Jobs: maintenance that proposes and never writes; see ``registry`` for the list."""
