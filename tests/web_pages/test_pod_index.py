"""The index of pods that a page searches."""

from inspection.contents import a_node_document, a_pod_document, content_of
from plimsoll.inspection.state import ClusterState
from plimsoll.web_pages.pod_index import pod_index


def test_a_budget_covers_pods_of_its_own_namespace() -> None:
    """Pods elsewhere have the same labels and none; the largest pod of a node comes first."""
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop", "uid": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2},
    }
    pods = [
        a_pod_document("none", "n", "0", namespace="far"),
        a_pod_document("small", "n", "1m"),
        a_pod_document("large", "n", "2"),
        a_pod_document("other", "n", "1", namespace="far"),
    ]
    index = pod_index(ClusterState.of(content_of([a_node_document("n"), budget, *pods])))

    assert [row[0] for row in index["pods"]] == ["shop/large", "far/other", "shop/small", "far/none"]
    assert [row[4] for row in index["pods"]] == [0, -1, 0, -1]
    assert len(index["budgets"]) == 1
