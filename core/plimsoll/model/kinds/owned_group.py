"""Groups without an object of their own: the pods of a Job, JobSet or training job, read from the owner.

Each owner is a row: which pods are its members, and how many of them must start together. The owner's object
is read into the form of a PodGroup. An owner that starts its pods one after the other is a group that needs
only the first of them: a gang of all would wait for pods that do not exist yet.

==============================  =========================================================================
Owner                           Members that it needs
==============================  =========================================================================
Job                             Indexed with as many completions as parallelism: all; otherwise one by one
JobSet                          the pods of all jobs; of those that wait for no others, if it has an order
LeaderWorkerSet                 each group: its size; the leader alone if ``startupPolicy`` is LeaderReady
RayCluster, also of a RayJob    the head, and of each worker group ``replicas``; ``minReplicas`` if it scales
PyTorchJob, TFJob, JAXJob,      all replicas, or ``minAvailable``; of an elastic PyTorchJob the workers that
XGBoostJob, PaddleJob           ``elasticPolicy.minReplicas`` says
MPIJob                          launcher and workers; the workers if the launcher waits for them
Spark application               one by one: executors come and go
==============================  =========================================================================

Never ReplicaSets, StatefulSets and similar kinds, whose pods do without one another.

Sources: Kubernetes v1.36 (``batch/v1``; its Job controller makes gangs of the same Jobs), JobSet v0.10
(``v1alpha2``), LeaderWorkerSet v0.7 (``v1``), KubeRay v1.4 (``v1``), training-operator v1.9 and mpi-operator
v0.6 (``kubeflow.org``), Spark v4.0 (labels). The rule for each kind is that of KAI's pod grouper (v0.9) but
for Jobs, which it starts one by one, and for JobSets, which it starts job by job.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, cast

import msgspec
from msgspec.structs import force_setattr, replace

from plimsoll.model.kinds.composite_pod_group import is_composite
from plimsoll.model.kinds.metadata import Int64, ObjectMeta
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import (
    CORE_TIMEOUT_S,
    PREFERRED_TOPOLOGY,
    PodGroup,
    PodGroupSpec,
    TopologyWishes,
    group_key,
)
from plimsoll.model.read_only_dict import NO_ENTRIES

REQUIRED_TOPOLOGY = "plimsoll.dev/required-topology"
"""Annotation of an owner: the node label whose value its pods must share."""

JOBSET, LWS, LWS_GROUP = (
    "jobset.sigs.k8s.io/jobset-name",
    "leaderworkerset.sigs.k8s.io/name",
    "leaderworkerset.sigs.k8s.io/group-index",
)
RAY, SPARK = "ray.io/cluster", "spark-app-selector"
KUBEFLOW_JOB, KUBEFLOW_ROLE = "training.kubeflow.org/job-name", "training.kubeflow.org/job-role"


NOT_YET = -1
"""In place of the number of members that a group still needs: it cannot start, for lack of members."""


class OwnerSpec(PodGroupSpec, frozen=True, kw_only=True, rename="camel", gc=False):
    """What an owner says about its pods; ``min_member`` is what follows from that."""

    schedule_timeout_seconds: Int64 = CORE_TIMEOUT_S
    source: ClassVar = ""

    def __post_init__(self) -> None:
        """Set the number of pods that a start needs."""
        force_setattr(self, "min_member", max(1, self.least()))

    def least(self) -> int:
        """The number of pods that start together."""
        return 1

    @property
    def least_name(self) -> str:
        """What has the number."""
        return self.source

    @property
    def are_independent(self) -> bool:
        """Whether each member may run without the others."""
        return self.min_member < 2


class JobSpec(OwnerSpec, frozen=True, kw_only=True, rename="camel", gc=False):
    """A Job."""

    source: ClassVar = "number of indexes"
    parallelism: Int64 = 1
    completions: Int64 | None = None
    completion_mode: str = ""

    @property
    def pods(self) -> int:
        """The pods that run at the same time."""
        return self.parallelism if self.completions is None else min(self.parallelism, self.completions)

    def least(self) -> int:
        """All if each has an index of its own, and none comes after another."""
        is_gang = self.completion_mode == "Indexed" and self.completions == self.parallelism
        return self.parallelism if is_gang else 1


class Template(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A Job in another object."""

    spec: JobSpec = JobSpec()


class ReplicatedJob(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Equal Jobs of a JobSet."""

    name: str = ""
    replicas: Int64 = 1
    template: Template = Template()
    depends_on: tuple[Any, ...] = ()

    @property
    def pods(self) -> int:
        """Their pods."""
        return self.replicas * self.template.spec.pods


class StartupOrder(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Whether Jobs wait for the earlier ones."""

    startup_policy_order: str = ""


class JobSetSpec(OwnerSpec, frozen=True, kw_only=True, rename="camel", gc=False):
    """A JobSet."""

    source: ClassVar = "number of pods that its jobs start with"
    replicated_jobs: tuple[ReplicatedJob, ...] = ()
    startup_policy: StartupOrder = StartupOrder()

    def least(self) -> int:
        """The pods of the Jobs that wait for no others."""
        jobs = self.replicated_jobs
        if self.startup_policy.startup_policy_order == "InOrder":
            jobs = jobs[:1]
        return sum(each.pods for each in jobs if not each.depends_on)


class LeaderWorkers(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One group of a LeaderWorkerSet."""

    size: Int64 = 1


class LeaderWorkerSetSpec(OwnerSpec, frozen=True, kw_only=True, rename="camel", gc=False):
    """A LeaderWorkerSet; each of its groups is one of ours."""

    source: ClassVar = "size"
    leader_worker_template: LeaderWorkers = LeaderWorkers()
    startup_policy: str = ""

    def least(self) -> int:
        """The size of a group, unless workers wait for their leader."""
        return 1 if self.startup_policy == "LeaderReady" else self.leader_worker_template.size


class WorkerGroup(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Equal workers of a RayCluster."""

    replicas: Int64 | None = None
    min_replicas: Int64 | None = None
    num_of_hosts: Int64 = 1
    suspend: bool | None = None


class RayClusterSpec(OwnerSpec, frozen=True, kw_only=True, rename="camel", gc=False):
    """A RayCluster."""

    source: ClassVar = "head and workers to start with"
    worker_group_specs: tuple[WorkerGroup, ...] = ()
    enable_in_tree_autoscaling: bool | None = None

    def least(self) -> int:
        """The head, and the workers that it always has."""
        scales = bool(self.enable_in_tree_autoscaling)
        found = 1
        for each in self.worker_group_specs:
            asked = each.min_replicas if scales or each.replicas is None else each.replicas
            found += 0 if each.suspend else (asked or 0) * max(1, each.num_of_hosts)
        return found


class Replicas(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One role of a training job."""

    replicas: Int64 | None = None


class GangWish(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What a training job says itself."""

    min_available: Int64 | None = None


class RunPolicy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Has it."""

    scheduling_policy: GangWish = GangWish()


class ElasticPolicy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """How few workers do."""

    min_replicas: Int64 | None = None


class TrainingSpec(OwnerSpec, frozen=True, kw_only=True, rename="camel", gc=False):
    """A training job of Kubeflow; each kind has its own name for the roles."""

    source: ClassVar = "number of replicas"
    pytorch_replica_specs: dict[str, Replicas] = NO_ENTRIES
    tf_replica_specs: dict[str, Replicas] = NO_ENTRIES
    xgb_replica_specs: dict[str, Replicas] = NO_ENTRIES
    paddle_replica_specs: dict[str, Replicas] = NO_ENTRIES
    jax_replica_specs: dict[str, Replicas] = NO_ENTRIES
    mpi_replica_specs: dict[str, Replicas] = NO_ENTRIES
    run_policy: RunPolicy = RunPolicy()
    elastic_policy: ElasticPolicy | None = None
    launcher_creation_policy: str = ""

    def least(self) -> int:
        """All replicas that are created together, or what it says itself."""
        stated = self.run_policy.scheduling_policy.min_available
        if stated is not None:
            return stated
        kinds = (
            self.pytorch_replica_specs,
            self.tf_replica_specs,
            self.xgb_replica_specs,
            self.paddle_replica_specs,
            self.jax_replica_specs,
            self.mpi_replica_specs,
        )
        roles = {role: found for each in kinds for role, found in each.items()}
        counts = {role: 1 if each.replicas is None else each.replicas for role, each in roles.items()}
        if self.elastic_policy is not None and self.elastic_policy.min_replicas is not None:
            counts["Worker"] = self.elastic_policy.min_replicas
        if self.launcher_creation_policy == "WaitForWorkersReady":
            counts.pop("Launcher", None)
        return sum(counts.values())


class OwnedGroup(PodGroup, frozen=True, kw_only=True, rename="camel", gc=False):
    """An owner, in the form of a group."""

    resource: ClassVar = ""
    api_version: ClassVar = ""
    kind: ClassVar = ""
    spec: OwnerSpec = OwnerSpec()

    def __post_init__(self) -> None:
        """Read the wishes about topology from the annotations."""
        noted = self.metadata.annotations
        required, preferred = noted.get(REQUIRED_TOPOLOGY, ""), noted.get(PREFERRED_TOPOLOGY, "")
        if required or preferred:
            wishes = TopologyWishes(required=required, preferred=preferred)
            force_setattr(self, "spec", replace(self.spec, topology=wishes))

    @property
    def group_key(self) -> str:
        """``jobs.batch/namespace/name``."""
        return f"{self.resource}/{self.key}"


class JobGroup(OwnedGroup, frozen=True, kw_only=True, rename="camel", gc=False):
    """A Job."""

    resource: ClassVar = "jobs.batch"
    api_version: ClassVar = "batch/v1"
    kind: ClassVar = "Job"
    spec: JobSpec = JobSpec()


def _owner(api_version: str, kind: str, spec: OwnerSpec) -> type[OwnedGroup]:
    """The owners of a further kind; ``spec`` is that of an object that says nothing."""
    names = {
        "resource": f"{kind.lower()}s.{api_version.partition('/')[0]}",
        "api_version": api_version,
        "kind": kind,
    }
    made = msgspec.defstruct(
        f"{kind}Group",
        [("spec", type(spec), spec)],
        bases=(OwnedGroup,),
        namespace=names,
        module=__name__,
        frozen=True,
        kw_only=True,
        rename="camel",
        gc=False,
    )
    return cast("type[OwnedGroup]", made)


OWNERS: tuple[type[OwnedGroup], ...] = (
    JobGroup,
    _owner("jobset.x-k8s.io/v1alpha2", "JobSet", JobSetSpec()),
    _owner("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", LeaderWorkerSetSpec()),
    _owner("ray.io/v1", "RayCluster", RayClusterSpec()),
    _owner("kubeflow.org/v1", "PyTorchJob", TrainingSpec()),
    _owner("kubeflow.org/v1", "TFJob", TrainingSpec()),
    _owner("kubeflow.org/v1", "XGBoostJob", TrainingSpec()),
    _owner("kubeflow.org/v1", "PaddleJob", TrainingSpec()),
    _owner("kubeflow.org/v1", "JAXJob", TrainingSpec()),
    _owner("kubeflow.org/v2beta1", "MPIJob", TrainingSpec()),
)
"""The owners whose objects are read, each a class of its own."""

_RESOURCE = {each.kind: each.resource for each in OWNERS}
_BY_REFERENCE = {(each.kind, each.api_version.partition("/")[0]): each.resource for each in OWNERS}
_RESOURCES = frozenset((*(each.resource for each in OWNERS), SPARK))


class Member(NamedTuple):
    """Labels by which an owner's pods name it, and the prefix of the group's key."""

    labels: tuple[str, ...]
    resource: str


BY_LABEL = (
    Member((JOBSET,), _RESOURCE["JobSet"]),
    Member((LWS, LWS_GROUP), _RESOURCE["LeaderWorkerSet"]),
    Member((RAY,), _RESOURCE["RayCluster"]),
    Member((SPARK,), SPARK),
)
"""Owners that are not the controllers of all of their pods."""

TRAINERS = tuple(f"{each.resource}/" for each in OWNERS if each.kind not in ("JobSet", "LeaderWorkerSet"))
"""Prefixes of the keys of groups whose pods say by no mark that they need one another."""

_MARKS = frozenset(each.labels[0] for each in BY_LABEL)


def owned_key(pod: Pod) -> str:
    """The key of the group that a pod's owner forms, "" for none: resource, namespace, name, and an index."""
    labels = pod.metadata.labels
    if not _MARKS.isdisjoint(labels):
        for each in BY_LABEL:
            if labels.get(each.labels[0]):
                names = "/".join(labels.get(label, "") for label in each.labels)
                return f"{each.resource}/{pod.namespace}/{names}"
    owner = pod.metadata.controller
    if owner is None:
        return ""
    if owner.kind == "Job" and labels.get(KUBEFLOW_ROLE) == "launcher" and labels.get(KUBEFLOW_JOB):
        return f"{_RESOURCE['MPIJob']}/{pod.namespace}/{labels[KUBEFLOW_JOB]}"
    resource = _BY_REFERENCE.get((owner.kind, owner.api_version.partition("/")[0]))
    return f"{resource}/{pod.namespace}/{owner.name}" if resource else ""


def key_of(pod: Pod, *, derives: bool) -> str:
    """The key of the group that a pod starts with, "" for none; a named one goes first.

    Args:
        pod: The pod.
        derives: Whether its policy derives groups from owners.
    """
    return group_key(pod) or (owned_key(pod) if derives else "")


def is_owned(key: str) -> bool:
    """Whether a key is that of a group that an owner forms."""
    return key.partition("/")[0] in _RESOURCES


def owner_key(key: str) -> str:
    """The key of the object that says how a group starts: an owner may have several groups."""
    return "/".join(key.split("/")[:3]) if is_owned(key) else key


def without_object(key: str) -> PodGroup | None:
    """The group with this key if no object says how it starts; None if one does."""
    resource, _, rest = key.partition("/")
    if resource != SPARK:
        return None
    namespace, _, name = rest.partition("/")
    return OwnedGroup(metadata=ObjectMeta(namespace=namespace, name=name))


def title_of(key: str) -> str:
    """A group in words: ``Job default/train``, ``PodGroup default/train``."""
    resource, _, rest = key.partition("/")
    if is_composite(key):
        return f"CompositePodGroup {rest}"
    if not is_owned(key):
        return f"PodGroup {key}"
    kinds: Mapping[str, str] = {each.resource: each.kind for each in OWNERS}
    return f"{kinds.get(resource, 'Spark application')} {rest}"
