"""Node fit, against the cases of upstream's own tests: messages, and ignored criteria."""

from typing import Any

import pytest

from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.toolkit.descheduling.node_fit import fits_any_node, fits_any_other_node, refusal_of
from strategies.builders import a_context

HOSTNAME = "kubernetes.io/hostname"


def against(key: str, **labels: Any) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def judged(pod: Pod, node: Node, *others: Pod) -> str:
    context = a_context([a_node("own"), node], [pod, *others])
    return refusal_of(context.cluster.pods[pod.uid], node, context)


@pytest.mark.parametrize(
    ("pod", "node", "refusal"),
    [
        pytest.param({}, {}, "", id="fits"),
        pytest.param({}, {"unschedulable": True}, "node is not schedulable", id="cordoned"),
        pytest.param(
            {"node_selector": {"disk": "ssd"}},
            {},
            "pod node selector does not match the node label",
            id="selector",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {
                                    "matchFields": [
                                        {"key": "metadata.name", "operator": "In", "values": ["own"]}
                                    ]
                                }
                            ]
                        }
                    }
                }
            },
            {},
            "pod node selector does not match the node label",
            id="bound-to-its-node-by-name",
        ),
        pytest.param(
            {}, {"taints": ["x:NoSchedule"]}, "pod does not tolerate taints on the node", id="taint"
        ),
        pytest.param(
            {}, {"taints": ["x:NoExecute"]}, "pod does not tolerate taints on the node", id="no-execute"
        ),
        pytest.param({}, {"taints": ["x:PreferNoSchedule"]}, "", id="soft-taint"),
        pytest.param(
            {"tolerations": [{"key": "load", "operator": "Gt", "value": "5"}]},
            {"taints": ["load=7:NoSchedule"]},
            "",
            id="numeric-toleration",
        ),
        pytest.param({"cpu": "5"}, {"cpu": "4"}, "insufficient cpu", id="cpu"),
        pytest.param({"memory": "9Gi"}, {"memory": "8Gi"}, "insufficient memory", id="memory"),
        pytest.param(
            {"requests": {"ephemeral-storage": "1Gi"}}, {}, "insufficient ephemeral-storage", id="storage"
        ),
        pytest.param({"requests": {"x.io/gpu": 1}}, {}, "insufficient x.io/gpu", id="a-resource-it-lacks"),
        pytest.param(
            {"requests": {"x.io/gpu": 1}}, {"allocatable": {"x.io/gpu": 1}}, "", id="a-resource-it-has"
        ),
        pytest.param({"requests": {"x.io/gpu": 0}}, {}, "", id="nothing-of-a-resource-it-lacks"),
        pytest.param({}, {"pods": 0}, "insufficient pods", id="pods"),
        pytest.param({"cpu": "1", "overhead": {"cpu": "4"}}, {"cpu": "4"}, "insufficient cpu", id="overhead"),
        pytest.param(
            {
                "cpu": "1",
                "initContainers": [
                    {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "4"}}}
                ],
            },
            {"cpu": "4"},
            "insufficient cpu",
            id="sidecar",
        ),
    ],
)
def test_the_first_refusal(pod: dict[str, Any], node: dict[str, Any], refusal: str) -> None:
    """In upstream's order and words."""
    assert judged(a_pod("p", node="own", **pod), a_node("other", **node)) == refusal


def test_what_others_take_is_taken() -> None:
    """Requests of the pods on the node count."""
    other = a_pod("q", node="other", cpu="3500m")

    assert judged(a_pod("p", node="own", cpu="1"), a_node("other", cpu="4"), other) == "insufficient cpu"


def test_what_a_node_lacks_is_not_used_up() -> None:
    """Pods on it that ask for it leave room for a pod that asks for nothing of it."""
    other = a_pod("q", node="other", requests={"x.io/gpu": 1})

    assert judged(a_pod("p", node="own", requests={"x.io/gpu": 0}), a_node("other"), other) == ""


@pytest.mark.parametrize(
    ("key", "other", "fits"),
    [
        pytest.param(HOSTNAME, {"labels": {"a": "b"}}, False, id="conflict"),
        pytest.param("rack", {"labels": {"a": "b"}}, True, id="node-without-the-topology-key"),
        pytest.param(HOSTNAME, {"labels": {"a": "c"}}, True, id="other-labels"),
        pytest.param(HOSTNAME, {"labels": {"a": "b"}, "namespace": "other"}, True, id="another-namespace"),
        pytest.param(
            HOSTNAME, {"labels": {"a": "b"}, "namespace": "other", "name": "p"}, True, id="namesake"
        ),
    ],
)
def test_its_own_anti_affinity_on_the_node(key: str, other: dict[str, Any], fits: bool) -> None:
    """Only pods on that very node, only if the node has the topology key."""
    rival = a_pod(**{"name": "q", "node": "other", **other})
    refusal = judged(a_pod("p", node="own", affinity=against(key, a="b")), a_node("other"), rival)

    assert refusal == ("" if fits else "pod matches inter-pod anti-affinity rule of other pod on node")


def test_a_rule_that_cannot_be_read_fits_nowhere() -> None:
    """Upstream gives up on the node."""
    term = {
        "topologyKey": HOSTNAME,
        "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Bogus"}]},
    }
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    refusal = judged(a_pod("p", node="own", affinity=affinity), a_node("other"))

    assert refusal == "pod has an inter-pod anti-affinity rule that cannot be read"


def test_its_own_node_needs_no_room() -> None:
    """Any node may be its own, any other may not."""
    pod = a_pod("p", node="own", cpu="4")
    context = a_context([a_node("own", cpu="4"), a_node("small", cpu="1")], [pod])
    info = context.cluster.pods[pod.uid]

    assert fits_any_node(info, context.nodes, context)
    assert not fits_any_other_node(info, context.nodes, context)
