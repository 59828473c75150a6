"""PeopleDeeds are what users do to their pods and workloads."""

from __future__ import annotations

from collections.abc import Callable

from roadstead.store.api import Write
from roadstead.values.copies import copied
from roadstead.values.resources import Obj
from simulation.cluster import NAMESPACE, SCHEDULER
from simulation.deeds.scene import Scene, Way, attempted
from simulation.faults import FaultKind

DEPLOYMENTS = "deployments.apps"
STATEFUL_SETS = "statefulsets.apps"
PRIORITIES = "priorityclasses.scheduling.k8s.io"

FINALIZER = "simulated.test/held"

#: How a broken rollout is broken: annotations for the kubelet, under ``roadstead.test/``.
BROKEN = (
    {"start-error": "ImagePullBackOff"},
    {"start-after": "100000"},
    {"ready-after": "never"},
    {"exit-after": "2", "exit-code": "1"},
)


class PeopleDeeds:
    """Deeds of users.

    Attributes:
        ways: How each is done.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._api = scene.api
        self._random = scene.random
        self.ways: dict[FaultKind, Way] = {
            FaultKind.POD_DELETED: self._delete_pod,
            FaultKind.POD_REPLACED: self._replace_pod,
            FaultKind.POD_ASSIGNED: self._assign,
            FaultKind.POD_GATED: self._gate,
            FaultKind.POD_RELABELLED: self._relabel,
            FaultKind.POD_HELD: self._hold,
            FaultKind.STATEFUL_POD_DELETED: self._delete_stateful,
            FaultKind.WORKLOAD_SCALED: lambda: self._edit(self._scaled(self._random.randint(0, 5))),
            FaultKind.SCALED_RAPIDLY: self._scale_rapidly,
            FaultKind.ROLLOUT: lambda: self._edit(self._annotated({"rolled": self._scene.named("out")})),
            FaultKind.BROKEN_ROLLOUT: self._roll_out_broken,
            FaultKind.PRIORITY_DELETED: self._delete_priority,
        }

    # -- pods ----------------------------------------------------------------------------------------------

    def _delete_pod(self) -> bool:
        pod = self._scene.chosen("pods")
        if pod is None:
            return False
        self._delete(pod, self._random.choice((None, 0)))
        return True

    def _delete(self, pod: Obj, grace_s: int | None = None) -> None:
        meta = pod["metadata"]
        self._api.delete("pods", meta["namespace"], meta["name"], grace_seconds=grace_s)

    def _replace_pod(self) -> bool:
        pod = self._scene.chosen("pods")
        if pod is None:
            return False
        replace_pod(self._scene, pod)
        return True

    def _created(self, name: str, **spec: object) -> Obj:
        """A new pod of our scheduler, with these fields in its spec."""
        made = self._scene.cluster.add_pod(self._scene.named("model"))
        self._delete(made, 0)
        meta = {"name": self._scene.named(name), "namespace": NAMESPACE}
        kept = {key: made["spec"][key] for key in ("schedulerName", "containers")}
        return self._api.create("pods", {"metadata": meta, "spec": {**copied(kept), **spec}})

    def _assign(self) -> bool:
        node = self._scene.node()
        if node is None:
            return False
        self._created("assigned", nodeName=node["metadata"]["name"])
        return True

    def _gate(self) -> None:
        name = self._created("gated", schedulingGates=[{"name": "simulated.test/gate"}])["metadata"]["name"]

        def lift() -> None:
            pod = copied(self._api.get("pods", NAMESPACE, name))
            pod["spec"]["schedulingGates"] = []
            self._api.update("pods", pod, Write())

        self._scene.later(lift)

    def _relabel(self) -> bool:
        pod, other = self._scene.chosen("pods"), self._scene.chosen("pods")
        if pod is None or other is None:
            return False
        labels = pod["metadata"].setdefault("labels", {})
        if self._random.random() < 0.5:
            labels.pop("app", None)
        else:
            labels["app"] = (other["metadata"].get("labels") or {}).get("app", "none")
        self._api.update("pods", pod, Write())
        return True

    def _hold(self) -> bool:
        pod = self._scene.chosen("pods", lambda one: "deletionTimestamp" not in one["metadata"])
        if pod is None:
            return False
        meta = pod["metadata"]
        meta["finalizers"] = [*(meta.get("finalizers") or ()), FINALIZER]
        self._api.update("pods", pod, Write())
        self._delete(pod, self._random.choice((None, 0)))

        def let_go() -> None:
            held = copied(self._api.get("pods", meta["namespace"], meta["name"]))
            kept = [one for one in held["metadata"].get("finalizers") or () if one != FINALIZER]
            held["metadata"]["finalizers"] = kept
            self._api.update("pods", held, Write())

        self._scene.later(let_go)
        return True

    def _delete_stateful(self) -> bool:
        """A pod of a StatefulSet, which there is from the first time on."""
        pod = self._scene.chosen("pods", lambda one: _owner(one) == "StatefulSet")
        if pod is not None:
            self._delete(pod, 0)
            return True
        if self._scene.cluster.objects(STATEFUL_SETS):
            return False
        name = self._scene.named("stateful")
        made = self._scene.cluster.add_pod(self._scene.named("model"))
        self._delete(made, 0)
        spec = {"schedulerName": SCHEDULER, "containers": copied(made["spec"]["containers"])}
        labels = {"set": name}
        self._api.create(
            STATEFUL_SETS,
            {
                "metadata": {"name": name, "namespace": NAMESPACE},
                "spec": {
                    "replicas": self._random.randint(1, 3),
                    "serviceName": name,
                    "podManagementPolicy": self._random.choice(("OrderedReady", "Parallel")),
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": spec},
                },
            },
        )
        return True

    # -- workloads -----------------------------------------------------------------------------------------

    def _edit(self, change: Callable[[Obj], None]) -> bool:
        """Change a workload."""
        workload = self._scene.chosen(DEPLOYMENTS)
        if workload is None:
            return False
        change(workload)
        self._api.update(DEPLOYMENTS, workload)
        return True

    def _edit_again(self, workload: Obj, change: Callable[[Obj], None]) -> None:
        meta = workload["metadata"]
        again = copied(self._api.get(DEPLOYMENTS, meta["namespace"], meta["name"]))
        change(again)
        self._api.update(DEPLOYMENTS, again)

    @staticmethod
    def _scaled(replicas: int) -> Callable[[Obj], None]:
        def change(workload: Obj) -> None:
            workload["spec"]["replicas"] = replicas

        return change

    @staticmethod
    def _annotated(annotations: dict[str, str], without: str = "") -> Callable[[Obj], None]:
        """Of its pods: with these annotations, and without those that begin so."""

        def change(workload: Obj) -> None:
            meta = workload["spec"]["template"].setdefault("metadata", {})
            kept = meta.get("annotations") or {}
            if without:
                kept = {key: value for key, value in kept.items() if not key.startswith(without)}
            meta["annotations"] = {**kept, **annotations}

        return change

    def _scale_rapidly(self) -> bool:
        workload = self._scene.chosen(DEPLOYMENTS)
        if workload is None:
            return False
        wanted = workload["spec"]["replicas"]
        loop, context = self._scene.network.loop, self._scene.network.context
        moments = sorted(self._random.uniform(0.05, 4.0) for _ in range(3))
        for after_s, replicas in zip(moments, (wanted + 4, 0, wanted), strict=True):
            change = self._scaled(replicas)

            def scale(change: Callable[[Obj], None] = change) -> None:
                attempted(lambda: self._edit_again(workload, change))

            loop.call_later(after_s, scale, context=context)
        return True

    def _roll_out_broken(self) -> bool:
        workload = self._scene.chosen(DEPLOYMENTS)
        if workload is None:
            return False
        prefix = "roadstead.test/"
        how = {prefix + key: value for key, value in self._random.choice(BROKEN).items()}
        self._edit_again(workload, self._annotated(how))
        self._scene.later(lambda: self._edit_again(workload, self._annotated({}, without=prefix)))
        return True

    def _delete_priority(self) -> None:
        """A new pod has it, and keeps its number."""
        name = self._scene.named("urgent")
        self._api.create(
            PRIORITIES, {"metadata": {"name": name}, "value": self._random.choice((-10, 0, 100))}
        )
        self._created("urgent-pod", priorityClassName=name)
        self._scene.later(lambda: self._api.delete(PRIORITIES, None, name), (0.0, 5.0))


def _owner(pod: Obj) -> str:
    return next((one["kind"] for one in pod["metadata"].get("ownerReferences") or ()), "")


def replace_pod(scene: Scene, pod: Obj) -> None:
    """Delete a pod immediately, and create another one of its name and spec."""
    meta, spec = pod["metadata"], copied(pod["spec"])
    spec.pop("nodeName", None)
    scene.api.delete("pods", meta["namespace"], meta["name"], grace_seconds=0)
    copies = ("name", "namespace", "labels", "annotations", "ownerReferences")
    kept = {key: meta[key] for key in copies if key in meta}
    scene.api.create("pods", {"metadata": copied(kept), "spec": spec})
