"""Moves and a world around them, for tests of the move machine."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.cluster.cache import Cache
from plimsoll.model.names import NodeName, PodUid, PolicyName, RecordKey
from plimsoll.planning.limits import Workload, workload_key
from plimsoll.planning.moves import Move, workload_of
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.moves.bundles import beneficiaries_of, bundle_of
from plimsoll.rebalancing.moves.events import BundlePlanned, Event, MovePlanned
from plimsoll.rebalancing.moves.instructions import Instruction
from plimsoll.rebalancing.moves.machine import MoveMachine
from plimsoll.rebalancing.moves.state import BundleState, MoveStage, MoveState, PodFacts, Surroundings
from plimsoll.rebalancing.moves.transition import MoveTable
from plimsoll.rebalancing.records.drafts import first_message, first_reason, key_of, spec_of
from plimsoll.records.record import PREEMPTION
from plimsoll.testing.builders import a_pod
from rebalancing.moves.invariants import checked

POLICY = PolicyName("tidy")
RUN = f"{POLICY}/1"
DONE = WriteResult(WriteOutcome.DONE)
LOST = WriteResult(WriteOutcome.UNKNOWN, "no answer")
GRACE_S = 30  #: of the pods that move
_CACHE = Cache()


def a_move(number: int = 1, *, owner: str = "ReplicaSet/web", phase: str = "Running", **changes: Any) -> Move:
    """The move of a pod of the ReplicaSet web from node bad to node good."""
    spec: dict[str, Any] = {"cpu": "100m", "node": "bad", "terminationGracePeriodSeconds": GRACE_S}
    pod = _CACHE.info(a_pod(f"web-{number}", owner=owner, status={"phase": phase}, **spec))
    workload = (
        Workload(workload_key(pod.namespace, pod.uid), pod.key)
        if changes.get("strategy") == PREEMPTION
        else workload_of(pod)
    )
    plain = Move(
        pod=pod,
        strategy="RemovePodsViolatingNodeTaints",
        reason="it does not tolerate the taint",
        source="bad",
        target="good",
        gain=None,
        ties=0,
        is_forecast=False,
        workload=workload,
    )
    return replace(plain, **changes)


def together(*moves: Move, **changes: Any) -> tuple[Move, ...]:
    """The same as one bundle."""
    name = moves[0].pod.uid
    return tuple(
        replace(move, bundle=name, part=(position, len(moves)), **changes)
        for position, move in enumerate(moves, 1)
    )


def a_victim(number: int = 1) -> Move:
    """A pod that preemption evicts."""
    return a_move(number, strategy=PREEMPTION, target="")


def facts_of(move: Move, **changes: Any) -> PodFacts:
    """The moved pod as the machine sees it."""
    pod = move.pod
    return replace(
        PodFacts(pod.uid, pod.name, pod.namespace, NodeName(move.source), "Running", ready=True), **changes
    )


def a_replacement(number: object = 9, node: str = "good", **changes: Any) -> PodFacts:
    """A pod that takes a moved one's place."""
    return replace(
        PodFacts(PodUid(f"uid-{number}"), f"web-{number}", "default", NodeName(node), "Running", ready=True),
        **changes,
    )


@dataclass
class World:
    """What the machine reads, as fields that a test sets."""

    pods: dict[str, PodFacts] = field(default_factory=dict)
    moves: dict[RecordKey, Move] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    hold_up: str = ""
    has_no_beneficiary: bool = False
    unwanted: set[str] = field(default_factory=set)
    emptied: bool = False

    def pod(self, uid: PodUid) -> PodFacts | None:
        """A pod."""
        return self.pods.get(uid)

    def held_up(self, policy: PolicyName) -> str:
        """Why approved moves wait."""
        return self.hold_up

    def waits(self, uid: str) -> bool:
        """Whether a pod waits for a node."""
        return uid in self.waiting

    def needless(self, key: str) -> str:
        """Why a victim need not go."""
        return "its room is needed no longer" if key in self.unwanted else ""

    def proposed(self, specs: Sequence[EvictionSpec]) -> tuple[Move, ...] | None:
        """The moves of records."""
        by_uid: dict[str, Move] = {move.pod.uid: move for move in self.moves.values()}
        return None if self.has_no_beneficiary else tuple(by_uid[spec.pod.uid] for spec in specs)

    def empties(self, move: Move) -> bool:
        """Whether a move empties its node."""
        return self.emptied

    @property
    def around(self) -> Surroundings:
        """The same as the machine reads it."""
        return Surroundings(
            pod=self.pod,
            held_up=self.held_up,
            waits=self.waits,
            needless=self.needless,
            proposed=self.proposed,
            empties=self.empties,
        )


class Play:
    """A machine, its world, and every instruction that it has given."""

    def __init__(self, tables: Sequence[MoveTable] = ()) -> None:
        self.world = World()
        self.machine = checked(MoveMachine(self.world.around, tables))
        self.now = 1_000.0
        self.ordered: list[Instruction] = []

    def tell(self, *events: Event) -> list[Instruction]:
        """Events; the instructions that follow."""
        orders = [each for event in events for each in self.machine.handle(event, self.now)]
        self.ordered += orders
        return orders

    def plan(
        self,
        *moves: Move,
        mode: Mode = Mode.ENFORCE,
        policy: PolicyName = POLICY,
        empties: str = "",
        size: int | None = None,
    ) -> list[RecordKey]:
        """Plan moves that go together, or one; their keys."""
        keys = [key_of(move, policy, mode, RUN) for move in moves]
        for key, move in zip(keys, moves, strict=True):
            self.world.pods.setdefault(move.pod.uid, facts_of(move))
            self.world.moves[key] = move
        if moves[0].strategy != PREEMPTION:
            self.tell(
                BundlePlanned(
                    BundleState(
                        bundle_of(spec_of(moves[0], policy, mode), keys[0]),
                        policy,
                        tuple(keys),
                        size or len(keys),
                        due=mode is not Mode.APPROVE,
                        empties=empties,
                        beneficiaries=beneficiaries_of(moves[0]),
                        whole=bool(moves[0].whole),
                    )
                )
            )
        for key, move in zip(keys, moves, strict=True):
            self.tell(planned(key, move, mode, policy))
        return keys

    def state(self, key: RecordKey) -> MoveState | None:
        """Of a move."""
        return self.machine.moves.get(key)

    def stage(self, key: RecordKey) -> MoveStage | None:
        """What a move waits for, None when it is unknown."""
        state = self.state(key)
        return None if state is None else state.stage


def planned(
    key: RecordKey, move: Move, mode: Mode = Mode.ENFORCE, policy: PolicyName = POLICY
) -> MovePlanned:
    """The event that a move was planned."""
    return MovePlanned(
        key, spec_of(move, policy, mode), move, RUN, first_reason(mode, move), first_message(move, mode)
    )
