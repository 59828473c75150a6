"""Every row of the table of signals has its effect in the whole operator; without it the same pods move."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from cases.test_cases import decide
from plimsoll.toolkit.descheduling.disruption_signals import (
    REQUEST_EVICT_ONLY,
    SIGNALS,
    Bearer,
    DisruptionSignal,
    Effect,
    Form,
    Reading,
)

VALUES = {
    Reading.TRUE: "true",
    Reading.FALSE: "false",
    Reading.TRUE_OR_DURATION: "true",
    Reading.NUMBER: "5",
    Reading.NUMBER_OR_NEVER: "2147483647",
    Reading.NAMES: "scratch",
    Reading.ANY: "2026-01-01T12:00:00Z",
}
"""A value for which the row has its effect."""

TAINT = {"key": "old", "effect": "NoSchedule"}


def a_node(name: str, signal: DisruptionSignal | None = None, *taints: dict[str, Any]) -> dict[str, Any]:
    node: dict[str, Any] = {
        "kind": "Node",
        "metadata": {"name": name},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"}},
    }
    return node if signal is None else marked(node, signal, VALUES[signal.reading])


def a_pod(name: str, node: str, **spec: Any) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "uid": name, "ownerReferences": [owner]},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "app"}], **spec},
    }


def marked(document: dict[str, Any], signal: DisruptionSignal, value: str) -> dict[str, Any]:
    """The object with a signal on it."""
    if signal.form is Form.TAINT and signal.effect is Effect.CORDONED:
        document["spec"]["unschedulable"] = True
    elif signal.form is Form.TAINT:
        document["spec"]["taints"].append({"key": signal.key, "value": value, "effect": "NoSchedule"})
    else:
        document["metadata"].setdefault(f"{signal.form}s", {})[signal.key] = value
    return document


def moved(strategy: str, objects: list[dict[str, Any]], most: str | int = "100%", **args: Any) -> set[str]:
    """The pods that a run of the strategy moves, at most so many."""
    rebalancing = {
        "mode": "Enforce",
        "strategies": [{"name": strategy, "args": args}],
        "limits": {
            "total": most,
            **dict.fromkeys(("perNode", "perNamespace", "perWorkload", "perMinute"), "100%"),
        },
        "evictor": {"minReplicas": 0},
    }
    spec = {"scheduling": {"schedulerName": "default-scheduler"}, "rebalancing": rebalancing}
    policy = {"kind": "SchedulingPolicy", "metadata": {"name": "p"}, "spec": spec}
    *_, ran = decide({"policies": [policy], "objects": objects, "steps": [{"run": "p"}]})
    return {name.removeprefix("default/") for name in ran.get("evicted", {})}


def of_taints(first: dict[str, Any], *others: dict[str, Any]) -> set[str]:
    """The pods that leave a tainted node for an open one."""
    return moved(
        "RemovePodsViolatingNodeTaints",
        [a_node("n1", None, TAINT), a_node("n2"), first, a_pod("q", "n1"), *others],
    )


TOLERANT = {"tolerations": [{"operator": "Exists", "key": key} for key in sorted(
    {each.key for each in SIGNALS if each.form is Form.TAINT} | {"node.kubernetes.io/unschedulable"}
)]}  # fmt: skip


def effect_of(signal: DisruptionSignal | None, effect: Effect, bearer: Bearer) -> set[str]:
    """The pods that move in the scene for an effect, with the signal or without one."""
    pod = a_pod("p", "n1")
    value = "" if signal is None else VALUES[signal.reading]
    match effect:
        case Effect.STAYS if bearer is Bearer.NAMESPACE:
            namespace = {"kind": "Namespace", "metadata": {"name": "default"}}
            return of_taints(pod, namespace if signal is None else marked(namespace, signal, value))
        case Effect.STAYS | Effect.IN_PROGRESS:
            return of_taints(pod if signal is None else marked(pod, signal, value))
        case Effect.GOES_LAST | Effect.COST:
            objects = [
                a_node("n1"),
                a_node("n2"),
                pod if signal is None else marked(pod, signal, value),
                a_pod("q", "n1"),
            ]
            for each in objects[2:]:
                each["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "3"}}
            lines = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 60}}
            return moved("LowNodeUtilization", objects, 1, **lines)
        case Effect.LOCAL_VOLUMES:
            pod = a_pod("p", "n1", volumes=[{"name": "scratch", "emptyDir": {}}])
            return of_taints(pod if signal is None else marked(pod, signal, value))
        case Effect.LEAVING | Effect.NO_TARGET | Effect.CORDONED:
            there = [a_node("n1", None, TAINT), a_node("n2", signal), a_pod("to", "n1", **TOLERANT)]
            back = [a_node("n1", signal, TAINT), a_node("n2"), a_pod("from", "n1", **TOLERANT)]
            return {name for each in (there, back) for name in moved("RemovePodsViolatingNodeTaints", each)}
        case Effect.NOT_EMPTIED | Effect.CARRIED_OUT:
            raise AssertionError("another test has this scene")


bare = functools.cache(functools.partial(effect_of, None))

EXPECTED = {
    Effect.STAYS: ({"q"}, {"p", "q"}),
    Effect.IN_PROGRESS: ({"q"}, {"p", "q"}),
    Effect.GOES_LAST: ({"q"}, {"p"}),
    Effect.COST: ({"q"}, {"p"}),
    Effect.LOCAL_VOLUMES: ({"p", "q"}, {"q"}),
    Effect.LEAVING: (set[str](), {"to", "from"}),
    Effect.NO_TARGET: ({"from"}, {"to", "from"}),
    Effect.CORDONED: ({"to", "from"}, {"to", "from"}),
}
"""The pods that move, with the signal and without it."""


@pytest.mark.parametrize(
    "signal",
    [each for each in SIGNALS if each.effect in EXPECTED],
    ids=lambda row: f"{row.bearer} {row.form} {row.key}",
)
def test_each_row_has_its_effect(signal: DisruptionSignal) -> None:
    """On the object that the row names, with a value that its owner reads.

    tests/strategies/test_consolidate_nodes.py has the rows about nodes that are not emptied, and
    tests/writers/test_evicting.py that of pods whose eviction others carry out.
    """
    with_it, without = EXPECTED[signal.effect]

    assert effect_of(signal, signal.effect, signal.bearer) == (
        set() if signal.bearer is Bearer.NAMESPACE else with_it
    )
    assert bare(signal.effect, signal.bearer) == without


def test_no_row_is_without_a_test() -> None:
    """A new effect needs one here, or in one of the two files that the test above names."""
    assert {*EXPECTED, Effect.NOT_EMPTIED, Effect.CARRIED_OUT} == set(Effect)
    assert [each.key for each in SIGNALS if each.effect is Effect.CARRIED_OUT] == [REQUEST_EVICT_ONLY]


@pytest.mark.parametrize(
    ("key", "value", "stays"),
    [
        ("karpenter.sh/do-not-disrupt", "True", True),
        ("karpenter.sh/do-not-disrupt", "-5m", True),
        ("karpenter.sh/do-not-disrupt", "half an hour", True),
        ("karpenter.sh/do-not-disrupt", "5m", True),  # it has not started
        ("karpenter.sh/do-not-disrupt", "false", False),
        ("cluster-autoscaler.kubernetes.io/safe-to-evict", "no", True),
        ("plimsoll.dev/evict", "False", True),
        ("plimsoll.dev/evict", "true", False),
        ("scheduling.koordinator.sh/eviction-cost", "much", True),
        ("scheduling.koordinator.sh/eviction-cost", "100", False),
    ],
)
def test_a_value_that_cannot_be_read_protects(key: str, value: str, stays: bool) -> None:
    """And one that says the opposite does not."""
    pod = a_pod("p", "n1")
    pod["metadata"]["annotations"] = {key: value}

    assert ("p" in of_taints(pod)) is not stays
