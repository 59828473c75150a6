"""Deadlines, retries and signals on a clock that tests control."""
