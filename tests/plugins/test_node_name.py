"""NodeName: a pod that names its node goes there or nowhere."""

import pytest

from plimsoll.framework import CycleState, NoArgs, unresolvable
from plimsoll.plugins.node_name import NodeName
from plimsoll.testing.builders import a_node, a_pod, a_snapshot, the_info
from plimsoll.testing.conformance import FilterPluginConformance


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [("", [0, 0]), ("n2", [1, 0]), ("unknown", [1, 1])],
    ids=["none", "one", "unknown"],
)
def test_only_the_named_node_is_feasible(wanted: str, expected: list[int]) -> None:
    """Without a name all nodes are; a name that no node has leaves none."""
    pod = the_info(a_pod(node=wanted))

    codes = NodeName(NoArgs()).filter(CycleState(), pod, a_snapshot(a_node("n1"), a_node("n2")))

    assert codes.tolist() == expected


def test_the_refusal_is_worded_as_upstream_words_it() -> None:
    """Users search for the sentence; removing pods cannot help."""
    status = NodeName(NoArgs()).refusal(1, CycleState(), the_info(a_pod()))

    assert status == unresolvable("node(s) didn't match the requested node name")


class TestConformance(FilterPluginConformance):
    """The laws every filter plugin obeys."""

    plugin = NodeName(NoArgs())
    pods = ({}, {"node": "n0"})
