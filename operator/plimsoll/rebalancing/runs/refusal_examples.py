"""Abridges plans: counts of all refusals, and a few examples of each reason.

A plan for a large cluster may refuse a hundred thousand pods. The planning process counts the refusals; the
event loop receives only the counts and the examples.
"""

from collections import defaultdict
from collections.abc import Iterable

from msgspec.structs import replace

from plimsoll.planning.moves import EvictionPlan, Refused
from plimsoll.strategies.drain_nodes import DrainNodes

#: Strategies whose refusals are all kept: a NodeMaintenance says of each of its nodes what keeps it.
WHOLE = frozenset((DrainNodes.name,))

#: Number of example pods per reason.
EXAMPLES = 5


def abridged(plan: EvictionPlan) -> EvictionPlan:
    """The plan with examples in place of all refusals; :func:`examples` returns the same for both."""
    by_reason: dict[str, dict[str, Refused]] = defaultdict(dict)
    for each in plan.refused:
        by_reason[each.refusal.reason].setdefault(each.pod.uid, each)
    few = {id(each) for found in by_reason.values() for each in chosen(found.values())}
    refused = tuple(each for each in plan.refused if id(each) in few or each.strategy in WHOLE)
    return replace(plan, refused=refused, counts=plan.counted())


def chosen(refused: Iterable[Refused]) -> tuple[Refused, ...]:
    """Some refusals in their order; one of each owner before a second one of any."""
    first: dict[str, Refused] = {}
    others: list[Refused] = []
    for each in refused:
        owner = each.pod.pod.metadata.owner
        workload = owner.uid if owner else each.pod.uid
        if workload not in first:
            first[workload] = each
        elif len(others) < EXAMPLES:
            others.append(each)
        if len(first) == EXAMPLES:
            break
    return (*first.values(), *others)


def examples(refused: Iterable[Refused]) -> tuple[str, ...]:
    """Some pods with their owners."""
    texts = []
    for each in chosen(refused):
        owner = each.pod.pod.metadata.owner
        texts.append(each.pod.key + (f" ({owner.kind} {owner.name})" if owner else ""))
    return tuple(dict.fromkeys(texts))[:EXAMPLES]
