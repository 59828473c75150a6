"""Events of moves: from the watch, responses of the API server, users and timers.

Each has the key of its move; events that concern several moves name a policy or a bundle. An event that
responds to an instruction names it in ``answers``.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from math import inf
from typing import ClassVar

from msgspec import Struct, field

from plimsoll.api.v1alpha1.eviction import EvictionSpec, EvictionStatus
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.model.names import BundleKey, RecordKey
from plimsoll.planning.moves import Move
from plimsoll.ports.writes import WriteResult
from plimsoll.rebalancing.moves.state import BundleState, EvictionMethod, Landing, PodFacts, TimerName


class MoveEvent(Struct, frozen=True):
    """An event of one move."""

    answers: ClassVar[str] = ""  #: the answered instruction: its ``asks``

    key: RecordKey


class MovePlanned(MoveEvent, frozen=True):
    """A run or preemption has decided on a move."""

    spec: EvictionSpec
    move: Move
    run: str
    reason: str  #: the reason of the record's first phase
    message: str


class BundlePlanned(Struct, frozen=True):
    """A bundle or single move was planned; precedes the events of each of its moves."""

    bundle: BundleState


class RoomAwaited(MoveEvent, frozen=True):
    """Other moves of its bundle, the first of which begins now, make room on its target."""


class MoveUnplanned(MoveEvent, frozen=True):
    """The latest run no longer plans a proposal, nor the others of its bundle."""


class RolloutSight(StrEnum):
    """The state of a surge's Deployment."""

    UNTOUCHED = "Untouched"  #: its rollout has not been started, or has been reverted
    MARKED = "Marked"  #: its rollout was started, and nothing else has changed
    LOWERED = "Lowered"  #: the replica more was taken away again, by the surge
    CHANGED = "Changed"  #: another client changed the Deployment
    GONE = "Gone"  #: the Deployment is gone
    OPEN = "Open"  #: not known at present


class ProcessRestarted(MoveEvent, frozen=True):
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
        """When phase Evicting or Surging was reached by the API server's clock, as pods' times; None before.

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
        times = {each.phase: each.time for each in self.status.transitions}
        return times.get(Phase.EVICTING) or times.get(Phase.SURGING)


class RecordAnswered(MoveEvent, frozen=True):
    """The response to the creation of a record, or to the write of its status."""

    answers: ClassVar[str] = "record"
    phase: Phase  #: the written phase
    answer: WriteResult  #: CONFLICT when a record of that name exists


class RecordDeleted(MoveEvent, frozen=True):
    """A record was deleted, not by this process."""


class ProposalAnswered(MoveEvent, frozen=True):
    """A person approved or rejected a proposal, or withdrew the answer."""

    approved: bool | None


class PolicyChanged(Struct, frozen=True):
    """A policy was changed, suspended or deleted."""

    policy: str
    mode: Mode | None  #: None when it no longer rebalances


class StopPressed(Struct, frozen=True):
    """The stop button was pressed."""

    sentence: str  #: who pressed it, for records


class HoldUpsChanged(Struct, frozen=True):
    """A reason why moves wait may have ended: a run, the stop button, displaced pods, missing rights."""


class TurnReached(MoveEvent, frozen=True):
    """A move's turn has come."""

    move: Move | None = None  #: for a proposal, the move of the present pod


class MoveDropped(MoveEvent, frozen=True):
    """A move is not made: another one of its bundle is not, or its pod has left."""

    cause: Landing


class NodeClosed(Struct, frozen=True):
    """The scheduler sees the node closed that a bundle empties, or closing it failed."""

    bundle: BundleKey
    succeeded: bool = True


class Revalidated(MoveEvent, frozen=True):
    """The planner accepts the move in the present cluster."""

    answers: ClassVar[str] = "planner"
    move: Move  #: the move of the present pod
    way: EvictionMethod
    deferral_timeout_s: float = inf  #: time limit of an eviction that others carry out, in seconds


class RevalidationRefused(MoveEvent, frozen=True):
    """The planner refuses the move in the present cluster, or a closed budget forbids it."""

    answers: ClassVar[str] = "planner"
    cause: Landing  #: Cancelled or Blocked


class EvictionAnswered(MoveEvent, frozen=True):
    """The response of the Eviction API."""

    answers: ClassVar[str] = "eviction"
    answer: WriteResult
    broke: bool = False  #: whether the request raised; then there is no retry


class RolloutAnswered(MoveEvent, frozen=True):
    """A Deployment was read, and perhaps marked."""

    answers: ClassVar[str] = "rollout"
    sight: RolloutSight
    answer: WriteResult  #: the API server's last response
    patience_s: float = inf  #: the progress deadline in seconds, if it was read


class PodTerminating(MoveEvent, frozen=True):
    """The moved pod is terminating."""


class EvictionMarked(MoveEvent, frozen=True):
    """The annotation of an eviction in progress has appeared on the moved pod, or was removed."""

    present: bool


class PodGone(MoveEvent, frozen=True):
    """The moved pod was deleted, or has ended."""

    deleted: bool = True


class ReplacementEvent(MoveEvent, frozen=True):
    """An event of the pod that replaces the moved one."""

    pod: PodFacts


class ReplacementSeen(ReplacementEvent, frozen=True):
    """A pod is credited to the move."""


class ReplacementRunning(ReplacementEvent, frozen=True):
    """The replacement runs."""


class ReplacementReady(ReplacementEvent, frozen=True):
    """The replacement is ready where it should be."""


class ReplacementReturned(ReplacementEvent, frozen=True):
    """The replacement is ready on the node that the pod was to leave."""


class ReplacementLost(ReplacementEvent, frozen=True):
    """The pod is no longer the replacement: it is gone, has failed or has another owner."""


class TimedOut(MoveEvent, frozen=True):
    """A deadline has passed."""

    timer: TimerName


Event = MoveEvent | BundlePlanned | PolicyChanged | StopPressed | HoldUpsChanged | NodeClosed
