"""Jobs: maintenance that proposes and never writes; see ``catalogue`` for what there is."""
