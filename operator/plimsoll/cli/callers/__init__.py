"""Asks a running operator for a command."""
