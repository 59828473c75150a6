"""Pods outside a policy's scope are never evicted."""

import pytest

from planning.builders import NOW
from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.workload import Namespace
from plimsoll.model.selector_text import parse_selector
from plimsoll.planning.scope import PolicyScope
from plimsoll.testing.builders import a_cluster, a_node, a_pod


@pytest.mark.parametrize(
    ("scope", "inside"),
    [
        (PolicyScope(), True),
        (PolicyScope(include=frozenset({"default"})), True),
        (PolicyScope(include=frozenset({"other"})), False),
        (PolicyScope(exclude=frozenset({"default"})), False),
        (PolicyScope(namespace_selector=parse_selector("team=a")), True),
        (PolicyScope(namespace_selector=parse_selector("team=b")), False),
        (PolicyScope(pod_selector=parse_selector("app=web")), True),
        (PolicyScope(pod_selector=parse_selector("app=db")), False),
        (PolicyScope(priority_threshold=101), True),
        (PolicyScope(priority_threshold=100), False),
    ],
)
def test_every_part_must_agree(scope: PolicyScope, inside: bool) -> None:
    """Namespaces match by name and label, pods by label and priority."""
    cluster = a_cluster([a_node("n1")], [a_pod("p", node="n1", labels={"app": "web"}, priority=100)])
    cluster.objects.namespaces["default"] = convert(
        Namespace, {"metadata": {"name": "default", "labels": {"team": "a"}}}
    )
    context = StrategyContext(cluster, ("n1",), NOW)
    (pod,) = cluster.pods.values()

    refusal = scope.filter(pod, context)

    assert (refusal is None) is inside
    assert refusal is None or refusal.reason == "OutOfScope"
    assert scope.pre_eviction_filter(pod, context) is None
