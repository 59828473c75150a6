"""A cluster without HTTP and without time: tests say when the clock moves."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import settings

from roadstead.assembly import built_in_api
from roadstead.controllers import make_context, start_controllers
from roadstead.controllers.work_queue import WorkQueue
from roadstead.kubelets.kubelets import Kubelets, KubeletSettings
from roadstead.kubelets.nodes import make_node
from roadstead.schemas.timestamps import to_timestamp
from roadstead.server.metrics_api import MetricsApi
from roadstead.store.api import Write
from roadstead.store.subresources import bind

# A busy machine is slow, not wrong: the time limit of a whole test is pytest's. A project around this one may
# have loaded a profile of its own.
if settings.default.deadline is not None:
    settings.register_profile("roadstead", deadline=None)
    settings.load_profile("roadstead")

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


RESOURCES = {
    "Deployment": "deployments.apps",
    "ReplicaSet": "replicasets.apps",
    "StatefulSet": "statefulsets.apps",
    "DaemonSet": "daemonsets.apps",
    "Job": "jobs.batch",
    "PodDisruptionBudget": "poddisruptionbudgets.policy",
    "ConfigMap": "configmaps",
}


def a_template(labels, image="app:1", **spec):
    """A pod template."""
    container = {"name": "main", "image": image}
    return {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}}


class Simulation:
    """Api, controllers and kubelets under a clock that stands still until it is moved."""

    def __init__(self):
        self.now = START

        self.api = built_in_api(lambda: self.now)
        self.queue = WorkQueue(lambda: self.api.clock().timestamp())
        self.context = make_context(self.api, self.queue)

    def with_controllers(self):
        """Start the controllers."""
        start_controllers(self.context)
        return self

    def with_kubelets(self, **settings):
        """Start kubelets and metrics."""
        Kubelets(self.context, KubeletSettings(**{"start_s": (1.0, 1.0), **settings})).start()
        MetricsApi(self.context).start()
        return self

    template = staticmethod(a_template)

    def settle(self, seconds=0.1):
        """Do all that is due now and in so many seconds, at the times when it is due."""
        end = self.now + dt.timedelta(seconds=seconds)
        self.queue.run_due()
        while (wait := self.queue.next_due_s()) is not None:
            if self.now + dt.timedelta(seconds=wait) > end:
                break
            self.now += dt.timedelta(seconds=wait, microseconds=1)
            self.queue.run_due()
        self.now = end
        self.queue.run_due()

    def nodes(self, *names, **size):
        """Create nodes with simulated kubelets."""
        for name in names:
            self.api.create("nodes", make_node(name, **size))
        self.settle()

    def pod(self, name, node="", requests=None, annotations=None, **spec):
        """Create a pod, bound to a node if one is named."""
        requests = requests or {}
        limits = {name: quantity for name, quantity in requests.items() if "/" in name}
        container = {
            "name": "main",
            "image": "app:1",
            "resources": {"requests": requests, "limits": limits},
        }
        metadata = {"name": name, "namespace": "default", "annotations": annotations or {}}
        spec = {"containers": [container], "restartPolicy": "Always", **spec}
        created = self.api.create("pods", {"metadata": metadata, "spec": spec})
        if node:
            self.bind(created, node)
        return created

    def bind(self, pod, node):
        """Bind a pod, as the binding subresource does."""
        name = pod["metadata"]["name"]
        target = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        bind(self.api, (pod["metadata"]["namespace"], name), target, Write(), labelled=True)

    def bind_all(self, node):
        """Bind all pods that are not bound, and let what follows happen."""
        for pod in self.pods():
            if not pod["spec"].get("nodeName"):
                self.bind(pod, node)
        self.settle()

    def create(self, kind, name, labels=None, *, resource=None, annotations=None, **spec):
        """Create an object of the namespace default, by kind."""
        resource = resource or RESOURCES[kind]
        metadata = {"name": name, "namespace": "default", "labels": labels or {}}
        if annotations:
            metadata["annotations"] = annotations
        return self.api.create(resource, {"metadata": metadata, "spec": spec})

    def workload(self, kind, name, replicas=None, **spec):
        """Create a Deployment, ReplicaSet, StatefulSet or DaemonSet of pods labelled ``app: name``."""
        labels = {"app": name}
        if replicas is not None:
            spec["replicas"] = replicas
        spec.setdefault("selector", {"matchLabels": labels})
        spec.setdefault("template", a_template(labels))
        return self.create(kind, name, labels, **spec)

    def change(self, kind, name, patch):
        """Merge-patch an object of the namespace default."""
        return self.api.patch(RESOURCES[kind], "default", name, patch)

    def ready(self, *names, node="n1"):
        """Bind pods and write that they are ready, as a kubelet would; all pods where none is named."""
        for pod in self.pods():
            if names and pod["metadata"]["name"] not in names:
                continue
            if not pod["spec"].get("nodeName"):
                self.bind(pod, node)
            self.set_ready(pod["metadata"]["name"])
        self.settle()

    def set_ready(self, name, status="True"):
        """Write a pod's readiness."""
        moment = to_timestamp(self.now.timestamp())
        condition = {"type": "Ready", "status": status, "lastTransitionTime": moment}
        pod = self.get("pods", name)
        told = {**(pod.get("status") or {}), "phase": "Running", "conditions": [condition]}
        self.api.update_status("pods", {**pod, "status": told})

    def end(self, name, phase):
        """Write that a pod has ended."""
        pod = self.get("pods", name)
        self.api.update_status("pods", {**pod, "status": {**(pod.get("status") or {}), "phase": phase}})

    def events(self):
        """The reasons and messages of all events, oldest first."""
        return [(one["reason"], one["message"]) for one in self.api.list("events")]

    def pods(self, namespace="default"):
        """All pods of a namespace."""
        return self.api.list("pods", namespace)

    def get(self, resource, name, namespace="default"):
        """An object, or None."""
        return self.api.find(resource, namespace, name)

    def status(self, name):
        """A pod's status."""
        return self.get("pods", name).get("status") or {}


@pytest.fixture
def simulation():
    """An empty cluster; ``with_controllers`` and ``with_kubelets`` start them."""
    return Simulation()
