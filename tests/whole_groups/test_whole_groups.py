"""Groups stay whole under all strategies and preemption: random clusters, and planted faults."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from plimsoll.engine.gangs.topology_domains import TopologyPlacement
from plimsoll.framework import PodInfo, all_feasible
from plimsoll.framework.descheduling import context as descheduling
from plimsoll.model.gang_members import GangUnits
from plimsoll.model.group_trees import GroupTrees
from plimsoll.rebalancing.execution import revalidation
from plimsoll.toolkit.scheduling import gang_victims
from whole_groups.world import Story, play

SEEDS = (2, 3, 6, 9, 10, 19, 21)


def played(*seeds: int) -> tuple[list[str], Counter[str]]:
    stories: list[Story] = [asyncio.run(play(seed)) for seed in seeds]
    broken = [sentence for each in stories for sentence in each.broken]
    return broken, sum((each.counts for each in stories), Counter[str]())


def test_no_strategy_and_no_preemption_breaks_a_group() -> None:
    broken, counts = played(*SEEDS)

    assert broken == []
    assert counts["groups that left whole"] >= 4
    assert counts["spare members that left"] >= 2
    assert counts["evicted"] >= 10
    assert counts["members in a zone"] >= 8
    assert counts["members of composite groups"] >= 12


def strategies_ignore_groups(patch: pytest.MonkeyPatch) -> None:
    for module in (descheduling, revalidation):
        patch.setattr(module, "bound_to_gang", lambda *_, **__: None)


def victims_are_single(patch: pytest.MonkeyPatch) -> None:
    def single(pod: PodInfo, pods: Sequence[PodInfo], _: object) -> list[gang_victims._Portion]:
        lower = (each for each in pods if each.priority < pod.priority)
        return [gang_victims._Portion((each,), 1, priority=each.priority) for each in lower]

    patch.setattr(gang_victims, "_portions", single)


def one_member_more_is_spare(patch: pytest.MonkeyPatch) -> None:
    found = GangUnits.of

    def of(units: Any, pod: Any) -> Any:
        unit = found(units, pod)
        return unit and unit._replace(spare=unit.spare + 1)

    patch.setattr(GangUnits, "of", of)


def a_group_is_placed_anywhere(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TopologyPlacement, "filter", lambda _, __, ___, snapshot: all_feasible(snapshot))


def groups_of_a_tree_leave_one_by_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupTrees, "binding", lambda *_: "")


FAULTS = (
    strategies_ignore_groups,
    victims_are_single,
    one_member_more_is_spare,
    a_group_is_placed_anywhere,
    groups_of_a_tree_leave_one_by_one,
)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(
    fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)

    assert any(played(seed)[0] for seed in SEEDS)
