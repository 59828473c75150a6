"""The controllers of the development cluster: what kube-controller-manager does, in the same process.

Each is one file: it follows resources, reconciles keys from the one ``work_queue``, and writes through
the same ``Api`` as HTTP does. They hold no state that matters: what is to be done is read from objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.devcluster.controllers.context import BY_NODE, Context, Controller
from plimsoll.devcluster.controllers.daemon_set import DaemonSetController
from plimsoll.devcluster.controllers.deployment import DeploymentController
from plimsoll.devcluster.controllers.disruption import DisruptionController
from plimsoll.devcluster.controllers.event_recorder import EventRecorder
from plimsoll.devcluster.controllers.garbage import GarbageCollector
from plimsoll.devcluster.controllers.job import JobController
from plimsoll.devcluster.controllers.namespace import NamespaceController
from plimsoll.devcluster.controllers.node_taints import NodeTaintController
from plimsoll.devcluster.controllers.ownership import Ownership
from plimsoll.devcluster.controllers.pod_garbage import PodGarbageController
from plimsoll.devcluster.controllers.replica_set import ReplicaSetController
from plimsoll.devcluster.controllers.stateful_set import StatefulSetController
from plimsoll.devcluster.controllers.taint_eviction import TaintEvictionController

if TYPE_CHECKING:
    from plimsoll.devcluster.api import Api
    from plimsoll.devcluster.controllers.work_queue import WorkQueue

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
)


def make_context(api: Api, queue: WorkQueue) -> Context:
    """What controllers and kubelets share."""
    pods = api.store.collection("pods")
    if not pods.has_index(BY_NODE):
        pods.add_index(BY_NODE, lambda pod: [pod["spec"].get("nodeName") or ""])
    return Context(api, queue, Ownership(api), EventRecorder(api, queue.clock))


def start_controllers(context: Context) -> None:
    """Start all controllers; they work while the queue runs."""
    for make in ALL:
        make(context).start()
