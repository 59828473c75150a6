"""Events of moves: from the watch, responses of the API server, users and timers.

Each has the key of its move; those that concern several moves name a policy or a bundle. What answers an
instruction says so in ``answers``.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from math import inf
from typing import ClassVar

from plimsoll.api.v1alpha1.eviction import EvictionSpec, EvictionStatus
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import EvictBy, Mode
from plimsoll.planning.moves import Move
from plimsoll.ports.eviction_requests import EvictionRequest
from plimsoll.ports.writes import WriteResult
from plimsoll.rebalancing.moves.state import BundleState, Landing, PodFacts, TimerName, Way


@dataclass(frozen=True, slots=True)
class MoveEvent:
    """Something that has happened to one move."""

    answers: ClassVar[str] = ""  #: what it answers: ``asks`` of an instruction

    key: str


@dataclass(frozen=True, slots=True)
class MovePlanned(MoveEvent):
    """A run, or preemption, has decided a move."""

    spec: EvictionSpec
    move: Move
    run: str
    reason: str  #: why the record is in its first phase
    message: str


@dataclass(frozen=True, slots=True)
class BundlePlanned:
    """Moves go together, or one stands alone; precedes the events of each of them."""

    bundle: BundleState


@dataclass(frozen=True, slots=True)
class MoveUnplanned(MoveEvent):
    """The latest run no longer plans a proposal, nor the others of its bundle."""


class RolloutSight(StrEnum):
    """What a Deployment says of a surge."""

    UNTOUCHED = "Untouched"  #: its rollout has not been started, or has been taken back
    MARKED = "Marked"  #: its rollout was started, and nothing else has changed
    CHANGED = "Changed"  #: somebody changed the Deployment
    GONE = "Gone"  #: the Deployment is gone
    OPEN = "Open"  #: not known just now


@dataclass(frozen=True, slots=True)
class ProcessRestarted(MoveEvent):
    """A record of an earlier process was found."""

    spec: EvictionSpec
    status: EvictionStatus
    evicting_for_s: float = 0.0  #: since this process saw that phase Evicting was reached, by its own clock
    pod: PodFacts | None = None  #: the pod that was to be moved, None when it is gone
    move: Move | None = None  #: what the record proposes, for a pod that stands; else None
    rollout: "RolloutAnswered | None" = None  #: what the Deployment says of a surge
    approved: bool | None = None  #: what people say of a proposal
    created: datetime | None = None  #: when the record was, by the API server's clock; None if not known
    announced: datetime | None = None  #: when phase Evicting was written, by the same clock; None likewise

    @property
    def since(self) -> datetime | None:
        """When phase Evicting was reached by the API server's clock, as pods are made; None when it was not.

        Phases have the time of the machine that wrote them, which may be ahead. Where the record does not say
        when the API server wrote phase Evicting, they are used for how long the record waited, less a second,
        as times are cut to whole seconds; that is right while one machine wrote all of them.
        """
        sent = self._sent
        if sent is not None and self.announced is not None:
            return self.announced
        if sent is None or self.created is None:
            return sent
        waited = sent - self.status.transitions[0].time - timedelta(seconds=1)
        return self.created + max(waited, timedelta(0))

    @property
    def _sent(self) -> datetime | None:
        return {each.phase: each.time for each in self.status.transitions}.get(Phase.EVICTING)


@dataclass(frozen=True, slots=True)
class RecordAnswered(MoveEvent):
    """The creation of a record, or the write of its status, was answered."""

    answers: ClassVar[str] = "record"
    phase: Phase  #: that was written
    answer: WriteResult  #: CONFLICT when a record of the name exists already


@dataclass(frozen=True, slots=True)
class RecordDeleted(MoveEvent):
    """Somebody deleted a record."""


@dataclass(frozen=True, slots=True)
class ProposalAnswered(MoveEvent):
    """Somebody approved or rejected a proposal, or took the answer back."""

    approved: bool | None


@dataclass(frozen=True, slots=True)
class PolicyChanged:
    """A policy was changed, suspended or deleted."""

    policy: str
    mode: Mode | None  #: None when it rebalances no longer
    evict_by: EvictBy | None = None
    request_timeout_s: float = inf  #: seconds that a pod gets that leaves by EvictionRequest


@dataclass(frozen=True, slots=True)
class StopPressed:
    """The stop button is pressed."""

    sentence: str  #: who says so, for records


@dataclass(frozen=True, slots=True)
class HoldUpsChanged:
    """What holds moves up may have ended: a run, the stop button, displaced pods, missing rights."""


@dataclass(frozen=True, slots=True)
class TurnReached(MoveEvent):
    """Nothing that a move has waited for is left."""

    move: Move | None = None  #: of a proposal, for the pod as it is now


@dataclass(frozen=True, slots=True)
class MoveDropped(MoveEvent):
    """A move is not made: another one of its bundle is not, or its pod has left or was asked to."""

    cause: Landing


@dataclass(frozen=True, slots=True)
class NodeClosed:
    """The scheduler sees the node closed that a bundle empties, or it could not be closed."""

    bundle: str
    succeeded: bool = True


@dataclass(frozen=True, slots=True)
class Revalidated(MoveEvent):
    """The planner would make the move now as well."""

    answers: ClassVar[str] = "planner"
    move: Move  #: as it is now
    way: Way
    request_timeout_s: float = inf  #: seconds that a pod gets that leaves by EvictionRequest


@dataclass(frozen=True, slots=True)
class RevalidationRefused(MoveEvent):
    """The planner would not make the move now, or a budget that has closed forbids it."""

    answers: ClassVar[str] = "planner"
    cause: Landing  #: Cancelled or Blocked


@dataclass(frozen=True, slots=True)
class EvictionAnswered(MoveEvent):
    """The Eviction API has answered, or the creation of an EvictionRequest was answered."""

    answers: ClassVar[str] = "eviction"
    answer: WriteResult
    broke: bool = False  #: whether asking it raised; there is no further try then


@dataclass(frozen=True, slots=True)
class RequestProgressed(MoveEvent):
    """An EvictionRequest has changed, or is gone."""

    answers: ClassVar[str] = "inspection"
    request: EvictionRequest | None  #: as it is; None when somebody deleted it
    problem: tuple[str, str] | None = None  #: reason and sentence when the API is served no longer
    is_known: bool = True  #: whether the API server could be read; else it is read again


@dataclass(frozen=True, slots=True)
class RequestReviewed(MoveEvent):
    """What may call off a move whose pod was asked to leave, as it is now."""

    mode: Mode | None  #: None when no policy of the name is known
    evict_by: EvictBy | None = None
    request_timeout_s: float = inf
    call_off: Landing | None = None  #: when the pod is to stay whatever the policy wants


@dataclass(frozen=True, slots=True)
class RolloutAnswered(MoveEvent):
    """A Deployment was looked at, and maybe marked."""

    answers: ClassVar[str] = "rollout"
    sight: RolloutSight
    answer: WriteResult  #: the last one of the API server
    patience_s: float = inf  #: the Deployment's progress deadline in seconds, if it was read


@dataclass(frozen=True, slots=True)
class PodTerminating(MoveEvent):
    """The pod that is moved is on its way out."""


@dataclass(frozen=True, slots=True)
class PodGone(MoveEvent):
    """The pod that is moved was deleted, or has ended."""

    deleted: bool = True


@dataclass(frozen=True, slots=True)
class ReplacementEvent(MoveEvent):
    """Something has happened to the pod that replaces the moved one."""

    pod: PodFacts


@dataclass(frozen=True, slots=True)
class ReplacementSeen(ReplacementEvent):
    """A pod is credited to the move."""


@dataclass(frozen=True, slots=True)
class ReplacementRunning(ReplacementEvent):
    """The replacement runs."""


@dataclass(frozen=True, slots=True)
class ReplacementReady(ReplacementEvent):
    """The replacement does its work where it should."""


@dataclass(frozen=True, slots=True)
class ReplacementReturned(ReplacementEvent):
    """The replacement does its work on the node that the pod was to leave."""


@dataclass(frozen=True, slots=True)
class ReplacementLost(ReplacementEvent):
    """The pod replaces the moved one no longer: it is gone, has failed or has another owner."""


@dataclass(frozen=True, slots=True)
class TimedOut(MoveEvent):
    """A deadline has passed."""

    timer: TimerName


Event = MoveEvent | BundlePlanned | PolicyChanged | StopPressed | HoldUpsChanged | NodeClosed
