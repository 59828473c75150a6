"""Immutable values decoded from API objects, and pure rules over them.

Nothing here does I/O, reads a clock or writes a log; every other layer imports these types.
"""
