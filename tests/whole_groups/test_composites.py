"""Composite groups in racks: against a search through all ways, and planted faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from plimsoll.engine.gangs import composite
from whole_groups.composites import preempt, start_again, start_together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from whole_groups.composites import Outcome

SEEDS = (*range(12), 17, 33, 87)  # the last two need members left out, and another order


def judged() -> list[str]:
    """What went wrong."""
    found = [start_together(seed) for seed in SEEDS]
    assert any(each.started for each in found)
    missed = [
        f"{seed} waits" for seed, each in zip(SEEDS, found, strict=True) if each.may_start > each.started
    ]
    return [*missed, *(fault for each in found for fault in each.faults)]


def test_composite_groups_start_whole_where_they_can() -> None:
    assert judged() == []


def groups_are_tried_in_one_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(composite, "MOST_ORDERS", 0)


def further_members_come_first(patch: pytest.MonkeyPatch) -> None:
    placed = composite._placed

    def greedy(node: Any, scope: Any) -> Any:
        return placed(node, replace(scope, only_needed=False))

    patch.setattr(composite, "_placed", greedy)


def groups_do_not_see_those_before_them(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(composite, "_repeat", lambda *_: None)


def groups_below_are_not_confined(patch: pytest.MonkeyPatch) -> None:
    leaf = composite._leaf
    patch.setattr(composite, "_leaf", lambda node, scope: leaf(node, replace(scope, domains=())))


def a_group_too_few_is_enough(patch: pytest.MonkeyPatch) -> None:
    place = composite._place_composite

    def lenient(root: Any, *args: Any, **more: Any) -> Any:
        return place(replace(root, least=max(1, root.least - 1)), *args, **more)

    patch.setattr(composite, "_place_composite", lenient)


@pytest.mark.parametrize(
    "fault",
    [
        groups_are_tried_in_one_order,
        further_members_come_first,
        groups_do_not_see_those_before_them,
        groups_below_are_not_confined,
        a_group_too_few_is_enough,
    ],
)
def test_a_fault_is_found(
    fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)

    assert judged() != []


#: Where room has to be made, and enough can be.
MADE = (14, 22, 25, 27, 38, 42, 43, 44, 45, 52, 57, 58, 60, 65, 73, 78, 79, 87, 101, 102)


@pytest.mark.parametrize(
    ("story", "seeds"),
    [
        pytest.param(start_again, range(40), id="members-come-late-or-are-lost"),
        pytest.param(preempt, MADE, id="others-make-room"),
    ],
)
def test_composite_groups_start_whole_the_second_time(
    story: Callable[[int], Outcome], seeds: Iterable[int]
) -> None:
    """And preempt for what they need alone: no member of theirs, none twice, and none in vain."""
    found = {seed: story(seed) for seed in seeds}

    assert sum(each.started for each in found.values()) >= 20
    assert [seed for seed, each in found.items() if each.may_start > each.started] == []
    assert {seed: each.faults for seed, each in found.items() if each.faults} == {}
