"""A cluster without HTTP and without time: tests say when the clock moves."""

from __future__ import annotations

import datetime as dt
from typing import Any, Self

from roadstead.assembly import built_in_api
from roadstead.controllers import make_context, start_controllers
from roadstead.controllers.work_queue import WorkQueue
from roadstead.kubelets.devices import DeviceDriver
from roadstead.kubelets.kubelets import Kubelets, KubeletSettings
from roadstead.kubelets.nodes import make_node
from roadstead.schemas.timestamps import to_timestamp
from roadstead.server.metrics_api import MetricsApi
from roadstead.store.api import Write
from roadstead.store.subresources import bind

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


def a_template(labels: Any, image: str = "app:1", **spec: Any) -> Any:
    """A pod template."""
    container = {"name": "main", "image": image}
    return {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}}


class Simulation:
    """Api, controllers and kubelets under a clock that stands still until it is moved."""

    def __init__(self, *, pod_groups: bool = False) -> None:
        self.now = START

        self.api = built_in_api(lambda: self.now, pod_groups=pod_groups)
        self.queue = WorkQueue(lambda: self.api.clock().timestamp())
        self.context = make_context(self.api, self.queue, job_groups=pod_groups)

    def with_controllers(self) -> Self:
        """Start the controllers."""
        start_controllers(self.context)
        return self

    def with_kubelets(self, **settings: Any) -> Self:
        """Start kubelets and metrics."""
        Kubelets(self.context, KubeletSettings(**{"start_s": (1.0, 1.0), **settings})).start()
        MetricsApi(self.context).start()
        return self

    def with_devices(self) -> Self:
        """Start the simulated driver of devices."""
        DeviceDriver(self.context).start()
        return self

    template = staticmethod(a_template)

    def settle(self, seconds: float = 0.1) -> None:
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

    def nodes(self, *names: Any, **size: Any) -> None:
        """Create nodes with simulated kubelets."""
        for name in names:
            self.api.create("nodes", make_node(name, **size))
        self.settle()

    def pod(
        self, name: Any, node: str = "", requests: Any = None, annotations: Any = None, **spec: Any
    ) -> Any:
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

    def bind(self, pod: Any, node: Any) -> None:
        """Bind a pod, as the binding subresource does."""
        name = pod["metadata"]["name"]
        target = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        bind(self.api, (pod["metadata"]["namespace"], name), target, Write(), labelled=True)

    def bind_all(self, node: Any) -> None:
        """Bind all pods that are not bound, and let what follows happen."""
        for pod in self.pods():
            if not pod["spec"].get("nodeName"):
                self.bind(pod, node)
        self.settle()

    def create(
        self,
        kind: Any,
        name: Any,
        labels: Any = None,
        *,
        resource: Any = None,
        annotations: Any = None,
        **spec: Any,
    ) -> Any:
        """Create an object of the namespace default, by kind."""
        resource = resource or RESOURCES[kind]
        metadata = {"name": name, "namespace": "default", "labels": labels or {}}
        if annotations:
            metadata["annotations"] = annotations
        return self.api.create(resource, {"metadata": metadata, "spec": spec})

    def workload(self, kind: Any, name: Any, replicas: Any = None, **spec: Any) -> Any:
        """Create a Deployment, ReplicaSet, StatefulSet or DaemonSet of pods labelled ``app: name``."""
        labels = {"app": name}
        if replicas is not None:
            spec["replicas"] = replicas
        spec.setdefault("selector", {"matchLabels": labels})
        spec.setdefault("template", a_template(labels))
        return self.create(kind, name, labels, **spec)

    def change(self, kind: Any, name: Any, patch: Any) -> Any:
        """Merge-patch an object of the namespace default."""
        return self.api.patch(RESOURCES[kind], "default", name, patch)

    def ready(self, *names: Any, node: str = "n1") -> None:
        """Bind pods and write that they are ready, as a kubelet would; all pods where none is named."""
        for pod in self.pods():
            if names and pod["metadata"]["name"] not in names:
                continue
            if not pod["spec"].get("nodeName"):
                self.bind(pod, node)
            self.set_ready(pod["metadata"]["name"])
        self.settle()

    def set_ready(self, name: Any, status: str = "True") -> None:
        """Write a pod's readiness."""
        moment = to_timestamp(self.now.timestamp())
        condition = {"type": "Ready", "status": status, "lastTransitionTime": moment}
        pod = self.get("pods", name)
        told = {**(pod.get("status") or {}), "phase": "Running", "conditions": [condition]}
        self.api.update_status("pods", {**pod, "status": told})

    def end(self, name: Any, phase: Any) -> None:
        """Write that a pod has ended."""
        pod = self.get("pods", name)
        self.api.update_status("pods", {**pod, "status": {**(pod.get("status") or {}), "phase": phase}})

    def events(self) -> Any:
        """The reasons and messages of all events, oldest first."""
        return [(one["reason"], one["message"]) for one in self.api.list("events")]

    def pods(self, namespace: str = "default") -> Any:
        """All pods of a namespace."""
        return self.api.list("pods", namespace)

    def get(self, resource: str, name: str, namespace: str | None = "default") -> Any:
        """An object, or None."""
        return self.api.find(resource, namespace, name)

    def status(self, name: Any) -> Any:
        """A pod's status."""
        return self.get("pods", name).get("status") or {}
