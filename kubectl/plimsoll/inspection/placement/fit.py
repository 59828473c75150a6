"""Reports how many pods of a workload fit, where they are placed, and the obstacle of the next one.

The pods are placed one by one on a fork of the cluster, after the waiting pods that precede them in the
queue; those of a group are placed together, where its topology says. Pods are preempted only on request.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import count, islice

from msgspec import Struct
from msgspec.structs import replace
from pydantic import Field

from plimsoll.answers.answer import Answer, AnswerPart
from plimsoll.engine.decision import Decision
from plimsoll.engine.gangs.topology_domains import never_fits
from plimsoll.framework import PodInfo
from plimsoll.inspection.manifests.daemon_pods import daemon_pod, runs_on
from plimsoll.inspection.manifests.documents import Manifests, shelve
from plimsoll.inspection.manifests.new_claims import with_claims
from plimsoll.inspection.manifests.pod_defaults import ManifestError
from plimsoll.inspection.manifests.workload_pods import WorkloadPods
from plimsoll.inspection.placement.pod_obstacles import PodObstacle, pod_obstacle
from plimsoll.inspection.state import ClusterState
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.owned_group import JobGroup, title_of
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import PodGroup, group_key
from plimsoll.offline.cluster import OfflineCluster, OfflinePlacement, Schedulers

#: Default limit of pods that ``--max`` tries.
MOST = 10_000

#: Collections that hardly any cluster lacks; other missing collections are not reported.
DECISIVE = frozenset({"nodes", "pods", "poddisruptionbudgets", "priorityclasses", "schedulingpolicies"})

#: Callback for the number of pods tried.
Progress = Callable[[int], None]


class FitQuestion(Struct, frozen=True):
    """The request of ``plimsoll fit``.

    Attributes:
        replicas: Overrides the manifest's replicas; None keeps these.
        maximum: Place pods until one does not fit, or ``most`` are placed.
        alone: Leave out the waiting pods.
        preempting: Let the pods preempt pods of lower priority.
        within: A node label whose value the members of each group must share, whatever the group says.
    """

    replicas: int | None = None
    maximum: bool = False
    most: int = MOST
    alone: bool = False
    preempting: bool = False
    within: str = ""


class NodeShare(AnswerPart):
    """Pods on a node."""

    node: str = Field(description="Name of the node.")
    pods: int = Field(description="Number of pods of the workload that fit on the node.")


class DomainShare(AnswerPart):
    """Pods in a topology domain."""

    label: str = Field(description="The node label.")
    value: str = Field(description="Value of the label; empty for nodes without the label.")
    pods: int = Field(description="Number of pods of the workload that fit there.")


class WorkloadFit(AnswerPart):
    """The result for one workload."""

    workload: str = Field(description="The workload, as Kind namespace/name.")
    scheduler: str = Field(description="The schedulerName of its pods.")
    policy: str = Field(description="The SchedulingPolicy that serves it; empty when none does.")
    priority: int = Field(description="Priority of the pods of the workload.")
    wanted: int | None = Field(description="How many pods should fit; null when the most is asked for.")
    placed: int = Field(description="How many pods fit.")
    limited: bool = Field(description="Whether the search for the most ended at its limit: more may fit.")
    ties: int = Field(description="How many of them could be on other nodes that are equally good.")
    nodes: list[NodeShare] = Field(description="Where they are, the node with the most pods first.")
    group: str = Field(
        default="", description="The group as which its pods start, as Kind namespace/name; empty for none."
    )
    min_member: int = Field(
        default=0, description="How many pods of the group start together; 0 without a group."
    )
    domains: list[DomainShare] = Field(
        default=[], description="Where they are by the node labels of the group's topology."
    )
    victims: list[str] = Field(description="Pods that they preempt, as namespace/name.")
    would_preempt: list[str] = Field(
        default=[],
        description="Pods that the group would preempt if it does not fit, as namespace/name; empty when that"
        " would not help.",
    )
    never: str = Field(
        default="", description="Why the group does not fit on the present nodes even if they were empty."
    )
    obstacle: PodObstacle | None = Field(description="What stops the next pod; null when all fit.")

    @property
    def fits(self) -> bool:
        """Whether as many fit as are desired; with --max, whether any fits."""
        return self.placed > 0 if self.wanted is None else self.placed >= self.wanted


class FitAnswer(Answer):
    """Whether workloads fit."""

    fits: bool = Field(description="Whether all wanted pods fit; with --max, whether one does.")
    waiting: int = Field(description="How many pods waited already and come first in the queue.")
    waiting_placed: int = Field(description="How many of these were placed first.")
    workloads: list[WorkloadFit] = Field(
        description="Every workload, in the order in which they were placed."
    )
    notes: list[str] = Field(description="What is not known, or assumed.")


def fit(
    state: ClusterState, manifests: Manifests, question: FitQuestion, progress: Progress = lambda _: None
) -> FitAnswer:
    """Place the pods of the manifests.

    Raises:
        ManifestError: There is no workload, or the request does not apply to these.
    """
    _check(manifests, question)
    state.check_known([each.template.spec.scheduler_name for each in manifests.workloads])
    fork = state.cluster.fork()
    for found in manifests.objects:
        shelve(fork, found)
    groups = manifests.pod_groups()
    for each in manifests.workloads if question.replicas is not None else ():
        if each.group is not None:
            groups[each.group.group_key] = resized(each.group, question.replicas or 0)
    schedulers = schedulers_of(state, groups)
    queue = OfflineCluster(fork, schedulers, state.book.nominator.entries(), preempting=question.preempting)
    waiting = [] if question.alone else waiting_pods(state)
    notes = notes_of(state, manifests, fork)
    placing = _Placing(queue, state.time, question, progress, notes)
    answers = [placing.workload(each, waiting) for each in placing.ordered(manifests.workloads)]
    return FitAnswer(
        fits=all(each.fits for each in answers),
        waiting=placing.waiting,
        waiting_placed=placing.waiting_placed,
        workloads=answers,
        notes=list(dict.fromkeys(notes)),
    )


def resized(job: JobGroup, pods: int) -> JobGroup:
    """A Job with another number of pods; one whose pods all start together is still such a Job."""
    spec = job.spec
    completions = pods if spec.completions == spec.parallelism else spec.completions
    return replace(job, spec=replace(spec, parallelism=pods, completions=completions))


def waiting_pods(state: ClusterState) -> list[PodInfo]:
    """The pods without a node that a scheduler seems to try."""
    return [pod for pod in pending_pods(state) if pod.pod.spec.scheduler_name not in state.unserved]


def pending_pods(state: ClusterState) -> list[PodInfo]:
    """The pods without a node."""
    return [
        pod for pod in state.objects.pending.infos() if not pod.pod.is_terminal and not pod.is_terminating
    ]


def schedulers_of(state: ClusterState, groups: Mapping[str, PodGroup]) -> Schedulers:
    """The schedulers that place pods on forks of the cluster; ``groups`` are further PodGroups.

    Raises:
        UnknownHereError: A policy of pods of the cluster has a plugin that is not installed here.
    """
    state.check_known({each.pod.spec.scheduler_name for each in state.cluster.pods.values()})
    known = {group.key: group.object for group in state.objects.groups if group.object is not None}
    owners = {each.group_key: each for each in state.objects.groups.owners}
    return Schedulers(state.profiles, state.forecasts, {**known, **owners, **groups})


def missing_notes(state: ClusterState) -> list[str]:
    """Collections that could not be read, grouped by reason."""
    by_reason: dict[str, list[str]] = {}
    for plural, why in sorted(state.content.missing.items()):
        if plural not in DECISIVE:
            continue
        by_reason.setdefault(why, []).append(plural)
    return [f"not known ({why}): {', '.join(plurals)}" for why, plurals in by_reason.items()]


def notes_of(state: ClusterState, manifests: Manifests, fork: Cluster) -> list[str]:
    """Notes about manifests on this cluster."""
    notes = missing_notes(state) + [note for each in manifests.workloads for note in each.notes]
    namespaces = fork.objects.namespaces
    for each in manifests.workloads:
        name = each.template.spec.scheduler_name
        if name not in state.profiles:
            notes.append(
                f"{each.subject}: no policy serves scheduler {name}; where its pods go is a forecast with"
                f" {state.forecasts.basis(name)}"
            )
        if namespaces and each.namespace not in namespaces:
            notes.append(f"{each.subject}: there is no namespace {each.namespace}; create it first")
        owners = {name for name in (each.name, each.owner.name if each.owner else "") if name}
        if any(_is_of(pod, each, owners) for pod in fork.pods.values()):
            notes.append(f"{each.subject} has pods already; they stay, and these come in addition")
    if manifests.left_out:
        notes.append(f"left out, since no placement depends on them: {', '.join(manifests.left_out)}")
    return notes


def _is_of(pod: PodInfo, workload: WorkloadPods, owners: set[str]) -> bool:
    """Whether a pod of the cluster seems to belong to the workload."""
    if pod.namespace != workload.namespace:
        return False
    owner = pod.pod.metadata.owner
    if owner is None:
        return workload.kind == "Pod" and pod.name == workload.name
    if workload.kind == "Deployment":
        return owner.kind == "ReplicaSet" and owner.name.rpartition("-")[0] == workload.name
    return owner.kind == workload.kind and owner.name in owners


class _Placing:
    """Places workloads one after another."""

    def __init__(
        self,
        queue: OfflineCluster,
        now: datetime,
        question: FitQuestion,
        progress: Progress,
        notes: list[str],
    ) -> None:
        self._queue = queue
        self._now = now
        self._question = question
        self._progress = progress
        self._notes = notes
        self._tried = 0
        self.waiting = 0
        self.waiting_placed = 0

    def ordered(self, workloads: tuple[WorkloadPods, ...]) -> list[WorkloadPods]:
        """The workloads in queue order."""
        return sorted(workloads, key=lambda each: -each.template.priority)

    def workload(self, workload: WorkloadPods, waiting: list[PodInfo]) -> WorkloadFit:
        """Place one workload, after the waiting pods that precede it."""
        queue, question = self._queue, self._question
        if workload.owner is not None:
            shelve(queue.fork, workload.owner)
        sample = self._info(workload, workload.pod(0, self._now))
        first = [pod for pod in waiting if queue.precedes(pod, sample)]
        for pod in first:
            waiting.remove(pod)
            queue.add(pod)
        self.waiting += len(first)
        self.waiting_placed += len(queue.settle())
        extender = queue.extender_of(sample)
        if extender:
            self._notes.append(
                f"{workload.subject}: extender {extender} has a say in where its pods go; it was not asked"
            )
        wanted = None if question.maximum else self._wanted(workload)
        key, group = self._joined(workload, sample)
        missing, never = list[PodInfo](), ""
        if key:
            placed, obstacle, missing, never = self._group(workload, wanted or 0, key)
        elif workload.kind == "DaemonSet":
            placed, obstacle = self._daemons(workload)
        else:
            placed, obstacle = self._one_by_one(workload, question.most if wanted is None else wanted)
        nodes = Counter(each.node for each in placed)
        scheduler = sample.pod.spec.scheduler_name
        return WorkloadFit(
            workload=workload.subject,
            scheduler=scheduler,
            policy=queue.policy_of(sample),
            priority=sample.priority,
            wanted=wanted,
            placed=len(placed),
            limited=wanted is None and obstacle is None,
            ties=sum(1 for each in placed if each.ties > 1),
            nodes=[
                NodeShare(node=node, pods=pods)
                for node, pods in sorted(nodes.items(), key=lambda each: (-each[1], each[0]))
            ],
            group=title_of(key) if key else "",
            min_member=0 if group is None else group.spec.min_member,
            domains=self._domains(sample, placed) if key else [],
            victims=[victim.key for each in placed for victim in each.victims],
            would_preempt=[each.key for each in missing],
            never=never,
            obstacle=obstacle,
        )

    def _joined(self, workload: WorkloadPods, sample: PodInfo) -> tuple[str, PodGroup | None]:
        """The key of the group as which the pods start, "" if each starts by itself, and the group.

        Raises:
            ManifestError: The request does not apply.
        """
        key, group = self._queue.group_of(sample)
        question, label = self._question, self._question.within
        if group is None or (group.spec.are_independent and not label and not self._queue.labels_of(sample)):
            key, group = group_key(sample.pod), None
        if question.maximum and key:
            raise ManifestError(
                f"--max does not apply to {workload.subject}: its pods start together; use --replicas"
            )
        if label and not key:
            raise ManifestError(
                f"--within does not apply to {workload.subject}: its pods do not start together. Name a"
                " PodGroup in its pod template, or let a policy derive groups (groups.derive: Automatic)"
            )
        if label:
            self._queue.keep_within(key, label)
        return key, group

    def _domains(self, sample: PodInfo, placed: Sequence[OfflinePlacement]) -> list[DomainShare]:
        """Where pods of a group are, by the labels of its topology."""
        fork, found = self._queue.fork, list[DomainShare]()
        for label in self._queue.labels_of(sample):
            counts = Counter(fork.nodes[fork.rows[each.node]].labels.get(label, "") for each in placed)
            found += [
                DomainShare(label=label, value=value, pods=pods)
                for value, pods in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
            ]
        return found

    def _wanted(self, workload: WorkloadPods) -> int:
        if workload.kind == "DaemonSet":
            return sum(1 for node in self._queue.fork.nodes if runs_on(workload.template, node))
        return workload.replicas if self._question.replicas is None else self._question.replicas

    def _info(self, workload: WorkloadPods, pod: Pod) -> PodInfo:
        pod, notes = with_claims(pod, workload.claims, self._queue.fork)
        self._notes += notes
        self._tried += 1
        self._progress(self._tried)
        return self._queue.fork.templates.info(pod)

    def _pods(self, workload: WorkloadPods) -> Iterator[PodInfo]:
        return (self._info(workload, workload.pod(number, self._now)) for number in count())

    def _one_by_one(
        self, workload: WorkloadPods, most: int
    ) -> tuple[list[OfflinePlacement], PodObstacle | None]:
        """Place pods until one does not fit."""
        placed: list[OfflinePlacement] = []
        for pod in islice(self._pods(workload), most):
            found = self._queue.place(pod)
            if isinstance(found, Decision):
                return placed, pod_obstacle(self._queue, pod, found)
            placed.append(found)
        return placed, None

    def _daemons(self, workload: WorkloadPods) -> tuple[list[OfflinePlacement], PodObstacle | None]:
        """Place a pod on each node where the DaemonSet runs one."""
        placed: list[OfflinePlacement] = []
        obstacle: PodObstacle | None = None
        for node in [node for node in self._queue.fork.nodes if runs_on(workload.template, node)]:
            pod = self._info(workload, daemon_pod(workload.template, node.name))
            found = self._queue.place(pod)
            if isinstance(found, OfflinePlacement):
                placed.append(found)
            elif obstacle is None:
                obstacle = pod_obstacle(self._queue, pod, found)
        return placed, obstacle

    def _group(
        self, workload: WorkloadPods, wanted: int, key: str
    ) -> tuple[list[OfflinePlacement], PodObstacle | None, list[PodInfo], str]:
        """Place the members of a group together; also what would have to go, and whether it can ever fit."""
        pods = list(islice(self._pods(workload), wanted))
        for pod in pods:
            self._queue.add(pod)
        placed = self._queue.settle()
        left = [pod for pod in pods if pod.uid in self._queue.waiting]
        if not left:
            return placed, None, [], ""
        obstacle = pod_obstacle(self._queue, left[0], self._queue.refusals[left[0].uid])
        group = self._queue.group_of(left[0])[1]
        least = max(0, group.spec.min_member - len(placed)) if group else 0
        label = self._queue.required_label_of(left[0])
        never = never_fits(left, self._queue.fork, least, label) if least else ""
        return placed, obstacle, [] if never else self._queue.victims_for(key), never


def _check(manifests: Manifests, question: FitQuestion) -> None:
    """Raise ManifestError unless the request applies."""
    if not manifests.workloads:
        raise ManifestError(
            "there is no workload in the files; give a Deployment, a Job or another kind of pods"
        )
    if manifests.nodes or manifests.policies:
        raise ManifestError("fit takes workloads; nodes and policies are changes: use whatif -f for them")
    if question.replicas is None and not question.maximum:
        return
    flag = "--max" if question.maximum else "--replicas"
    names = ", ".join(each.subject for each in manifests.workloads)
    if len(manifests.workloads) > 1:
        raise ManifestError(f"{flag} is about one workload, and the files have several: {names}")
    if manifests.workloads[0].kind == "DaemonSet":
        raise ManifestError(f"{flag} does not apply to {names}: its nodes decide how many pods it has")
