"""Whole-cluster matching, against the plain rules applied node by node."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Toleration
from plimsoll.model.selectors import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    compile_node_matcher,
)
from plimsoll.model.taints import untolerated
from plimsoll.testing.builders import a_node, a_snapshot
from plimsoll.toolkit.node_matching import matching_nodes, tolerated_nodes

KEYS = st.sampled_from(["disk", "gen", "zone"])
VALUES = st.sampled_from(["1", "2", "07", "ssd", ""])
OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near"])
EFFECTS = st.sampled_from(["", "NoSchedule", "PreferNoSchedule", "NoExecute"])


def requirements(keys: Any, operators: Any) -> Any:
    return st.builds(
        NodeSelectorRequirement, key=keys, operator=operators, values=st.lists(VALUES, max_size=2).map(tuple)
    )


TERMS = st.builds(
    NodeSelectorTerm,
    match_expressions=st.lists(requirements(KEYS, OPERATORS), max_size=2).map(tuple),
    match_fields=st.lists(
        st.builds(
            NodeSelectorRequirement,
            key=st.sampled_from(["metadata.name", "metadata.uid"]),
            operator=st.sampled_from(["In", "NotIn"]),
            values=st.sampled_from([("n0",), ("n1",), ("gone",), ("",)]),
        ),
        max_size=1,
    ).map(tuple),
)
SELECTORS = st.none() | st.builds(NodeSelector, node_selector_terms=st.lists(TERMS, max_size=2).map(tuple))
NODES = st.lists(
    st.tuples(
        st.dictionaries(KEYS, VALUES),
        st.lists(st.sampled_from(["a:NoSchedule", "a=1:NoExecute", "b:PreferNoSchedule"]), unique=True),
    ),
    min_size=1,
    max_size=5,
).map(
    lambda drawn: [a_node(f"n{n}", labels=labels, taints=taints) for n, (labels, taints) in enumerate(drawn)]
)


@given(NODES, st.dictionaries(KEYS, VALUES, max_size=1), SELECTORS, st.data())
def test_columns_match_as_labels_do(
    nodes: list[Node], pairs: dict[str, Any], selector: NodeSelector | None, data: Any
) -> None:
    """For any wish and any nodes, the arrays say what the matcher says of each node; of some rows too."""
    matcher = compile_node_matcher(pairs, selector)
    snapshot = a_snapshot(*nodes)
    expected = [matcher.matches(node.labels, node.name) for node in nodes]
    rows = data.draw(st.lists(st.sampled_from(range(len(nodes))), unique=True))

    assert matching_nodes(matcher, snapshot).tolist() == expected
    assert matching_nodes(matcher, snapshot.at(snapshot.rows[rows])).tolist() == [
        expected[row] for row in rows
    ]


@given(
    NODES,
    st.lists(
        st.builds(
            Toleration,
            key=st.sampled_from(["", "a", "b"]),
            operator=st.sampled_from(["", "Equal", "Exists", "Gt"]),
            value=st.sampled_from(["", "1"]),
            effect=EFFECTS,
        ),
        max_size=2,
    ),
)
def test_taints_are_tolerated_as_one_by_one(nodes: list[Node], tolerations: list[Toleration]) -> None:
    """For any tolerations and any nodes, the array says what the rule says of each node."""
    expected = [untolerated(node.spec.taints, tolerations) is None for node in nodes]

    assert tolerated_nodes(tolerations, a_snapshot(*nodes)).tolist() == expected
