"""ResourceQuota and LimitRange, with the words that kube-apiserver 1.36.2 said to the same objects."""

from typing import Any

import pytest

from roadstead.store.api import Write
from roadstead.values.status_errors import StatusError
from simulated_cluster import Simulation

QUOTAS, LIMITS, CLAIMS = "resourcequotas", "limitranges", "persistentvolumeclaims"


@pytest.fixture
def cluster(simulation: Simulation) -> Simulation:
    return simulation.with_controllers()


def quota(cluster: Simulation, hard: Any, name: str = "quota", **spec: Any) -> None:
    cluster.create("ResourceQuota", name, resource=QUOTAS, hard=hard, **spec)
    cluster.settle()


def limit_range(cluster: Simulation, *limits: Any) -> None:
    cluster.create("LimitRange", "limits", resource=LIMITS, limits=list(limits))


def pod(cluster: Simulation, name: str, requests: Any = None, limits: Any = None, **how: Any) -> Any:
    """A pod of two equal containers."""
    resources = {key: value for key, value in (("requests", requests), ("limits", limits)) if value}
    containers = [{"name": one, "image": "app:1", "resources": resources} for one in "cd"]
    made = {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": containers}}
    return cluster.api.create("pods", made, **how)


def claim(cluster: Simulation, name: str, size: str, storage_class: str = "fast") -> None:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": size}},
    }
    cluster.create("PersistentVolumeClaim", name, resource=CLAIMS, **spec)


def used(cluster: Simulation, name: str = "quota") -> Any:
    return cluster.get(QUOTAS, name)["status"]["used"]


def refused(code: int, message: str) -> Any:
    return pytest.raises(StatusError, check=lambda error: (error.code, error.message) == (code, message))


def test_pods_of_a_namespace_with_a_quota_must_say_what_they_need(cluster: Simulation) -> None:
    quota(cluster, {"requests.cpu": "1", "limits.memory": "1Gi"})

    with refused(
        403,
        'pods "none" is forbidden: failed quota: quota: must specify limits.memory for: c,d; '
        "requests.cpu for: c,d",
    ):
        pod(cluster, "none")


def test_what_exceeds_a_quota_is_refused(cluster: Simulation) -> None:
    """The used amounts count as soon as an object is stored."""
    quota(cluster, {"pods": "2", "requests.cpu": "1", "limits.memory": "1Gi"})
    limits = {"memory": "100Mi"}

    pod(cluster, "a", {"cpu": "300m"}, limits)
    with refused(
        403,
        'pods "b" is forbidden: exceeded quota: quota, requested: requests.cpu=600m, '
        "used: requests.cpu=600m, limited: requests.cpu=1",
    ):
        pod(cluster, "b", {"cpu": "300m"}, limits)
    pod(cluster, "c", {"cpu": "100m"}, limits)
    with refused(
        403,
        'pods "d" is forbidden: exceeded quota: quota, requested: pods=1, used: pods=2, limited: pods=2',
    ):
        pod(cluster, "d", {"cpu": "100m"}, limits)

    assert used(cluster) == {"pods": "2", "requests.cpu": "800m", "limits.memory": "400Mi"}


def test_a_dry_run_and_a_refused_object_use_nothing(cluster: Simulation) -> None:
    quota(cluster, {"pods": "1"})
    pod(cluster, "dry", how=Write(dry_run=True))
    with pytest.raises(StatusError, match="Invalid value"):
        pod(cluster, "Not_A_Name")

    assert used(cluster) == {"pods": "0"}
    pod(cluster, "one")
    with pytest.raises(StatusError, match="exceeded quota"):
        pod(cluster, "one")


def test_pods_that_ended_or_were_deleted_free_their_quota(cluster: Simulation) -> None:
    quota(cluster, {"pods": "2", "count/pods": "3"})
    pod(cluster, "ends")
    pod(cluster, "deleted")

    cluster.end("ends", "Succeeded")
    cluster.api.delete("pods", "default", "deleted", grace_seconds=0)
    cluster.settle()

    assert used(cluster) == {"pods": "0", "count/pods": "1"}


def test_counts_of_any_kind_are_limited(cluster: Simulation) -> None:
    quota(cluster, {"count/configmaps": "1", "services": "1", "services.nodeports": "0"})
    cluster.create("ConfigMap", "first")

    with refused(
        403,
        'configmaps "second" is forbidden: exceeded quota: quota, requested: count/configmaps=1, '
        "used: count/configmaps=1, limited: count/configmaps=1",
    ):
        cluster.create("ConfigMap", "second")
    with pytest.raises(StatusError, match=r"requested: services.nodeports=1, used: services.nodeports=0"):
        cluster.create("Service", "np", resource="services", type="NodePort", ports=[{"port": 80}])
    cluster.create("Service", "ip", resource="services", ports=[{"port": 80}])

    assert used(cluster) == {"count/configmaps": "1", "services": "1", "services.nodeports": "0"}


def test_storage_is_limited_by_class(cluster: Simulation) -> None:
    name = "slow.storageclass.storage.k8s.io/requests.storage"
    quota(cluster, {"requests.storage": "5Gi", name: "1Gi"})

    with refused(
        403,
        f'persistentvolumeclaims "a" is forbidden: exceeded quota: quota, requested: {name}=2Gi, '
        f"used: {name}=0, limited: {name}=1Gi",
    ):
        claim(cluster, "a", "2Gi", "slow")
    claim(cluster, "b", "1Gi", "slow")
    claim(cluster, "c", "2Gi")

    assert used(cluster) == {"requests.storage": "3Gi", name: "1Gi"}


def test_a_scope_selects_pods(cluster: Simulation) -> None:
    quota(cluster, {"pods": "1"}, "best", scopes=["BestEffort"])
    quota(
        cluster,
        {"pods": "1"},
        "high",
        scopeSelector={
            "matchExpressions": [
                {"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}
            ]
        },
    )
    pod(cluster, "one")
    pod(cluster, "other", {"cpu": "1"})
    with pytest.raises(StatusError, match="exceeded quota: best"):
        pod(cluster, "two")

    assert (used(cluster, "best"), used(cluster, "high")) == ({"pods": "1"}, {"pods": "0"})
    with refused(
        422,
        'ResourceQuota "bad" is invalid: spec.scopes: Invalid value: ["BestEffort"]: unsupported scope '
        "applied to resource",
    ):
        quota(cluster, {"requests.cpu": "1"}, "bad", scopes=["BestEffort"])


CONTAINER = {
    "type": "Container",
    "max": {"cpu": "2", "memory": "1Gi"},
    "min": {"cpu": "50m"},
    "default": {"cpu": "500m"},
    "defaultRequest": {"memory": "64Mi"},
    "maxLimitRequestRatio": {"cpu": "4"},
}
POD = {"type": "Pod", "max": {"cpu": "3"}}


def test_containers_get_default_requests_and_limits(cluster: Simulation) -> None:
    limit_range(cluster, CONTAINER)

    made = pod(cluster, "none")

    for container in made["spec"]["containers"]:
        assert container["resources"] == {
            "requests": {"cpu": "500m", "memory": "64Mi"},
            "limits": {"cpu": "500m", "memory": "1Gi"},
        }
    assert made["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for container c; "
        "cpu, memory request for container d; cpu, memory limit for container d"
    )


@pytest.mark.parametrize(
    ("requests", "limits", "code", "message"),
    [
        pytest.param(
            {"cpu": "3"},
            None,
            422,
            "must be less than or equal to cpu limit of 500m",
            id="defaults-come-before-checks",
        ),
        pytest.param(
            None,
            {"cpu": "3", "memory": "2Gi"},
            403,
            "[maximum cpu usage per Container is 2, but limit is 3, maximum memory usage per Container is "
            "1Gi, but limit is 2Gi, maximum cpu usage per Pod is 3, but limit is 6]",
            id="maximum",
        ),
        pytest.param(
            {"cpu": "10m"},
            None,
            403,
            "[minimum cpu usage per Container is 50m, but request is 10m, cpu max limit to request ratio "
            "per Container is 4, but provided ratio is 50.000000]",
            id="minimum-and-ratio",
        ),
        pytest.param(
            {"cpu": "1600m"},
            {"cpu": "1600m"},
            403,
            "maximum cpu usage per Pod is 3, but limit is 3200m",
            id="sum-of-the-pod",
        ),
    ],
)
def test_pods_beyond_the_limits_are_refused(
    cluster: Simulation, requests: Any, limits: Any, code: int, message: str
) -> None:
    limit_range(cluster, CONTAINER, POD)

    with pytest.raises(StatusError) as found:
        pod(cluster, "pod", requests, limits)

    assert found.value.code == code
    assert message in found.value.message


def test_claims_beyond_the_limits_are_refused(cluster: Simulation) -> None:
    limit_range(
        cluster, {"type": "PersistentVolumeClaim", "max": {"storage": "2Gi"}, "min": {"storage": "1Gi"}}
    )

    with refused(
        403,
        'persistentvolumeclaims "a" is forbidden: maximum storage usage per PersistentVolumeClaim is 2Gi, '
        "but request is 3Gi",
    ):
        claim(cluster, "a", "3Gi")
    with refused(
        403,
        'persistentvolumeclaims "b" is forbidden: minimum storage usage per PersistentVolumeClaim is 1Gi, '
        "but request is 100Mi",
    ):
        claim(cluster, "b", "100Mi")


def test_limits_that_contradict_each_other_are_refused(cluster: Simulation) -> None:
    with pytest.raises(StatusError) as found:
        limit_range(
            cluster, {"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "3"}, "default": {"cpu": "5"}}
        )

    assert [(one["field"], one["message"]) for one in found.value.details["causes"]] == [
        ("spec.limits[0].min[cpu]", 'Invalid value: "3": min value 3 is greater than max value 2'),
        (
            "spec.limits[0].defaultRequest[cpu]",
            'Invalid value: "5": default request value 5 is greater than max value 2',
        ),
        ("spec.limits[0].default[cpu]", 'Invalid value: "2": default value 5 is greater than max value 2'),
    ]
