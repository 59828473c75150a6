"""Label selectors, node selectors and tolerations as objects."""

from typing import Any

import pytest

from roadstead.values.label_selectors import node_fits, selects, tolerates


def needs(key: Any, operator: Any, *values: Any) -> Any:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        pytest.param(None, {"a": "1"}, False, id="absent-selects-nothing"),
        pytest.param({}, {"a": "1"}, True, id="empty-selects-all"),
        pytest.param({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True, id="a-label"),
        pytest.param({"matchLabels": {"a": "1"}}, {"a": "2"}, False, id="another-value"),
        pytest.param({"matchLabels": {"a": "1"}}, None, False, id="no-labels"),
        pytest.param(needs("a", "In", "1", "2"), {"a": "2"}, True, id="in"),
        pytest.param(needs("a", "NotIn", "1"), {}, True, id="not-in-holds-without-the-label"),
        pytest.param(needs("a", "Exists"), {"a": ""}, True, id="exists-with-empty-value"),
        pytest.param(needs("a", "DoesNotExist"), {"a": ""}, False, id="does-not-exist"),
    ],
)
def test_label_selectors(selector: Any, labels: Any, expected: Any) -> None:
    """As apimachinery's LabelSelectorAsSelector."""
    assert selects(selector, labels) is expected


NODE = {"metadata": {"name": "n1", "labels": {"zone": "a", "cores": "8"}}}


def required(*terms: Any) -> Any:
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": affinity}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, True, id="no-wish"),
        pytest.param({"nodeSelector": {"zone": "a"}}, True, id="selector"),
        pytest.param({"nodeSelector": {"zone": "b"}}, False, id="other-zone"),
        pytest.param(required(needs("cores", "Gt", "4")), True, id="greater"),
        pytest.param(required(needs("cores", "Lt", "8")), False, id="not-less"),
        pytest.param(required(needs("zone", "Gt", "4")), False, id="no-number"),
        pytest.param(
            required(needs("zone", "In", "b"), needs("zone", "In", "a")), True, id="terms-are-alternatives"
        ),
        pytest.param(required({}), False, id="an-empty-term-fits-nothing"),
        pytest.param(
            required({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}),
            True,
            id="by-name",
        ),
    ],
)
def test_node_affinity(spec: Any, expected: Any) -> None:
    """As component-helpers' RequiredNodeAffinity."""
    assert node_fits(spec, NODE) is expected


TAINT = {"key": "dedicated", "value": "x", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param({"operator": "Exists"}, True, id="tolerates-everything"),
        pytest.param({"key": "dedicated", "operator": "Exists"}, True, id="any-value"),
        pytest.param({"key": "dedicated", "value": "x"}, True, id="equal-is-the-default"),
        pytest.param({"key": "dedicated", "value": "y"}, False, id="another-value"),
        pytest.param({"key": "dedicated", "value": "x", "effect": "NoSchedule"}, False, id="another-effect"),
        pytest.param({"value": "x"}, False, id="equal-needs-a-key"),
    ],
)
def test_tolerations(toleration: Any, expected: Any) -> None:
    """As core/v1's ToleratesTaint."""
    assert (tolerates([toleration], TAINT) is not None) is expected
