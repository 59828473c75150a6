"""Compares the moves of two sets of policies on one cluster."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import zip_longest

from plimsoll.inspection.plans.answer import (
    ComparedMove,
    PlanComparison,
    PlannedMove,
    PolicyPlan,
    Presence,
)

_Mover = tuple[str, PlannedMove]
"""A policy and a move of its plan."""


def compared(new: Iterable[PolicyPlan], old: Iterable[PolicyPlan], against: str) -> PlanComparison:
    """Moves of only the new policies, and of only the old ones; ``against`` names the old set."""
    plans = tuple(old)
    moves = tuple(_pairs(_by_pod(new), _by_pod(plans)))
    counts = Counter(each.presence for each in moves)
    return PlanComparison(
        against=against,
        only_new=counts[Presence.ONLY_NEW],
        only_old=counts[Presence.ONLY_OLD],
        both=counts[Presence.BOTH],
        elsewhere=counts[Presence.ELSEWHERE],
        moves=moves,
        old=plans,
    )


def _by_pod(plans: Iterable[PolicyPlan]) -> dict[str, list[_Mover]]:
    found: defaultdict[str, list[_Mover]] = defaultdict(list)
    for plan in plans:
        for move in plan.moves:
            found[move.pod].append((plan.policy, move))
    return found


def _pairs(new: dict[str, list[_Mover]], old: dict[str, list[_Mover]]) -> Iterable[ComparedMove]:
    """The moves by pod, those of the new policies first, each in the order of execution."""
    for pod in dict.fromkeys([*new, *old]):
        for one, other in zip_longest(new.get(pod, ()), old.get(pod, ())):
            yield _pair(one, other)


def _pair(new: _Mover | None, old: _Mover | None) -> ComparedMove:
    either = new or old
    assert either is not None
    presence = Presence.ONLY_OLD if new is None else Presence.ONLY_NEW
    if new is not None and old is not None:
        same = new[1].target_node == old[1].target_node
        presence = Presence.BOTH if same else Presence.ELSEWHERE
    return ComparedMove(
        presence=presence,
        pod=either[1].pod,
        source_node=either[1].source_node,
        new_target_node=new[1].target_node if new else None,
        old_target_node=old[1].target_node if old else None,
        new_policy=_by(new),
        old_policy=_by(old),
    )


def _by(mover: _Mover | None) -> str | None:
    return None if mover is None else f"{mover[0]} ({mover[1].strategy})"
