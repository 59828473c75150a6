"""Controllers, Services and budgets decode from what the API serves."""

from plimsoll.model.decoding import decode
from plimsoll.model.kinds.workload import PodDisruptionBudget, ReplicaSet, Service
from plimsoll.model.selectors import compile_selector


def test_a_budget_carries_its_limit_and_its_count() -> None:
    """Shares stay text, pods granted but not yet gone are listed by name."""
    budget = decode(
        PodDisruptionBudget,
        b'{"metadata":{"name":"b","namespace":"a"},"spec":{"maxUnavailable":"30%","selector":{}},'
        b'"status":{"disruptionsAllowed":2,"disruptedPods":{"p":"2026-01-02T03:04:05Z"}}}',
    )

    assert (budget.key, budget.spec.max_unavailable, budget.spec.min_available) == ("a/b", "30%", None)
    assert (budget.status.disruptions_allowed, list(budget.status.disrupted_pods)) == (2, ["p"])


def test_two_generations_of_selectors() -> None:
    """A Service selects by a plain map, a ReplicaSet by a selector object; replicas default to one."""
    service = decode(Service, b'{"spec":{"selector":{"app":"web"},"ports":[{"port":80}]}}')
    replica_set = decode(ReplicaSet, b'{"spec":{"selector":{"matchLabels":{"app":"web"}}}}')

    assert service.spec.selector == {"app": "web"}
    assert compile_selector(replica_set.spec.selector).matches({"app": "web", "tier": "x"})
    assert replica_set.spec.replicas == 1
