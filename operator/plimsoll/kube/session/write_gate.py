"""Stops a write right before it is sent, where the fence has closed while it waited."""

from dataclasses import dataclass
from typing import Protocol


class WriteFence(Protocol):
    """Says whether this process may write (:mod:`plimsoll.leadership.fence`)."""

    def seconds_left(self) -> float:
        """Seconds that a write which is sent now may take, 0 when none may be sent."""

    def begin(self) -> None:
        """A write is sent."""

    def end(self, *, answered: bool) -> None:
        """It was answered, or is waited for no longer."""


@dataclass(slots=True)
class Gate:
    """Passed right before a request is sent: it may have waited, or the process was paused."""

    fence: WriteFence
    was_closed: bool = False

    def __call__(self) -> None:
        """Let the write pass, or stop it."""
        if self.fence.seconds_left() <= 0:
            self.was_closed = True
            raise ConnectionAbortedError("the fence has closed")


def no_gate() -> None:
    """No fence."""
