"""Runs computations in forks of the operator's process: a snapshot that costs nothing to take."""
