"""A group that preempts, against a search through all sets of victims, and planted faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.engine.gangs import fewer_victims
from plimsoll.model.gang_members import GangUnits
from plimsoll.toolkit.scheduling.disruption_budgets import DisruptionBudgets
from whole_groups.preemption import preempt

if TYPE_CHECKING:
    from collections.abc import Callable

SEEDS = (*range(100), 290, 329, 360)  # the last two: members that together exceed a budget


def test_a_group_takes_victims_that_may_leave_and_no_more_than_it_needs() -> None:
    found = [preempt(seed) for seed in SEEDS]

    assert [fault for each in found for fault in each.faults] == []
    assert sum(bool(each.victims) for each in found) > len(SEEDS) // 6
    assert sum(any(each.excess) for each in found) <= 3


def budgets_count_again_for_each_member(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DisruptionBudgets, "take", lambda _, __: None)


def victims_are_not_put_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fewer_victims, "MOST_SPARED", 0)


def the_last_of_a_group_has_no_group(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GangUnits, "priority_of", lambda _, pod: pod.priority)


@pytest.mark.parametrize(
    "fault",
    [
        budgets_count_again_for_each_member,
        victims_are_not_put_back,
        the_last_of_a_group_has_no_group,
    ],
)
def test_a_fault_is_found(
    fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)

    assert any(preempt(seed).faults for seed in SEEDS)
