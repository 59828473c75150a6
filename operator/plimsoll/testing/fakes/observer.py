"""Fakes of observers and event recorders, and a reservation book without a running timer."""

from plimsoll.cluster.cache import Cache
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.ports.events import EventNote
from plimsoll.ports.observer import Observer
from plimsoll.testing.fakes.clock import FakeClock
from plimsoll.timing.timer import Timer


class FakeRecorder:
    """Keeps events, oldest first, in ``notes``."""

    def __init__(self) -> None:
        self.notes: list[EventNote] = []

    def record(self, note: EventNote) -> None:
        """Keep the event."""
        self.notes.append(note)

    def said(self, reason: str) -> list[str]:
        """The sentences of one reason."""
        return [note.text for note in self.notes if note.reason == reason]


class RememberingObserver(Observer):
    """Remembers what broke or was left out.

    Attributes:
        skipped: Names of objects that could not be read, and why.
        failures: Where something broke and was contained, and what.
        heard: Of which collection the server told something, in order.
        runs: Policy, result and seconds of each run that has ended.
        reversals: Policies whose moves undid others.
        asked: Sources of usage that were asked, with what came of it.
        forecasts: Resources of which a moved pod was measured, with the error of what was expected.
    """

    def __init__(self) -> None:
        self.skipped: list[tuple[str, str]] = []
        self.failures: list[tuple[str, str]] = []
        self.heard: list[str] = []
        self.runs: list[tuple[str, str, float]] = []
        self.reversals: list[str] = []
        self.asked: list[tuple[str, str]] = []
        self.forecasts: list[tuple[str, float]] = []

    def move_reversed(self, policy: str) -> None:
        """Keep the policy."""
        self.reversals.append(policy)

    def forecast_checked(self, resource: str, error: float) -> None:
        """Keep it."""
        self.forecasts.append((resource, error))

    def usage_asked(self, source: str, result: str) -> None:
        """Keep it."""
        self.asked.append((source, result))

    def run_finished(self, policy: str, result: str, seconds: float) -> None:
        """Keep it."""
        self.runs.append((policy, result, seconds))

    def watch_heard(self, resource: str, now: float) -> None:  # noqa: ARG002 - the hook's signature
        """Keep the name."""
        self.heard.append(resource)

    def object_skipped(self, resource: str, name: str, problem: str) -> None:  # noqa: ARG002 - the hook's signature
        """Keep the name."""
        self.skipped.append((name, problem))

    def failed(self, where: str, problem: str) -> None:
        """Keep it."""
        self.failures.append((where, problem))


def a_book(cache: Cache) -> ReservationBook:
    """A reservation book without a running timer: reservations end when they are released."""
    return ReservationBook(cache, Timer(FakeClock(), Observer()))
