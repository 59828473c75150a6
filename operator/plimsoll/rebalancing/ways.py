"""Defines the interfaces of the optional ways of moving pods.

Surges and eviction requests are packages that the operator passes to the wing; nothing else imports them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.api.v1alpha1.rebalancing import EvictBy
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.cache import Cache
from plimsoll.model.kinds.watch_event import WatchEvent
from plimsoll.planning.moves import Move
from plimsoll.planning.surges import Deployments
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.rebalancing.breakers import StopButton
from plimsoll.rebalancing.execution.executor import Awaited, Immediate, MoveExecutor
from plimsoll.rebalancing.moves.events import RolloutAnswered
from plimsoll.rebalancing.moves.recovery import RecoveryRule
from plimsoll.rebalancing.moves.sightings import Sightings
from plimsoll.rebalancing.moves.transition import MoveTable
from plimsoll.timing.signal import Signal
from plimsoll.timing.timer import Timer

#: The API group of eviction requests; also the name of the breaker if it is missing.
REQUESTS_API = "lifecycle.k8s.io"


def leaves_by_request(policy: SchedulingPolicy) -> bool:
    """Whether a policy's pods leave by EvictionRequest."""
    spec = policy.spec.rebalancing
    return spec is not None and spec.evict_by is EvictBy.EVICTION_REQUEST


class MoveWay(Protocol):
    """The parts that a way of moving pods adds to the move machine and its executor.

    Attributes:
        table: Its transitions.
        recovered: Its recovery rule for records after a restart.
        sightings: Finds the replacements of its moves.
        immediate: Handlers of its instructions that await nothing, by type.
        awaited: Handlers of the others.
    """

    table: MoveTable
    recovered: RecoveryRule
    sightings: Sequence[Sightings]
    immediate: Mapping[type, Immediate]
    awaited: Mapping[type, Awaited]


class SurgeWay(MoveWay, Protocol):
    """Moves by a rollout that starts the replacement first."""

    @property
    def trouble(self) -> str:
        """The missing right, in a sentence; "" if none is known to be missing."""

    async def deployments(self) -> Deployments:
        """All Deployments, for one run."""

    async def present(self, move: Move) -> Deployments:
        """The present Deployment of a surge."""

    async def inspect(self, key: str, spec: EvictionSpec) -> RolloutAnswered | None:
        """The state of the Deployment of a record's surge."""


class RequestProbe(Protocol):
    """Probes whether evictions by request can be made."""

    def refusal(self) -> tuple[str, str] | None:
        """Reason and sentence why no request can be made; None if one can."""

    def troubles(self) -> Mapping[str, str]:
        """Sentences about what keeps policies that evict by request from moving pods, by reason."""

    def policies_changed(self) -> None:
        """Check whether a policy needs eviction requests, as policies have changed."""

    async def refresh(self, *, immediately: bool = False) -> None:
        """Probe the server if that is due."""


class WayWatch(Protocol):
    """Keeps moves and the objects of their way in step."""

    def observe(self, event: WatchEvent) -> None:
        """Handle an event of the cluster."""

    async def run(self) -> None:
        """Watch until cancelled."""


class RequestWay(MoveWay, Protocol):
    """Evicts by EvictionRequest."""

    @property
    def probe(self) -> RequestProbe:
        """The probe of the API."""

    def watch(self, executor: MoveExecutor) -> WayWatch:
        """Create the watch that keeps moves and requests in step."""


class RequestNeeds(Struct, frozen=True):
    """The objects of the wing that evictions by request need."""

    policies: Mapping[str, SchedulingPolicy]  #: those that rebalance, keyed by name, at any moment
    stop: StopButton
    cache: Cache
    timer: Timer
    clock: Clock
    observer: Observer
    changed: Signal  #: to notify when requests become available or unavailable


#: Creates the way of eviction requests from the wing's objects.
RequestWayFactory = Callable[[RequestNeeds], RequestWay]
