"""Plays a day of a cluster with an autoscaler and the whole operator, in virtual time.

The operator decides (``cases.world``). Played are the demand of a day, controllers, and one of two
autoscalers: each adds nodes for pods whose condition says ``Unschedulable``, and removes a node that is empty
for a while. It marks the node first, as cluster-autoscaler and Karpenter do; cluster-autoscaler also says
that a node is a candidate as soon as it is not needed. A node is not ready in its first minute.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from cases.world import World
from plimsoll.model.kinds.pod import Pod
from plimsoll.ports.writes import WriteResult

POLICY = "consolidate"
NOW = "2026-01-01T00:00:00+00:00"
STEP_S, RUN_EVERY_S, BOOT_S = 60.0, 600.0, 120.0
NODE_CPU = 4000

#: The taint of a node that is not ready yet.
STARTING = "node.kubernetes.io/not-ready"


@dataclass(frozen=True)
class Autoscaler:
    """Its taints, how long nodes are empty before they go, and how far it empties them."""

    name: str
    taint: str
    idle_s: float
    empties_below: float = 0.0  #: share of a node's cpu up to which it removes nodes with pods
    candidate: str = ""  #: taint of effect PreferNoSchedule while a node is not needed; "" for none


CLUSTER_AUTOSCALER = Autoscaler(
    "cluster-autoscaler",
    "ToBeDeletedByClusterAutoscaler",
    600.0,
    candidate="DeletionCandidateOfClusterAutoscaler",
)
KARPENTER = Autoscaler("Karpenter", "karpenter.sh/disrupted", 60.0)


@dataclass
class Day:
    """What happened in a day.

    Attributes:
        moves: The nodes that were left, in order, by the first name of the moved pod.
        emptied: The latest bundle of moves off each node.
        filled: When a pod was last moved to each node, in seconds since the epoch.
        wrong: Sentences about what must not happen.
    """

    counts: Counter[str] = field(default_factory=Counter)
    moves: dict[str, list[str]] = field(default_factory=dict)
    emptied: dict[str, str] = field(default_factory=dict)
    filled: dict[str, float] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    @property
    def changes_of_mind(self) -> Counter[str]:
        """How often a pod was moved again, by its first name."""
        return Counter({name: len(sources) - 1 for name, sources in self.moves.items() if len(sources) > 1})


class AutoscaledWorld(World):
    """The cluster, the demand and the autoscaler."""

    def __init__(self, autoscaler: Autoscaler, seed: int) -> None:
        super().__init__(NOW)
        self.day, self.autoscaler = Day(), autoscaler
        self._draw = random.Random(seed)
        self._reasons: dict[str, str] = {}
        self._booting: list[float] = []
        self._starting: list[str] = []
        self._idle_since: dict[str, float] = {}
        self._made = 0

    # -- ports -----------------------------------------------------------------------------------------------

    async def write_condition(self, pod: Pod, condition: Any) -> WriteResult:
        """Note the reason on which an autoscaler acts."""
        self._reasons[pod.key] = condition.reason
        return await super().write_condition(pod, condition)

    async def bind(self, pod: Pod, node: str) -> WriteResult:
        """No pod goes to a node that is about to be removed."""
        self._reasons.pop(pod.key, None)
        if self._is_marked(node):
            self.day.wrong.append(f"{pod.name} was bound to node {node}, which is being removed")
        return await super().bind(pod, node)

    async def evict(self, pod: Pod) -> WriteResult:
        """Count the moves of each pod; pods of a marked node are its owner's business."""
        target = self._target_of(pod)
        answer = await super().evict(pod)
        if answer.is_done:
            self.day.counts["moves"] += 1
            if self._is_marked(target) or self._has(target, self.autoscaler.candidate, STARTING):
                self.day.wrong.append(f"{pod.name} was moved to node {target}, which is starting or going")
            self.day.moves.setdefault(_first_name(pod.name), []).append(pod.node_name)
            self._watch_nodes(pod.node_name, target)
            if self._is_marked(pod.node_name):
                self.day.wrong.append(
                    f"{pod.name} was moved off node {pod.node_name}, which is being removed"
                )
        return answer

    def _watch_nodes(self, source: str, target: str) -> None:
        """No node is emptied twice, none after it was filled, and none is filled that was emptied."""
        day, now = self.day, self._clock.now()
        *before, bundle = self._bundles_of(source)
        if any(map(self._has_emptied, before)):
            day.wrong.append(f"node {source} was emptied twice")
        day.emptied[source] = bundle
        filled = day.filled.get(source)
        if filled is not None:
            day.wrong.append(f"node {source} was filled, and emptied {(now - filled) / 3600:.1f} h later")
        if target in day.emptied:
            day.wrong.append(f"node {target} was emptied, and filled again")
        day.filled[target] = now

    # -- the day ---------------------------------------------------------------------------------------------

    @property
    def conditions(self) -> dict[str, tuple[str, str]]:
        """The policy's further conditions that hold."""
        return dict(self._rebalancing.rebalancers.advice(POLICY))

    @property
    def records(self) -> Mapping[str, Any]:
        """The records of moves."""
        return self._records.documents

    async def play(self, hours: float) -> Day:
        """Let the day pass; the policy runs every ten minutes."""
        began, due = self._clock.now(), self._clock.now()
        while (now := self._clock.now()) < began + hours * 3600:
            self._demand(8 + round(6 * math.sin((now - began) / 86_400 * 2 * math.pi)))
            self._add_nodes(now)
            self._remove_nodes(now)
            if now >= due:
                due = now + RUN_EVERY_S
                await self.rebalance(POLICY)
            else:
                await self.wait(STEP_S)
        return self.day

    def add_node(self) -> None:
        """A node of the only size that there is."""
        self._made += 1
        metadata = {"name": f"n{self._made}", "creationTimestamp": _at(self._clock.now())}
        room = {"cpu": f"{NODE_CPU}m", "memory": "16Gi", "pods": "50"}
        self.apply({"kind": "Node", "metadata": metadata, "status": {"allocatable": room, "capacity": room}})
        self._put(metadata["name"], STARTING, "NoSchedule")
        self._starting.append(metadata["name"])

    def _demand(self, wanted: int) -> None:
        pods = sorted(self._pods(), key=lambda each: each["metadata"]["name"])
        for _ in range(wanted - len(pods)):
            self._made += 1
            cpu = self._draw.choice(("500m", "1", "1500m"))
            owner = {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web",
                "uid": "rs",
                "controller": True,
            }
            self.apply(
                {
                    "kind": "Pod",
                    "metadata": {
                        "name": f"web-{self._made}",
                        "ownerReferences": [owner],
                        "creationTimestamp": _at(self._clock.now()),
                    },
                    "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]},
                }
            )
        for each in self._draw.sample(pods, max(len(pods) - wanted, 0)):
            self.delete("Pod", f"default/{each['metadata']['name']}")

    def _add_nodes(self, now: float) -> None:
        while self._starting:
            self._lift(self._starting.pop(), STARTING)
        for at in [at for at in self._booting if at <= now]:
            self._booting.remove(at)
            self.add_node()
            self.day.counts["nodes added"] += 1
        keys = {f"default/{each['metadata']['name']}": each for each in self._pods()}
        waiting = [keys[key] for key, why in self._reasons.items() if why == "Unschedulable" and key in keys]
        needed = math.ceil(sum(map(_cpu, waiting)) / NODE_CPU)
        self._booting += [now + BOOT_S] * (needed - len(self._booting))

    def _remove_nodes(self, now: float) -> None:
        used = Counter({name: 0 for (kind, name) in self._documents if kind == "Node"})
        for each in self._pods():
            used[each["spec"].get("nodeName", "")] += _cpu(each)
        del used[""]
        for name, cpu in sorted(used.items()):
            if self._has(name, STARTING):
                continue
            if cpu > self.autoscaler.empties_below * NODE_CPU:
                if self._idle_since.pop(name, None) is not None:
                    self._lift(name, self.autoscaler.candidate)
                continue
            if name not in self._idle_since and self.autoscaler.candidate:
                self._put(name, self.autoscaler.candidate, "PreferNoSchedule")
            if self._is_marked(name):
                self._drain(name)
            elif now - self._idle_since.setdefault(name, now) >= self.autoscaler.idle_s and len(used) > 1:
                self._put(name, self.autoscaler.taint, "NoSchedule")
                return

    def _put(self, name: str, key: str, effect: str) -> None:
        node = self._documents["Node", name]
        taints = [*node.get("spec", {}).get("taints", ()), {"key": key, "effect": effect}]
        self.apply({**node, "spec": {"taints": taints}})

    def _lift(self, name: str, key: str) -> None:
        node = self._documents["Node", name]
        taints = [each for each in node["spec"].get("taints", ()) if each["key"] != key]
        self.apply({**node, "spec": {"taints": taints}})

    def _drain(self, name: str) -> None:
        """One pod leaves in a step; the node goes when none is left."""
        for each in self._pods():
            if each["spec"].get("nodeName") == name:
                self._leave(self._info(each).pod)
                self.day.counts["pods that the autoscaler moved"] += 1
                return
        self.delete("Node", name)
        self._idle_since.pop(name, None)
        self.day.counts["nodes removed"] += 1

    def _pods(self) -> list[dict[str, Any]]:
        return [each for (kind, _), each in self._documents.items() if kind == "Pod"]

    def _is_marked(self, name: str) -> bool:
        return self._has(name, self.autoscaler.taint)

    def _has(self, name: str, *keys: str) -> bool:
        """Whether the node has one of these taints."""
        node = self._documents.get(("Node", name), {})
        return any(each["key"] in keys for each in node.get("spec", {}).get("taints", ()))

    def _bundles_of(self, node: str) -> list[str]:
        """The bundles of moves off the node, by their records, the latest one last."""
        specs = [each["spec"] for each in self._records.documents.values()]
        return list(dict.fromkeys(each["bundle"]["name"] for each in specs if each["fromNode"] == node))

    def _has_emptied(self, bundle: str) -> bool:
        """Whether all moves of the bundle have settled; one that was called off half way has emptied none."""
        moves = [
            each for each in self._records.documents.values() if each["spec"]["bundle"]["name"] == bundle
        ]
        return all(each["status"]["phase"] == "Settled" for each in moves)

    def _target_of(self, pod: Pod) -> str:
        """The target of the pod's move, by its record."""
        specs = [each["spec"] for each in self._records.documents.values()]
        return next(each.get("targetNode") or "" for each in specs if each["pod"]["uid"] == pod.uid)


def _first_name(name: str) -> str:
    while name.endswith("-new"):
        name = name.removesuffix("-new")
    return name


def _cpu(pod: dict[str, Any]) -> int:
    cpu = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    return int(cpu[:-1]) if cpu.endswith("m") else int(cpu) * 1000


def _at(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
