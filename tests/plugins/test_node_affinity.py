"""NodeAffinity: required and preferred terms."""

from typing import Any

import pytest
from pydantic import ValidationError

from plimsoll.framework import SKIP, SUCCESS, Code, CycleState, PreFilterResult, unresolvable
from plimsoll.framework.status import Status
from plimsoll.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from plimsoll.testing.builders import a_node, a_pod, a_snapshot, the_info
from plimsoll.testing.conformance import FilterPluginConformance, ScorePluginConformance

PLAIN = NodeAffinity(NodeAffinityArgs())
NODES = a_node("n1", labels={"disk": "ssd", "gen": "3"}), a_node("n2", labels={"disk": "hdd"}), a_node("n3")


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def labels(*expressions: dict[str, Any]) -> dict[str, Any]:
    return {"matchExpressions": list(expressions)}


def names(operator: str, *values: str) -> dict[str, Any]:
    return {"matchFields": [expression("metadata.name", operator, *values)]}


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    return {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    }


def preferred(*weighted: tuple[int, dict[str, Any]]) -> dict[str, Any]:
    terms = [{"weight": weight, "preference": term} for weight, term in weighted]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


@pytest.mark.parametrize(
    ("wishes", "feasible"),
    [
        pytest.param({"node_selector": {"disk": "ssd"}}, ["n1"], id="selector"),
        pytest.param({"node_selector": {"disk": "tape"}}, [], id="value-of-no-node"),
        pytest.param(
            {"affinity": required(labels(expression("disk", "In", "ssd", "hdd")))}, ["n1", "n2"], id="in"
        ),
        pytest.param(
            {"affinity": required(labels(expression("disk", "NotIn", "ssd")))}, ["n2", "n3"], id="not-in"
        ),
        pytest.param({"affinity": required(labels(expression("disk", "Exists")))}, ["n1", "n2"], id="exists"),
        pytest.param({"affinity": required(labels(expression("disk", "DoesNotExist")))}, ["n3"], id="absent"),
        pytest.param({"affinity": required(labels(expression("gen", "Gt", "2")))}, ["n1"], id="greater"),
        pytest.param({"affinity": required(labels(expression("gen", "Lt", "2")))}, [], id="less"),
        pytest.param(
            {"affinity": required(labels(expression("gen", "Gt", "x")), names("In", "n3"))},
            ["n3"],
            id="malformed-term",
        ),
        pytest.param({"affinity": required({})}, [], id="empty-term"),
        pytest.param({"affinity": required()}, [], id="no-term"),
        pytest.param({"affinity": required(names("NotIn", "n1"))}, ["n2", "n3"], id="name-not-in"),
        pytest.param(
            {"node_selector": {"disk": "ssd"}, "affinity": required(names("NotIn", "n1"))},
            [],
            id="both-must-hold",
        ),
    ],
)
def test_nodes_must_match_selector_and_required_terms(wishes: dict[str, Any], feasible: list[str]) -> None:
    """Pairs of nodeSelector and one of the terms; worded as upstream words it."""
    pod = the_info(a_pod(**wishes))
    snapshot = a_snapshot(*NODES)

    codes = PLAIN.filter(CycleState(), pod, snapshot)

    assert [node.name for node, code in zip(snapshot.nodes, codes, strict=True) if not code] == feasible
    assert set(codes.tolist()) <= {0, 2}
    assert PLAIN.refusal(2, CycleState(), pod) == unresolvable(
        "node(s) didn't match Pod's node affinity/selector"
    )


@pytest.mark.parametrize(
    ("wishes", "answer"),
    [
        pytest.param({}, SKIP, id="no-wish"),
        pytest.param(
            {"affinity": preferred((1, labels(expression("disk", "Exists"))))}, SKIP, id="only-preferred"
        ),
        pytest.param({"node_selector": {"disk": "ssd"}}, SUCCESS, id="selector"),
        pytest.param(
            {"affinity": required(names("In", "n1"))}, PreFilterResult(frozenset({"n1"})), id="named"
        ),
        pytest.param(
            {"affinity": required(names("In", "n1"), names("In", "n9"))},
            PreFilterResult(frozenset({"n1", "n9"})),
            id="union",
        ),
        pytest.param(
            {"affinity": required(names("In", "n1"), labels(expression("disk", "Exists")))},
            SUCCESS,
            id="one-unnamed",
        ),
        pytest.param(
            {
                "affinity": required(
                    {"matchFields": [*names("In", "n1")["matchFields"], *names("In", "n2")["matchFields"]]}
                )
            },
            unresolvable("pod affinity terms conflict", no_node_helps=True),
            id="conflict",
        ),
        pytest.param({"affinity": required()}, SUCCESS, id="no-term"),
    ],
)
def test_named_nodes_narrow_the_search(wishes: dict[str, Any], answer: Status | PreFilterResult) -> None:
    """When every term names nodes, only those are looked at; contradicting names refuse the pod."""
    assert PLAIN.pre_filter(CycleState(), the_info(a_pod(**wishes)), a_snapshot(*NODES)) == answer


def test_preferred_terms_add_up() -> None:
    """Raw points are the weights that hold; the best node gets 100, the others their share."""
    # n1: 10 + 5 = 15, n2: 5, n3: 0; 100*15//15 = 100, 100*5//15 = 33
    affinity = preferred(
        (10, labels(expression("disk", "In", "ssd"))),
        (5, labels(expression("disk", "Exists"))),
        (50, {}),
    )
    pod = the_info(a_pod(affinity=affinity))

    raw = PLAIN.score(CycleState(), pod, a_snapshot(*NODES))

    assert PLAIN.pre_score(CycleState(), pod, a_snapshot(*NODES)) == SUCCESS
    assert raw.tolist() == [15, 5, 0]
    assert PLAIN.normalize(CycleState(), pod, raw).tolist() == [100, 33, 0]


def test_without_preferred_terms_nothing_is_scored() -> None:
    """Required affinity alone adds no points."""
    assert PLAIN.pre_score(CycleState(), the_info(a_pod(affinity=required())), a_snapshot(*NODES)) == SKIP


def test_a_preference_that_says_nothing_takes_part_and_adds_nothing() -> None:
    """The plugin runs for any preference; an empty one matches no node."""
    pod = the_info(a_pod(affinity=preferred((9, {}))))

    assert PLAIN.pre_score(CycleState(), pod, a_snapshot(*NODES)) == SUCCESS
    assert PLAIN.score(CycleState(), pod, a_snapshot(*NODES)).tolist() == [0, 0, 0]


def test_a_malformed_preference_fails_the_attempt() -> None:
    """The sentence says where; required terms would only match nothing."""
    pod = the_info(a_pod(affinity=preferred((5, labels(expression("gen", "Gt", "abc"))))))

    status = PLAIN.pre_score(CycleState(), pod, a_snapshot(*NODES))

    assert status.code is Code.ERROR
    assert status.message == (
        '[0].matchExpressions[0].values[0]: Invalid value: "abc": '
        "for 'Gt', 'Lt' operators, the value must be an integer"
    )


ADDED = NodeAffinity(
    NodeAffinityArgs.model_validate(
        {
            "addedAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [labels(expression("disk", "Exists"))]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 3, "preference": labels(expression("disk", "In", "hdd"))}
                ],
            }
        }
    )
)


def test_the_added_affinity_holds_for_every_pod() -> None:
    """Its refusal comes before the pod's own and says who enforces it; its preferences add to the pod's."""
    pod = the_info(a_pod(node_selector={"disk": "ssd"}))
    snapshot = a_snapshot(*NODES)

    assert ADDED.pre_filter(CycleState(), the_info(a_pod()), snapshot) == SUCCESS
    assert ADDED.filter(CycleState(), pod, snapshot).tolist() == [0, 2, 1]
    assert ADDED.refusal(1, CycleState(), pod) == unresolvable(
        "node(s) didn't match scheduler-enforced node affinity"
    )
    assert ADDED.pre_score(CycleState(), pod, snapshot) == SUCCESS
    assert ADDED.score(CycleState(), pod, snapshot).tolist() == [0, 3, 0]


@pytest.mark.parametrize(
    ("term", "sentence"),
    [
        (labels(expression("disk", "Near", "x")), "Unsupported value"),
        (labels(expression("disk", "In")), "can't be empty"),
        (names("In", "a", "b"), "must have one element"),
        ({"matchExpression": []}, "Extra inputs are not permitted"),
    ],
)
def test_a_malformed_added_affinity_is_refused(term: dict[str, Any], sentence: str) -> None:
    """It is validated like the API validates a pod's, when the policy is read."""
    added = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}

    with pytest.raises(ValidationError, match=sentence):
        NodeAffinityArgs.model_validate({"addedAffinity": added})


class TestFilterConformance(FilterPluginConformance):
    """The laws every filter plugin obeys."""

    plugin = ADDED


class TestScoreConformance(ScorePluginConformance):
    """The laws every score plugin obeys."""

    plugin = ADDED
