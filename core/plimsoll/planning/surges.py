"""Decides which pods a surge may move, which makes the new pod ready before the old one is deleted.

A rollout replaces all pods of a Deployment at the configured pace. It moves a single pod without downtime
exactly if the Deployment wants one pod, may have one more and none fewer, and is not rolling out. All other
single pods stay protected, and the refusal names the missing condition.

Of several replicas, one moves by one replica more and then one less, if no autoscaler or GitOps tool decides
on their number. Where that is not possible, the pod is evicted as usual.
"""

from collections.abc import Mapping

from msgspec import Struct, field

from plimsoll.framework import ClusterObjects, PodInfo
from plimsoll.framework.descheduling.pod_indexes import is_serving
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.model.counted import counted
from plimsoll.model.kinds.deployment import DELETION_COST, Deployment
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
    """

    deployment: str
    uid: str
    template: str = ""
    before: str | None = None
    replicas: int | None = None

    def workload(self, namespace: str) -> Workload:
        """The Deployment of the moved pod: ReplicaSets change with each rollout."""
        return Workload(workload_key(namespace, self.uid), f"Deployment {namespace}/{self.deployment}")


class Deployments(Struct, frozen=True):
    """The Deployments as of the start of the run.

    Attributes:
        problem: Why they are not known, in a sentence; empty if they are.
        autoscaled: The HorizontalPodAutoscaler of each Deployment that has one, by namespace/name; None if
            they are not known.
    """

    by_uid: Mapping[str, Deployment] = field(default_factory=dict)
    problem: str = ""
    autoscaled: Mapping[str, str] | None = None


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
        """The rollout that would move the pod, or the missing condition."""
        deployment = self._movable(pod)
        if isinstance(deployment, str):
            return deployment
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
        missing = obstacle_of_several(deployment, self._deployments.autoscaled) or self._tied(pod)
        if not missing and DELETION_COST in pod.pod.metadata.annotations:
            missing = f"it has the annotation {DELETION_COST} of somebody else"
        if missing:
            return missing
        return Surge(deployment.metadata.name, deployment.metadata.uid, replicas=deployment.spec.replicas)

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
        if owner.kind != "ReplicaSet":
            return f"its owner is a {owner.kind}, only the pod of a Deployment can be surged"
        above = self._objects.above(pod.pod)
        if above is None or above.kind != "Deployment":
            return f"ReplicaSet {owner.name} belongs to no Deployment"
        deployment = self._deployments.by_uid.get(above.uid)
        if deployment is None or deployment.metadata.namespace != pod.namespace:
            return f"Deployment {above.name} is gone, or came after the run began"
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
    name = deployment.metadata.name
    if deployment.spec.replicas <= 1:
        return f"Deployment {name} wants {counted(deployment.spec.replicas, 'replica')}"
    if autoscaled is None:
        return f"whether an autoscaler decides on the replicas of Deployment {name} could not be read"
    keeper = deployment.keeper
    if deployment.key in autoscaled:
        keeper = f"HorizontalPodAutoscaler {autoscaled[deployment.key]}"
    if keeper:
        return f"{keeper} decides on the replicas of Deployment {name}"
    return _unrest(deployment)


def _unrest(deployment: Deployment) -> str:
    """Why this is no moment for a surge of a Deployment, "" if it is one."""
    name = deployment.metadata.name
    if deployment.metadata.deletion_timestamp is not None:
        return f"Deployment {name} is being deleted"
    if deployment.spec.paused:
        return f"Deployment {name} is paused"
    if not deployment.is_settled:
        return f"a rollout of Deployment {name} is under way"
    return ""
