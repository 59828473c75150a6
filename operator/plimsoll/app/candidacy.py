"""The identity of this process in the election, and the thread of the election.

The election has its own thread, event loop and connection: long lists, decisions and plugins that compute for
minutes do not delay a renewal. :mod:`plimsoll.leadership.leader` lists what it shares with other threads.
"""

import asyncio
from functools import partial
from pathlib import Path

from plimsoll.app.machine.machine import SideLoop
from plimsoll.app.replica.leadership import SharedLeadership
from plimsoll.app.settings import Settings
from plimsoll.app.shared_parts import SharedParts
from plimsoll.app.supervision import Supervision
from plimsoll.kube.leases import LeaseStore
from plimsoll.kube.session.session import Session
from plimsoll.leadership.election import Election
from plimsoll.leadership.fence import Fence
from plimsoll.leadership.leader import Elected, ElectedProcess, Leadership, Unchallenged
from plimsoll.leadership.role_elections import GROUP, RoleElections
from plimsoll.leadership.work_under_way import WorkUnderWay
from plimsoll.ports.events import EventNote
from plimsoll.ports.leases import LeasePort
from plimsoll.ports.observer import Observer

#: The file in which Kubernetes stores a pod's namespace.
OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

#: The default namespace of the lease outside a cluster, as in kube-scheduler.
DEFAULT_NAMESPACE = "kube-system"

#: Shown instead of the lease's name when there is no election.
NO_LEASE = "none"


def namespace_of(settings: Settings, own: Path = OWN_NAMESPACE) -> str:
    """The namespace of the lease."""
    if settings.leader_elect_resource_namespace:
        return settings.leader_elect_resource_namespace
    if settings.kubeconfig is None and own.is_file():
        return own.read_text(encoding="utf-8").strip() or DEFAULT_NAMESPACE
    return DEFAULT_NAMESPACE


class ThreadedLeadership:
    """An election that runs in another thread."""

    def __init__(self, elected: Elected, thread: SideLoop) -> None:
        self._elected = elected
        self._thread = thread
        self.tried = elected.tried
        self.acquired = elected.acquired

    @property
    def since(self) -> float | None:
        """The monotonic time since which no other process has led."""
        return self._elected.since

    @property
    def standing(self) -> str:
        """The state in words."""
        return self._elected.standing

    def stand(self, *, was_led: bool = False) -> None:
        """Claim the lease from now on."""
        self._thread.call(partial(self._elected.stand, was_led=was_led))

    def overdue_s(self) -> float:
        """Seconds by which the election's next step is overdue."""
        return self._elected.overdue_s()

    async def run(self) -> None:
        """Take part in the election until cancelled or deposed."""
        await self._thread.run(self._elected.run())

    async def drain(self) -> None:
        """Stop sending writes, and wait a little for those under way; writes are sent by this thread."""
        await self._elected.drain()

    async def release(self) -> None:
        """Release the lease if no write of ours can be under way any more."""
        await self._thread.run(self._elected.release())


class GroupObserver(Observer):
    """Forwards failures and delays of the group's lease; no process is its leader."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def failed(self, what: str, problem: str) -> None:
        """Forward a failure."""
        self._observer.failed(what, problem)

    def renewal_delayed(self, name: str, late_s: float, why: str) -> None:
        """Forward a late renewal."""
        self._observer.renewal_delayed(name, late_s, why)


class NoEvents:
    """Records no events."""

    def record(self, note: EventNote) -> None:
        """Drop an event."""


def _identity(parts: SharedParts) -> str:
    return f"{parts.machine.hostname}_{parts.machine.unique()}"


def shared_leadership(
    settings: Settings,
    session: Session,
    parts: SharedParts,
    thread: SideLoop,
    supervision: Supervision,
    fence: Fence,
) -> SharedLeadership:
    """Share the work with other replicas; the arguments are those of :func:`candidacy`."""
    name, terms, clock = settings.leader_elect_resource_name, settings.terms, parts.clock
    notify = asyncio.get_running_loop().call_soon_threadsafe
    process = ElectedProcess(supervision.hindrance, supervision.pressure, notify)
    quiet = GroupObserver(parts.observer)

    def leases(lease: str) -> LeaseStore:
        return LeaseStore(session, namespace_of(settings), lease, terms.request_s)

    def elect(election: Election, lease: LeasePort) -> Elected:
        is_group = election.identity == GROUP
        recorder, observer = (NoEvents(), quiet) if is_group else (parts.recorder, parts.observer)
        chance = parts.machine.randomness(None)
        return Elected(election, lease, fence, process, clock, chance, recorder, observer)

    leadership = SharedLeadership(thread)
    leadership.enter(
        RoleElections(
            _identity(parts),
            terms,
            leases(name),
            lambda role: leases(role.lease(name)),
            elect,
            notify,
            leadership.spare,
            clock,
        )
    )
    return leadership


def candidacy(
    settings: Settings,
    session: Session,
    parts: SharedParts,
    thread: SideLoop,
    supervision: Supervision,
    fence: Fence,
    work: WorkUnderWay | None = None,
) -> Leadership:
    """Take part in the election, or lead without one, according to the flags.

    The session is for the election only and belongs to the thread's loop. The fence is open while this
    process leads. The lease remembers the work under way.
    """
    clock, observer = parts.clock, parts.observer
    if not settings.leader_elect:
        observer.leadership_changed(NO_LEASE, is_leading=True)
        return Unchallenged(fence, clock)
    name, terms = settings.leader_elect_resource_name, settings.terms
    here = asyncio.get_running_loop()
    elected = Elected(
        Election(_identity(parts), terms, stands=False),
        LeaseStore(session, namespace_of(settings), name, terms.request_s, work),
        fence,
        ElectedProcess(supervision.hindrance, supervision.pressure, here.call_soon_threadsafe),
        clock,
        parts.machine.randomness(None),  # differ from those of other candidates, and serve no decision
        parts.recorder,
        observer,
    )
    return ThreadedLeadership(elected, thread)
