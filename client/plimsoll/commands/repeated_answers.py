"""Answers a command again and again, for ``--watch``.

On a terminal each answer takes the place of the one before. Piped, one that is as the last is left
out, and an empty line is between two.
"""

import io
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout, suppress

from click.exceptions import Exit

#: Seconds between two answers, and how many times as long as an answer took.
PERIOD_S, EASE = 2.0, 3.0

#: Clears a terminal, and puts the cursor to its beginning.
_CLEAR = "\x1b[H\x1b[2J\x1b[3J"


class _Screen(io.StringIO):
    """Takes an answer, which is laid out as for where it goes in the end."""

    def isatty(self) -> bool:
        return sys.__stdout__ is not None and sys.__stdout__.isatty()


def watch(answered: Callable[[], None], rest: Callable[[float], None] = time.sleep) -> None:
    """Answer until Ctrl-C; an error ends it.

    Args:
        answered: Prints the answer.
        rest: Waits so many seconds.
    """
    last = None
    while True:
        began = time.monotonic()
        with redirect_stdout(_Screen()) as screen, suppress(Exit):
            answered()
        text = screen.getvalue()
        if text != last:
            before = _CLEAR if screen.isatty() else "" if last is None else "\n"
            sys.stdout.write(before + text)
            sys.stdout.flush()
        last = text
        rest(max(PERIOD_S, EASE * (time.monotonic() - began)))
