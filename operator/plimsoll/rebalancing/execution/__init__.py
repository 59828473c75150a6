"""Carries out the instructions of the move machine, and passes events to it."""
