"""Optional ways of moving pods, as the rest of rebalancing sees them.

Surges and eviction requests are packages that the operator hands to the wing; nothing else imports them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

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

#: The API of eviction requests; the name of the breaker where it is missing.
REQUESTS_API = "lifecycle.k8s.io"


def leaves_by_request(policy: SchedulingPolicy) -> bool:
    """Whether a policy's pods leave by EvictionRequest."""
    spec = policy.spec.rebalancing
    return spec is not None and spec.evict_by is EvictBy.EVICTION_REQUEST


class MoveWay(Protocol):
    """What a way of moving pods contributes to the move machine and its executor.

    Attributes:
        table: Transitions.
        recovered: What a restart makes of its records.
        sightings: Find the replacements of its moves.
        immediate: What carries out its instructions that need no answer from outside, by type.
        awaited: What carries out the others.
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
        """Which right is missing, in a sentence; "" when none is known to be."""

    async def deployments(self) -> Deployments:
        """All Deployments, for one run."""

    async def present(self, move: Move) -> Deployments:
        """The Deployment of a surge as it is now."""

    async def inspect(self, key: str, spec: EvictionSpec) -> RolloutAnswered | None:
        """What the Deployment says of a record's surge."""


class RequestProbe(Protocol):
    """Says whether evictions by request can be made."""

    def refusal(self) -> tuple[str, str] | None:
        """Reason and sentence why no request can be made; None when one can."""

    def troubles(self) -> Mapping[str, str]:
        """What keeps policies that evict by request from moving pods, in sentences by reason."""

    def policies_changed(self) -> None:
        """Policies may want eviction requests now, or no longer."""

    async def refresh(self, *, immediately: bool = False) -> None:
        """Ask the server if that is due."""


class WayWatch(Protocol):
    """Keeps moves and the objects of their way in step."""

    def observe(self, event: WatchEvent) -> None:
        """Something happened in the cluster."""

    async def run(self) -> None:
        """Watch until cancelled."""


class RequestWay(MoveWay, Protocol):
    """Evictions by EvictionRequest."""

    @property
    def probe(self) -> RequestProbe:
        """Says whether they can be made."""

    def watch(self, executor: MoveExecutor) -> WayWatch:
        """What keeps moves and requests in step."""


@dataclass(frozen=True, slots=True)
class RequestNeeds:
    """What evictions by request read of the rest."""

    policies: Mapping[str, SchedulingPolicy]  #: those that rebalance, keyed by name, at any moment
    stop: StopButton
    cache: Cache
    timer: Timer
    clock: Clock
    observer: Observer
    changed: Signal  #: to be notified when requests become available, or are so no longer


#: Makes the way of eviction requests of what the wing has.
RequestWayFactory = Callable[[RequestNeeds], RequestWay]
