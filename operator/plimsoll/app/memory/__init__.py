"""Serves the operator's in-memory state to callers of ``plimsoll explain``."""
