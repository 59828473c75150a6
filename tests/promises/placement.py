"""PlacementPromise: no pod is bound twice or in place of another, and our bindings over-commit no node."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator

from promises.commits import Author, Commit, Obj
from promises.election import ElectionPromise
from promises.findings import Findings
from promises.pods import is_over, node_of
from promises.policies import scheduling_of
from promises.quantities import milli, requests
from promises.view import View
from promises.volumes import attach_limits, attached


class PlacementPromise:
    """Judges bindings."""

    def __init__(self, view: View, findings: Findings, election: ElectionPromise) -> None:
        self._view = view
        self._findings = findings
        self._election = election
        self._bound_by_us: set[str] = set()

    def judge(self, commit: Commit) -> None:
        """A commit of any collection."""
        if commit.collection != "pods" or commit.type == "DELETED":
            return
        name = commit.obj["metadata"]["name"]
        node, earlier = node_of(commit.obj), node_of(commit.before)
        if node and not earlier and commit.author.name:
            self._bound(commit.obj, node, commit.author, commit.at)
        if earlier and node != earlier:
            self._findings.violated(commit.at, f"{name} was moved from {earlier} to {node}")

    def _bound(self, pod: Obj, node: str, author: Author, at: float) -> None:
        meta = pod["metadata"]
        self._findings.facts.bindings += 1
        self._bound_by_us.add(meta["uid"])
        self._election.must_lead(author, f"bound {meta['name']} to {node}", at)
        asked = json.loads(author.body)["metadata"].get("uid")
        if asked != meta["uid"]:
            self._findings.violated(
                at, f"the binding of {meta['name']} named the uid {asked}, the pod has {meta['uid']}"
            )
        versions = [each for each in self._view.recent("nodes", ("", node), at) if each is not None]
        if not versions:
            return
        neighbours = self._neighbours(node, at)
        for problem in (
            *_crowded(pod, neighbours, versions, self._left_to_extenders(pod, at)),
            *_shared_ports(pod, neighbours),
            *self._attached(node, neighbours),
        ):
            self._findings.violated(at, f"{author.name} over-committed {node} by {meta['name']}: {problem}")
        if all(not _takes(each, pod) for each in versions):
            self._findings.violated(at, f"{author.name} bound {meta['name']} to {node}, which repels it")

    def _neighbours(self, node: str, at: float) -> list[Obj]:
        """The pods on a node that its binder knows of: its own, and what others placed a while ago."""
        found = []
        for pod in self._view.objects("pods"):
            if node_of(pod) != node or is_over(pod):
                continue
            meta = pod["metadata"]
            if meta["uid"] in self._bound_by_us or self._is_known(meta, node, at):
                found.append(pod)
        return found

    def _is_known(self, meta: Obj, node: str, at: float) -> bool:
        key = (meta.get("namespace") or "", meta["name"])
        versions = self._view.recent("pods", key, at)
        return all(
            each is not None and each["metadata"]["uid"] == meta["uid"] and node_of(each) == node
            for each in versions
        )

    def _left_to_extenders(self, pod: Obj, at: float) -> set[str]:
        """Resources that a policy of the pod's scheduler takes out of the operator's hands."""
        return {
            resource["name"]
            for scheduling in scheduling_of(self._view, pod, at)
            for extender in scheduling.get("extenders") or ()
            for resource in extender.get("managedResources") or ()
            if resource.get("ignoredByScheduler")
        }

    def _attached(self, node: str, neighbours: Iterable[Obj]) -> Iterator[str]:
        volumes = attached(neighbours, self._view)
        for driver, limit in attach_limits(node, self._view).items():
            used = len(volumes.get(driver, ()))
            if used > limit:
                yield f"{used} volumes of {driver}, {limit} may be attached"


def _crowded(
    pod: Obj, neighbours: Iterable[Obj], versions: Iterable[Obj], ignored: Collection[str]
) -> Iterator[str]:
    """What does not fit even in the largest that the node was lately, of all that the pod asks for.

    What it does not ask for may be short since before, where a node has shrunk; upstream does not look at it.
    """
    room: dict[str, int] = {}
    for version in versions:
        for name, text in (version["status"].get("allocatable") or {}).items():
            room[name] = max(room.get(name, 0), milli(text))
    taken: dict[str, int] = {}
    for each in neighbours:
        for name, amount in requests(each).items():
            taken[name] = taken.get(name, 0) + amount
    asked = requests(pod)
    for name, amount in taken.items():
        if name not in ignored and asked.get(name) and amount > room.get(name, 0):
            yield f"{amount} of {room.get(name, 0)} milli {name}"


def _ports(pod: Obj) -> set[tuple[str, str, int]]:
    """Address, protocol and number of each port of the host that a pod takes."""
    spec = pod["spec"]
    sidecars = [each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"]
    return {
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"])
        for container in (*spec["containers"], *sidecars)
        for port in container.get("ports") or ()
        if port.get("hostPort")
    }


def _shared_ports(pod: Obj, neighbours: Iterable[Obj]) -> Iterator[str]:
    mine = _ports(pod)
    for other in neighbours:
        if not mine or other["metadata"]["uid"] == pod["metadata"]["uid"]:
            continue
        for address, protocol, number in _ports(other):
            for own, *rest in mine:
                if rest == [protocol, number] and (own == address or "0.0.0.0" in (own, address)):
                    yield f"{other['metadata']['name']} has port {number}, too"


def _takes(node: Obj, pod: Obj) -> bool:
    """Whether a node takes a pod by its taints, its cordon and the pod's nodeSelector."""
    spec, labels = node["spec"], node["metadata"].get("labels") or {}
    wanted = pod["spec"].get("nodeSelector") or {}
    taints = [each for each in spec.get("taints") or () if each["effect"] != "PreferNoSchedule"]
    if spec.get("unschedulable"):
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    tolerations = pod["spec"].get("tolerations") or ()
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        any(tolerates(each, taint) for each in tolerations) for taint in taints
    )


def tolerates(toleration: Obj, taint: Obj) -> bool:
    """Whether a toleration covers a taint."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")
