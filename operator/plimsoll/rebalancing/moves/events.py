"""Events of moves: from the watch, responses of the API server, users and timers.

Each has the key of its move; those that concern several moves name a policy, a node, a bundle or a pod.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import EvictBy, Mode
from plimsoll.planning.moves import Move
from plimsoll.ports.eviction_requests import EvictionRequest
from plimsoll.ports.writes import WriteResult
from plimsoll.rebalancing.moves.state import Landing, PodFacts, TimerName, Way


@dataclass(frozen=True, slots=True)
class MoveEvent:
    """Something that has happened to one move."""

    key: str


# -- what was decided ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MovePlanned(MoveEvent):
    """A run, or preemption, has decided a move.

    Attributes:
        spec: What its record will say.
        move: The move.
        run: The run that decided it, "" for none.
        message: The record's first message.
        reason: Why the record is in its first phase.
    """

    spec: EvictionSpec
    move: Move
    run: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class BundlePlanned:
    """Moves go together, or one stands alone; comes before what tells of each of them.

    Attributes:
        bundle: Its key.
        policy: Whose decision it is.
        members: Keys of the moves, in order.
        size: How many moves it has.
        proposed: Whether people are asked.
        empties: The node that is to be closed first, "" for none.
        beneficiaries: For whom room is made: uid of the pod, and its node.
    """

    bundle: str
    policy: str
    members: tuple[str, ...]
    size: int
    proposed: bool = False
    empties: str = ""
    beneficiaries: tuple[tuple[str, str], ...] = ()


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
    """A record of an earlier process was found.

    Attributes:
        spec: What was decided.
        phase: Of the record; None for one without a status.
        reason: Of the record.
        message: Of the record.
        approved: What people say of a proposal.
        since: When phase Evicting was reached; None when it was not.
        evicting_for_s: Seconds since phase Evicting or Surging was reached; 0 when it was not.
        pod: The pod that was to be moved, None when it is gone.
        rollout: What the Deployment says of a surge; None for other records.
        move: For a record whose pod stands, the move that it proposes; else None.
        replacement: The pod that took the evicted one's place, as the record has it; "" for none.
        patience_s: The Deployment's progress deadline in seconds, for a surge whose Deployment was read.
    """

    spec: EvictionSpec
    phase: Phase | None
    reason: str = ""
    message: str = ""
    approved: bool | None = None
    since: datetime | None = None
    evicting_for_s: float = 0.0
    pod: PodFacts | None = None
    rollout: RolloutSight | None = None
    move: Move | None = None
    replacement: str = ""
    patience_s: float = 300.0


# -- records ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RecordWritten(MoveEvent):
    """A record was created, or its status was written.

    Attributes:
        phase: The phase that was written.
    """

    phase: Phase


@dataclass(frozen=True, slots=True)
class RecordRefused(MoveEvent):
    """A record could not be created, or its status not be written.

    Attributes:
        phase: The phase that was to be written.
        answer: Of the API server; CONFLICT when a record of this name exists already.
    """

    phase: Phase
    answer: WriteResult


@dataclass(frozen=True, slots=True)
class RecordDeleted(MoveEvent):
    """Somebody deleted a record."""


# -- people and policies ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MoveApproved(MoveEvent):
    """Somebody approved a proposal."""


@dataclass(frozen=True, slots=True)
class MoveRejected(MoveEvent):
    """Somebody rejected a proposal."""


@dataclass(frozen=True, slots=True)
class ApprovalWithdrawn(MoveEvent):
    """Nothing is said of a proposal any more."""


@dataclass(frozen=True, slots=True)
class PolicyChanged:
    """A policy was changed, suspended or deleted.

    Attributes:
        policy: Its name.
        mode: Its mode now; None when it rebalances no longer.
        evict_by: How its pods leave now.
        request_timeout_s: Seconds that a pod gets now that leaves by EvictionRequest.
    """

    policy: str
    mode: Mode | None
    evict_by: EvictBy | None = None
    request_timeout_s: float = float("inf")


@dataclass(frozen=True, slots=True)
class StopPressed:
    """The stop button is pressed.

    Attributes:
        sentence: Who says so, for records.
    """

    sentence: str


@dataclass(frozen=True, slots=True)
class HoldUpsChanged:
    """What holds moves up may have ended: a run, the stop button, displaced pods, missing rights."""


@dataclass(frozen=True, slots=True)
class PodProtected(MoveEvent):
    """A pod that was asked to leave may not be evicted any more.

    Attributes:
        reason: Why, in one word.
        message: The same in a sentence.
    """

    reason: str
    message: str


# -- computed by the machine itself ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TurnReached(MoveEvent):
    """Nothing that a move has waited for is left.

    Attributes:
        move: For a proposal, the move for the pod as it is now.
    """

    move: Move | None = None


@dataclass(frozen=True, slots=True)
class MoveSkipped(MoveEvent):
    """A move need not be made: its pod has left, or was asked to by an earlier run."""


@dataclass(frozen=True, slots=True)
class BundleBroken(MoveEvent):
    """A move is not made, because another one of its bundle is not.

    Attributes:
        cause: What the record is to say.
    """

    cause: Landing


# -- nodes -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodeClosed:
    """The scheduler sees the node closed that a bundle empties.

    Attributes:
        bundle: Its key.
    """

    bundle: str


@dataclass(frozen=True, slots=True)
class NodeNotClosed:
    """The node that a bundle empties could not be closed.

    Attributes:
        bundle: Its key.
    """

    bundle: str


# -- the planner about the present cluster ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Revalidated(MoveEvent):
    """The planner would make the move now as well.

    Attributes:
        move: As it is now.
        way: How the pod is made to leave.
        request_timeout_s: Seconds that a pod gets that leaves by EvictionRequest.
    """

    move: Move
    way: Way
    request_timeout_s: float = float("inf")


@dataclass(frozen=True, slots=True)
class RevalidationRefused(MoveEvent):
    """The planner would not make the move now, or a budget that has closed forbids it.

    Attributes:
        cause: What the record is to say: Cancelled or Blocked.
    """

    cause: Landing


# -- the API server's answers ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EvictionAnswered(MoveEvent):
    """The Eviction API has answered.

    Attributes:
        answer: What it said.
        broke: Whether asking it raised; there is no further try then.
    """

    answer: WriteResult
    broke: bool = False


@dataclass(frozen=True, slots=True)
class RequestAnswered(MoveEvent):
    """The creation of an EvictionRequest was answered.

    Attributes:
        answer: What the API server said.
        broke: Whether asking it raised; there is no further try then.
    """

    answer: WriteResult
    broke: bool = False


@dataclass(frozen=True, slots=True)
class RequestProgressed(MoveEvent):
    """An EvictionRequest has changed, or is gone.

    Attributes:
        request: As it is; None when somebody deleted it.
        problem: Reason and sentence when the API is served no longer; None while it is.
        is_known: Whether the API server could be read; nothing follows otherwise, and it is read again.
    """

    request: EvictionRequest | None
    problem: tuple[str, str] | None = None
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class RequestReviewed(MoveEvent):
    """What may call off a move whose pod was just asked to leave, as it is now.

    Attributes:
        mode: Of the policy; None when no policy of the name is known.
        evict_by: How the policy's pods leave.
        request_timeout_s: Seconds that a pod gets that leaves by EvictionRequest.
        call_off: What the record is to say when the pod is to stay whatever the policy wants, or None.
    """

    mode: Mode | None
    evict_by: EvictBy | None = None
    request_timeout_s: float = float("inf")
    call_off: Landing | None = None


@dataclass(frozen=True, slots=True)
class RolloutAnswered(MoveEvent):
    """A Deployment was looked at, and maybe marked.

    Attributes:
        sight: What it says of the surge.
        answer: The last answer of the API server.
        patience_s: The Deployment's progress deadline in seconds; infinite when it was not read.
    """

    sight: RolloutSight
    answer: WriteResult
    patience_s: float = float("inf")


# -- pods ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PodTerminating(MoveEvent):
    """The pod that is moved is on its way out."""


@dataclass(frozen=True, slots=True)
class PodGone(MoveEvent):
    """The pod that is moved was deleted, or has ended.

    Attributes:
        deleted: Whether the pod does not exist any more.
    """

    deleted: bool = True


@dataclass(frozen=True, slots=True)
class ReplacementEvent(MoveEvent):
    """Something has happened to the pod that replaces the moved one.

    Attributes:
        pod: The replacement.
    """

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
    """A deadline has passed.

    Attributes:
        timer: Which.
    """

    timer: TimerName


Event = MoveEvent | BundlePlanned | PolicyChanged | StopPressed | HoldUpsChanged | NodeClosed | NodeNotClosed
