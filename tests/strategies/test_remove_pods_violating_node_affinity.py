"""RemovePodsViolatingNodeAffinity, against the cases of upstream's own tests."""

from typing import Any

import pytest
from pydantic import ValidationError

from plimsoll.framework import PluginError
from plimsoll.model.kinds.node import Node
from plimsoll.strategies.remove_pods_violating_node_affinity import (
    PREFERRED,
    REQUIRED,
    RemovePodsViolatingNodeAffinity,
)
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.strategy_conformance import StrategyConformance
from strategies.builders import a_context, a_strategy, evicted

SSD = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
MUST = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [SSD]}}}
WOULD = {"nodeAffinity": {PREFERRED: [{"weight": 10, "preference": SSD}]}}


def moved(kind: str, pod_args: dict[str, Any], nodes: list[Node], *, exact: bool = True) -> bool:
    context = a_context(nodes, [a_pod("p", node="n1", owner="ReplicaSet/web", **pod_args)], exact=exact)
    names = evicted(a_strategy(RemovePodsViolatingNodeAffinity, nodeAffinityType=[kind]), context)
    return bool(names)


@pytest.mark.parametrize(
    ("kind", "pod", "nodes", "goes"),
    [
        pytest.param(
            REQUIRED,
            {"affinity": MUST},
            [a_node("n1"), a_node("n2", labels={"disk": "ssd"})],
            True,
            id="broken",
        ),
        pytest.param(
            REQUIRED,
            {"affinity": MUST},
            [a_node("n1", labels={"disk": "ssd"}), a_node("n2")],
            False,
            id="kept",
        ),
        pytest.param(REQUIRED, {"affinity": MUST}, [a_node("n1"), a_node("n2")], False, id="no-node-fits"),
        pytest.param(
            REQUIRED,
            {"affinity": MUST},
            [a_node("n1"), a_node("n2", labels={"disk": "ssd"}, unschedulable=True)],
            False,
            id="the-only-fitting-node-is-cordoned",
        ),
        pytest.param(
            REQUIRED,
            {"node_selector": {"disk": "ssd"}},
            [a_node("n1"), a_node("n2", labels={"disk": "ssd"})],
            False,
            id="a-node-selector-is-not-its-business",
        ),
        pytest.param(
            PREFERRED,
            {"affinity": WOULD},
            [a_node("n1"), a_node("n2", labels={"disk": "ssd"})],
            True,
            id="better",
        ),
        pytest.param(
            PREFERRED,
            {"affinity": WOULD},
            [a_node("n1", labels={"disk": "ssd"}), a_node("n2", labels={"disk": "ssd"})],
            False,
            id="as-good",
        ),
        pytest.param(
            PREFERRED,
            {"affinity": MUST},
            [a_node("n1"), a_node("n2", labels={"disk": "ssd"})],
            False,
            id="nothing-preferred",
        ),
        pytest.param("soon", {"affinity": MUST}, [a_node("n1"), a_node("n2")], False, id="unknown-type"),
    ],
)
def test_pods_go_where_their_affinity_is_satisfied(
    kind: str, pod: dict[str, Any], nodes: list[Node], goes: bool
) -> None:
    """Required affinity must be broken, preferred one improvable."""
    assert moved(kind, pod, nodes) is goes


def test_an_unreachable_best_node_moves_pods_upstream_only() -> None:
    """Upstream evicts for a node that the pod can never reach (issues 1707, 1920); Proven does not."""
    nodes = [a_node("n1"), a_node("n2", labels={"disk": "ssd"}, taints=["x:NoSchedule"])]

    assert moved(PREFERRED, {"affinity": WOULD}, nodes)
    assert not moved(PREFERRED, {"affinity": WOULD}, nodes, exact=False)
    assert moved(
        PREFERRED, {"affinity": WOULD}, [a_node("n1"), a_node("n2", labels={"disk": "ssd"})], exact=False
    )


def test_an_unknown_type_is_reported() -> None:
    """Upstream passes over it, and a user who mistyped it waits for moves that never come."""
    nodes = [a_node("n1"), a_node("n2", labels={"disk": "ssd"})]

    assert not moved("sometimes", {"affinity": WOULD}, nodes)
    with pytest.raises(PluginError, match='there is no nodeAffinityType "sometimes"; use required'):
        moved("sometimes", {"affinity": WOULD}, nodes, exact=False)


def test_a_type_is_needed() -> None:
    """An empty list is refused."""
    with pytest.raises(ValidationError, match="nodeAffinityType"):
        a_strategy(RemovePodsViolatingNodeAffinity)


class TestConformance(StrategyConformance):
    """The laws every strategy obeys."""

    strategy = a_strategy(RemovePodsViolatingNodeAffinity, nodeAffinityType=[REQUIRED, PREFERRED])
