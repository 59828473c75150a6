"""Instructions of the move machine; the executor carries them out and decides nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.planning.moves import Move
from plimsoll.rebalancing.moves.state import PodFacts, TimerName


@dataclass(frozen=True, slots=True)
class MoveInstruction:
    """Something to be done for one move."""

    key: str


# -- records ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreateRecord(MoveInstruction):
    """Write the record of a move; answered by ``RecordWritten`` or ``RecordRefused``."""

    spec: EvictionSpec
    phase: Phase
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class WriteRecord(MoveInstruction):
    """Write a record's status; answered by ``RecordWritten`` or ``RecordRefused``."""

    phase: Phase
    reason: str
    message: str
    blocked_by: str = ""
    replacement: PodFacts | None = None


# -- room ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReserveTarget(MoveInstruction):
    """Keep the target for the replacement of a pod.

    Attributes:
        move: Whose target; None after a restart: then as the record says, shaped after the pod or a sibling.
    """

    move: Move | None


@dataclass(frozen=True, slots=True)
class TransferTarget(MoveInstruction):
    """Keep the target in the name of the replacement, which has no node yet."""

    pod: PodFacts


@dataclass(frozen=True, slots=True)
class ReleaseTarget(MoveInstruction):
    """The target is kept no longer, neither for a move that waits nor for one under way."""


@dataclass(frozen=True, slots=True)
class ReleaseReplacement(MoveInstruction):
    """The replacement has a node, or has ended: it needs no nomination any more."""

    uid: str


@dataclass(frozen=True, slots=True)
class ReserveRoom:
    """Keep the room that a bundle makes; nothing happens when it is kept already.

    Attributes:
        bundle: Its key.
        pods: For whom: uid of the pod, and its node.
        leaving: Uids of the pods that have to leave until the room is there.
    """

    bundle: str
    pods: tuple[tuple[str, str], ...]
    leaving: frozenset[str]


@dataclass(frozen=True, slots=True)
class ReleaseRoom:
    """The room of a bundle is kept no longer."""

    bundle: str


# -- the replacement -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FollowReplacement(MoveInstruction):
    """Look out for the pod that replaces the moved one; what is seen comes as replacement events.

    Attributes:
        spec: Of the record.
        since: Pods of the owner that were made before replace no other pod; None for all that are there.
    """

    spec: EvictionSpec
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class StopFollowing(MoveInstruction):
    """Look out no longer.

    Attributes:
        spent: Uid of the pod that the record names as the replacement, which replaces no other pod; or "".
    """

    spent: str = ""


# -- the cluster -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Revalidate(MoveInstruction):
    """Have the planner judge the move in the present cluster.

    Answered by ``Revalidated`` or ``RevalidationRefused``.

    Attributes:
        move: As planned.
        run: The run that decided it.
        evicted: How many moves of that run, or of the proposal, have been made.
    """

    move: Move
    run: str
    evicted: int


@dataclass(frozen=True, slots=True)
class Evict(MoveInstruction):
    """Ask the Eviction API; answered by ``EvictionAnswered``."""

    move: Move


@dataclass(frozen=True, slots=True)
class RequestEviction(MoveInstruction):
    """Create an EvictionRequest; answered by ``RequestAnswered``."""

    move: Move


@dataclass(frozen=True, slots=True)
class InspectRequest(MoveInstruction):
    """Say how an EvictionRequest is as soon as that is known; answered by ``RequestProgressed``."""


@dataclass(frozen=True, slots=True)
class ReviewRequest(MoveInstruction):
    """Say what may call the move off now: policy, stop button, pod; answered by ``RequestReviewed``.

    Attributes:
        spec: Of the record.
    """

    spec: EvictionSpec


@dataclass(frozen=True, slots=True)
class WithdrawRequest(MoveInstruction):
    """Withdraw an EvictionRequest."""


@dataclass(frozen=True, slots=True)
class StartRollout(MoveInstruction):
    """Mark the Deployment's template; answered by ``RolloutAnswered``.

    Attributes:
        spec: Of the record.
    """

    spec: EvictionSpec


@dataclass(frozen=True, slots=True)
class RevertRollout(MoveInstruction):
    """Make the mark what it was, if the Deployment is unchanged; answered by ``RolloutAnswered``.

    Attributes:
        spec: Of the record.
    """

    spec: EvictionSpec


@dataclass(frozen=True, slots=True)
class CloseNode:
    """Close a node before its pods go; answered by ``NodeClosed`` or ``NodeNotClosed``."""

    bundle: str
    node: str


@dataclass(frozen=True, slots=True)
class NodeDone:
    """The bundle that closed a node is over: from now on the records say whether it stays closed.

    Attributes:
        node: Its name.
        reopen: Whether it is opened immediately.
    """

    node: str
    reopen: bool


# -- what people and policies see ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EmitEvent:
    """Record an event.

    Attributes:
        reference: The object that it is about.
        reason: One word.
        action: What was attempted.
        message: The sentence.
    """

    reference: Mapping[str, str]
    reason: str
    action: str
    message: str


@dataclass(frozen=True, slots=True)
class CountMove:
    """Count a move in its policy's status.

    Attributes:
        policy: Whose.
        run: The run that decided it, "" for none.
        evicted: How many pods leave.
        verified: How many replacements have settled.
    """

    policy: str
    run: str
    evicted: int = 0
    verified: int = 0


@dataclass(frozen=True, slots=True)
class NoteDisplacement:
    """A policy is about to move a pod: count who has a place now."""

    policy: str


# -- time ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RetryAt(MoveInstruction):
    """Answer with ``TimedOut`` at a moment, in seconds of the monotonic clock."""

    timer: TimerName
    at: float


@dataclass(frozen=True, slots=True)
class CancelTimer(MoveInstruction):
    """A deadline holds no longer."""

    timer: TimerName


Instruction = (
    MoveInstruction
    | ReserveRoom
    | ReleaseRoom
    | CloseNode
    | NodeDone
    | EmitEvent
    | CountMove
    | NoteDisplacement
)
