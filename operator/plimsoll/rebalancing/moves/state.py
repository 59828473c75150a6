"""MoveState says how far one move is; BundleState what the moves of a bundle have in common.

Values only. :mod:`plimsoll.rebalancing.moves.machine` draws the stages and what leads from one to another.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.planning.moves import Move
from plimsoll.ports.eviction_requests import EvictionRequest


class MoveStage(StrEnum):
    """What a move waits for; the value is the code that the tables of the design use."""

    NEW = "new"  #: nothing is known of it
    PROPOSED = "Pr"  #: a person
    WAITING = "Wa"  #: its turn
    OPENING = "Op"  #: the answer to the creation of its record
    CHECKING = "Ch"  #: the planner's answer about the present cluster
    COMMITTING = "Co"  #: the answer to the write that announces what is about to be sent
    EVICTING = "Ev"  #: the Eviction API
    REQUESTING = "Rq"  #: the responders of the pod
    SURGING = "Su"  #: the replacement to be ready, and the old pod to be gone
    REVERTING = "Rv"  #: the Deployment's template to be what it was
    REPLACING = "Re"  #: the replacement
    LEAVING = "Le"  #: the pod to leave; no replacement is expected
    CLOSED = "Cl"  #: nothing


class TimerName(StrEnum):
    """The deadlines that a move can have."""

    RETRY = "retry"
    TAKEN_UP = "takenUp"
    REQUEST_TIMEOUT = "requestTimeout"
    REPLACEMENT = "replacement"
    LEAVING = "leaving"


class Way(StrEnum):
    """How a pod is made to leave."""

    EVICT = "evict"
    REQUEST = "request"
    SURGE = "surge"


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What the machine needs to know of a pod.

    Attributes:
        uid: Of the pod.
        name: Of the pod.
        namespace: Of the pod.
        node: The node that it is on, "" for none.
        phase: Its ``status.phase``.
        ready: Whether its Ready condition is true.
        terminating: Whether it is on its way out.
    """

    uid: str
    name: str
    namespace: str
    node: str = ""
    phase: str = "Pending"
    ready: bool = False
    terminating: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether its containers have ended and are not started again."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def runs(self) -> bool:
        """Whether it runs on a node."""
        return bool(self.node) and self.phase == "Running"


@dataclass(frozen=True, slots=True)
class Landing:
    """How a move ended, or is going to be closed.

    Attributes:
        phase: One of the finished phases.
        reason: Why, in one word.
        message: The same in a sentence.
        replacement: The pod that took the evicted one's place.
        blocked_by: The budget that allowed no eviction.
    """

    phase: Phase
    reason: str
    message: str
    replacement: PodFacts | None = None
    blocked_by: str = ""


_NO_TIMERS: Mapping[TimerName, float] = MappingProxyType({})


def workload_uid(spec: EvictionSpec) -> str:
    """Uid of the workload whose pod a record is about."""
    owner = spec.surge or spec.owner
    return spec.pod.uid if owner is None else owner.uid


@dataclass(frozen=True, slots=True)
class MoveState:
    """How far one move is.

    Attributes:
        key: ``namespace/name`` of its record, also before that is written.
        stage: What it waits for.
        spec: What was decided, as the record has it.
        phase: Of the record, as last handed to the store; None before the record is created.
        reason: Of the record, likewise.
        message: Of the record, likewise.
        move: As planned, later as the planner judged it last; None for records of an earlier process.
        run: The run that decided it, "" for none.
        way: How the pod is made to leave, once that is known.
        bundle: Key of its bundle, "" for none; moves of a run that stand alone have one of their own.
        approved: What people say of a proposal; None for nothing.
        recorded: Whether the record is known to be in the cluster.
        ending: What the record says as soon as it is known to be in the cluster; None for nothing.
        landing: An outcome that was seen before the answer to what was sent.
        replacement: The pod that is credited to the move.
        request: The EvictionRequest as last seen; None for none.
        request_timeout_s: Seconds that a pod gets that leaves by EvictionRequest.
        holds: Whether the target is reserved.
        was_running: Whether a replacement has been seen running.
        was_ready: Whether a replacement has been seen ready.
        pod_terminating: Whether the pod is on its way out.
        pod_gone: Whether the pod has left.
        may_tell: Whether the pod stood when the eviction was sent, so that its going says something.
        answer_lost: Whether an answer to what was sent got lost.
        attempts: How often it was sent.
        begun_at: When the pod was asked to leave, in seconds of the monotonic clock.
        patience_s: Seconds that a replacement gets to run, and then again to become ready.
        begun: Whether the pod leaves, or was asked to: the next move of the bundle may follow.
        awaits: The answers that are outstanding, each by the name of what was asked.
        timers: When its deadlines are, in seconds of the monotonic clock.
    """

    key: str
    stage: MoveStage
    spec: EvictionSpec
    phase: Phase | None = None
    reason: str = ""
    message: str = ""
    move: Move | None = None
    run: str = ""
    way: Way = Way.EVICT
    bundle: str = ""
    approved: bool | None = None
    recorded: bool = False
    ending: Landing | None = None
    landing: Landing | None = None
    replacement: PodFacts | None = None
    request: EvictionRequest | None = None
    request_timeout_s: float = float("inf")
    holds: bool = False
    was_running: bool = False
    was_ready: bool = False
    pod_terminating: bool = False
    pod_gone: bool = False
    may_tell: bool = False
    answer_lost: bool = False
    attempts: int = 0
    begun_at: float = 0.0
    patience_s: float = 300.0
    begun: bool = False
    awaits: frozenset[str] = frozenset()
    timers: Mapping[TimerName, float] = field(default_factory=lambda: _NO_TIMERS)

    @property
    def policy(self) -> str:
        """Whose decision it is."""
        return self.spec.policy

    @property
    def pod_uid(self) -> str:
        """Of the pod that is moved."""
        return self.spec.pod.uid

    @property
    def workload(self) -> str:
        """Uid of the workload whose pod is moved."""
        return workload_uid(self.spec)


@dataclass(frozen=True, slots=True)
class BundleState:
    """What the moves of a bundle have in common; a move that stands alone has a bundle of one.

    Attributes:
        key: Tells it from other bundles.
        policy: Whose decision it is.
        members: Keys of the moves, in the order in which they are made.
        size: How many moves it has; more than members when records of an earlier process are missing.
        proposed: Whether people are asked.
        due: Whether its moves are made, one after the other; false for a proposal that waits for a person.
        empties: The node that is to be closed before its pods go, "" for none.
        closing: Whether the answer to closing that node is outstanding.
        closed: Whether the scheduler sees that node closed.
        beneficiaries: For whom room is made: uid of the pod, and its node.
        keeps_room: Whether room has been reserved for them.
        skipped: Keys of the moves that need not be made: their pods have left, or were asked to.
        arrived: Keys of the members that were told of.
        parked: Whether the next move waits for another one of its workload.
        held: Whether all moves of a proposal are approved and something else holds them up.
        broken: Whether the node that was to be emptied could not be closed.
    """

    key: str
    policy: str
    members: tuple[str, ...]
    size: int
    proposed: bool = False
    due: bool = True
    empties: str = ""
    closing: bool = False
    closed: bool = False
    beneficiaries: tuple[tuple[str, str], ...] = ()
    keeps_room: bool = False
    skipped: frozenset[str] = frozenset()
    arrived: frozenset[str] = frozenset()
    parked: bool = False
    held: bool = False
    broken: bool = False


class Surroundings(Protocol):
    """What the machine reads of the world at the moment of an event; in memory, never awaited."""

    def pod(self, uid: str) -> PodFacts | None:
        """A pod, placed or not; None when there is none."""

    def held_up(self, policy: str) -> str:
        """Why approved moves of a policy wait (stop, displaced pods, missing rights); "" if not."""

    def waits(self, uid: str) -> bool:
        """Whether a pod still waits for a node."""

    def needless(self, key: str) -> str:
        """Why a victim need not go: the pod that it makes room for waits no longer; "" when it must."""

    def proposed(self, specs: Sequence[EvictionSpec]) -> tuple[Move, ...] | None:
        """The moves of approved records, for the pods as they are; None when they would be for no pod."""

    def empties(self, move: Move) -> bool:
        """Whether the move empties its node together with others of its bundle."""

    def cannot_request(self) -> tuple[str, str] | None:
        """Reason and sentence why no EvictionRequest can be made now; None when it can."""
