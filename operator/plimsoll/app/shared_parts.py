"""SharedParts holds what the wings, the election and the start have in common."""

from dataclasses import dataclass

from plimsoll.access.rights import Access
from plimsoll.app.machine.machine import Machine
from plimsoll.cluster.load_feed import LoadFeed
from plimsoll.cluster.pod_groups import Groups
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.kube.events import EventPoster
from plimsoll.kube.session.session import Session
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.timing.signal import Signal
from plimsoll.timing.timer import Timer


@dataclass(frozen=True, slots=True)
class SharedParts:
    """What both wings, the election and the start use.

    Attributes:
        session: The connection; its writes pass the fence.
        machine: Below the process.
        access: What the API server allows.
        conditions: Notified when sentences in the status of policies have changed.
        forks_plans: Whether long plans are made in forks of the process.
    """

    session: Session
    machine: Machine
    observer: Observer
    access: Access
    recorder: EventPoster
    timer: Timer
    book: ReservationBook
    groups: Groups
    load: LoadFeed
    conditions: Signal
    seed: int | None
    forks_plans: bool = True

    @property
    def clock(self) -> Clock:
        """Time."""
        return self.machine.clock
