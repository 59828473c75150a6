"""Facts: what the API server says, as immutable values, and the pure rules that read them.

Nothing here does I/O, reads a clock or writes a log; every other layer imports these types.
"""
