"""Groups that pods form by their owner: each kind from its object to a running group, in the loop."""

from collections.abc import Mapping
from typing import Any

import pytest

from plimsoll.cluster.watch_events import (
    NodeAdded,
    ObjectAdded,
    ObjectDeleted,
    ObjectUpdated,
    PodAdded,
    PodDeleted,
)
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.owned_group import OWNERS, OwnedGroup, owned_key
from plimsoll.model.kinds.pod import Pod
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.toolkit.scheduling.topology_levels import GroupRules
from scheduling.gangs.gang_scene import GangScene, a_group, gang_scene

DERIVES = GroupRules(derives=True)
BY_KIND = {each.kind: each for each in OWNERS}
RACK = "example.com/rack"


def an_owner(kind: str, spec: dict[str, Any], required: str = "") -> OwnedGroup:
    """An owner named train, as the API server has it."""
    metadata = {
        "name": "train",
        "namespace": "default",
        "uid": f"uid-{kind}",
        "annotations": {"plimsoll.dev/required-topology": required} if required else {},
    }
    return convert(BY_KIND[kind], {"metadata": metadata, "spec": spec})


def members(kind: str, count: int, labels: Mapping[str, str] | None = None, first: int = 0) -> list[Pod]:
    """Pods of one cpu that the owner controls, or a Job in between."""
    api_version = BY_KIND[kind].api_version if kind in BY_KIND else "example.com/v1"
    reference = {
        "apiVersion": api_version,
        "kind": kind,
        "name": "train",
        "uid": f"uid-{kind}",
        "controller": True,
    }
    return [
        a_pod(
            f"{kind.lower()}-{number}",
            schedulerName="s",
            cpu="1",
            labels=labels,
            metadata={"ownerReferences": [reference]},
        )
        for number in range(first, first + count)
    ]


def replicas(**counts: int) -> dict[str, Any]:
    """Roles of a training job."""
    return {role: {"replicas": count} for role, count in counts.items()}


JOBSET = {"jobset.sigs.k8s.io/jobset-name": "train"}
LWS = {"leaderworkerset.sigs.k8s.io/name": "train", "leaderworkerset.sigs.k8s.io/group-index": "1"}
RAY = {"ray.io/cluster": "train"}
KUBEFLOW = {"training.kubeflow.org/job-name": "train"}


def launcher() -> Pod:
    """The launcher of an MPIJob: a Job in between controls it."""
    labels = {**KUBEFLOW, "training.kubeflow.org/job-role": "launcher"}
    (pod,) = members("Job", 1, labels, first=9)
    return pod


JOBS = [
    {"name": "driver", "replicas": 1, "template": {"spec": {"parallelism": 1, "completions": 1}}},
    {"name": "workers", "replicas": 2, "template": {"spec": {"parallelism": 2, "completions": 2}}},
]
WORKERS = [{"replicas": 2, "minReplicas": 1, "numOfHosts": 1}, {"replicas": 1, "minReplicas": 0}]

#: Kind, spec, pods, and how many of them start together.
KINDS: list[tuple[str, dict[str, Any], list[Pod], int]] = [
    ("Job", {"parallelism": 3, "completions": 3, "completionMode": "Indexed"}, members("Job", 3), 3),
    ("Job", {"parallelism": 3, "completions": 9, "completionMode": "Indexed"}, members("Job", 3), 1),
    ("Job", {"parallelism": 3}, members("Job", 3), 1),
    ("JobSet", {"replicatedJobs": JOBS}, members("Job", 5, JOBSET), 5),
    (
        "JobSet",
        {"replicatedJobs": JOBS, "startupPolicy": {"startupPolicyOrder": "InOrder"}},
        members("Job", 1, JOBSET),
        1,
    ),
    (
        "JobSet",
        {"replicatedJobs": [{**JOBS[0], "dependsOn": [{"name": "workers"}]}, JOBS[1]]},
        members("Job", 4, JOBSET),
        4,
    ),
    (
        "LeaderWorkerSet",
        {"replicas": 2, "leaderWorkerTemplate": {"size": 3}, "startupPolicy": "LeaderCreated"},
        members("StatefulSet", 3, LWS),
        3,
    ),
    (
        "LeaderWorkerSet",
        {"replicas": 2, "leaderWorkerTemplate": {"size": 3}, "startupPolicy": "LeaderReady"},
        members("StatefulSet", 1, LWS),
        1,
    ),
    ("RayCluster", {"workerGroupSpecs": WORKERS}, members("RayCluster", 4, RAY), 4),
    (
        "RayCluster",
        {"workerGroupSpecs": WORKERS, "enableInTreeAutoscaling": True},
        members("RayCluster", 2, RAY),
        2,
    ),
    (
        "PyTorchJob",
        {"pytorchReplicaSpecs": replicas(Master=1, Worker=3)},
        members("PyTorchJob", 4, KUBEFLOW),
        4,
    ),
    (
        "PyTorchJob",
        {"pytorchReplicaSpecs": replicas(Worker=4), "elasticPolicy": {"minReplicas": 2, "maxReplicas": 4}},
        members("PyTorchJob", 2, KUBEFLOW),
        2,
    ),
    ("TFJob", {"tfReplicaSpecs": replicas(Chief=1, PS=1, Worker=2)}, members("TFJob", 4, KUBEFLOW), 4),
    ("XGBoostJob", {"xgbReplicaSpecs": replicas(Master=1, Worker=1)}, members("XGBoostJob", 2), 2),
    ("PaddleJob", {"paddleReplicaSpecs": replicas(Worker=2)}, members("PaddleJob", 2), 2),
    ("JAXJob", {"jaxReplicaSpecs": {"Worker": {}}}, members("JAXJob", 1), 1),
    (
        "MPIJob",
        {"mpiReplicaSpecs": replicas(Launcher=1, Worker=2)},
        [*members("MPIJob", 2, KUBEFLOW), launcher()],
        3,
    ),
    (
        "MPIJob",
        {
            "mpiReplicaSpecs": replicas(Launcher=1, Worker=2),
            "launcherCreationPolicy": "WaitForWorkersReady",
        },
        members("MPIJob", 2, KUBEFLOW),
        2,
    ),
    (
        "MPIJob",
        {
            "mpiReplicaSpecs": replicas(Launcher=1, Worker=5),
            "runPolicy": {"schedulingPolicy": {"minAvailable": 2}},
        },
        members("MPIJob", 2, KUBEFLOW),
        2,
    ),
]


@pytest.mark.parametrize(
    ("kind", "spec", "pods", "needed"),
    KINDS,
    ids=[f"{kind}-{number}" for number, (kind, *_) in enumerate(KINDS)],
)
async def test_an_owner_forms_a_group(kind: str, spec: dict[str, Any], pods: list[Pod], needed: int) -> None:
    """One pod fewer waits, and says for what; none before the owner is read; more join one by one."""
    async with gang_scene(groups=DERIVES) as one:
        await one.pods(*pods[: needed - 1])
        assert one.bound == []

        await one.see(ObjectAdded(an_owner(kind, spec)))
        assert one.bound == []
        if needed > 1:
            assert f"cannot find enough sibling pods of {kind} default/train" in one.message(pods[0].name)
        await one.pods(pods[needed - 1])
        assert len(one.bound) == needed

        await one.pods(*pods[needed:])

        assert len(one.bound) == len(pods)


async def test_without_the_policy_each_pod_starts_by_itself() -> None:
    """And once the policy says so, those that are there already form a group."""
    job = an_owner("Job", {"parallelism": 3, "completions": 3, "completionMode": "Indexed"})
    async with gang_scene(nodes=1, cpu="1") as one:
        await one.see(ObjectAdded(job))
        await one.pods(*members("Job", 2))
        assert len(one.bound) == 1

        one.place(groups=DERIVES)
        await one.see(NodeAdded(a_node("more", cpu="8")))
        await one.clock.advance(5)
        assert len(one.bound) == 1
        one.place()
        await one.clock.advance(5)

        assert len(one.bound) == 2


async def test_a_spark_application_needs_no_object() -> None:
    """Executors come and go; each starts by itself, near the driver if the policy prefers a level."""
    rules = GroupRules(derives=True, preferred=RACK)
    spark = {"spark-app-selector": "spark-1"}
    nodes = [NodeAdded(a_node(f"{rack}-0", cpu="4", labels={RACK: rack})) for rack in "abc"]
    async with gang_scene(nodes=0, groups=rules) as one:
        await one.see(*nodes)
        await one.pods(*members("SparkApplication", 1, spark))
        await one.pods(*members("Pod", 3, spark))

        assert len(one.bound) == 4
        assert len(set(one.binder.bound.values())) == 1


async def test_groups_of_one_leader_worker_set_start_apart() -> None:
    """Each has its index."""
    spec = {"replicas": 2, "leaderWorkerTemplate": {"size": 2}}
    async with gang_scene(groups=DERIVES) as one:
        await one.see(ObjectAdded(an_owner("LeaderWorkerSet", spec)))
        await one.pods(*members("StatefulSet", 2, LWS))
        await one.pods(*members("StatefulSet", 1, {**LWS, list(LWS)[1]: "0"}, first=5))

        assert one.bound == ["statefulset-0", "statefulset-1"]


async def test_an_owner_states_its_topology() -> None:
    """By annotations, as it has no field for that."""
    job = an_owner("Job", {"parallelism": 2, "completions": 2, "completionMode": "Indexed"}, required=RACK)
    nodes = [NodeAdded(a_node(f"{rack}-{n}", cpu="1", labels={RACK: rack})) for rack in "ab" for n in (0, 1)]
    async with gang_scene(nodes=0, groups=DERIVES) as one:
        await one.see(*nodes, ObjectAdded(job))
        await one.pods(*members("Job", 2))

        assert len({node[0] for node in one.binder.bound.values()}) == 1


async def test_an_owner_that_changes_is_deleted_and_made_again() -> None:
    """Under the same name, with another uid and another number."""

    def job(parallelism: int, uid: str) -> OwnedGroup:
        spec = {"parallelism": parallelism, "completions": parallelism, "completionMode": "Indexed"}
        return convert(
            BY_KIND["Job"], {"metadata": {"name": "train", "namespace": "default", "uid": uid}, "spec": spec}
        )

    async with gang_scene(groups=DERIVES) as one:
        pods = members("Job", 2)
        await one.see(ObjectAdded(job(4, "1")))
        await one.pods(*pods)
        await one.see(ObjectUpdated(job(4, "1"), job(3, "1")))
        assert one.bound == []

        await one.see(ObjectDeleted(job(3, "1")), NodeAdded(a_node("more", cpu="4")))
        await one.clock.advance(5)
        assert "waiting for Job default/train: the operator has not read it" in one.message("job-0")
        await one.see(PodDeleted(pods[0]), ObjectAdded(job(1, "2")))
        await one.clock.advance(5)

        assert one.bound == ["job-1"]


async def test_a_named_group_goes_before_the_owner() -> None:
    """As its members say themselves."""
    pods = members("Job", 2, {"plimsoll.dev/pod-group": "mine"})
    async with gang_scene(groups=DERIVES) as one:
        await one.see(ObjectAdded(a_group("mine", members=2)))
        await one.pods(*pods)

        assert len(one.bound) == 2


def running(one: GangScene, pods: list[Pod], node: str) -> list[PodAdded]:
    """These pods run."""
    return [
        PodAdded(
            a_pod(
                each.name,
                cpu="1",
                node=node,
                labels=dict(each.labels),
                status={"phase": "Running"},
                metadata={"ownerReferences": [_wire(each)]},
            )
        )
        for each in pods
    ]


def _wire(pod: Pod) -> dict[str, Any]:
    (owner,) = pod.metadata.owner_references
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
    }


@pytest.mark.parametrize(("mode", "leave"), [("Indexed", 2), ("NonIndexed", 1)])
async def test_a_running_group_leaves_whole_or_not_at_all(mode: str, leave: int) -> None:
    """If its owner is known; the pods of a Job without indexes leave one by one."""
    job = an_owner("Job", {"parallelism": 2, "completions": 2, "completionMode": mode})
    async with gang_scene(nodes=1, cpu="2", groups=DERIVES) as one:
        await one.see(ObjectAdded(job), *running(one, members("Job", 2), "n0"))
        await one.pods(a_pod("high", schedulerName="s", cpu="1", priority=9))

        assert len(one.preemptor.victims) == leave


def test_pods_of_kinds_that_scale_freely_form_no_group() -> None:
    for kind in ("ReplicaSet", "StatefulSet", "DaemonSet"):
        (pod,) = members(kind, 1)
        assert owned_key(pod) == ""


@pytest.mark.parametrize(
    ("group", "pods"),
    [
        ({"replicas": 2, "numOfHosts": 4}, 8),
        ({"replicas": 2, "numOfHosts": 0}, 2),
        ({"replicas": 2}, 2),
        ({"replicas": 0, "numOfHosts": 4}, 0),
        ({"minReplicas": 3, "numOfHosts": 2}, 6),
        ({"replicas": 2, "suspend": True}, 0),
    ],
)
def test_a_worker_of_several_hosts_is_as_many_pods(group: dict[str, Any], pods: int) -> None:
    """In addition to the head."""
    assert an_owner("RayCluster", {"workerGroupSpecs": [group]}).spec.least() == 1 + pods
