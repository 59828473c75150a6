"""Workloads to pods, as their controllers and the API server would make them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspection.forked_states import a_state, a_workload, manifests
from plimsoll.inspection.changes.cluster_changes import ApplyManifests
from plimsoll.inspection.changes.what_if_answer import what_if
from plimsoll.inspection.manifests.documents import read_manifests
from plimsoll.inspection.manifests.new_claims import _default_class, with_claims
from plimsoll.inspection.manifests.pod_defaults import ManifestError
from plimsoll.inspection.manifests.workload_pods import WORKLOAD_KINDS
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.requests import incoming
from plimsoll.model.kinds.storage import StorageClass
from plimsoll.model.kinds.workload import PriorityClass
from plimsoll.testing.builders import a_cluster, a_node

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def the_pods(document: dict[str, Any], *others: dict[str, Any], objects: ClusterObjects | None = None) -> Any:
    """The workload of a manifest that may come with others."""
    (found,) = read_manifests([document, *others], "default", objects or ClusterObjects()).workloads
    return found


def admitted(spec: dict[str, Any], *others: dict[str, Any], objects: ClusterObjects | None = None) -> Pod:
    """A pod with this spec, as the API server would store it."""
    document = {"kind": "Pod", "metadata": {"name": "p", "labels": {"app": "web"}}, "spec": spec}
    pod: Pod = the_pods(document, *others, objects=objects).pod(0, NOW)
    return pod


def a_container(**resources: Any) -> dict[str, Any]:
    """One with these resources."""
    return {"name": "main", "image": "app", "resources": resources}


@pytest.mark.parametrize(
    ("kind", "replicas", "owner", "labels"),
    [
        ("Deployment", 3, "ReplicaSet", {"app", "pod-template-hash"}),
        ("ReplicaSet", 3, "ReplicaSet", {"app"}),
        (
            "StatefulSet",
            3,
            "StatefulSet",
            {"app", "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"},
        ),
        ("Job", 3, "Job", {"app", "job-name", "batch.kubernetes.io/job-name"}),
        ("CronJob", 3, "Job", {"app", "job-name", "batch.kubernetes.io/job-name"}),
        ("DaemonSet", 0, "DaemonSet", {"app"}),
        ("Pod", 1, "", {"app"}),
    ],
)
def test_each_kind_has_its_pods(kind: str, replicas: int, owner: str, labels: set[str]) -> None:
    """How many, of whom, and with which labels."""
    workload = the_pods(a_workload(kind))
    pod = workload.pod(0, NOW)

    assert workload.replicas == replicas
    assert (pod.metadata.controller.kind if pod.metadata.controller else "") == owner
    assert set(pod.labels) == labels
    assert pod.uid != workload.pod(1, NOW).uid


@pytest.mark.parametrize(
    ("spec", "replicas"),
    [
        ({"parallelism": 5, "completions": 3}, 3),
        ({"completions": 3}, 3),
        ({"parallelism": 5, "suspend": True}, 0),
    ],
)
def test_a_job_runs_as_many_pods_as_its_parallelism_allows(spec: dict[str, Any], replicas: int) -> None:
    """And none while it is suspended."""
    assert the_pods(a_workload("Job", replicas=4, spec=spec)).replicas == replicas


def test_limits_are_requests_that_are_left_out() -> None:
    """Of containers, of init containers, and of the pod as a whole."""
    by_container = admitted({"containers": [a_container(limits={"cpu": "2"}, requests={"memory": "1Mi"})]})
    by_pod = admitted({"containers": [a_container()], "resources": {"limits": {"cpu": "3"}}})

    assert incoming(by_container) == {"cpu": 2000, "memory": 2**20}
    assert incoming(by_pod) == {"cpu": 3000}


def test_a_limit_range_of_the_files_sets_defaults_and_one_that_is_not_known_is_said() -> None:
    """Of its namespace alone."""
    limits = {
        "default": {"cpu": "1", "memory": "1Mi"},
        "defaultRequest": {"cpu": "500m"},
        "type": "Container",
    }
    one = {"kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": [limits]}}
    elsewhere = {
        "kind": "LimitRange",
        "metadata": {"name": "l", "namespace": "x"},
        "spec": {"limits": [limits]},
    }

    assert incoming(admitted({"containers": [a_container()]}, one)) == {"cpu": 500, "memory": 2**20}
    assert incoming(admitted({"containers": [a_container()]}, elsewhere)) == {}
    document = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [a_container()]}}
    (note,) = the_pods(document).notes
    assert note == (
        "Pod default/p: container main does not request both cpu and memory; LimitRanges of namespace default"
        " are not known"
    )


def test_priority_comes_from_the_class_or_the_default_class() -> None:
    """With its preemption policy."""
    objects = ClusterObjects(
        priority_classes={
            "low": PriorityClass(metadata=ObjectMeta(name="low"), value=5, global_default=True),
            "high": PriorityClass(metadata=ObjectMeta(name="high"), value=9, preemption_policy="Never"),
        }
    )
    spec = {"containers": [a_container()]}

    named = admitted({**spec, "priorityClassName": "high"}, objects=objects)
    default = admitted(spec, objects=objects)

    assert (named.spec.priority, named.spec.preemption_policy) == (9, "Never")
    assert (default.spec.priority, default.spec.priority_class_name) == (5, "low")
    for value, chosen in ((3, "also"), (7, "low")):
        also = PriorityClass(metadata=ObjectMeta(name="also"), value=value, global_default=True)
        objects.priority_classes["also"] = also
        assert admitted(spec, objects=objects).spec.priority_class_name == chosen
    assert admitted({**spec, "priorityClassName": "system-node-critical"}).priority == 2_000_001_000
    assert admitted(spec).spec.priority == 0


@pytest.mark.parametrize("marked", [[], ["slow"], ["fast", "slow"], ["slow", "fast"]])
def test_of_marked_storage_classes_the_alphabetically_first_is_the_default(marked: list[str]) -> None:
    """Of those that are marked."""
    mark = {"storageclass.kubernetes.io/is-default-class": "true"}
    classes = [StorageClass(metadata=ObjectMeta(name=name, annotations=mark)) for name in marked]
    classes.append(StorageClass(metadata=ObjectMeta(name="a")))

    found = _default_class(ClusterObjects(storage_classes={each.name: each for each in classes}))

    assert found == min(marked, default=None)


def test_overhead_tolerations_host_ports_and_label_keys() -> None:
    """What else the API server fills in, as far as decisions read it."""
    runtime = {
        "kind": "RuntimeClass",
        "metadata": {"name": "vm"},
        "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"vm": "yes"}},
    }
    term = {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["app"]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    container = {**a_container(requests={"cpu": "1"}), "ports": [{"containerPort": 80}]}
    spec = {"containers": [container], "hostNetwork": True, "runtimeClassName": "vm"}

    pod = admitted({**spec, "affinity": {"podAntiAffinity": required}}, runtime)

    assert incoming(pod) == {"cpu": 1250}
    assert pod.spec.node_selector == {"vm": "yes"}
    assert pod.spec.containers[0].ports[0].host_port == 80
    assert [each.key for each in pod.spec.tolerations] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]
    selector = pod.spec.required_anti_affinity[0].label_selector
    assert selector is not None
    assert [(each.key, each.values) for each in selector.match_expressions] == [("app", ("web",))]


def test_claims_wait_for_their_pod_or_are_left_out() -> None:
    """Of a class that binds immediately nothing is known; the other one is unbound on the fork."""
    claim = {"metadata": {"name": "data"}, "spec": {"storageClassName": "late"}}
    early = {"metadata": {"name": "logs"}, "spec": {"storageClassName": "early"}}
    workload = the_pods(a_workload("StatefulSet", spec={"volumeClaimTemplates": [claim, early]}))
    fork = a_cluster([a_node("n1")])
    mode = {"late": "WaitForFirstConsumer", "early": "Immediate"}
    for name, binding in mode.items():
        fork.objects.storage_classes[name] = convert(
            StorageClass, {"metadata": {"name": name}, "volumeBindingMode": binding}
        )

    pod, notes = with_claims(workload.pod(2, NOW), workload.claims, fork)

    assert list(fork.objects.claims) == ["default/data-web-2"]
    assert [volume.persistent_volume_claim is None for volume in pod.spec.volumes] == [False, True]
    assert [note.partition(";")[0] for note in notes] == [
        "pod default/web-2: claim logs-web-2 binds immediately"
    ]


def test_documents_are_sorted_by_what_becomes_of_them() -> None:
    """Lists are unfolded; what no placement depends on is named."""
    documents = [
        {"kind": "List", "items": [a_workload(), {"kind": "ConfigMap", "metadata": {"name": "c"}}]},
        {"kind": "Node", "metadata": {"name": "n"}},
        {"kind": "Namespace", "metadata": {"name": "default"}},
        {"kind": "SchedulingPolicy", "metadata": {"name": "p"}},
        None,
    ]

    found = manifests(a_state(), *documents)  # type: ignore[arg-type]  # an empty document

    assert [len(part) for part in (found.workloads, found.nodes, found.objects, found.policies)] == [
        1,
        1,
        1,
        1,
    ]
    assert found.left_out == ("ConfigMap c",)


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("text", "a document is no object of the Kubernetes API: it has no kind"),
        ({"kind": "Deployment"}, "Deployment: metadata is missing, or is no mapping"),
        ({"kind": "Deployment", "metadata": {}}, "Deployment without a name"),
        ({"kind": "Deployment", "metadata": {"name": "x"}}, "Deployment default/x: spec is missing"),
        (a_workload(spec={"replicas": "3"}), "spec.replicas is '3'; it must be an integer from 0"),
        (a_workload(containers=[]), "its pods have no spec.containers"),
        (a_workload(containers=["x"]), "Deployment default/web: "),
        (a_workload(tolerations={"a": 1}), "Deployment default/web: "),
        (a_workload(nodeSelector=["a"]), "Deployment default/web: "),
        ({"kind": "Node", "metadata": {"name": "n"}, "spec": {"taints": 3}}, "Node n: "),
        ({"kind": "Service", "metadata": {}}, "Service without a name"),
    ],
)
def test_manifests_that_mean_nothing_are_refused(document: Any, problem: str) -> None:
    """In one sentence that says where."""
    with pytest.raises(ManifestError) as caught:
        read_manifests([document], "default", ClusterObjects())

    assert str(caught.value).startswith(problem) or problem in str(caught.value)


# -- anything ------------------------------------------------------------------------------------------------

JUNK: list[Any] = [
    None,
    0,
    -1,
    3.5,
    "",
    "x",
    [],
    {},
    [1],
    ["x"],
    {"a": 1},
    True,
    10**30,
    "1e99999",
    [[]],
    {"x": {}},
    [None],
]


def paths_in(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Of all that is in a document."""
    inner = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document)
        if isinstance(document, list)
        else ()
    )
    for key, value in inner:
        yield (*path, key)
        yield from paths_in(value, (*path, key))


@given(st.data())
def test_whatever_is_in_a_manifest_is_read_or_refused(data: st.DataObject) -> None:
    """One value of some workload, or of what comes with it, is replaced."""
    volume = {"name": "x", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
    documents = [
        a_workload(
            data.draw(st.sampled_from(WORKLOAD_KINDS)),
            tolerations=[{"key": "a", "operator": "Exists"}],
            runtimeClassName="vm",
            volumes=[volume],
            initContainers=[a_container(limits={"cpu": "1"})],
            hostNetwork=True,
        ),
        {"kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container"}]}},
        {"kind": "RuntimeClass", "metadata": {"name": "vm"}, "overhead": {"podFixed": {"cpu": "1"}}},
        {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1"}}},
        {"kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": {"selector": {}}},
    ]
    place: Any = documents
    *way, last = data.draw(st.sampled_from([path for path in paths_in(documents) if len(path) > 1]))
    for key in way:
        place = place[key]
    place[last] = deepcopy(data.draw(st.sampled_from(JUNK)))
    state = a_state(a_node("n1"))

    with suppress(ManifestError):
        what_if(state, [ApplyManifests(manifests(state, *documents))])
