"""Instructions of the move machine; the executor carries them out and decides nothing.

Those that are answered with an event say in ``asks`` what the move awaits until then.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.planning.moves import Move
from plimsoll.rebalancing.moves.state import PodFacts, TimerName


@dataclass(frozen=True, slots=True)
class MoveInstruction:
    """Something to be done for one move."""

    asks: ClassVar[str] = ""  #: what is answered, as in ``answers`` of the event; "" for nothing

    key: str


@dataclass(frozen=True, slots=True)
class CreateRecord(MoveInstruction):
    """Write the record of a move; answered by ``RecordAnswered``."""

    asks: ClassVar[str] = "record"
    spec: EvictionSpec
    phase: Phase
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class WriteRecord(MoveInstruction):
    """Write a record's status; answered by ``RecordAnswered``."""

    asks: ClassVar[str] = "record"
    phase: Phase
    reason: str
    message: str
    blocked_by: str = ""
    replacement: PodFacts | None = None


@dataclass(frozen=True, slots=True)
class ReserveTarget(MoveInstruction):
    """Keep the target of a move for the replacement, also of one that waits for its turn."""

    move: Move | None  #: None after a restart: then as the record says, shaped after the pod or a sibling


@dataclass(frozen=True, slots=True)
class TransferTarget(MoveInstruction):
    """Keep the target in the name of the replacement, which has no node yet."""

    pod: PodFacts


@dataclass(frozen=True, slots=True)
class ReleaseTarget(MoveInstruction):
    """The target is kept no longer."""


@dataclass(frozen=True, slots=True)
class ReleaseReplacement(MoveInstruction):
    """The replacement has a node, or has ended: it needs no nomination any more."""

    uid: str


@dataclass(frozen=True, slots=True)
class ReserveRoom:
    """Keep the room that a bundle makes; nothing happens when it is kept already."""

    bundle: str
    pods: tuple[tuple[str, str], ...]  #: for whom: uid of the pod, and its node
    leaving: frozenset[str]  #: uids of the pods that have to leave until the room is there


@dataclass(frozen=True, slots=True)
class ReleaseRoom:
    """The room of a bundle, if it makes any, is kept no longer."""

    bundle: str


@dataclass(frozen=True, slots=True)
class FollowReplacement(MoveInstruction):
    """Look out for the pod that replaces the moved one; what is seen comes as replacement events."""

    spec: EvictionSpec
    since: datetime | None = None  #: older pods of the owner do not count; None: nor do any that are there


@dataclass(frozen=True, slots=True)
class StopFollowing(MoveInstruction):
    """Look out no longer."""

    spent: str = ""  #: uid of the replacement that the record names, which replaces no other pod; or ""
    owner: str = ""  #: uid of its owner, for the record of an earlier process


@dataclass(frozen=True, slots=True)
class Revalidate(MoveInstruction):
    """Have the planner judge the move now; answered by ``Revalidated`` or ``RevalidationRefused``."""

    asks: ClassVar[str] = "planner"
    move: Move
    run: str  #: that decided it
    evicted: int  #: how many moves of that run, or of the proposal, have been made


@dataclass(frozen=True, slots=True)
class Evict(MoveInstruction):
    """Ask the Eviction API; answered by ``EvictionAnswered``."""

    asks: ClassVar[str] = "eviction"
    move: Move


@dataclass(frozen=True, slots=True)
class RequestEviction(MoveInstruction):
    """Create an EvictionRequest; answered by ``EvictionAnswered``."""

    asks: ClassVar[str] = "eviction"
    move: Move


@dataclass(frozen=True, slots=True)
class InspectRequest(MoveInstruction):
    """Say how an EvictionRequest is as soon as that is known; answered by ``RequestProgressed``."""

    asks: ClassVar[str] = "inspection"


@dataclass(frozen=True, slots=True)
class ReviewRequest(MoveInstruction):
    """Say what may call the move off now: policy, stop button, pod; answered by ``RequestReviewed``."""

    spec: EvictionSpec


@dataclass(frozen=True, slots=True)
class WithdrawRequest(MoveInstruction):
    """Withdraw an EvictionRequest."""


@dataclass(frozen=True, slots=True)
class StartRollout(MoveInstruction):
    """Mark the Deployment's template; answered by ``RolloutAnswered``."""

    asks: ClassVar[str] = "rollout"
    spec: EvictionSpec


@dataclass(frozen=True, slots=True)
class RevertRollout(MoveInstruction):
    """Make the mark what it was, if the Deployment is unchanged; answered by ``RolloutAnswered``."""

    asks: ClassVar[str] = "rollout"
    spec: EvictionSpec


@dataclass(frozen=True, slots=True)
class CloseNode:
    """Close a node before its pods go; answered by ``NodeClosed``."""

    bundle: str
    node: str


@dataclass(frozen=True, slots=True)
class NodeDone:
    """The bundle that closed a node is over: from now on the records say whether it stays closed."""

    node: str
    reopen: bool  #: immediately


@dataclass(frozen=True, slots=True)
class EmitEvent:
    """Record a Kubernetes event."""

    reference: Mapping[str, str]  #: the object that it is about
    reason: str
    action: str
    message: str


@dataclass(frozen=True, slots=True)
class CountMove:
    """Count a move in its policy's status."""

    policy: str
    run: str  #: that decided it, "" for none
    evicted: int = 0  #: how many pods leave
    verified: int = 0  #: how many replacements have settled


@dataclass(frozen=True, slots=True)
class NoteDisplacement:
    """A policy is about to move a pod: count who has a place now."""

    policy: str


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
