"""SharedParts holds the objects that the wings, the election and the start share."""

from msgspec import Struct

from plimsoll.access.rights import Access
from plimsoll.app.machine.machine import Machine
from plimsoll.cluster.pod_groups import Groups
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.kube.session.session import Session
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.timing.signal import Signal
from plimsoll.timing.timer import Timer
from plimsoll.usage.load_feed import LoadFeed
from plimsoll.writers.events import EventPoster


class SharedParts(Struct, frozen=True):
    """The objects that both wings, the election and the start use.

    Attributes:
        session: The session with the API server; its writes pass the fence.
        machine: The machine on which the process runs.
        access: The rights that the API server grants.
        conditions: Notified when sentences in the status of policies have changed.
        operator: The name of this operator, by which it knows its policies; "" has no name.
        forks_plans: Whether long plans run in forks of the process.
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
    operator: str = ""

    @property
    def clock(self) -> Clock:
        """The machine's clock."""
        return self.machine.clock
