"""The identity of this process in the election, and the thread of the election.

The election has its own thread, event loop and connection: long lists, decisions and plugins that compute for
minutes do not delay a renewal. :mod:`plimsoll.leadership.leader` lists what it shares with other threads.
"""

import asyncio
from functools import partial
from pathlib import Path

from plimsoll.app.machine.machine import SideLoop
from plimsoll.app.settings import Settings
from plimsoll.app.shared_parts import SharedParts
from plimsoll.app.supervision import Supervision
from plimsoll.kube.leases import LeaseStore
from plimsoll.kube.session.session import Session
from plimsoll.leadership.election import Election
from plimsoll.leadership.fence import Fence
from plimsoll.leadership.leader import ElectedProcess, LeaderElector, Leadership, NoElection
from plimsoll.leadership.work_under_way import WorkUnderWay

#: The file in which Kubernetes stores a pod's namespace.
OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

#: The default namespace of the lease outside a cluster, as in kube-scheduler.
DEFAULT_NAMESPACE = "kube-system"

#: Shown instead of the lease's name when there is no election.
NO_LEASE = "none"


def namespace_of(settings: Settings, own: Path = OWN_NAMESPACE) -> str:
    """The namespace of the lease."""
    return lease_namespace(settings.leader_elect_resource_namespace, settings.kubeconfig, own)


def lease_namespace(named: str, kubeconfig: Path | None, own: Path = OWN_NAMESPACE) -> str:
    """The namespace of the lease: the named one, else the pod's own."""
    if not named and kubeconfig is None and own.is_file():
        named = own.read_text(encoding="utf-8").strip()
    return named or DEFAULT_NAMESPACE


class ElectorThread:
    """An election that runs in another thread."""

    def __init__(self, elected: LeaderElector, thread: SideLoop) -> None:
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


def _identity(parts: SharedParts) -> str:
    return f"{parts.machine.hostname}_{parts.machine.unique()}"


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
        return NoElection(fence, clock)
    name, terms = settings.leader_elect_resource_name, settings.terms
    here = asyncio.get_running_loop()
    elected = LeaderElector(
        Election(_identity(parts), terms, stands=False),
        LeaseStore(session, namespace_of(settings), name, terms.request_s, work),
        fence,
        ElectedProcess(supervision.hindrance, supervision.pressure, here.call_soon_threadsafe),
        clock,
        parts.machine.randomness(None),  # differ from those of other candidates, and serve no decision
        parts.recorder,
        observer,
    )
    return ElectorThread(elected, thread)
