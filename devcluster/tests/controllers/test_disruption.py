"""PodDisruptionBudgets: the status that the eviction API reads."""

from typing import Any

import pytest

from simulated_cluster import Simulation

BUDGET = "poddisruptionbudgets.policy"


@pytest.fixture
def cluster(simulation: Simulation) -> Simulation:
    return simulation.with_controllers()


def deploy(cluster: Simulation, replicas: int = 4, ready: int = 4) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    cluster.workload("Deployment", "web", replicas, strategy=strategy, progressDeadlineSeconds=600)
    cluster.settle()
    cluster.ready()
    for pod in cluster.pods()[ready:]:
        cluster.set_ready(pod["metadata"]["name"], "False")
    cluster.settle()


def counts(cluster: Simulation, name: str = "web") -> Any:
    """Expected, desired, healthy, allowed."""
    status = cluster.get(BUDGET, name)["status"]
    return tuple(
        status[one] for one in ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    )


def reason(cluster: Simulation, name: str = "web") -> Any:
    (condition,) = cluster.get(BUDGET, name)["status"]["conditions"]
    return condition["status"], condition["reason"]


SELECTOR = {"matchLabels": {"app": "web"}}


@pytest.mark.parametrize(
    ("spec", "ready", "expected"),
    [
        pytest.param({"maxUnavailable": 1}, 4, (4, 3, 4, 1), id="one-may-go"),
        # 30 % of 4 is 1.2, rounded up 2 may go
        pytest.param({"maxUnavailable": "30%"}, 4, (4, 2, 4, 2), id="a-percentage-may-go"),
        pytest.param({"maxUnavailable": 0}, 4, (4, 4, 4, 0), id="none-may-go"),
        pytest.param({"minAvailable": "50%"}, 4, (4, 2, 4, 2), id="half-must-stay"),
        # 30 % of 4 is 1.2, rounded up 2 must stay
        pytest.param({"minAvailable": "30%"}, 4, (4, 2, 4, 2), id="a-percentage-must-stay"),
        pytest.param({"minAvailable": 3}, 4, (4, 3, 4, 1), id="three-must-stay"),
        pytest.param({"minAvailable": 3}, 3, (4, 3, 3, 0), id="one-is-not-ready"),
        pytest.param({"maxUnavailable": 1}, 3, (4, 3, 3, 0), id="one-is-gone-already"),
    ],
)
def test_how_many_may_go(cluster: Simulation, spec: Any, ready: Any, expected: Any) -> None:
    """Numbers and percentages of the Deployment's size, against the pods that are ready."""
    deploy(cluster, ready=ready)

    cluster.create("PodDisruptionBudget", "web", selector=SELECTOR, **spec)
    cluster.settle()

    assert counts(cluster) == expected
    assert reason(cluster) == (("True", "SufficientPods") if expected[3] else ("False", "InsufficientPods"))


def test_follows_pods_and_sizes(cluster: Simulation) -> None:
    """A pod that is not ready any more, a pod that goes, a Deployment that shrinks."""
    deploy(cluster)
    cluster.create("PodDisruptionBudget", "web", selector=SELECTOR, maxUnavailable=1)
    cluster.settle()
    name = cluster.pods()[0]["metadata"]["name"]

    cluster.set_ready(name, "False")
    cluster.settle()
    assert counts(cluster) == (4, 3, 3, 0)
    cluster.set_ready(name)
    cluster.settle()
    assert counts(cluster) == (4, 3, 4, 1)
    cluster.change("Deployment", "web", {"spec": {"replicas": 2}})
    cluster.settle()

    assert counts(cluster)[:2] == (2, 1)


def test_a_terminating_pod_is_not_healthy(cluster: Simulation) -> None:
    """An eviction counts against the budget until its successor is ready."""
    deploy(cluster, replicas=2)
    cluster.create("PodDisruptionBudget", "web", selector=SELECTOR, minAvailable=1)
    cluster.settle()
    assert counts(cluster)[3] == 1

    cluster.api.delete("pods", "default", cluster.pods()[0]["metadata"]["name"])
    cluster.settle()
    assert counts(cluster)[3] == 0
    cluster.ready(
        *(p["metadata"]["name"] for p in cluster.pods() if "deletionTimestamp" not in p["metadata"])
    )

    assert counts(cluster)[3] == 1


def test_an_eviction_that_is_not_carried_out_is_forgotten_after_two_minutes(cluster: Simulation) -> None:
    """A pod in disruptedPods does not count as healthy until it is deleted or believed to stay."""
    deploy(cluster, replicas=2)
    cluster.create("PodDisruptionBudget", "web", selector=SELECTOR, minAvailable=1)
    cluster.settle()
    budget = cluster.get(BUDGET, "web")
    name = cluster.pods()[0]["metadata"]["name"]

    message = {**budget["status"], "disruptedPods": {name: cluster.api.now()}, "disruptionsAllowed": 0}
    cluster.api.update_status(BUDGET, {**budget, "status": message})
    cluster.settle(119)
    assert counts(cluster) == (2, 1, 1, 0)
    cluster.settle(2)

    assert counts(cluster) == (2, 1, 2, 1)


def test_pods_without_owner(cluster: Simulation) -> None:
    """MinAvailable counts them; maxUnavailable has no size to go by and allows nothing."""
    for name in ("a", "b"):
        cluster.api.create(
            "pods",
            {
                "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "app:1"}]},
            },
        )
    cluster.ready()
    cluster.create("PodDisruptionBudget", "least", selector=SELECTOR, minAvailable=1)
    cluster.create("PodDisruptionBudget", "most", selector=SELECTOR, maxUnavailable=1)
    cluster.settle()

    assert counts(cluster, "least") == (2, 1, 2, 1)
    assert counts(cluster, "most") == (0, 0, 2, 0)


def test_pods_whose_owner_has_no_size_cannot_be_counted(cluster: Simulation) -> None:
    """The pods of a Job have no scale: the budget says so and allows nothing."""
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "app:1"}], "restartPolicy": "Never"},
    }
    cluster.create("Job", "work", parallelism=1, completions=1, backoffLimit=6, template=template)
    cluster.create("PodDisruptionBudget", "web", selector=SELECTOR, maxUnavailable=1)
    cluster.settle()

    assert reason(cluster) == ("False", "SyncFailed")
    assert cluster.get(BUDGET, "web")["status"]["disruptionsAllowed"] == 0


def test_a_label_that_changes_moves_a_pod_between_budgets(cluster: Simulation) -> None:
    """A pod counts where its labels are selected now."""
    cluster.create("PodDisruptionBudget", "web", selector=SELECTOR, minAvailable=0)
    cluster.pod("a")
    cluster.settle()
    assert counts(cluster)[0] == 0

    cluster.api.patch("pods", "default", "a", {"metadata": {"labels": {"app": "web"}}})
    cluster.settle()
    assert counts(cluster)[0] == 1
    cluster.api.patch("pods", "default", "a", {"metadata": {"labels": {"app": "db"}}})
    cluster.settle()

    assert counts(cluster)[0] == 0
