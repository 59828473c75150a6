"""Port for Kubernetes events."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct


class EventNote(Struct, frozen=True):
    """An event to record on an object.

    Attributes:
        regarding: Reference to the object, as in events.k8s.io/v1.
        reason: A machine-readable word, such as ``FailedScheduling``.
        action: What was attempted, such as ``Scheduling``.
        reporter: ``reportingController``, such as the scheduler's name.
        related: Reference to a second object that is involved, such as the preemptor.
    """

    regarding: Mapping[str, str]
    reason: str
    action: str
    text: str
    is_warning: bool = False
    reporter: str = "plimsoll"
    related: Mapping[str, str] | None = None


class EventRecorder(Protocol):
    """Records events; never blocks and never fails the caller."""

    def record(self, note: EventNote) -> None:
        """Queue an event; equal events are aggregated."""
