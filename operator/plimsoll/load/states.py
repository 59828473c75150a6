"""LoadState says how much is known of a node's load."""

from enum import IntEnum


class LoadState(IntEnum):
    """How much is known of a node's load.

    Placement may use what is estimated; a pod is evicted by load from measured nodes to measured nodes only.
    """

    UNKNOWN = 0  #: it has never been measured
    STALE = 1  #: its latest reading is too old
    ESTIMATED = 2  #: measured, but more than a tenth of its load is expected of pods that are not
    MEASURED = 3  #: measured, and so are its pods but for a tenth of its load
