"""Values of signals as their owners read them, and the sentences about those that cannot be read."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pages import vocabulary
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.node import Node
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.toolkit.descheduling.disruption_signals import (
    LOCAL_VOLUMES,
    NEVER,
    OUR_EVICT,
    OUR_KEYS,
    OUR_PREFIX,
    SIGNALS,
    Bearer,
    Effect,
    Form,
    cost,
    has_local_storage,
    leaving,
    opted_out,
    removal,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
REST = "karpenter.sh/do-not-disrupt"
#: What forbids a pod's eviction, as the table has it.
FORBIDDING = [
    each
    for form in (Form.ANNOTATION, Form.LABEL)
    for each in SIGNALS
    if (each.bearer, each.form, each.effect) == (Bearer.POD, form, Effect.STAYS) and each.key != OUR_EVICT
]
MARKS = st.dictionaries(
    st.sampled_from([*(each.key for each in FORBIDDING), "app"]),
    st.sampled_from(["true", "false", "30m", "perhaps"]),
    max_size=3,
)


@given(MARKS, MARKS)
@example({}, {"kueue.x-k8s.io/managed": "true", "app": "a"})
@example({"app": "a", REST: "true"}, {})
def test_the_first_signal_of_the_table_that_applies_forbids(
    annotations: dict[str, str], labels: dict[str, str]
) -> None:
    """Whatever else the pod has; annotations come before labels, and a pod that has not started rests."""
    applying = [
        each.key
        for each in FORBIDDING
        for value in [(annotations if each.form is Form.ANNOTATION else labels).get(each.key)]
        if value is not None and each.says(value) is not False
    ]

    refusal = opted_out(a_pod("p", annotations=annotations, labels=labels), NOW)

    assert (refusal is None) is (not applying)
    assert refusal is None or applying[0] in refusal.message


@pytest.mark.parametrize(
    ("value", "age_s", "stays"),
    [
        ("30m", 1799, True),
        ("30m", 1800, False),
        ("1h30m", 5399, True),
        ("1h30m", 5401, False),
        ("+45s", 46, False),
        ("true", 10**6, True),
        ("false", 0, False),
        ("0s", 10**6, True),  # no positive duration: it cannot be read
        ("-1h", 10**6, True),
        ("30", 10**6, True),
        ("30 m", 10**6, True),
        ("", 10**6, True),
        ("True", 10**6, True),
    ],
)
def test_a_duration_counts_from_the_start_of_the_pod(value: str, age_s: int, stays: bool) -> None:
    started = (NOW - timedelta(seconds=age_s)).isoformat()
    pod = a_pod("p", annotations={REST: value}, status={"phase": "Running", "startTime": started})

    refusal = opted_out(pod, NOW)

    assert (refusal is not None) is stays


def test_the_sentence_says_until_when_a_pod_rests() -> None:
    pod = a_pod("p", annotations={REST: "30m"}, status={"startTime": "2026-01-01T11:50:00Z"})

    refusal = opted_out(pod, NOW)

    assert refusal is not None
    assert refusal.message == (
        f"the pod's annotation {REST}: 30m forbids its eviction until 2026-01-01T12:20:00Z"
    )


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, 0),
        ({"controller.kubernetes.io/pod-deletion-cost": "-3"}, -3),
        ({"controller.kubernetes.io/pod-deletion-cost": "many"}, NEVER + 1),
        ({"controller.kubernetes.io/pod-deletion-cost": "+3"}, NEVER + 1),
        ({"controller.kubernetes.io/pod-deletion-cost": "2147483648"}, NEVER + 1),
        ({"scheduling.koordinator.sh/eviction-cost": "7"}, 7),
        ({"karpenter.sh/disruption-cost": "1", "controller.kubernetes.io/pod-deletion-cost": "9"}, 1),
    ],
)
def test_the_cost_of_an_eviction(annotations: dict[str, str], expected: int) -> None:
    """Karpenter's own outranks the one that ReplicaSets read."""
    assert cost(annotations) == expected


@pytest.mark.parametrize(("names", "local"), [("a,b", False), ("a", True), ("a, b", True), ("", True)])
def test_every_local_volume_must_be_named(names: str, local: bool) -> None:
    """As cluster-autoscaler reads the list: without spaces."""
    volumes = [{"name": "a", "emptyDir": {}}, {"name": "b", "hostPath": {"path": "/b"}}]
    pod = a_pod("p", annotations={LOCAL_VOLUMES: names}, volumes=volumes)

    assert has_local_storage(pod) is local
    assert has_local_storage(pod, heeds_waivers=False)


def test_a_node_that_is_leaving_outranks_one_that_may_be_removed() -> None:
    taints = ("DeletionCandidateOfClusterAutoscaler", "ToBeDeletedByClusterAutoscaler")
    spec = {"taints": [{"key": key, "effect": "NoSchedule"} for key in taints]}
    both = convert(Node, {"metadata": {"name": "n"}, "spec": spec})
    one = convert(Node, {"metadata": {"name": "n"}, "spec": {"taints": spec["taints"][:1]}})

    assert leaving(both) is not None
    assert leaving(one) is None
    assert "removes the node if it stays unneeded" in removal(one)
    assert removal(a_node("other")) == ""


def test_no_row_is_there_twice_and_each_has_a_pod_a_namespace_or_a_node() -> None:
    rows = [(each.key, each.form, each.bearer) for each in SIGNALS]

    assert len(set(rows)) == len(rows)
    assert all(each.bearer is Bearer.NODE for each in SIGNALS if each.form is Form.TAINT)


def test_our_keys_are_those_of_the_page() -> None:
    """docs/reference/keys.md is written from the constants of all modules."""
    assert {f"{OUR_PREFIX}{each}" for each in OUR_KEYS} == {
        key for key, _ in vocabulary.keys(vocabulary.modules())
    }
