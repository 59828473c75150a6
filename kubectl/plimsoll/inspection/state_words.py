"""Words of states, by their meaning for readers; terminals colour them, and pages show them as chips."""

from enum import StrEnum
from types import MappingProxyType


class News(StrEnum):
    """What a word means."""

    GOOD = "good"
    DOUBTFUL = "warn"
    BAD = "bad"


#: Phases, outcomes and levels; those that are no news are left out.
STATE_WORDS = MappingProxyType(
    {
        **dict.fromkeys(("ok", "Settled", "Leaves", "measured", "Succeeded", "True"), News.GOOD),
        **dict.fromkeys(
            (
                "warning",
                "Returned",
                "Cancelled",
                "estimated",
                "stale",
                "Planned",
                "Approved",
                "Evicting",
                "Evicted",
                "Surging",
            ),
            News.DOUBTFUL,
        ),
        **dict.fromkeys(
            ("error", "Failed", "Blocked", "NoPlace", "unknown", "Invalid", "TimedOut", "False"), News.BAD
        ),
    }
)
