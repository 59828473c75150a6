"""The life of one move: a pure state machine, and the executor that carries its instructions out."""
