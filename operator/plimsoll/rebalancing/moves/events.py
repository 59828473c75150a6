"""Events of moves: from the watch, responses of the API server, users and timers.

Each has the key of its move; events that concern several moves name a policy or a bundle. An event that
responds to an instruction names it in ``answers``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    """An event of one move."""

    answers: ClassVar[str] = ""  #: the answered instruction: its ``asks``

    key: str


@dataclass(frozen=True, slots=True)
class MovePlanned(MoveEvent):
    """A run or preemption has decided on a move."""

    spec: EvictionSpec
    move: Move
    run: str
    reason: str  #: the reason of the record's first phase
    message: str


@dataclass(frozen=True, slots=True)
class BundlePlanned:
    """A bundle or single move was planned; precedes the events of each of its moves."""

    bundle: BundleState


@dataclass(frozen=True, slots=True)
class MoveUnplanned(MoveEvent):
    """The latest run no longer plans a proposal, nor the others of its bundle."""


class RolloutSight(StrEnum):
    """The state of a surge's Deployment."""

    UNTOUCHED = "Untouched"  #: its rollout has not been started, or has been reverted
    MARKED = "Marked"  #: its rollout was started, and nothing else has changed
    CHANGED = "Changed"  #: another client changed the Deployment
    GONE = "Gone"  #: the Deployment is gone
    OPEN = "Open"  #: not known at present


@dataclass(frozen=True, slots=True)
class ProcessRestarted(MoveEvent):
    """A record of an earlier process was found."""

    spec: EvictionSpec
    status: EvictionStatus
    evicting_for_s: float = 0.0  #: since this process saw phase Evicting, by its own clock
    pod: PodFacts | None = None  #: the pod to move, None if it is gone
    move: Move | None = None  #: the proposed move, if its pod exists; else None
    rollout: "RolloutAnswered | None" = None  #: the state of a surge's Deployment
    approved: bool | None = None  #: people's answer to a proposal
    created: datetime | None = None  #: the record's creation, by the API server's clock; None if not known
    announced: datetime | None = None  #: the write of phase Evicting, by the same clock; None if not known
    reference: Mapping[str, str] = field(default_factory=dict)  #: to the record, for events
    over_limit: str = ""  #: why its target may not be reserved, in a sentence; "" if it may

    @property
    def stands(self) -> bool:
        """Whether the pod still runs: it exists, is not terminating, and has not ended."""
        return self.pod is not None and not self.pod.terminating and not self.pod.has_ended

    @property
    def since(self) -> datetime | None:
        """When phase Evicting was reached by the API server's clock, like pods' times; None if it was not.

        Phases have the time of the machine that wrote them, which may be ahead. If the record does not state
        when the API server wrote phase Evicting, the phases yield how long the record waited, less a second,
        as times are cut to whole seconds; this is correct if one machine wrote all of them.
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
    """The response to the creation of a record, or to the write of its status."""

    answers: ClassVar[str] = "record"
    phase: Phase  #: the written phase
    answer: WriteResult  #: CONFLICT when a record of that name exists


@dataclass(frozen=True, slots=True)
class RecordDeleted(MoveEvent):
    """A record was deleted, not by this process."""


@dataclass(frozen=True, slots=True)
class ProposalAnswered(MoveEvent):
    """A person approved or rejected a proposal, or withdrew the answer."""

    approved: bool | None


@dataclass(frozen=True, slots=True)
class PolicyChanged:
    """A policy was changed, suspended or deleted."""

    policy: str
    mode: Mode | None  #: None when it no longer rebalances
    evict_by: EvictBy | None = None
    request_timeout_s: float = inf  #: time limit of an EvictionRequest, in seconds


@dataclass(frozen=True, slots=True)
class StopPressed:
    """The stop button was pressed."""

    sentence: str  #: who pressed it, for records


@dataclass(frozen=True, slots=True)
class HoldUpsChanged:
    """A reason why moves wait may have ended: a run, the stop button, displaced pods, missing rights."""


@dataclass(frozen=True, slots=True)
class TurnReached(MoveEvent):
    """A move's turn has come."""

    move: Move | None = None  #: for a proposal, the move of the present pod


@dataclass(frozen=True, slots=True)
class MoveDropped(MoveEvent):
    """A move is not made: another one of its bundle is not, or its pod has left or was requested to."""

    cause: Landing


@dataclass(frozen=True, slots=True)
class NodeClosed:
    """The scheduler sees the node closed that a bundle empties, or closing it failed."""

    bundle: str
    succeeded: bool = True


@dataclass(frozen=True, slots=True)
class Revalidated(MoveEvent):
    """The planner accepts the move in the present cluster."""

    answers: ClassVar[str] = "planner"
    move: Move  #: the move of the present pod
    way: Way
    request_timeout_s: float = inf  #: time limit of what others carry out, in seconds


@dataclass(frozen=True, slots=True)
class RevalidationRefused(MoveEvent):
    """The planner refuses the move in the present cluster, or a closed budget forbids it."""

    answers: ClassVar[str] = "planner"
    cause: Landing  #: Cancelled or Blocked


@dataclass(frozen=True, slots=True)
class EvictionAnswered(MoveEvent):
    """The response of the Eviction API, or to the creation of an EvictionRequest."""

    answers: ClassVar[str] = "eviction"
    answer: WriteResult
    broke: bool = False  #: whether the request raised; then there is no retry


@dataclass(frozen=True, slots=True)
class RequestProgressed(MoveEvent):
    """An EvictionRequest has changed, or is gone."""

    answers: ClassVar[str] = "inspection"
    request: EvictionRequest | None  #: its state; None when it was deleted
    problem: tuple[str, str] | None = None  #: reason and sentence if the API is no longer served
    is_known: bool = True  #: False if the API server could not be read; it is then read again


@dataclass(frozen=True, slots=True)
class RequestReviewed(MoveEvent):
    """The present reasons to cancel a move whose pod was requested to leave."""

    mode: Mode | None  #: None if no policy of that name is known
    evict_by: EvictBy | None = None
    request_timeout_s: float = inf
    call_off: Landing | None = None  #: set if the pod must stay whatever its policy says


@dataclass(frozen=True, slots=True)
class RolloutAnswered(MoveEvent):
    """A Deployment was read, and perhaps marked."""

    answers: ClassVar[str] = "rollout"
    sight: RolloutSight
    answer: WriteResult  #: the API server's last response
    patience_s: float = inf  #: the progress deadline in seconds, if it was read


@dataclass(frozen=True, slots=True)
class PodTerminating(MoveEvent):
    """The moved pod is terminating."""


@dataclass(frozen=True, slots=True)
class EvictionMarked(MoveEvent):
    """The annotation of an eviction in progress has appeared on the moved pod, or was removed."""

    present: bool


@dataclass(frozen=True, slots=True)
class PodGone(MoveEvent):
    """The moved pod was deleted, or has ended."""

    deleted: bool = True


@dataclass(frozen=True, slots=True)
class ReplacementEvent(MoveEvent):
    """An event of the pod that replaces the moved one."""

    pod: PodFacts


@dataclass(frozen=True, slots=True)
class ReplacementSeen(ReplacementEvent):
    """A pod is credited to the move."""


@dataclass(frozen=True, slots=True)
class ReplacementRunning(ReplacementEvent):
    """The replacement runs."""


@dataclass(frozen=True, slots=True)
class ReplacementReady(ReplacementEvent):
    """The replacement is ready where it should be."""


@dataclass(frozen=True, slots=True)
class ReplacementReturned(ReplacementEvent):
    """The replacement is ready on the node that the pod was to leave."""


@dataclass(frozen=True, slots=True)
class ReplacementLost(ReplacementEvent):
    """The pod is no longer the replacement: it is gone, has failed or has another owner."""


@dataclass(frozen=True, slots=True)
class TimedOut(MoveEvent):
    """A deadline has passed."""

    timer: TimerName


Event = MoveEvent | BundlePlanned | PolicyChanged | StopPressed | HoldUpsChanged | NodeClosed
