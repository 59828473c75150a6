"""Groups in racks: against an integer program, and planted faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.engine.gangs import placement
from plimsoll.engine.gangs.topology_domains import Filling
from whole_groups.topology import start

if TYPE_CHECKING:
    from collections.abc import Callable

SEEDS = (*range(24), 114)  # members of the last one fit only jointly


def judged() -> tuple[list[str], float]:
    """What went wrong, and how many racks were used in place of one."""
    found = [start(seed) for seed in SEEDS]
    assert sum(each.started for each in found) > len(SEEDS) // 3
    assert not all(each.started for each in found)
    used, fewest = (sum(each.racks[at] for each in found) for at in (0, 1))
    return [fault for each in found for fault in each.faults], used / fewest


def test_groups_start_where_they_can_and_in_few_racks() -> None:
    faults, ratio = judged()

    assert faults == []
    assert ratio <= 1.03


def members_are_placed_one_by_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(placement, "_jointly", lambda _: None)


def racks_are_filled_from_the_smallest(patch: pytest.MonkeyPatch) -> None:
    def begin(filling: Filling, pod: object) -> str:
        free = [each for each in filling.domains.values if each not in filling.begun]
        filling.begun += free[-1:]
        return free[-1] if free else ""

    patch.setattr(Filling, "begin", begin)


def a_wish_for_a_rack_is_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(placement, "_nearby", placement._anywhere)


@pytest.mark.parametrize(
    "fault",
    [members_are_placed_one_by_one, racks_are_filled_from_the_smallest, a_wish_for_a_rack_is_ignored],
)
def test_a_fault_is_found(
    fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)

    faults, ratio = judged()

    assert faults or ratio > 1.03
