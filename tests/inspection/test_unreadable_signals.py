"""Values that cannot be read protect, and a run and an explanation say so, for every row."""

from __future__ import annotations

from typing import Any

import pytest

from inspection.contents import content_of
from plimsoll.inspection.explanations.node import explain_node
from plimsoll.inspection.explanations.pod import explain_pod
from plimsoll.inspection.state import ClusterState
from plimsoll.planning.planners import make_plan
from plimsoll.toolkit.descheduling.disruption_signals import (
    SIGNALS,
    Bearer,
    DisruptionSignal,
    Effect,
    Form,
    Reading,
)

#: Values that no owner reads, by what it reads.
UNREADABLE = {
    Reading.TRUE: "30m",
    Reading.FALSE: "no",
    Reading.TRUE_OR_DURATION: "half an hour",
    Reading.NUMBER: "much",
    Reading.NUMBER_OR_NEVER: "much",
}

#: What a policy runs, by the effect of the signal.
STRATEGIES: dict[Effect, list[dict[str, Any]]] = {
    Effect.STAYS: [{"name": "RemovePodsViolatingNodeTaints"}],
    Effect.COST: [
        {
            "name": "LowNodeUtilization",
            "args": {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 60}},
        }
    ],
    Effect.NOT_EMPTIED: [
        {"name": "ConsolidateNodes"},
        {"name": "HighNodeUtilization", "args": {"thresholds": {"cpu": 40}}},
    ],
}

Document = dict[str, Any]


def a_node(name: str, **spec: Any) -> Document:
    """A node of eight cpu."""
    status = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"}}
    return {"kind": "Node", "metadata": {"name": name, "uid": name}, "spec": spec, "status": status}


def a_pod(name: str, node: str, cpu: str, owned_by: str = "web") -> Document:
    """A ready pod of a ReplicaSet."""
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owned_by, "uid": owned_by}
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "uid": name,
            "namespace": "default",
            "creationTimestamp": "2025-12-01T00:00:00Z",
            "ownerReferences": [{**reference, "controller": True}],
        },
        "spec": {
            "nodeName": node,
            "schedulerName": "default-scheduler",
            "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def a_policy(strategies: list[Document]) -> Document:
    """One that moves a single pod, or all of one node."""
    limits = {"total": 1, "perNode": "100%", "perNamespace": "100%", "perWorkload": "100%"}
    rebalancing = {"strategies": strategies, "evictor": {"minReplicas": 0}, "limits": limits}
    spec = {"scheduling": {"schedulerName": "default-scheduler"}, "rebalancing": rebalancing}
    return {"kind": "SchedulingPolicy", "metadata": {"name": "p", "uid": "p"}, "spec": spec}


def a_scene(signal: DisruptionSignal, strategy: Document, *, is_marked: bool) -> ClusterState:
    """A pod p that the strategy moves first, or alone; the signal is on it, its namespace or its node."""
    taints = [{"key": "old", "effect": "NoSchedule"}] if signal.effect is Effect.STAYS else []
    node, other = a_node("n1", taints=taints), a_node("n2")
    pod, namespace = a_pod("p", "n1", "3"), {"kind": "Namespace", "metadata": {"name": "default"}}
    rest = [a_pod("q", "n1", "3")] if signal.effect is Effect.COST else []
    if signal.effect is Effect.NOT_EMPTIED:
        rest = [a_pod("q", "n2", "4", "other")]
    if is_marked:
        bearer = {Bearer.POD: pod, Bearer.NAMESPACE: namespace, Bearer.NODE: node}[signal.bearer]
        bearer["metadata"][f"{signal.form}s"] = {signal.key: UNREADABLE[signal.reading]}
    return ClusterState.of(content_of([node, other, pod, namespace, *rest, a_policy([strategy])]))


@pytest.mark.parametrize(
    ("signal", "strategy"),
    [
        pytest.param(each, strategy, id=f"{each.bearer} {each.form} {each.key} {strategy['name']}")
        for each in SIGNALS
        if each.reading in UNREADABLE
        for strategy in STRATEGIES[each.effect]
    ],
)
def test_a_value_that_cannot_be_read_protects_and_is_said(
    signal: DisruptionSignal, strategy: Document
) -> None:
    """The pod stays or goes last, or the node is not emptied; without the signal it would have been moved."""
    bare, marked = (a_scene(signal, strategy, is_marked=is_marked) for is_marked in (False, True))
    sentence = signal.unreadable(UNREADABLE[signal.reading])

    assert {move.pod.name for move in make_plan(*bare.run_input("p")).moves} == {"p"}
    made = make_plan(*marked.run_input("p"))
    run = [each.refusal.message for each in made.refused] + [said for _, said in made.remarks]
    if signal.bearer is Bearer.NODE:
        explained: Any = explain_node(marked, "n1")
    else:
        explained = explain_pod(marked, "default", "p")

    assert "p" not in {move.pod.name for move in made.moves}
    assert any(sentence in each for each in run)
    assert sentence in explained.model_dump_json().replace('\\"', '"')


def test_values_of_all_other_rows_can_be_read() -> None:
    """Whatever they are: a timestamp, an empty text; of names, those that no volume has are named."""
    others = [each for each in SIGNALS if each.reading not in UNREADABLE]

    assert {each.reading for each in others} == {Reading.ANY, Reading.NAMES}
    assert all(each.says(value) is True for each in others for value in ("", "?", "2026-01-01"))
    assert all(each.form is not Form.TAINT or each.reading is Reading.ANY for each in SIGNALS)
