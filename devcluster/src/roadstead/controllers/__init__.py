"""Runs the controllers of kube-controller-manager in the process of the API server.

Each controller subscribes to resources, reconciles keys from the shared ``work_queue``, and writes through
the same ``Api`` as HTTP does. Their state can be rebuilt from objects at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from roadstead.controllers.taint_eviction import TaintEvictionController
from roadstead.controllers.workloads.daemon_set import DaemonSetController
from roadstead.controllers.workloads.deployment import DeploymentController
from roadstead.controllers.workloads.job import JobController
from roadstead.controllers.workloads.replica_set import ReplicaSetController
from roadstead.controllers.workloads.stateful_set import StatefulSetController

if TYPE_CHECKING:
    from roadstead.controllers.work_queue import WorkQueue
    from roadstead.store.api import Api

__all__ = ["ALL", "Context", "Controller", "make_context", "start_controllers"]

ALL = (
    GarbageCollector,
    NamespaceController,
    NodeTaintController,
    DeploymentController,
    ReplicaSetController,
    StatefulSetController,
    DaemonSetController,
    JobController,
    DisruptionController,
    TaintEvictionController,
    PodGarbageController,
    ResourceClaimController,
    DeviceTaintController,
)


def make_context(api: Api, queue: WorkQueue) -> Context:
    """The context of controllers and kubelets."""
    pods = api.store.collection("pods")
    if not pods.has_index(BY_NODE):
        pods.add_index(BY_NODE, lambda pod: [pod["spec"].get("nodeName") or ""])
    return Context(api, queue, Ownership(api), EventRecorder(api, queue.clock))


def start_controllers(context: Context) -> None:
    """Start all controllers; they work while the queue runs."""
    for make in ALL:
        make(context).start()
