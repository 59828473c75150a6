"""The memory of the operator, for callers of ``plimsoll explain``."""
