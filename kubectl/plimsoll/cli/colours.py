"""Colours of a terminal: words that are good or bad news, headings, and the first line of an answer.

Colours repeat what the words say, so nothing is lost without them. They are the terminal's own sixteen, whose
contrast its user has chosen. https://no-color.org says what NO_COLOR is.
"""

import os
import sys
from enum import StrEnum

from plimsoll.inspection.state_words import STATE_WORDS, News

HEADING, FIRST = "2", "1"

_TONES = {News.GOOD: "32", News.DOUBTFUL: "33", News.BAD: "31"}


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
    return _TONES[STATE_WORDS[word]] if word in STATE_WORDS else ""


def painted(text: str, tone: str) -> str:
    """The text in a colour."""
    return f"\x1b[{tone}m{text}\x1b[0m" if tone and text else text
