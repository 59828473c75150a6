"""Protocols for the outside world, one module for each subject."""
