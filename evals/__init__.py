"""Programs that let anyone measure: each reads JSON lines on standard input and writes JSON lines."""
