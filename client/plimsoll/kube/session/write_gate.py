"""Stops a write right before it is sent if the fence has closed in the meantime."""

from typing import Protocol

from msgspec import Struct


class WriteFence(Protocol):
    """Limits when this process may write (:mod:`plimsoll.leadership.fence`)."""

    def seconds_left(self) -> float:
        """Seconds that a write sent now may take; 0 when no write may be sent."""

    def begin(self) -> None:
        """Register that a write is sent."""

    def end(self, *, answered: bool) -> None:
        """Register that a write was answered, or that its caller stopped waiting."""


class Gate(Struct):
    """Checked right before a request is sent: it may have waited, or the process was paused."""

    fence: WriteFence
    was_closed: bool = False

    def __call__(self) -> None:
        """Pass if the write may be sent, else raise."""
        if self.fence.seconds_left() <= 0:
            self.was_closed = True
            raise ConnectionAbortedError("the fence has closed")


def no_gate() -> None:
    """Pass always: there is no fence."""
