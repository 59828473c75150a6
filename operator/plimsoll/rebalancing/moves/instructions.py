"""Instructions of the move machine; the executor carries them out and decides nothing.

An instruction with a response names in ``asks`` what the move awaits until that event.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar

from msgspec import Struct

from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.model.names import BundleKey, NodeName, PodUid, RecordKey
from plimsoll.planning.moves import Move
from plimsoll.rebalancing.moves.state import PodFacts, TimerName


class MoveInstruction(Struct, frozen=True):
    """An instruction for one move."""

    asks: ClassVar[str] = ""  #: the response, as in ``answers`` of the event; "" for none

    key: RecordKey


class CreateRecord(MoveInstruction, frozen=True):
    """Write the record of a move; ``RecordAnswered`` has the response."""

    asks: ClassVar[str] = "record"
    spec: EvictionSpec
    phase: Phase
    reason: str
    message: str


class WriteRecord(MoveInstruction, frozen=True):
    """Write a record's status; ``RecordAnswered`` has the response."""

    asks: ClassVar[str] = "record"
    phase: Phase
    reason: str
    message: str
    blocked_by: str = ""
    replacement: PodFacts | None = None


class ReserveTarget(MoveInstruction, frozen=True):
    """Reserve the target of a move for the replacement, even while the move waits for its turn."""

    move: Move | None  #: None after a restart: uses the record, with the shape of the pod or a sibling


class TransferTarget(MoveInstruction, frozen=True):
    """Reserve the target for the replacement itself, which has no node yet."""

    pod: PodFacts


class ReleaseTarget(MoveInstruction, frozen=True):
    """Release the target."""


class ReleaseReplacement(MoveInstruction, frozen=True):
    """Release the replacement's nomination: it has a node, or has ended."""

    uid: PodUid


class ReserveRoom(Struct, frozen=True):
    """Reserve the room that a bundle makes, unless it is reserved."""

    bundle: BundleKey
    pods: tuple[tuple[PodUid, NodeName], ...]  #: the beneficiaries: uid of the pod, and its node
    leaving: frozenset[PodUid]  #: uids of the pods that must leave to make the room


class ReleaseRoom(Struct, frozen=True):
    """Release the room of a bundle, if it has any."""

    bundle: BundleKey


class FollowReplacement(MoveInstruction, frozen=True):
    """Follow the replacement of the moved pod; it is reported by replacement events."""

    spec: EvictionSpec
    since: datetime | None = None  #: older pods do not count; None: existing ones neither


class StopFollowing(MoveInstruction, frozen=True):
    """Stop following."""

    spent: str = ""  #: uid of the recorded replacement, which replaces no other pod; or ""
    owner: str = ""  #: uid of its owner, for an earlier process's record


class Revalidate(MoveInstruction, frozen=True):
    """Have the planner judge the move; the result is ``Revalidated`` or ``RevalidationRefused``."""

    asks: ClassVar[str] = "planner"
    move: Move
    run: str  #: the run that decided it
    evicted: int  #: number of moves made for that run or proposal


class Evict(MoveInstruction, frozen=True):
    """Send an eviction; ``EvictionAnswered`` has the response."""

    asks: ClassVar[str] = "eviction"
    move: Move


class StartRollout(MoveInstruction, frozen=True):
    """Mark the Deployment's template, or raise its replicas; the result is ``RolloutAnswered``."""

    asks: ClassVar[str] = "rollout"
    spec: EvictionSpec


class LowerReplicas(MoveInstruction, frozen=True):
    """Take the replica more away again, and the pod with it; the result is ``RolloutAnswered``."""

    asks: ClassVar[str] = "rollout"
    spec: EvictionSpec


class RevertRollout(MoveInstruction, frozen=True):
    """Revert the mark if the Deployment is unchanged; the result is ``RolloutAnswered``."""

    asks: ClassVar[str] = "rollout"
    spec: EvictionSpec


class CloseNode(Struct, frozen=True):
    """Close a node before its pods leave; the result is ``NodeClosed``."""

    bundle: BundleKey
    node: str


class NodeDone(Struct, frozen=True):
    """Leave a closed node to its records, which decide whether it stays closed; its bundle is over."""

    node: str
    reopen: bool  #: immediately


class EmitEvent(Struct, frozen=True):
    """Record a Kubernetes event."""

    reference: Mapping[str, str]  #: the involved object
    reason: str
    action: str
    message: str
    is_warning: bool = False


class CountMove(Struct, frozen=True):
    """Count a move in its policy's status."""

    policy: str
    run: str  #: the run that decided it, "" without one
    evicted: int = 0  #: number of leaving pods
    verified: int = 0  #: number of settled replacements


class NoteDisplacement(Struct, frozen=True):
    """Count the pods with a place, as a policy is about to make a move."""

    policy: str


class RetryAt(MoveInstruction, frozen=True):
    """Post ``TimedOut`` at a moment, in monotonic seconds."""

    timer: TimerName
    at: float


class CancelTimer(MoveInstruction, frozen=True):
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
