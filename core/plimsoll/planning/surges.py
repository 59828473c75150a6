"""Decides which pods a surge may move, which makes the new pod ready before the old one is deleted.

A rollout replaces all pods of a Deployment at the configured pace. It moves a single pod without downtime
exactly if the Deployment wants one pod, may have one more and none fewer, and is not rolling out. All other
single pods stay protected, and the refusal names the missing condition.

Of several replicas, one moves by one replica more and then one less, if no autoscaler or GitOps tool decides
on their number; so does one of a CloneSet or an Argo Rollout, and the only one of these. Where that is not
possible, the pod is evicted as usual.
"""

from collections.abc import Mapping

from msgspec import Struct, field

from plimsoll.framework import ClusterObjects, PodInfo
from plimsoll.framework.descheduling.pod_indexes import is_serving
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.model.counted import counted
from plimsoll.model.kinds.deployment import DELETION_COST, WANTED_GONE, Deployment
from plimsoll.model.kinds.scaled_workloads import SCALED
from plimsoll.planning.limits import Workload, workload_key

#: The reason of refusals of pods that a surge cannot move.
NO_SURGE = "NoSurge"

#: Access modes with which two pods on different nodes can use a volume simultaneously.
SHARED = frozenset({"ReadWriteMany", "ReadOnlyMany"})


class Surge(Struct, frozen=True):
    """A rollout that moves one pod, or one replica more and one less.

    Attributes:
        template: Digest of the pod template, which the rollout changes only in its mark; "" without rollout.
        before: The template's mark before the rollout; None without one.
        replicas: The wanted number of pods before and after a surge without a rollout; None for a rollout.
        kind: That of the object ``deployment``; another one only without a rollout.
    """

    deployment: str
    uid: str
    template: str = ""
    before: str | None = None
    replicas: int | None = None
    kind: str = "Deployment"

    def workload(self, namespace: str) -> Workload:
        """The Deployment of the moved pod: ReplicaSets change with each rollout."""
        return Workload(workload_key(namespace, self.uid), f"{self.kind} {namespace}/{self.deployment}")


class Deployments(Struct, frozen=True):
    """The Deployments as of the start of the run.

    Attributes:
        problem: Why they are not known, in a sentence; empty if they are.
        autoscaled: The HorizontalPodAutoscaler of each that has one, by ``Kind namespace/name``; None if they
            are not known.
        unread: Why no objects of another kind are known, in a clause, by kind.
    """

    by_uid: Mapping[str, Deployment] = field(default_factory=dict)
    problem: str = ""
    autoscaled: Mapping[str, str] | None = None
    unread: Mapping[str, str] = field(default_factory=dict)


class Surging:
    """Decides whether and how a pod can be surged."""

    def __init__(self, deployments: Deployments, objects: ClusterObjects, schedulers: frozenset[str]) -> None:
        self._deployments = deployments
        self._objects = objects
        self._schedulers = schedulers

    def lift(self, pod: PodInfo, refusal: Refusal) -> Refusal | None:
        """See :class:`plimsoll.framework.descheduling.proposals.SurgePermission`."""
        found = self.of(pod)
        if isinstance(found, Surge):
            return None
        return Refusal(NO_SURGE, f"{refusal.message}, and no surge can move it: {found}")

    def of(self, pod: PodInfo) -> Surge | str:
        """The surge that moves a pod which may not be evicted, or the missing condition."""
        deployment = self._movable(pod)
        if isinstance(deployment, str):
            return deployment
        if deployment.kind != "Deployment":
            return self._one_more(deployment, pod)
        missing = obstacle(deployment) or self._tied(pod)
        if missing:
            return missing
        return Surge(
            deployment.metadata.name, deployment.metadata.uid, deployment.template_digest(), deployment.surged
        )

    def at_best(self, pod: PodInfo) -> Surge | str:
        """The surge that moves a pod which may as well be evicted, or the missing condition.

        The only one leaves by a rollout, one of several by one replica more.
        """
        deployment = self._movable(pod)
        if isinstance(deployment, str):
            return deployment
        if deployment.spec.replicas == 1:
            return self.of(pod)
        return self._one_more(deployment, pod)

    def _one_more(self, deployment: Deployment, pod: PodInfo) -> Surge | str:
        """The surge by one replica more, or the missing condition."""
        missing = obstacle_of_several(deployment, self._deployments.autoscaled) or self._tied(pod)
        said = pod.pod.metadata.annotations
        if not missing and DELETION_COST in said and WANTED_GONE not in said:
            missing = f"it has the annotation {DELETION_COST} of somebody else"
        if missing:
            return missing
        meta, replicas = deployment.metadata, deployment.spec.replicas
        return Surge(meta.name, meta.uid, replicas=replicas, kind=deployment.kind)

    def _movable(self, pod: PodInfo) -> Deployment | str:
        """The Deployment of a pod that can be moved at all, or the missing condition."""
        named = pod.pod.spec.scheduler_name
        if named not in self._schedulers:
            return f'scheduler "{named}" places its replacement, which no policy serves'
        if not is_serving(pod):
            return "it is not ready"
        if self._deployments.problem:
            return self._deployments.problem
        return self._deployment_of(pod)

    def _deployment_of(self, pod: PodInfo) -> Deployment | str:
        owner = pod.pod.metadata.controller
        if owner is None:
            return "it has no controller"
        if owner.kind == "StatefulSet":
            return "its owner is a StatefulSet, and one replica more has another ordinal"
        above = self._objects.above(pod.pod) if owner.kind == "ReplicaSet" else owner
        if above is None or (owner is not above and above.kind not in SCALED):
            return f"ReplicaSet {owner.name} belongs to no Deployment"
        if above.kind not in SCALED:
            return (
                f"its owner is a {owner.kind}, only pods of Deployments, Rollouts and CloneSets can be surged"
            )
        deployment = self._deployments.by_uid.get(above.uid)
        if deployment is None or deployment.metadata.namespace != pod.namespace:
            unread = self._deployments.unread.get(above.kind)
            return unread or f"{above.kind} {above.name} is gone, or came after the run began"
        return deployment

    def _tied(self, pod: PodInfo) -> str:
        """Why two pods cannot run simultaneously on different nodes, "" for no reason."""
        for volume in pod.pod.spec.volumes:
            if volume.persistent_volume_claim is None:
                continue
            name = volume.persistent_volume_claim.claim_name
            claim = self._objects.claims.get(f"{pod.namespace}/{name}")
            if claim is None or not SHARED.intersection(claim.spec.access_modes):
                return f"PersistentVolumeClaim {name} cannot be used on two nodes at the same time"
        return ""


def obstacle(deployment: Deployment) -> str:
    """The first condition for a rollout that a Deployment does not meet, "" if it meets all."""
    name, spec = deployment.metadata.name, deployment.spec
    if spec.replicas != 1:
        return f"Deployment {name} wants {spec.replicas} replicas, and a rollout replaces them all"
    if spec.strategy.type != "RollingUpdate":
        return f"Deployment {name} has strategy {spec.strategy.type}, which ends the old pod first"
    surge, missing = deployment.bounds()
    if missing > 0:
        return f"Deployment {name} may be without its pod in a rollout (maxUnavailable {missing}, not 0)"
    if surge < 1:
        return f"Deployment {name} may have no second pod in a rollout (maxSurge {surge})"
    return _unrest(deployment)


def obstacle_of_several(deployment: Deployment, autoscaled: Mapping[str, str] | None) -> str:
    """The first condition for one replica more that a Deployment does not meet, "" if it meets all."""
    if deployment.spec.replicas < (2 if deployment.kind == "Deployment" else 1):
        return f"{deployment} wants {counted(deployment.spec.replicas, 'replica')}"
    if deployment.hindrance:
        return f"{deployment} {deployment.hindrance}"
    if autoscaled is None:
        return f"whether an autoscaler decides on the replicas of {deployment} could not be read"
    keeper = deployment.keeper
    if deployment.scaled in autoscaled:
        keeper = f"HorizontalPodAutoscaler {autoscaled[deployment.scaled]}"
    if keeper:
        return f"{keeper} decides on the replicas of {deployment}"
    return _unrest(deployment)


def _unrest(deployment: Deployment) -> str:
    """Why this is no moment for a surge of a Deployment, "" if it is one."""
    if deployment.metadata.deletion_timestamp is not None:
        return f"{deployment} is being deleted"
    if deployment.spec.paused:
        return f"{deployment} is paused"
    if not deployment.is_settled:
        return f"a rollout of {deployment} is under way"
    return ""
