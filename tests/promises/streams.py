"""Stream plays commits of a small cluster into a checker."""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

from promises.checker import Checker
from promises.commits import UNKNOWN, Author, Commit, Obj
from promises.view import BUDGETS, GROUPS, POLICIES, RECORDS

LEASES, WORKLOADS, NAMESPACE = "leases.coordination.k8s.io", "deployments.apps", "default"

#: When a stream begins, in seconds since the epoch.
EPOCH = 1_800_000_000.0


def merged(obj: Obj, changes: Obj) -> Obj:
    """A copy with changes, as a merge patch makes them."""
    found = deepcopy(obj)
    for key, value in changes.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, dict) and isinstance(found.get(key), dict):
            found[key] = merged(found[key], value)
        else:
            found[key] = deepcopy(value)
    return found


def moment(seconds: float) -> str:
    """Seconds of a stream as objects write moments."""
    return datetime.fromtimestamp(EPOCH + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Stream:
    """Commits, one after the other.

    Attributes:
        at: The time of the next one.
    """

    def __init__(self, **given: Any) -> None:
        self.checker = Checker(**given)
        self.at = 0.0
        self._objects: dict[tuple[str, str, str], Obj] = {}

    # -- any object --------------------------------------------------------------------------------------

    def put(self, collection: str, obj: Obj, author: Author = UNKNOWN) -> Obj:
        """Create or replace an object."""
        meta = obj["metadata"]
        key = (collection, meta.get("namespace") or "", meta["name"])
        before = self._objects.get(key)
        kind = "ADDED" if before is None else "MODIFIED"
        self._objects[key] = obj
        self.checker.judge(Commit(collection, kind, obj, before, author, self.at))
        return obj

    def change(self, collection: str, name: str, changes: Obj, author: Author = UNKNOWN) -> Obj:
        """Change an object."""
        return self.put(collection, merged(self.get(collection, name), changes), author)

    def delete(self, collection: str, name: str, author: Author = UNKNOWN) -> Obj:
        """Delete an object."""
        obj = self.get(collection, name)
        del self._objects[collection, obj["metadata"].get("namespace") or "", name]
        self.checker.judge(Commit(collection, "DELETED", obj, obj, author, self.at))
        return obj

    def get(self, collection: str, name: str) -> Obj:
        """A named object, in the usual namespace or in none."""
        found = self._objects.get((collection, NAMESPACE, name)) or self._objects.get((collection, "", name))
        assert found is not None, f"{collection} {name}"
        return found

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.at += seconds

    # -- who ---------------------------------------------------------------------------------------------

    def by(self, path: str = "", body: Any = None, method: str = "POST", name: str = "red") -> Author:
        """A request of an operator."""
        return Author(name, f"{name}-id", method, path, json.dumps(body or {}).encode())

    def lead(
        self, name: str = "red", holder: str | None = None, lease: str = "plimsoll", duration_s: int = 15
    ) -> None:
        """Take or renew the lease, or give it to another."""
        identity = f"{name}-id" if holder is None else holder
        spec = {"holderIdentity": identity, "leaseDurationSeconds": duration_s}
        meta = {"namespace": "kube-system", "name": lease}
        key = (LEASES, "kube-system", lease)
        before = self._objects.get(key)
        obj = self._objects[key] = {"metadata": meta, "spec": spec}
        author = self.by("/apis/coordination.k8s.io/v1/leases", method="PUT", name=name) if name else UNKNOWN
        kind = "ADDED" if before is None else "MODIFIED"
        self.checker.judge(Commit(LEASES, kind, obj, before, author, self.at))

    def delete_lease(self, author: Author = UNKNOWN) -> None:
        """Somebody deletes the lease."""
        obj = self._objects.pop((LEASES, "kube-system", "plimsoll"))
        self.checker.judge(Commit(LEASES, "DELETED", obj, obj, author, self.at))

    # -- what there is -----------------------------------------------------------------------------------

    def node(self, name: str, cpu: str = "4", **changes: Any) -> Obj:
        """A node that is ready."""
        obj: Obj = {
            "metadata": {"name": name, "labels": {}},
            "spec": {},
            "status": {
                "allocatable": {"cpu": cpu, "pods": "10"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        return self.put("nodes", merged(obj, changes))

    def pod(
        self, name: str, node: str = "", *, ready: bool = False, owner: str = "web", **changes: Any
    ) -> Obj:
        """A pod; with a node, another has placed it there."""
        controller = {"kind": "ReplicaSet", "name": owner, "uid": f"uid-{owner}", "controller": True}
        conditions = [{"type": "PodScheduled", "status": "True"}] if node else []
        if ready:
            conditions.append({"type": "Ready", "status": "True"})
        obj: Obj = {
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "uid": f"uid-{name}",
                "labels": {"app": owner},
                "ownerReferences": [controller] if owner else [],
            },
            "spec": {
                "schedulerName": "plimsoll",
                "priority": 0,
                "nodeName": node,
                "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
            },
            "status": {"phase": "Running" if ready else "Pending", "conditions": conditions},
        }
        if ready:
            obj["status"]["startTime"] = moment(self.at)
        return self.put("pods", merged(obj, changes))

    def policy(
        self, name: str = "tidy", rebalancing: Obj | None = None, *, moves: bool = True, **spec: Any
    ) -> Obj:
        """A policy that moves pods, and is at work."""
        usual: Obj = {
            "mode": "Enforce",
            "planner": "Proven",
            "strategies": [{"name": "RemoveDuplicates"}],
            "evictor": {"minReplicas": 1},
        }
        conditions = [{"type": kind, "status": "True"} for kind in ("Accepted", "Ready")]
        given = {"rebalancing": merged(usual, rebalancing or {})} if moves else {}
        meta = {"name": name, "generation": 1}
        status = {"observedGeneration": 1, "conditions": conditions}
        return self.put(POLICIES, {"metadata": meta, "spec": {**given, **spec}, "status": status})

    def budget(self, wanted: int, namespace: str = NAMESPACE, **selector: Any) -> Obj:
        """A PodDisruptionBudget over the pods of web."""
        meta, spec = {"name": "web", "namespace": namespace}, {"selector": {"matchLabels": {"app": "web"}}}
        return self.put(
            BUDGETS,
            {"metadata": meta, "spec": {**spec, **selector}, "status": {"desiredHealthy": wanted}},
        )

    def group(self, least: int = 2) -> Obj:
        """A PodGroup."""
        return self.put(
            GROUPS, {"metadata": {"name": "train", "namespace": NAMESPACE}, "spec": {"minMember": least}}
        )

    # -- what happens ------------------------------------------------------------------------------------

    def bind(self, name: str, node: str, by: str = "red", uid: str | None = None) -> Obj:
        """An operator binds a pod; the API server sets its condition."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/binding"
        body = {"metadata": {"name": name, "uid": f"uid-{name}" if uid is None else uid}}
        changes = {
            "spec": {"nodeName": node},
            "status": {"conditions": [{"type": "PodScheduled", "status": "True"}]},
        }
        return self.change("pods", name, changes, self.by(path, body, name=by))

    def become_ready(self, name: str) -> Obj:
        """Its kubelet reports a pod."""
        conditions = [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Ready")]
        status = {"phase": "Running", "conditions": conditions, "startTime": moment(self.at)}
        return self.change("pods", name, {"status": status})

    def evict(self, name: str, uid: str | None = None, by: str = "red") -> Obj:
        """The Eviction API lets a pod go."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction"
        body = {"deleteOptions": {"preconditions": {"uid": f"uid-{name}" if uid is None else uid}}}
        author = self.by(path, body, name=by)
        self.checker.judge_request(author, self.at)
        return self.change("pods", name, {"metadata": {"deletionTimestamp": moment(self.at)}}, author)

    def record(self, of: str, name: str = "", phases: tuple[str, ...] = (), **spec: Any) -> str:
        """A record of a move, through some phases; its name."""
        name = name or f"move-{of}"
        controller = {"kind": "ReplicaSet", "name": "web", "uid": "uid-web", "apiVersion": "apps/v1"}
        usual = {
            "pod": {"namespace": NAMESPACE, "name": of, "uid": f"uid-{of}"},
            "owner": controller,
            "policy": "tidy",
            "strategy": "RemoveDuplicates",
            "mode": "Enforce",
            "planner": "Proven",
            "fromNode": "n1",
            "targetNode": "n2",
        }
        meta = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}"}
        self.put(RECORDS, {"metadata": meta, "spec": merged(usual, spec)}, self.by("/records"))
        for phase in phases:
            self.enter(name, phase)
        return name

    def enter(self, name: str, phase: str, by: Author | None = None, **status: Any) -> Obj:
        """A record reaches a phase."""
        record = self.get(RECORDS, name)
        passed = [
            *(record.get("status") or {}).get("transitions", ()),
            {"phase": phase, "time": moment(self.at)},
        ]
        given = {"phase": phase, "transitions": passed, **status}
        return self.change(RECORDS, name, {"status": given}, by or self.by("/records", method="PATCH"))

    def settle(self, name: str, pod: str, node: str = "n2", phase: str = "Settled", **status: Any) -> Obj:
        """A record ends with a replacement."""
        replacement = {"name": pod, "uid": f"uid-{pod}", "node": node}
        return self.enter(name, phase, **{"reason": "Verified", "replacement": replacement, **status})

    # -- what is said ------------------------------------------------------------------------------------

    def finish(self, still_s: float = 60.0, calm_since: float = 0.0) -> None:
        """The end, after a minute in which nothing happened."""
        self.wait(still_s + 1.0)
        self.checker.judge_end("plimsoll", still_s, self.at, calm_since)

    @property
    def said(self) -> list[str]:
        """The violations, without their times."""
        return [each.partition(" ")[2] for each in self.checker.violations]


def a_cluster(**given: Any) -> Stream:
    """Two nodes, a leader, a policy that moves pods and one that places them, two pods of web on one node."""
    stream = Stream(**given)
    stream.put("namespaces", {"metadata": {"name": NAMESPACE, "labels": {}}})
    stream.node("n1")
    stream.node("n2")
    stream.lead()
    stream.policy("serve", moves=False, scheduling={"schedulerName": "plimsoll"})
    stream.policy()
    stream.pod("web-1", "n1", ready=True)
    stream.pod("web-2", "n1", ready=True)
    stream.wait(100.0)
    stream.lead()
    return stream


def a_move(stream: Stream, pod: str = "web-1", **spec: Any) -> str:
    """A pod is evicted as it should be, up to its record saying so; the record's name."""
    name = stream.record(pod, phases=("Planned", "Evicting"), **spec)
    stream.evict(pod)
    stream.enter(name, "Evicted", reason="Accepted")
    stream.delete("pods", pod)
    return name
