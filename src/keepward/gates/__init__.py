"""Gates: pure functions that judge one step before it is stored."""
