"""Runs the controllers of kube-controller-manager in the process of the API server.

``chosen`` reads a list of their names. Each controller subscribes to resources, reconciles keys from the
shared ``work_queue``, and writes through the same ``Api`` as HTTP does. Their state can be rebuilt from
objects at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.controllers.autoscaler import HorizontalPodAutoscalerController
from roadstead.controllers.certificate_signer import CertificateSigner
from roadstead.controllers.context import BY_NODE, Context, Controller
from roadstead.controllers.device_taints import DeviceTaintController
from roadstead.controllers.disruption import DisruptionController
from roadstead.controllers.event_recorder import EventRecorder
from roadstead.controllers.garbage_collector import GarbageCollector
from roadstead.controllers.namespace import NamespaceController
from roadstead.controllers.node_taints import NodeTaintController
from roadstead.controllers.ownership import Ownership
from roadstead.controllers.pod_garbage import PodGarbageController
from roadstead.controllers.resource_claims import ResourceClaimController
from roadstead.controllers.resource_quota import ResourceQuotaController
from roadstead.controllers.taint_eviction import TaintEvictionController
from roadstead.controllers.volumes.binder import VolumeBinder
from roadstead.controllers.volumes.ephemeral import EphemeralVolumeController
from roadstead.controllers.volumes.protection import ClaimProtectionController, VolumeProtectionController
from roadstead.controllers.workloads.cron_job import CronJobController
from roadstead.controllers.workloads.daemon_set import DaemonSetController
from roadstead.controllers.workloads.deployment import DeploymentController
from roadstead.controllers.workloads.job import JobController
from roadstead.controllers.workloads.replica_set import ReplicaSetController
from roadstead.controllers.workloads.stateful_set import StatefulSetController
from roadstead.controllers.workloads.ttl_after_finished import TtlAfterFinishedController

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from roadstead.controllers.work_queue import WorkQueue
    from roadstead.store.api import Api

__all__ = ["CONTROLLERS", "Context", "Controller", "chosen", "make_context", "start_controllers"]

CONTROLLERS: Mapping[str, tuple[Callable[[Context], Controller], ...]] = {
    "garbage-collector-controller": (GarbageCollector,),
    "namespace-controller": (NamespaceController,),
    "node-lifecycle-controller": (NodeTaintController,),
    "deployment-controller": (DeploymentController,),
    "replicaset-controller": (ReplicaSetController,),
    "statefulset-controller": (StatefulSetController,),
    "daemonset-controller": (DaemonSetController,),
    "job-controller": (JobController,),
    "cronjob-controller": (CronJobController,),
    "ttl-after-finished-controller": (TtlAfterFinishedController,),
    "disruption-controller": (DisruptionController,),
    "taint-eviction-controller": (TaintEvictionController,),
    "pod-garbage-collector-controller": (PodGarbageController,),
    "resourceclaim-controller": (ResourceClaimController,),
    "device-taint-eviction-controller": (DeviceTaintController,),
    "persistentvolume-binder-controller": (VolumeBinder,),
    "ephemeral-volume-controller": (EphemeralVolumeController,),
    "persistentvolumeclaim-protection-controller": (ClaimProtectionController,),
    "persistentvolume-protection-controller": (VolumeProtectionController,),
    "resourcequota-controller": (ResourceQuotaController,),
    "certificatesigningrequest-signing-controller": (CertificateSigner,),
    "horizontal-pod-autoscaler-controller": (HorizontalPodAutoscalerController,),
}
"""The controllers, keyed with the names that kube-controller-manager gives them."""

ACTS_ON: Mapping[str, tuple[str, ...]] = {
    "garbage-collector-controller": (),
    "namespace-controller": ("namespaces",),
    "node-lifecycle-controller": ("nodes",),
    "deployment-controller": ("deployments.apps",),
    "replicaset-controller": ("replicasets.apps",),
    "statefulset-controller": ("statefulsets.apps", "controllerrevisions.apps"),
    "daemonset-controller": ("daemonsets.apps", "controllerrevisions.apps"),
    "job-controller": ("jobs.batch",),
    "cronjob-controller": ("cronjobs.batch",),
    "ttl-after-finished-controller": ("jobs.batch",),
    "disruption-controller": ("poddisruptionbudgets.policy",),
    "taint-eviction-controller": ("pods",),
    "pod-garbage-collector-controller": ("pods",),
    "resourceclaim-controller": ("resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"),
    "device-taint-eviction-controller": ("resourceslices.resource.k8s.io",),
    "persistentvolume-binder-controller": (
        "persistentvolumeclaims",
        "persistentvolumes",
        "storageclasses.storage.k8s.io",
    ),
    "ephemeral-volume-controller": ("persistentvolumeclaims",),
    "persistentvolumeclaim-protection-controller": ("persistentvolumeclaims",),
    "persistentvolume-protection-controller": ("persistentvolumes",),
    "resourcequota-controller": ("resourcequotas",),
    "certificatesigningrequest-signing-controller": ("certificatesigningrequests.certificates.k8s.io",),
    "horizontal-pod-autoscaler-controller": ("horizontalpodautoscalers.autoscaling",),
}
"""The resources on which each controller acts, for the tables of the documentation; () for all."""

_SUFFIX = "-controller"


def chosen(names: str) -> list[str]:
    """The controllers of a list as ``kube-controller-manager --controllers`` takes it, in the order of start.

    Args:
        names: separated by commas: ``*`` for all, ``job`` or ``job-controller`` for one, ``-job`` for all
            but one; "" for none. What is named first decides.

    Raises:
        ValueError: a name is unknown.
    """
    parts = [part.strip() for part in names.split(",") if part.strip()]
    wanted: dict[str, bool] = {}
    for part in parts:
        bare = part.removeprefix("-")
        name = bare if bare in ("*", *CONTROLLERS) else f"{bare}{_SUFFIX}"
        if name != "*" and name not in CONTROLLERS:
            raise ValueError(f'"{bare}" is not in the list of known controllers: {", ".join(CONTROLLERS)}')
        wanted.setdefault(name, not part.startswith("-"))
    return [name for name in CONTROLLERS if wanted.get(name, wanted.get("*", False))]


def make_context(api: Api, queue: WorkQueue, *, job_groups: bool = False) -> Context:
    """The context of controllers and kubelets; with ``job_groups`` Jobs get PodGroups."""
    pods = api.store.collection("pods")
    if not pods.has_index(BY_NODE):
        pods.add_index(BY_NODE, lambda pod: [pod["spec"].get("nodeName") or ""])
    return Context(api, queue, Ownership(api), EventRecorder(api, queue.clock), job_groups)


def start_controllers(context: Context, names: str = "*") -> None:
    """Start the controllers that ``names`` selects; they work while the queue runs.

    Raises:
        ValueError: a name is unknown.
    """
    for name in chosen(names):
        for make in CONTROLLERS[name]:
            make(context).start()
