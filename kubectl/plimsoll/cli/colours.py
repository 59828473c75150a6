"""Colours of a terminal: words that are good or bad news, headings, and the first line of an answer.

Colours repeat what the words say, so nothing is lost without them. They are the terminal's own sixteen, whose
contrast its user has chosen. https://no-color.org says what NO_COLOR is.
"""

import os
import sys
from enum import StrEnum

HEADING, FIRST = "2", "1"
_GOOD, _DOUBTFUL, _BAD = "32", "33", "31"

#: The words of columns that show a status, by what they mean for the reader.
_WORDS = {
    **dict.fromkeys(("ok", "Settled", "Leaves", "measured", "Succeeded", "True"), _GOOD),
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
        _DOUBTFUL,
    ),
    **dict.fromkeys(
        ("error", "Failed", "Blocked", "NoPlace", "unknown", "Invalid", "TimedOut", "False"), _BAD
    ),
}


class When(StrEnum):
    """The values of ``--color``."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def is_coloured(when: str) -> bool:
    """Whether stdout gets colours: a terminal does, unless NO_COLOR is set or it is a dumb one."""
    if when != When.AUTO:
        return when == When.ALWAYS
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def tone_of(word: str) -> str:
    """The colour of a status; "" for one that is neither good nor bad."""
    return _WORDS.get(word, "")


def painted(text: str, tone: str) -> str:
    """The text in a colour."""
    return f"\x1b[{tone}m{text}\x1b[0m" if tone and text else text
