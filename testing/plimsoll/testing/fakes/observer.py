"""Fakes of observers and event recorders, and a reservation book without a timer."""

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
        """The notes of events with one reason."""
        return [note.text for note in self.notes if note.reason == reason]


class RememberingObserver(Observer):
    """Records calls of its hooks.

    Attributes:
        skipped: Names of unreadable objects, and the reasons.
        failures: Contained failures: the place and the problem.
        heard: Collections about which the server sent an event, in order.
        runs: Policy, result and seconds of each finished run.
        reversals: Policies whose moves reversed others.
        landings: Policies of moves whose replacement another scheduler placed, with where.
        asked: Queried sources of usage, with the result.
        forecasts: Resources for which a moved pod was measured, with the error of its forecast.
    """

    def __init__(self) -> None:
        self.skipped: list[tuple[str, str]] = []
        self.failures: list[tuple[str, str]] = []
        self.heard: list[str] = []
        self.runs: list[tuple[str, str, float]] = []
        self.reversals: list[str] = []
        self.landings: list[tuple[str, str]] = []
        self.asked: list[tuple[str, str]] = []
        self.forecasts: list[tuple[str, float]] = []

    def move_reversed(self, policy: str) -> None:
        """Record the policy."""
        self.reversals.append(policy)

    def forecast_placed(self, policy: str, landing: str) -> None:
        """Record the policy and where the replacement landed."""
        self.landings.append((policy, landing))

    def forecast_checked(self, resource: str, error: float) -> None:
        """Record the resource and the error."""
        self.forecasts.append((resource, error))

    def usage_asked(self, source: str, result: str) -> None:
        """Record the source and the result."""
        self.asked.append((source, result))

    def run_finished(self, policy: str, result: str, seconds: float) -> None:
        """Record the run."""
        self.runs.append((policy, result, seconds))

    def watch_heard(self, resource: str, now: float) -> None:  # noqa: ARG002 - the hook's signature
        """Record the collection."""
        self.heard.append(resource)

    def object_skipped(self, resource: str, name: str, problem: str) -> None:  # noqa: ARG002 - the hook's signature
        """Record the object."""
        self.skipped.append((name, problem))

    def failed(self, where: str, problem: str) -> None:
        """Record the failure."""
        self.failures.append((where, problem))


def a_book(cache: Cache) -> ReservationBook:
    """A reservation book without a timer: reservations end when they are released."""
    return ReservationBook(cache, Timer(FakeClock(), Observer()))
