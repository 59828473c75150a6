"""Policies that ask for the same scheduler name or another order, and the events about what is wrong."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.api.v1alpha1.annotations import OPERATOR
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


def a_pool(name: str, operator: str, *terms: Any, **spec: Any) -> SchedulingPolicy:
    """One of an operator, whose pods need a node that one of these terms matches; without any, all do."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    args = {"addedAffinity": required} if terms else {}
    document = {
        "metadata": {"name": name, "labels": {OPERATOR: operator} if operator else {}},
        "spec": {
            "scheduling": {
                "schedulerName": f"{name}-scheduler",
                "pluginConfig": [{"name": "NodeAffinity", "args": args}],
            },
            **spec,
        },
    }
    return SchedulingPolicy.model_validate(document)


def where(*requirements: tuple[str, ...]) -> dict[str, Any]:
    """A term of requirements, each a key, an operator and values."""
    written = [{"key": key, "operator": word, "values": values} for key, word, *values in requirements]
    return {"matchExpressions": written}


RED = where(("pool", "In", "red"))


@pytest.mark.parametrize(
    ("terms", "overlaps"),
    [
        pytest.param([where(("pool", "In", "blue"))], False, id="another-value"),
        pytest.param([where(("pool", "In", "blue", "red"))], True, id="the-value-among-others"),
        pytest.param([where(("pool", "NotIn", "red", "green"))], False, id="not-that-value"),
        pytest.param([where(("pool", "NotIn", "green"))], True, id="not-another-value"),
        pytest.param([where(("pool", "DoesNotExist"))], False, id="without-the-label"),
        pytest.param([where(("pool", "Exists"))], True, id="with-the-label"),
        pytest.param([where(("pool", "Gt", "3"))], False, id="a-number"),
        pytest.param([where(("zone", "In", "blue"))], True, id="another-label"),
        pytest.param([where(("zone", "In", "a"), ("pool", "In", "blue"))], False, id="one-of-two-excludes"),
        pytest.param([where(("pool", "In", "blue")), where(("zone", "In", "a"))], True, id="an-alternative"),
        pytest.param([], True, id="every-node"),
    ],
)
def test_two_operators_place_on_different_nodes(terms: list[Any], overlaps: bool) -> None:
    """It must follow from what both require; the younger one is refused, whichever it is."""
    policies = [(a_pool("red", "r", RED), ORDER), (a_pool("other", "b", *terms), ORDER)]
    for ordered in (policies, policies[::-1]):
        lost = divide(ordered).lost

        assert {name: reason for name, (reason, _) in lost.items()} == (
            {ordered[1][0].metadata.name: "NodesOverlap"} if overlaps else {}
        )
        if overlaps:
            older = ordered[0][0].metadata
            said = f"the older policy {older.name} of operator {older.labels[OPERATOR]}, and two operators"
            assert said in next(iter(lost.values()))[1]


def test_named_nodes_are_divided_like_labels() -> None:
    """A field is no label, whatever its name."""

    def named(*names: str) -> list[dict[str, Any]]:
        return [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [each]}]} for each in names
        ]

    first, label = a_pool("first", "a", *named("n1", "n2")), where(("metadata.name", "In", "n3"))

    assert not divide([(first, ORDER), (a_pool("second", "b", *named("n3")), ORDER)]).lost
    assert divide([(first, ORDER), (a_pool("second", "b", *named("n3", "n2")), ORDER)]).lost
    assert divide([(first, ORDER), (a_pool("second", "b", label), ORDER)]).lost


def test_what_another_operator_may_do_on_a_node() -> None:
    """Policies of one operator may share nodes; a suspended one places nothing; without NodeAffinity, all."""
    red = a_pool("red", "r", RED)
    off = a_pool("off", "b", where(("pool", "In", "blue")))
    scheduling = off.spec.scheduling
    assert scheduling is not None
    without = {"filter": {"disabled": [{"name": "NodeAffinity"}]}}
    unaware = off.model_copy(
        update={
            "spec": off.spec.model_copy(
                update={"scheduling": scheduling.model_validate({**scheduling.to_wire(), "plugins": without})}
            )
        }
    )

    assert not divide([(red, ORDER), (a_pool("same", "r"), ORDER)]).lost
    assert not divide([(red, ORDER), (a_pool("same", "b", suspend=True), ORDER)]).lost
    assert not divide([(red, ORDER), (off, ("FairShare", None))]).lost, "a queue for each operator"
    assert divide([(red, ORDER), (unaware, ORDER)]).lost["off"][0] == "NodesOverlap"


def test_an_operator_serves_its_own_policies() -> None:
    """What others serve is known by its profile; pods are moved by the operator without a name alone."""
    blue = where(("pool", "In", "blue"))
    moves = {"rebalancing": {"strategies": [{"name": "RemoveDuplicates"}]}}
    policies = [
        (a_pool("red", "r", RED), ORDER),
        (a_pool("blue", "", blue, **moves), ORDER),
        (a_pool("green", "g", where(("pool", "In", "green")), **moves), ORDER),
    ]
    red, unnamed = divide(policies, "r"), divide(policies)

    assert [*red.serving] == ["red-scheduler"]
    assert [*red.described] == [*red.others] == ["blue-scheduler"]
    assert not red.working
    assert [*unnamed.serving] == ["blue-scheduler"]
    assert [each.metadata.name for each in unnamed.working] == ["blue"]
    assert [*unnamed.described] == [*unnamed.others] == ["red-scheduler"]
    assert unnamed.lost == red.lost
    assert unnamed.lost["green"][0] == "OperatorPlacesOnly"
    assert unnamed.lost["green"][1].startswith("spec.rebalancing: operator g only places pods; move pods by")


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
