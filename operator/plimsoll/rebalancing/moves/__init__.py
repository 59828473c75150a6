"""The life of one move as a pure state machine."""
