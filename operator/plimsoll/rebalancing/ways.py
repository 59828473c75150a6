"""Optional ways of moving pods, as the rest of rebalancing sees them, and their absence.

Surges and eviction requests are packages that the operator hands to the controller. Without one of them its
records of earlier processes are cancelled, and a policy that asks for it moves no pod in that way.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.api.v1alpha1.rebalancing import EvictBy, Mode
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.cache import Cache
from plimsoll.model.kinds.watch_event import WatchEvent
from plimsoll.planning.moves import Move, RebalancingConfig
from plimsoll.planning.surges import Deployments
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.rebalancing.breakers.stop_button import StopButton, barred
from plimsoll.rebalancing.execution.executor import Awaited, Immediate, MoveExecutor
from plimsoll.rebalancing.moves.events import ProcessRestarted, RolloutAnswered
from plimsoll.rebalancing.moves.recovery import RecoveryRule
from plimsoll.rebalancing.moves.sightings import Sightings
from plimsoll.rebalancing.moves.transition import MoveTable, Step
from plimsoll.timing.signal import Signal
from plimsoll.timing.timer import Timer

_NO_TABLE = MoveTable(transitions={})
_NO_SURGES = "this operator was built without surges"
_NO_REQUESTS = (
    "spec.rebalancing.evictBy is EvictionRequest, and this operator was built without eviction requests;"
    " no pod is evicted until evictBy is Eviction"
)


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
        """The Deployment of a surge as it is now; nothing for other moves."""

    async def inspect(self, key: str, spec: EvictionSpec) -> RolloutAnswered | None:
        """What the Deployment says of a record's surge."""


class RequestProbe(Protocol):
    """Says whether evictions by request can be made."""

    def heeded(self, policy: SchedulingPolicy, rebalancing: RebalancingConfig) -> RebalancingConfig:
        """The same, without any eviction while the policy's way is not available."""

    def refusal(self) -> tuple[str, str] | None:
        """Reason and sentence why no request can be made; None when one can."""

    def troubles(self, name: str) -> Mapping[str, str]:
        """What keeps a policy from moving pods, in sentences by reason."""

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
    """Evictions by EvictionRequest.

    Attributes:
        probe: Says whether they can be made.
    """

    @property
    def probe(self) -> RequestProbe:
        """Says whether they can be made."""

    def watch(self, executor: MoveExecutor) -> WayWatch:
        """What keeps moves and requests in step."""


@dataclass(frozen=True, slots=True)
class RequestNeeds:
    """What evictions by request need of the rest.

    Attributes:
        policies: Those that rebalance at any moment; the key is the name.
        stop: While it is pressed nothing stays requested.
        cache: The cluster.
        timer: Deadlines.
        clock: Time.
        observer: Notified of failures.
        conditions: Notified when the sentences about policies have changed.
    """

    policies: Mapping[str, SchedulingPolicy]
    stop: StopButton
    cache: Cache
    timer: Timer
    clock: Clock
    observer: Observer
    conditions: Signal


#: Makes the way of eviction requests of what the controller has.
RequestWayFactory = Callable[[RequestNeeds], RequestWay]


class _NoWay:
    """Contributes nothing."""

    def __init__(self) -> None:
        self.table = _NO_TABLE
        self.recovered: RecoveryRule = _recovers_nothing
        self.sightings: Sequence[Sightings] = ()
        self.immediate: Mapping[type, Immediate] = {}
        self.awaited: Mapping[type, Awaited] = {}


def _recovers_nothing(_step: Step, _event: ProcessRestarted) -> bool:
    return False


class WithoutSurges(_NoWay):
    """No pod is moved by a rollout."""

    trouble = ""

    async def deployments(self) -> Deployments:
        """None, and why."""
        return Deployments(problem=_NO_SURGES)

    async def present(self, move: Move) -> Deployments:
        """None, and why, for a surge."""
        return Deployments(problem=_NO_SURGES if move.surge is not None else "")

    async def inspect(self, key: str, spec: EvictionSpec) -> None:
        """Nothing is known of Deployments."""


class WithoutRequests(_NoWay):
    """No pod leaves by request, and no policy that wants that evicts in another way."""

    def __init__(self, needs: RequestNeeds) -> None:
        super().__init__()
        self._policies = needs.policies

    @property
    def probe(self) -> RequestProbe:
        """The same."""
        return self

    def watch(self, executor: MoveExecutor) -> WayWatch:  # noqa: ARG002 - the protocol's signature
        """The same: there is nothing to watch."""
        return self

    def heeded(self, policy: SchedulingPolicy, rebalancing: RebalancingConfig) -> RebalancingConfig:
        """The same, without any eviction of a policy whose pods leave by request."""
        spec = policy.spec.rebalancing
        if spec is None or spec.mode is Mode.DRY_RUN or spec.evict_by is not EvictBy.EVICTION_REQUEST:
            return rebalancing
        return barred(rebalancing, "EvictionRequests")

    def refusal(self) -> tuple[str, str]:
        """Always."""
        return "EvictionRequestsNotOffered", _NO_REQUESTS

    def troubles(self, name: str) -> Mapping[str, str]:
        """Of a policy whose pods leave by request."""
        policy = self._policies.get(name)
        spec = None if policy is None else policy.spec.rebalancing
        wants_it = spec is not None and spec.evict_by is EvictBy.EVICTION_REQUEST
        return dict([self.refusal()]) if wants_it else {}

    def policies_changed(self) -> None:
        """Nothing follows."""

    async def refresh(self, *, immediately: bool = False) -> None:
        """Nothing changes."""

    def observe(self, event: WatchEvent) -> None:
        """Nothing follows."""

    async def run(self) -> None:
        """Nothing is to be done."""
