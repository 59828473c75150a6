"""MoveState says how far one move is; BundleState what the moves of a bundle have in common.

Values only. :mod:`plimsoll.rebalancing.moves.machine` draws the stages and what leads from one to another.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from types import MappingProxyType

from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.planning.moves import Move
from plimsoll.ports.eviction_requests import EvictionRequest
from plimsoll.ports.writes import WriteResult


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


#: Stages of a move whose replacement other moves of the workload wait for.
IN_FLIGHT = frozenset(
    {
        MoveStage.COMMITTING,
        MoveStage.EVICTING,
        MoveStage.REQUESTING,
        MoveStage.SURGING,
        MoveStage.REVERTING,
        MoveStage.REPLACING,
    }
)


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
    """What the machine needs to know of a pod."""

    uid: str
    name: str
    namespace: str
    node: str = ""
    phase: str = "Pending"  #: its ``status.phase``
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
    """How a move ended, or is going to be closed."""

    phase: Phase  #: a finished one
    reason: str
    message: str
    replacement: PodFacts | None = None  #: the pod that took the evicted one's place
    blocked_by: str = ""  #: the budget that allowed no eviction


def workload_uid(spec: EvictionSpec) -> str:
    """Uid of the workload whose pod a record is about."""
    owner = spec.surge or spec.owner
    return spec.pod.uid if owner is None else owner.uid


@dataclass(frozen=True, slots=True)
class MoveState:
    """How far one move is; moments are in seconds of the monotonic clock."""

    key: str  #: ``namespace/name`` of its record, also before that is written
    stage: MoveStage
    spec: EvictionSpec
    phase: Phase | None = None  #: of the record, as last handed to the store; None before it is created
    reason: str = ""  #: of the record, likewise
    message: str = ""  #: of the record, likewise
    move: Move | None = None  #: as the planner judged it last; None for records of an earlier process
    run: str = ""  #: that decided it, "" for none
    way: Way = Way.EVICT  #: how the pod is made to leave, once that is known
    bundle: str = ""  #: its key; a move of a run that stands alone has a bundle of one
    approved: bool | None = None  #: what people say of a proposal; None for nothing
    recorded: bool = False  #: whether the record is known to be in the cluster
    ending: Landing | None = None  #: what the record says as soon as it is known to be in the cluster
    landing: Landing | None = None  #: an outcome that was seen before the answer to what was sent
    replacement: PodFacts | None = None  #: the pod that is credited to the move
    request: EvictionRequest | None = None  #: as last seen
    request_timeout_s: float = inf  #: seconds that a pod gets that leaves by EvictionRequest
    holds: bool = False  #: whether the target is reserved
    was_running: bool = False  #: whether a replacement has been seen running
    was_ready: bool = False  #: whether a replacement has been seen ready
    pod_terminating: bool = False
    pod_gone: bool = False
    may_tell: bool = False  #: whether the pod stood when the eviction was sent: its going says something
    answer_lost: bool = False  #: whether an answer to what was sent got lost
    attempts: int = 0  #: how often it was sent
    refusal: WriteResult | None = None  #: the last answer, while the watch may show that the pod leaves
    begun_at: float = 0.0  #: when the pod was asked to leave by EvictionRequest
    patience_s: float = 300.0  #: seconds that a replacement gets to run, and then again to become ready
    begun: bool = False  #: whether the pod leaves, or was asked to: the next move of the bundle may follow
    awaits: frozenset[str] = frozenset()  #: the answers that are outstanding, by ``asks`` of the instruction
    timers: Mapping[TimerName, float] = field(default_factory=lambda: MappingProxyType({}))  #: deadlines

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
    """What the moves of a bundle have in common; a move that stands alone has a bundle of one."""

    key: str
    policy: str
    members: tuple[str, ...]  #: keys of the moves, in the order in which they are made
    size: int  #: more than the members when records of an earlier process are missing
    due: bool = True  #: whether its moves are made, one after the other; not while it waits for a person
    empties: str = ""  #: the node that is to be closed before its pods go, "" for none
    closing: bool = False  #: whether the answer to closing that node is outstanding
    closed: bool = False  #: whether the scheduler sees that node closed
    broken: bool = False  #: whether that node could not be closed
    beneficiaries: tuple[tuple[str, str], ...] = ()  #: for whom room is made: uid of the pod, and its node
    skipped: frozenset[str] = frozenset()  #: moves that need not be made: the pod has left, or was asked to
    arrived: frozenset[str] = frozenset()  #: the members that were planned, or found after a restart
    parked: bool = False  #: whether it waits for other moves, or is approved and held up


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the machine reads of the world at the moment of an event; in memory, never awaited."""

    pod: Callable[[str], PodFacts | None]  #: by uid, placed or not; None for one that does not exist
    held_up: Callable[[str], str]  #: why approved moves of a policy wait; "" when they do not
    waits: Callable[[str], bool]  #: whether a pod, by uid, still waits for a node
    needless: Callable[[str], str]  #: why a victim, by record, need not go; "" when it must
    #: The moves of approved records, for the pods as they are; None when they would be for no pod.
    proposed: Callable[[Sequence[EvictionSpec]], tuple[Move, ...] | None]
    empties: Callable[[Move], bool]  #: whether a move empties its node together with others of its bundle
    cannot_request: Callable[[], tuple[str, str] | None]  #: reason and sentence why there are no requests
