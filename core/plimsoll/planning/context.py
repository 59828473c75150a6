"""Makes the context of a plan from facts, by one reading for the operator, snapshots and replays."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from datetime import UTC, datetime

from msgspec import Struct

from plimsoll.framework import PodInfo
from plimsoll.framework.descheduling.measurements import Measurements
from plimsoll.planning.history import MoveHistory, UnreadyReplacement
from plimsoll.planning.moves import Monotonic, PlanningContext, RebalancingConfig
from plimsoll.planning.surges import Deployments

#: Seconds for which the replacement of a moved pod is left alone.
SETTLING_S = 3600.0

#: Seconds over which the rate of evictions is limited.
RATE_S = 60.0


class SentMove(Struct, frozen=True):
    """A move whose pod was asked to leave.

    Attributes:
        workload: Key of the pod's workload; "" for a victim of preemption, which no limit counts.
        nodes: The node that was left, the planned one and that of the replacement, as far as they are known.
        ended: Seconds since the epoch; None while the replacement is awaited.
        replacement: Uid of the pod that is left alone from then on; "" without one, and for one that is back
            on its node.
    """

    workload: str
    nodes: tuple[str, ...]
    ended: float | None = None
    replacement: str = ""


class PlanningFacts(Struct, frozen=True, kw_only=True):
    """What a plan is made from in addition to the placed pods; there are no defaults, so none is forgotten.

    Attributes:
        now: Seconds since the epoch.
        unplaced: Pods without a place, such as pending and ended ones.
        served: Uids of those for which earlier moves have reserved room.
        moves: Moves that were sent, finished or not.
        in_flight: Number of moves that wait for their replacement, by workload key.
        followed: Uids of pods that are credited to moves under way.
        memory: The past moves and the restrictions that follow.

    The others are those of :class:`plimsoll.planning.moves.PlanningContext`.
    """

    now: float
    unplaced: Iterable[PodInfo]
    served: Container[str]
    moves: Iterable[SentMove]
    in_flight: Mapping[str, int]
    followed: frozenset[str]
    moving: frozenset[str]
    memory: MoveHistory
    recent: int
    hourly: Mapping[str, int]
    unready: Mapping[str, UnreadyReplacement]
    gangs: Mapping[str, int]
    over_for: Mapping[tuple[str, str], int]
    others: Mapping[str, RebalancingConfig]
    measurements: Measurements
    deployments: Deployments
    monotonic: Monotonic


def of(facts: PlanningFacts) -> PlanningContext:
    """The context of a plan that is made now."""
    moves = tuple(facts.moves)
    settling = {
        each.replacement
        for each in moves
        if each.replacement and each.ended is not None and facts.now - each.ended < SETTLING_S
    }
    return PlanningContext(
        now=datetime.fromtimestamp(facts.now, UTC),
        unplaced=tuple(pod for pod in facts.unplaced if pod.uid not in facts.served),
        in_flight=facts.in_flight,
        measurements=facts.measurements,
        memory=facts.memory,
        recent=facts.recent,
        hourly=facts.hourly,
        over_for=facts.over_for,
        deployments=facts.deployments,
        others=facts.others,
        moved=facts.followed | settling,
        moving=facts.moving,
        gangs=facts.gangs,
        touched=touched_nodes(moves, facts.now),
        unready=facts.unready,
        monotonic=facts.monotonic,
    )


def under_way(moves: Iterable[SentMove]) -> Counter[str]:
    """The number of moves that wait for their replacement, by workload key."""
    return Counter(each.workload for each in moves if each.ended is None and each.workload)


def touched_nodes(moves: Iterable[SentMove], now: float) -> dict[str, float]:
    """By node, when a pod was last moved off or to it; ``now`` while a move is under way."""
    found: dict[str, float] = {}
    for move in moves:
        moment = now if move.ended is None else min(move.ended, now)
        for node in move.nodes:
            found[node] = max(found.get(node, 0.0), moment)
    return found
