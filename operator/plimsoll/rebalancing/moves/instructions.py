"""Instructions of the move machine; the executor carries them out and decides nothing.

An instruction with a response names in ``asks`` what the move awaits until that event.
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
    """An instruction for one move."""

    asks: ClassVar[str] = ""  #: the response, as in ``answers`` of the event; "" for none

    key: str


@dataclass(frozen=True, slots=True)
class CreateRecord(MoveInstruction):
    """Write the record of a move; ``RecordAnswered`` has the response."""

    asks: ClassVar[str] = "record"
    spec: EvictionSpec
    phase: Phase
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class WriteRecord(MoveInstruction):
    """Write a record's status; ``RecordAnswered`` has the response."""

    asks: ClassVar[str] = "record"
    phase: Phase
    reason: str
    message: str
    blocked_by: str = ""
    replacement: PodFacts | None = None


@dataclass(frozen=True, slots=True)
class ReserveTarget(MoveInstruction):
    """Reserve the target of a move for the replacement, even while the move waits for its turn."""

    move: Move | None  #: None after a restart: uses the record, with the shape of the pod or a sibling


@dataclass(frozen=True, slots=True)
class TransferTarget(MoveInstruction):
    """Reserve the target for the replacement itself, which has no node yet."""

    pod: PodFacts


@dataclass(frozen=True, slots=True)
class ReleaseTarget(MoveInstruction):
    """Release the target."""


@dataclass(frozen=True, slots=True)
class ReleaseReplacement(MoveInstruction):
    """Release the replacement's nomination: it has a node, or has ended."""

    uid: str


@dataclass(frozen=True, slots=True)
class ReserveRoom:
    """Reserve the room that a bundle makes, unless it is reserved."""

    bundle: str
    pods: tuple[tuple[str, str], ...]  #: the beneficiaries: uid of the pod, and its node
    leaving: frozenset[str]  #: uids of the pods that must leave to make the room


@dataclass(frozen=True, slots=True)
class ReleaseRoom:
    """Release the room of a bundle, if it has any."""

    bundle: str


@dataclass(frozen=True, slots=True)
class FollowReplacement(MoveInstruction):
    """Follow the replacement of the moved pod; it is reported by replacement events."""

    spec: EvictionSpec
    since: datetime | None = None  #: older pods do not count; None: existing ones neither


@dataclass(frozen=True, slots=True)
class StopFollowing(MoveInstruction):
    """Stop following."""

    spent: str = ""  #: uid of the recorded replacement, which replaces no other pod; or ""
    owner: str = ""  #: uid of its owner, for an earlier process's record


@dataclass(frozen=True, slots=True)
class Revalidate(MoveInstruction):
    """Have the planner judge the move; the result is ``Revalidated`` or ``RevalidationRefused``."""

    asks: ClassVar[str] = "planner"
    move: Move
    run: str  #: the run that decided it
    evicted: int  #: number of moves made for that run or proposal


@dataclass(frozen=True, slots=True)
class Evict(MoveInstruction):
    """Send an eviction; ``EvictionAnswered`` has the response."""

    asks: ClassVar[str] = "eviction"
    move: Move


@dataclass(frozen=True, slots=True)
class RequestEviction(MoveInstruction):
    """Create an EvictionRequest; ``EvictionAnswered`` has the response."""

    asks: ClassVar[str] = "eviction"
    move: Move


@dataclass(frozen=True, slots=True)
class InspectRequest(MoveInstruction):
    """Read an EvictionRequest as soon as that is possible; the result is ``RequestProgressed``."""

    asks: ClassVar[str] = "inspection"


@dataclass(frozen=True, slots=True)
class ReviewRequest(MoveInstruction):
    """Collect reasons to cancel the move: policy, stop button, pod; the result is ``RequestReviewed``."""

    spec: EvictionSpec


@dataclass(frozen=True, slots=True)
class WithdrawRequest(MoveInstruction):
    """Withdraw an EvictionRequest."""


@dataclass(frozen=True, slots=True)
class StartRollout(MoveInstruction):
    """Mark the Deployment's template; the result is ``RolloutAnswered``."""

    asks: ClassVar[str] = "rollout"
    spec: EvictionSpec


@dataclass(frozen=True, slots=True)
class RevertRollout(MoveInstruction):
    """Revert the mark if the Deployment is unchanged; the result is ``RolloutAnswered``."""

    asks: ClassVar[str] = "rollout"
    spec: EvictionSpec


@dataclass(frozen=True, slots=True)
class CloseNode:
    """Close a node before its pods leave; the result is ``NodeClosed``."""

    bundle: str
    node: str


@dataclass(frozen=True, slots=True)
class NodeDone:
    """Leave a closed node to its records, which decide whether it stays closed; its bundle is over."""

    node: str
    reopen: bool  #: immediately


@dataclass(frozen=True, slots=True)
class EmitEvent:
    """Record a Kubernetes event."""

    reference: Mapping[str, str]  #: the involved object
    reason: str
    action: str
    message: str
    is_warning: bool = False


@dataclass(frozen=True, slots=True)
class CountMove:
    """Count a move in its policy's status."""

    policy: str
    run: str  #: the run that decided it, "" without one
    evicted: int = 0  #: number of leaving pods
    verified: int = 0  #: number of settled replacements


@dataclass(frozen=True, slots=True)
class NoteDisplacement:
    """Count the pods with a place, as a policy is about to make a move."""

    policy: str


@dataclass(frozen=True, slots=True)
class RetryAt(MoveInstruction):
    """Post ``TimedOut`` at a moment, in monotonic seconds."""

    timer: TimerName
    at: float


@dataclass(frozen=True, slots=True)
class CancelTimer(MoveInstruction):
    """Cancel a deadline."""

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
