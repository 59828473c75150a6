"""Defines the states of knowledge about a node's load."""

from enum import IntEnum


class LoadState(IntEnum):
    """The state of knowledge about a node's load.

    Scheduling may use estimates; evictions by load go only from measured nodes to measured nodes.
    """

    UNKNOWN = 0  #: never measured
    STALE = 1  #: its latest reading is stale
    ESTIMATED = 2  #: measured, but more than a tenth of its load is expected of unmeasured pods
    MEASURED = 3  #: measured, and so are its pods except for a tenth of its load
