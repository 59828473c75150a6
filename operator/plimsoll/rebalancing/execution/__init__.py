"""Carries out the instructions of the move machine at the ports, and feeds it with events."""
