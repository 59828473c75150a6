"""The life of one move, from its plan to the verified outcome."""
