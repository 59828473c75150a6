"""Finds misplaced pods from the API server's objects alone.

These are the definitions of Kubernetes' and descheduler's documentation, written for the few forms that
scenes use. They share no code with the strategies that they judge.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roadstead.schemas.quantities import amounts, pod_requests

if TYPE_CHECKING:
    from collections.abc import Callable

    from e2e.scene import Scene

Obj = dict[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class View:
    """A scene at one moment.

    Attributes:
        nodes: Its nodes by the name that the test gave them.
        pods: Its pods, but for those that are being deleted.
    """

    nodes: dict[str, Obj]
    pods: list[Obj]

    def on(self, node: str) -> list[Obj]:
        """The pods that run on a node."""
        name = self.nodes[node]["metadata"]["name"]
        return [pod for pod in self.pods if pod["spec"].get("nodeName") == name and not _ended(pod)]

    def share(self, node: str, resource: str = "cpu") -> float:
        """Percent of a node that its pods request."""
        used = sum(pod_requests(pod)[resource] for pod in self.on(node))
        return 100 * used / amounts(self.nodes[node]["status"]["allocatable"])[resource]

    def sizes(self, app: str) -> dict[str, int]:
        """How many pods of an app run on each node that has any."""
        found = {node: sum(_labels(pod).get("app") == app for pod in self.on(node)) for node in self.nodes}
        return {node: size for node, size in found.items() if size}

    def placed(self) -> list[tuple[Obj, Obj]]:
        """Pods that run, each with its node."""
        return [(pod, self.nodes[node]) for node in self.nodes for pod in self.on(node)]


async def view_of(scene: Scene) -> View:
    """The scene as the API server has it now."""
    nodes = await scene.items("/api/v1/nodes", labelSelector=f"plimsoll.dev/scene={scene.name}")
    pods = [pod for pod in await scene.pods() if "deletionTimestamp" not in pod["metadata"]]
    return View({node["metadata"]["name"].removeprefix(f"{scene.name}-"): node for node in nodes}, pods)


def pending(view: View) -> int:
    """Pods without a node."""
    return sum(not pod["spec"].get("nodeName") for pod in view.pods)


def failed(view: View) -> int:
    """Pods that failed."""
    return sum(pod["status"].get("phase") == "Failed" for pod in view.pods)


def tainted(view: View) -> int:
    """Pods on nodes with a NoSchedule taint that they do not tolerate."""
    return sum(
        any(taint["effect"] == "NoSchedule" and not _is_tolerated(taint, pod) for taint in _taints(node))
        for pod, node in view.placed()
    )


def misplaced(view: View) -> int:
    """Pods whose required node affinity their node does not match."""
    return sum(
        not any(_is_met(term, node) for term in terms)
        for pod, node in view.placed()
        if (
            terms := _affinity(pod, "nodeAffinity", REQUIRED, {}).get(
                "nodeSelectorTerms", [{"matchExpressions": []}]
            )
        )
    )


def too_near(view: View) -> int:
    """Pods near another that their required anti-affinity forbids."""
    placed = view.placed()
    return sum(
        any(
            other is not pod
            and _selects(term["labelSelector"], other)
            and _value(where, term["topologyKey"]) == _value(node, term["topologyKey"])
            for term in _affinity(pod, "podAntiAffinity", REQUIRED, [])
            for other, where in placed
        )
        for pod, node in placed
    )


def uneven(view: View) -> int:
    """By how many pods domains differ beyond maxSkew, over all spread constraints."""
    placed = view.placed()
    rules = {
        (each["topologyKey"], each["maxSkew"], tuple(sorted(each["labelSelector"]["matchLabels"].items())))
        for pod, _ in placed
        for each in pod["spec"].get("topologySpreadConstraints") or ()
    }
    total = 0
    for key, most, labels in rules:
        sizes = Counter({_value(node, key): 0 for node in view.nodes.values() if _value(node, key)})
        sizes.update(_value(node, key) for pod, node in placed if set(labels) <= set(_labels(pod).items()))
        total += max(max(sizes.values()) - min(sizes.values()) - most, 0)
    return total


def duplicates(view: View) -> int:
    """Pods of one owner on a node beyond an even share over the nodes without taints."""
    shared = sum(not _taints(node) for node in view.nodes.values())
    owners: Counter[str] = Counter()
    crowds: Counter[tuple[str, str]] = Counter()
    for pod, node in view.placed():
        for owner in pod["metadata"].get("ownerReferences", ()):
            owners[owner["uid"]] += 1
            crowds[owner["uid"], node["metadata"]["name"]] += 1
    return sum(max(size - -(-owners[owner] // shared), 0) for (owner, _), size in crowds.items())


def overcommitted(view: View) -> int:
    """Nodes whose pods request more than there is."""
    return sum(view.share(node) > 100 for node in view.nodes)


#: All that can be wrong whatever a policy wants.
MEASURES: tuple[Callable[[View], int], ...] = (
    pending,
    failed,
    tainted,
    misplaced,
    too_near,
    uneven,
    duplicates,
    overcommitted,
)


def measured(view: View) -> dict[str, int]:
    """All measures, keyed by name."""
    return {measure.__name__: measure(view) for measure in MEASURES}


def _ended(pod: Obj) -> bool:
    return pod["status"].get("phase") in {"Succeeded", "Failed"}


def _labels(pod: Obj) -> dict[str, str]:
    labels: dict[str, str] = pod["metadata"].get("labels", {})
    return labels


def _value(node: Obj, key: str) -> str:
    value: str = node["metadata"]["labels"].get(key, "")
    return value


def _taints(node: Obj) -> list[Obj]:
    taints: list[Obj] = node["spec"].get("taints", [])
    return taints


def _is_tolerated(taint: Obj, pod: Obj) -> bool:
    return any(
        each.get("key") in {None, taint["key"]}
        and each.get("effect") in {None, taint["effect"]}
        and (each.get("operator") == "Exists" or each.get("value", "") == taint.get("value", ""))
        for each in pod["spec"].get("tolerations") or ()
    )


def _affinity(pod: Obj, kind: str, strength: str, missing: Any) -> Any:
    return ((pod["spec"].get("affinity") or {}).get(kind) or {}).get(strength, missing)


def _is_met(term: Obj, node: Obj) -> bool:
    """Whether a node selector term holds; scenes use the operator In only."""
    wanted = term["matchExpressions"]
    assert all(each["operator"] == "In" for each in wanted)
    return all(_value(node, each["key"]) in each["values"] for each in wanted)


def _selects(selector: Obj, pod: Obj) -> Any:
    """Whether a label selector matches; scenes use matchLabels only."""
    assert set(selector) == {"matchLabels"}
    return selector["matchLabels"].items() <= _labels(pod).items()
