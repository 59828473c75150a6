"""Policies that ask for the same scheduler name or another order, and the events about what is wrong."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.model.kinds.rebalancing_rule import RebalancingRule
from plimsoll.policies.judgement import divide
from plimsoll.policies.rebalancing_rules import read
from plimsoll.policies.scheduler_names import is_served
from plimsoll.policy_controller.warnings import PolicyWarnings
from plimsoll.testing.builders import a_pod

ORDER, OTHER = ("PrioritySort", None), ("FairShare", "args")


def a_policy(name: str, scheduler: str = "", *, rebalances: bool = False, **spec: Any) -> SchedulingPolicy:
    """One that schedules for a name, rebalances, or both."""
    parts: dict[str, Any] = {}
    if scheduler:
        parts["scheduling"] = {"schedulerName": scheduler}
    if rebalances:
        parts["rebalancing"] = {"strategies": [{"name": "RemoveDuplicates"}]}
    return SchedulingPolicy.model_validate(
        {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "SchedulingPolicy",
            "metadata": {"name": name},
            "spec": {**parts, **spec},
        }
    )


def test_what_one_policy_loses_ends_no_other() -> None:
    """The oldest has its name and decides the order; those after a loser are looked at as well."""
    found = divide(
        [
            (a_policy("first", "a"), ORDER),
            (a_policy("same-name", "a", rebalances=True), ORDER),
            (a_policy("other-order", "b", rebalances=True), OTHER),
            (a_policy("suspended", "c", rebalances=True, suspend=True), OTHER),
            (a_policy("moves", rebalances=True), ("", None)),
            (a_policy("name-of-a-suspended-one", "c"), ORDER),
            (a_policy("last", "b", rebalances=True), ORDER),
        ]
    )

    assert {name: reason for name, (reason, _) in found.lost.items()} == {
        "same-name": "SchedulerNameTaken",
        "other-order": "QueueSortDiffers",
        "name-of-a-suspended-one": "SchedulerNameTaken",
    }
    assert found.lost["same-name"][1].endswith("is served by the older policy first; choose another name")
    assert (
        "the older policy suspended, which is suspended; delete" in found.lost["name-of-a-suspended-one"][1]
    )
    assert found.claimed == {"a": "first", "b": "last", "c": "suspended"}
    assert found.serving.keys() == {"a", "b"}
    assert found.described.keys() == {"c"}
    assert [each.metadata.name for each in found.working] == ["moves", "last"]


@pytest.mark.parametrize(
    ("updates", "due"),
    [
        pytest.param([{"A": "x"}], ["x"], id="new"),
        pytest.param([{"A": "x"}, {"A": "x"}], ["x"], id="not-written-yet"),
        pytest.param([{"A": "x"}, {"A": "y"}], ["y"], id="in-newer-words"),
        pytest.param([{"A": "x"}, {}], [], id="over-before-it-was-written"),
        pytest.param([{"A": "x", "B": "y"}, {"B": "y"}], ["y"], id="one-of-two-is-over"),
        pytest.param([{"A": "x"}, {}, {"A": "x"}], ["x"], id="back-again"),
    ],
)
def test_an_event_is_due_while_its_problem_lasts(updates: list[dict[str, str]], due: list[str]) -> None:
    """Once, however often the policy is looked at before it is written."""
    warnings = PolicyWarnings()
    for notes in updates:
        warnings.update(notes, ())
    policy = {"metadata": {"name": "p", "uid": "u"}}

    assert [each.text for each in warnings.due(policy)] == due
    assert not [*warnings.due(policy)]


@pytest.mark.parametrize("hours", [(), (3,), (15,), (3, 15), (15, 3), (15, 16)])
def test_a_rule_is_open_in_each_of_its_windows(hours: tuple[int, ...]) -> None:
    """Also where another one is closed; without any, always."""
    now = datetime(2026, 1, 31, 3, 30, tzinfo=UTC)
    windows = [{"schedule": f"0 {hour} * * *", "duration": "1h"} for hour in hours]
    spec: dict[str, Any] = {"windows": windows, "maxMovesPerHour": 1}
    rule = read(RebalancingRule(metadata=ObjectMeta(name="r", namespace="a"), spec=spec))

    assert rule.is_open(now) is (not hours or 3 in hours)
    assert (rule.opens(now) is None) is rule.is_open(now)
    assert bool(rule.present("r", now).forbids) is not rule.is_open(now)


@pytest.mark.parametrize(
    ("kind", "reason", "served"),
    [
        ("PodScheduled", "Unschedulable", True),
        ("PodScheduled", "SchedulerError", True),
        ("PodScheduled", "SchedulingGated", False),
        ("Ready", "Unschedulable", False),
    ],
)
def test_a_scheduler_is_known_by_what_only_schedulers_write(kind: str, reason: str, served: bool) -> None:
    """The API server writes that a pod is gated."""
    conditions = [{"type": kind, "status": "False", "reason": reason}]

    assert is_served(a_pod(status={"conditions": conditions})) is served
