"""Taints, required node affinity and selectors of terms, as the API documents them."""

from __future__ import annotations

from typing import Any

import pytest

from promises.affinities import reaches, selects_pod, tolerates
from promises.commits import Obj

NODE: Obj = {
    "metadata": {"name": "x", "labels": {"zone": "a", "cores": "8", "empty": "", "kind": "big"}},
    "spec": {},
}


def tainted(effect: str = "NoSchedule", **taint: Any) -> Obj:
    """A node with one taint."""
    return {"metadata": {"name": "x"}, "spec": {"taints": [{"key": "gone", "effect": effect, **taint}]}}


@pytest.mark.parametrize(
    ("node", "toleration", "expected"),
    [
        pytest.param(tainted(), None, False, id="none"),
        pytest.param(tainted("NoExecute"), None, False, id="none of another effect"),
        pytest.param(tainted("PreferNoSchedule"), None, True, id="a wish keeps no pod away"),
        pytest.param(NODE, None, True, id="no taint"),
        pytest.param(tainted(), {"key": "gone", "operator": "Exists"}, True, id="exists"),
        pytest.param(tainted(value="x"), {"operator": "Exists"}, True, id="every key"),
        pytest.param(tainted(), {"key": "other", "operator": "Exists"}, False, id="another key"),
        pytest.param(
            tainted(), {"key": "gone", "operator": "Exists", "effect": "NoExecute"}, False, id="effect"
        ),
        pytest.param(tainted(), {"key": "gone", "operator": "Exists", "effect": ""}, True, id="every effect"),
        pytest.param(tainted(value="x"), {"key": "gone", "value": "x"}, True, id="equal is the default"),
        pytest.param(
            tainted(value="x"), {"key": "gone", "operator": "Equal", "value": "y"}, False, id="unequal"
        ),
        pytest.param(tainted(), {"key": "gone"}, True, id="both without a value"),
        pytest.param(tainted(value="x"), {"key": "gone"}, False, id="a value that is not named"),
        pytest.param(
            tainted(value="x"), {"key": "gone", "operator": "Lt", "value": "x"}, False, id="unknown"
        ),
    ],
)
def test_a_taint_is_tolerated(node: Obj, toleration: Obj | None, expected: bool) -> None:
    """By key, operator, value and effect."""
    pod = {"spec": {"tolerations": [toleration] if toleration else []}}

    assert tolerates(pod, node) is expected


@pytest.mark.parametrize(
    ("operator", "key", "values", "expected"),
    [
        ("In", "zone", ["a", "b"], True),
        ("In", "zone", ["b"], False),
        ("In", "none", ["a"], False),
        ("NotIn", "zone", ["b"], True),
        ("NotIn", "zone", ["a"], False),
        ("NotIn", "none", ["a"], True),
        ("Exists", "zone", None, True),
        ("Exists", "empty", None, True),
        ("Exists", "none", None, False),
        ("DoesNotExist", "zone", None, False),
        ("DoesNotExist", "empty", None, False),
        ("DoesNotExist", "none", None, True),
        ("Gt", "cores", ["7"], True),
        ("Gt", "cores", ["8"], False),
        ("Gt", "cores", ["9"], False),
        ("Lt", "cores", ["7"], False),
        ("Lt", "cores", ["8"], False),
        ("Lt", "cores", ["9"], True),
        ("Gt", "kind", ["7"], False),
        ("Lt", "none", ["7"], False),
    ],
)
def test_a_requirement_of_a_node(operator: str, key: str, values: list[str] | None, expected: bool) -> None:
    """A label that is missing is in no list; what is no number is neither greater nor less."""
    expression = {"key": key, "operator": operator, "values": values}

    assert reaches({"nodeSelectorTerms": [{"matchExpressions": [expression]}]}, NODE) is expected


IN_A = {"key": "zone", "operator": "In", "values": ["a"]}
IN_B = {"key": "zone", "operator": "In", "values": ["b"]}
NAMED_X = {"key": "metadata.name", "operator": "In", "values": ["x"]}
NAMED_Y = {"key": "metadata.name", "operator": "In", "values": ["y"]}


@pytest.mark.parametrize(
    ("required", "expected"),
    [
        pytest.param(None, True, id="nothing is required"),
        pytest.param({"nodeSelectorTerms": []}, False, id="no term"),
        pytest.param({"nodeSelectorTerms": [{}]}, False, id="an empty term"),
        pytest.param({"nodeSelectorTerms": [{"matchExpressions": [IN_A, IN_B]}]}, False, id="all of a term"),
        pytest.param(
            {"nodeSelectorTerms": [{"matchExpressions": [IN_B]}, {"matchExpressions": [IN_A]}]},
            True,
            id="one term",
        ),
        pytest.param({"nodeSelectorTerms": [{"matchFields": [NAMED_X]}]}, True, id="its name"),
        pytest.param({"nodeSelectorTerms": [{"matchFields": [NAMED_Y]}]}, False, id="another name"),
        pytest.param(
            {"nodeSelectorTerms": [{"matchExpressions": [IN_A], "matchFields": [NAMED_Y]}]}, False, id="both"
        ),
        pytest.param(
            {"nodeSelectorTerms": [{"matchExpressions": [IN_B], "matchFields": [NAMED_X]}]},
            False,
            id="both again",
        ),
    ],
)
def test_a_required_node_affinity(required: Obj | None, expected: bool) -> None:
    """One of the terms, and all of that."""
    assert reaches(required, NODE) is expected


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        pytest.param({}, False, id="without a selector"),
        pytest.param({"labelSelector": {}}, True, id="an empty one"),
        pytest.param({"labelSelector": {"matchLabels": {"app": "web"}}}, True, id="its label"),
        pytest.param({"labelSelector": {"matchLabels": {"app": "db"}}}, False, id="another label"),
    ],
)
def test_the_selector_of_a_term(term: Obj, expected: bool) -> None:
    """A term without one matches no pod."""
    assert selects_pod(term, {"metadata": {"labels": {"app": "web"}}}) is expected
