"""Explanations by load, of placed pods and of hot nodes."""

from typing import Any

from msgspec.structs import replace

from inspection.contents import NOW, a_node_document, a_pod_document, a_policy_document, content_of
from plimsoll.inspection.explanations.node import NodePolicyView, explain_node
from plimsoll.inspection.explanations.placed_pod import ScoredNode
from plimsoll.inspection.explanations.pod import explain_pod
from plimsoll.inspection.load import node_loads
from plimsoll.inspection.state import ClusterState
from plimsoll.ports.usage import UsageReading
from plimsoll.snapshots.content import UsageContent

CORE, GIB = 10**9, 2**30 * 10**9

BY_LOAD = {
    "name": "LowNodeUtilization",
    "args": {
        "thresholds": {"cpu": 20},
        "targetThresholds": {"cpu": 60},
        "metricsUtilization": {"source": "KubernetesMetrics"},
    },
}


def policy(high: int = 60, **scheduling: Any) -> dict[str, Any]:
    strategy = {**BY_LOAD, "args": {**BY_LOAD["args"], "targetThresholds": {"cpu": high}}}  # type: ignore[dict-item] # a literal of strings
    return a_policy_document(
        scheduling={
            "schedulerName": "plimsoll",
            "plugins": {"score": {"enabled": [{"name": "NodeLoad", "weight": 3}]}},
            **scheduling,
        },
        rebalancing={
            "mode": "Enforce",
            "strategies": [strategy],
            "metricsProviders": [{"source": "KubernetesMetrics"}],
        },
    )


def reading(name: str, cores: float, age: float = 20.0) -> UsageReading:
    return UsageReading(name, {"cpu": int(cores * CORE), "memory": GIB}, NOW.timestamp() - age)


def started(name: str) -> dict[str, Any]:
    document = a_pod_document(name, "a", cpu="100m")
    document["status"]["startTime"] = "2026-01-31T10:00:00Z"
    return document


def a_state(*without: str, **fields: Any) -> ClusterState:
    """Three pods on a, which use 3.2 of its 4 cores together; b and c have none."""
    used = {"web-0": 1.2, "web-1": 1.0, "web-2": 1.0}
    content = content_of(
        [
            *(a_node_document(name) for name in "abc"),
            *map(started, used),
            policy(**fields),
        ]
    )
    pods = [reading(f"shop/{name}", cores) for name, cores in used.items() if name not in without]
    nodes = [reading("a", 3.2), reading("b", 0.2), reading("c", 0.4, age=400.0)]
    return ClusterState.of(replace(content, usage=UsageContent(nodes, pods)))


def scored(state: ClusterState, pod: str) -> dict[str, ScoredNode]:
    found = explain_pod(state, "shop", pod).placed
    assert found is not None
    return {each.node: each for each in found.scores}


def test_nodes_say_how_old_their_readings_are() -> None:
    """By the state's own clock; one that there is not has no age."""
    ages = {"a": 0.0, "b": 0.4, "c": 399.96}
    content = replace(
        content_of([policy(), *(a_node_document(name) for name in "abcd")]),
        usage=UsageContent([reading(name, 1.0, age) for name, age in ages.items()], []),
    )
    found = {each.node: each.age_seconds for each in node_loads(ClusterState.of(content)).nodes}

    assert found == {"a": 0.0, "b": 0.4, "c": 400.0, "d": None}


def test_a_placed_pod_says_what_each_node_would_use_with_it() -> None:
    """Its own node without it, and with it; how old the reading is, and what is not measured."""
    found = scored(a_state(), "web-2")

    assert found["a"].load == "55% + 25% = 80% cpu, 25% + 12% = 38% memory, read 20 s ago"
    assert found["b"].load == "5% + 25% = 30% cpu, 12% + 12% = 25% memory, read 20 s ago"
    assert found["c"].load.endswith("read 400 s ago, which is too old")


def test_a_pod_that_is_not_measured_is_estimated() -> None:
    """By 85 % of its request."""
    found = scored(a_state("web-0"), "web-2")

    assert found["a"].load.endswith("read 20 s ago, 1 pod estimated")


def test_a_profile_that_places_by_requests_says_nothing_of_load() -> None:
    """What nodes use has no part in its scores."""
    found = scored(a_state(plugins={}), "web-2")

    assert {each.load for each in found.values()} == {""}


def view(state: ClusterState) -> NodePolicyView:
    (found,) = explain_node(state, "a").policies
    return found


def test_a_hot_node_says_which_pods_would_be_moved() -> None:
    """By the plan of the policy, which reads what is measured."""
    found = view(a_state())

    assert found.classes == {"LowNodeUtilization": "Overutilized"}
    assert found.leave != []


def test_a_hot_node_says_why_none_is_moved() -> None:
    """Pods that are not measured stay."""
    found = view(a_state("web-0", "web-1", "web-2"))

    assert found.leave == []
    assert found.classes == {"LowNodeUtilization": "Overutilized"}
    assert found.stay or found.remarks
