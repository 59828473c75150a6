"""The states of moves and bundles.

Values only. :mod:`plimsoll.rebalancing.moves.machine` draws the stages and the transitions between them.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from math import inf
from types import MappingProxyType

from msgspec import Struct, field

from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.model.names import BundleKey, NodeName, PodUid, PolicyName, RecordKey
from plimsoll.planning.moves import Move
from plimsoll.ports.writes import WriteResult
from plimsoll.records.record import recorded_workload


class MoveStage(StrEnum):
    """What a move waits for; the value is the code in the design's tables."""

    NEW = "new"  #: nothing is known about it
    PROPOSED = "Pr"  #: a person
    WAITING = "Wa"  #: its turn
    OPENING = "Op"  #: the response to the creation of its record
    CHECKING = "Ch"  #: the planner's judgement in the present cluster
    COMMITTING = "Co"  #: the response to the write that announces the move
    READY = "Rd"  #: the announcements of the other members of its group, then its turn
    EVICTING = "Ev"  #: the Eviction API
    SURGING = "Su"  #: the replacement to be ready, and the old pod gone
    REVERTING = "Rv"  #: the Deployment's template to be reverted
    REPLACING = "Re"  #: the replacement
    LEAVING = "Le"  #: the pod to leave; no replacement is expected
    CLOSED = "Cl"  #: nothing


#: Stages of a move whose replacement other moves of the workload wait for.
IN_FLIGHT = frozenset(
    {
        MoveStage.COMMITTING,
        MoveStage.READY,
        MoveStage.EVICTING,
        MoveStage.SURGING,
        MoveStage.REVERTING,
        MoveStage.REPLACING,
    }
)

#: Stages of a decided move whose record does not announce the eviction yet.
NOT_ANNOUNCED = frozenset({MoveStage.WAITING, MoveStage.OPENING, MoveStage.CHECKING})

#: Stages of a decided move whose pod has not been seen to leave.
BEFORE_LEAVING = NOT_ANNOUNCED | IN_FLIGHT - {MoveStage.REPLACING}


class TimerName(StrEnum):
    """The deadlines of a move."""

    RETRY = "retry"
    SIGN = "sign"
    DEFERRAL = "deferral"
    REPLACEMENT = "replacement"
    LEAVING = "leaving"


class EvictionMethod(StrEnum):
    """How a pod is made to leave."""

    EVICT = "evict"
    SURGE = "surge"


class PodFacts(Struct, frozen=True):
    """The facts about a pod that the machine needs."""

    uid: PodUid
    name: str
    namespace: str
    node: NodeName = NodeName("")
    phase: str = "Pending"  #: its ``status.phase``
    ready: bool = False
    terminating: bool = False
    in_progress: bool = False  #: whether an annotation says that its eviction is in progress

    @property
    def has_ended(self) -> bool:
        """Whether its containers have ended and are not restarted."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def runs(self) -> bool:
        """Whether it runs on a node."""
        return bool(self.node) and self.phase == "Running"


class Landing(Struct, frozen=True):
    """How a move has ended, or will be closed."""

    phase: Phase  #: a finished one
    reason: str
    message: str
    replacement: PodFacts | None = None  #: the pod that replaced the evicted one
    blocked_by: str = ""  #: the budget that blocked the eviction


class MoveState(Struct, frozen=True):
    """The state of one move; moments are in monotonic seconds."""

    key: RecordKey  #: ``namespace/name`` of its record, even before that is written
    stage: MoveStage
    spec: EvictionSpec
    phase: Phase | None = None  #: of the record, as last passed to the store; None before its creation
    reason: str = ""  #: of the record, likewise
    message: str = ""  #: of the record, likewise
    move: Move | None = None  #: as last judged by the planner; None for an earlier process's records
    run: str = ""  #: the run that decided it, "" without one
    way: EvictionMethod = EvictionMethod.EVICT  #: how the pod is made to leave, once known
    bundle: BundleKey = BundleKey("")  #: its key; a single move of a run has a bundle of one
    approved: bool | None = None  #: people's answer to a proposal; None without one
    recorded: bool = False  #: whether the record is known to exist
    ending: Landing | None = None  #: what the record gets as soon as it is known to exist
    landing: Landing | None = None  #: an outcome that was seen before the response
    replacement: PodFacts | None = None  #: the pod credited to the move
    deferral_timeout_s: float = inf  #: time limit of an eviction that others carry out, in seconds
    holds: bool = False  #: whether the target is reserved
    was_running: bool = False  #: whether a replacement has been seen running
    was_ready: bool = False  #: whether a replacement has been seen ready
    is_lowered: bool = False  #: whether its Deployment has as many replicas again as before the surge
    pod_terminating: bool = False
    pod_gone: bool = False
    may_tell: bool = False  #: whether the pod existed when the eviction was sent, so that its leaving counts
    answer_lost: bool = False  #: whether a response to what was sent was lost
    deferred: bool = False  #: whether another component carries the eviction out
    mark: bool | None = None  #: whether the pod said so last; None while it has not
    leaves_until: float = inf  #: when a pod that was evicted counts as stuck
    attempts: int = 0  #: how often it was sent
    refusal: WriteResult | None = None  #: the last response, while the watch may show that the pod leaves
    patience_s: float = 300.0  #: seconds within which a replacement must run, and then again be ready
    begun: bool = False  #: whether the pod leaves, or others carry its eviction out: the next move may follow
    awaits: frozenset[str] = frozenset()  #: the outstanding responses, by ``asks`` of the instruction
    timers: Mapping[TimerName, float] = field(default_factory=lambda: MappingProxyType({}))  #: deadlines

    @property
    def policy(self) -> PolicyName:
        """The name of its policy."""
        return PolicyName(self.spec.policy)

    @property
    def pod_uid(self) -> PodUid:
        """The moved pod's uid."""
        return PodUid(self.spec.pod.uid)

    @property
    def workload(self) -> str:
        """The key of the moved pod's workload."""
        return recorded_workload(self.spec)


class BundleState(Struct, frozen=True):
    """The state that the moves of a bundle share; a single move has a bundle of one."""

    key: BundleKey
    policy: PolicyName
    members: tuple[RecordKey, ...]  #: keys of the moves, in order
    size: int  #: more than the members if records of an earlier process are missing
    due: bool = True  #: whether its moves are made in turn; False while it waits for a person
    empties: str = ""  #: the node to close before its pods leave, "" for none
    closing: bool = False  #: whether the response to closing that node is outstanding
    closed: bool = False  #: whether the scheduler sees that node closed
    broken: bool = False  #: whether closing that node failed
    beneficiaries: tuple[
        tuple[PodUid, NodeName], ...
    ] = ()  #: the beneficiaries: uid of the pod, and its node
    whole: bool = False  #: whether its moves are all announced before the first pod leaves
    skipped: frozenset[RecordKey] = frozenset()  #: unneeded moves: the pod has left, or was requested to
    arrived: frozenset[RecordKey] = frozenset()  #: the members that were planned, or found after a restart
    parked: bool = False  #: whether it waits for other moves, or is approved and held up


class Surroundings(Struct, frozen=True, kw_only=True):
    """What the machine reads at an event besides its state; in memory, never awaited."""

    pod: Callable[[PodUid], PodFacts | None]  #: by uid, placed or not; None if it does not exist
    held_up: Callable[[PolicyName], str]  #: why a policy's approved moves wait; "" if they do not
    waits: Callable[[PodUid], bool]  #: whether a pod, by uid, still waits for a node
    needless: Callable[[RecordKey], str]  #: why a victim, by record, need not leave; "" if it must
    #: The moves of approved records for the present pods; None if they would help no pod.
    proposed: Callable[[Sequence[EvictionSpec]], tuple[Move, ...] | None]
    empties: Callable[[Move], bool]  #: whether a move empties its node together with others of its bundle
