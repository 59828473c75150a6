"""NodeUnschedulable: cordoned nodes are refused unless the cordon is tolerated."""

from typing import Any

import pytest

from plimsoll.framework import CycleState, NoArgs, unresolvable
from plimsoll.plugins.node_unschedulable import NodeUnschedulable
from plimsoll.testing.builders import a_node, a_pod, a_snapshot, the_info
from plimsoll.testing.conformance import FilterPluginConformance

CORDON = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        pytest.param([], [0, 1], id="none"),
        pytest.param([{"key": CORDON, "operator": "Exists"}], [0, 0], id="the-cordon"),
        pytest.param([{"operator": "Exists"}], [0, 0], id="everything"),
        pytest.param(
            [{"key": CORDON, "operator": "Exists", "effect": "NoExecute"}], [0, 1], id="other-effect"
        ),
        pytest.param([{"key": CORDON, "value": "true"}], [0, 1], id="other-value"),
    ],
)
def test_cordoned_nodes_need_a_toleration(tolerations: list[dict[str, Any]], expected: list[int]) -> None:
    """The toleration is for the taint that a cordon amounts to, present on the node or not."""
    plugin = NodeUnschedulable(NoArgs())
    pod = the_info(a_pod(tolerations=tolerations))

    codes = plugin.filter(
        CycleState(), pod, a_snapshot(a_node("open"), a_node("cordoned", unschedulable=True))
    )

    assert codes.tolist() == expected


def test_the_refusal_is_worded_as_upstream_words_it() -> None:
    """Users search for the sentence; removing pods cannot help."""
    status = NodeUnschedulable(NoArgs()).refusal(1, CycleState(), the_info(a_pod()))

    assert status == unresolvable("node(s) were unschedulable")


class TestConformance(FilterPluginConformance):
    """The laws every filter plugin obeys."""

    plugin = NodeUnschedulable(NoArgs())
