"""Descheduler's strategies once more, as plain as the reference describes them: lists, loops, and no caches.

Each strategy yields pods in order; the caller sends back what became of it.
"""

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

GONE, REFUSED, CLOSED = "gone", "refused", "closed"

HARD = ("NoSchedule", "NoExecute")
CRITICAL = 2_000_000_000


class PlainTaint(NamedTuple):
    """A taint."""

    key: str
    value: str
    effect: str


class PlainToleration(NamedTuple):
    """A toleration; empty fields match everything."""

    key: str
    operator: str
    value: str
    effect: str

    def matches(self, taint: PlainTaint) -> bool:
        """Whether it tolerates the taint."""
        return (
            self.effect in ("", taint.effect)
            and self.key in ("", taint.key)
            and (self.operator == "Exists" or self.value == taint.value)
        )


class PlainNode(NamedTuple):
    """A node; cpu in milli, memory in bytes."""

    name: str
    zone: str
    cpu: int
    memory: int
    pods: int
    taints: tuple[PlainTaint, ...]
    cordoned: bool


class Rule(NamedTuple):
    """A required anti-affinity term: pods of an app, in the pod's namespace, by hostname or zone."""

    app: str
    key: str


@dataclass(eq=False)
class PlainPod:
    """A pod; ``selector`` and ``required`` are zones, ``preferred`` is weights by zone."""

    name: str
    namespace: str
    node: str
    app: str
    owners: tuple[str, ...]
    images: tuple[str, ...]
    priority: int | None
    quality: int
    spared: bool
    cpu: int
    memory: int
    tolerations: tuple[PlainToleration, ...]
    selector: str
    required: tuple[str, ...]
    preferred: dict[str, int]
    rules: tuple[Rule, ...]
    skew: int
    soft: bool
    phase: str
    restarts: tuple[int, int]
    waiting: str
    ended: str
    code: int
    age: int
    terminating: bool
    marked: bool

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"

    @property
    def active(self) -> bool:
        """Whether it has not ended."""
        return self.phase not in ("Succeeded", "Failed")

    @property
    def rank(self) -> tuple[bool, int, int, bool]:
        """From low to high."""
        return self.priority is not None, self.priority or 0, self.quality, self.spared

    def tolerates(self, taint: PlainTaint) -> bool:
        """Whether one of its tolerations does."""
        return any(each.matches(taint) for each in self.tolerations)

    def wants(self, node: PlainNode) -> bool:
        """Whether its selector and its required affinity match the node."""
        return self.selector in ("", node.zone) and (not self.required or node.zone in self.required)

    def weight(self, node: PlainNode) -> int:
        """What it prefers about the node."""
        return self.preferred.get(node.zone, 0)


@dataclass
class Limited:
    """The evictor: some pods are refused by a budget, and a node is closed after so many."""

    refused: set[str]
    per_node: int | None
    taken: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def evict(self, key: str, node: str) -> str:
        """What becomes of an attempt."""
        if self.per_node is not None and self.counts.get(node, 0) >= self.per_node:
            return CLOSED
        if key in self.refused:
            return REFUSED
        self.counts[node] = self.counts.get(node, 0) + 1
        self.taken.append(key)
        return GONE


@dataclass
class PlainCluster:
    """Nodes and pods."""

    nodes: list[PlainNode]
    pods: list[PlainPod]

    def node(self, name: str) -> PlainNode:
        """The node of that name."""
        return next(each for each in self.nodes if each.name == name)

    def on(self, name: str, *, ended: bool = False) -> list[PlainPod]:
        """The pods of a node by key."""
        found = [each for each in self.pods if each.node == name and (ended or each.active)]
        return sorted(found, key=lambda each: each.key)

    def used(self, name: str) -> dict[str, int]:
        """What the pods of a node request."""
        pods = self.on(name)
        return {
            "cpu": sum(each.cpu for each in pods),
            "memory": sum(each.memory for each in pods),
            "pods": len(pods),
        }

    def fits(self, pod: PlainPod, node: PlainNode) -> bool:
        """Descheduler's node fit."""
        if node.cordoned or not pod.wants(node):
            return False
        if any(each.effect in HARD and not pod.tolerates(each) for each in node.taints):
            return False
        for other in self.on(node.name):
            is_another = other.name != pod.name and other.namespace == pod.namespace
            if is_another and any(rule.app == other.app for rule in pod.rules):
                return False
        used = self.used(node.name)
        wanted = {"pods": 1} | ({"cpu": pod.cpu, "memory": pod.memory} if pod.quality else {})
        has_room = all(used[name] + amount <= getattr(node, name) for name, amount in wanted.items())
        return node.name == pod.node or has_room

    def leave(self, key: str) -> None:
        """A pod is gone."""
        self.pods = [each for each in self.pods if each.key != key]


def evictable(pod: PlainPod) -> bool:
    """The default evictor: marked pods always; else no terminating, critical, bare or daemon pods."""
    return pod.marked or (
        not pod.terminating
        and (pod.priority or 0) < CRITICAL
        and bool(pod.owners)
        and not any(each.startswith("DaemonSet/") for each in pod.owners)
    )


Attempts = Generator[tuple[PlainPod, str], str, None]


def covers(pod: PlainPod, args: Any) -> bool:
    """The arguments that most strategies share."""
    namespaces = args.get("namespaces", {})
    wanted = args.get("labelSelector", {}).get("matchLabels", {}).get("app", pod.app)
    return (
        pod.namespace in namespaces.get("include", [pod.namespace])
        and pod.namespace not in namespaces.get("exclude", [])
        and pod.app == wanted
    )


def until_closed(pods: list[PlainPod], node: str) -> Attempts:
    """One after another, until the node is closed."""
    for pod in pods:
        if (yield pod, node) == CLOSED:
            return


def node_taints(cluster: PlainCluster, args: Any) -> Attempts:
    """RemovePodsViolatingNodeTaints."""
    effects = ("NoSchedule", "PreferNoSchedule") if args.get("includePreferNoSchedule") else ("NoSchedule",)

    def named(taint: PlainTaint, names: list[str]) -> bool:
        return taint.key in names or bool(taint.value and f"{taint.key}={taint.value}" in names)

    for node in list(cluster.nodes):
        taints = [
            each
            for each in node.taints
            if each.effect in effects
            and not named(each, args.get("excludedTaints", []))
            and ("includedTaints" not in args or named(each, args["includedTaints"]))
        ]
        found = [
            pod
            for pod in cluster.on(node.name)
            if covers(pod, args) and evictable(pod) and not all(map(pod.tolerates, taints))
        ]
        yield from until_closed(found, node.name)


def node_affinity(cluster: PlainCluster, args: Any) -> Attempts:
    """RemovePodsViolatingNodeAffinity."""
    for kind in args["nodeAffinityType"]:
        for node in list(cluster.nodes):
            found = []
            for pod in cluster.on(node.name):
                if not covers(pod, args) or not evictable(pod):
                    continue
                fits = any(cluster.fits(pod, other) for other in cluster.nodes)
                best = max(map(pod.weight, cluster.nodes))
                wrong = (
                    bool(pod.required) and not pod.wants(node)
                    if kind.startswith("required")
                    else bool(pod.preferred) and best > pod.weight(node)
                )
                if fits and wrong:
                    found.append(pod)
            yield from until_closed(found, node.name)


def anti_affinity(cluster: PlainCluster, args: Any) -> Attempts:
    """RemovePodsViolatingInterPodAntiAffinity."""
    scope = [each for each in cluster.pods if each.active and covers(each, args)]
    for node in list(cluster.nodes):
        for pod in sorted((each for each in scope if each.node == node.name), key=lambda each: each.rank):
            near = [
                other
                for rule in pod.rules
                for other in scope
                if other.name != pod.name and other.namespace == pod.namespace and other.app == rule.app
                if other.node == pod.node
                or (rule.key == "zone" and cluster.node(other.node).zone == node.zone)
            ]
            if not near or not evictable(pod):
                continue
            result = yield pod, node.name
            if result == CLOSED:
                break
            if result == GONE:
                scope.remove(pod)


def too_many_restarts(cluster: PlainCluster, args: Any) -> Attempts:
    """RemovePodsHavingTooManyRestarts."""
    with_init = args.get("includingInitContainers", False)

    def restarts(pod: PlainPod) -> int:
        return sum(pod.restarts) if with_init else pod.restarts[0]

    for node in list(cluster.nodes):
        found = [
            pod
            for pod in cluster.on(node.name, ended=True)
            if restarts(pod) >= args["podRestartThreshold"]
            and ("states" not in args or pod.phase in args["states"] or pod.waiting in args["states"])
            and covers(pod, args)
            and evictable(pod)
        ]
        yield from until_closed(sorted(found, key=restarts, reverse=True), node.name)


def life_time(cluster: PlainCluster, args: Any) -> Attempts:
    """PodLifeTime."""
    found = []
    for pod in cluster.pods:
        kinds = [each.split("/")[0] for each in pod.owners]
        owned = args.get("ownerKinds", {})
        if not covers(pod, args) or not evictable(pod):
            continue
        if "maxPodLifeTimeSeconds" in args and not pod.age > args["maxPodLifeTimeSeconds"]:
            continue
        if "states" in args and not {pod.phase, pod.waiting, pod.ended} & set(args["states"]):
            continue
        if "exitCodes" in args and not (pod.ended and pod.code in args["exitCodes"]):
            continue
        if "include" in owned and not set(kinds) & set(owned["include"]):
            continue
        if set(kinds) & set(owned.get("exclude", [])):
            continue
        found.append(pod)
    for pod in sorted(found, key=lambda each: -each.age):
        yield pod, pod.node


def failed_pods(cluster: PlainCluster, args: Any) -> Attempts:
    """RemoveFailedPods."""
    for node in list(cluster.nodes):
        found = [
            pod
            for pod in cluster.on(node.name, ended=True)
            if pod.phase == "Failed"
            and (pod.age >= args.get("minPodLifetimeSeconds", 3600) or pod.age < 0)  # unsigned seconds
            and not {each.split("/")[0] for each in pod.owners} & set(args.get("excludeOwnerKinds", []))
            and ("reasons" not in args or {pod.waiting, pod.ended} & set(args["reasons"]))
            and ("exitCodes" not in args or (pod.ended and pod.code in args["exitCodes"]))
            and covers(pod, args)
            and evictable(pod)
        ]
        yield from until_closed(found, node.name)


def duplicates(cluster: PlainCluster, args: Any) -> Attempts:
    """RemoveDuplicates, by owner and node."""
    count: dict[Any, int] = {}
    twins: dict[Any, dict[str, list[PlainPod]]] = {}
    for node in cluster.nodes:
        seen: list[list[str]] = []
        for pod in cluster.on(node.name):
            kinds = {each.split("/")[0] for each in pod.owners}
            if not pod.owners or kinds & set(args.get("excludeOwnerKinds", [])):
                continue
            if not covers(pod, args) or not evictable(pod):
                continue
            images = sorted(pod.images)
            identity = sorted(f"{pod.namespace}/{owner}/{image}" for owner in pod.owners for image in images)
            for owner in pod.owners:
                key = (pod.namespace, *owner.split("/"), "#".join(images))
                count[key] = count.get(key, 0) + 1
                if identity in seen:
                    twins.setdefault(key, {}).setdefault(node.name, []).append(pod)
            seen.append(identity)
    for key, by_node in sorted(twins.items()):
        targets = set()
        for pod in [each for pods in by_node.values() for each in pods]:
            able = [
                node.name
                for node in cluster.nodes
                if pod.wants(node)
                and all(each.effect not in HARD or pod.tolerates(each) for each in node.taints)
            ]
            targets |= set(able) if len(able) > 1 else set()
        if len(targets) < 2:
            continue
        upper = math.ceil(count[key] / len(targets))
        for name, pods in by_node.items():
            yield from until_closed(pods[upper - 1 :] if len(pods) + 1 > upper else [], name)


def _percent(cluster: PlainCluster, node: PlainNode, resource: str) -> float:
    room = int(getattr(node, resource))
    return cluster.used(node.name)[resource] / room * 100 if room else 0.0


def _drained(
    cluster: PlainCluster,
    sources: list[PlainNode],
    targets: list[PlainNode],
    caps: dict[str, dict[str, int]],
    args: Any,
    *,
    low: bool,
) -> Attempts:
    """The common loop of both utilization strategies."""
    usage = {each.name: cluster.used(each.name) for each in cluster.nodes}
    total = {
        name: sum(caps[each.name][name] - usage[each.name][name] for each in targets)
        for name in ("cpu", "memory", "pods")
    }

    def go_on(node: PlainNode) -> bool:
        above = any(usage[node.name][name] > caps[node.name][name] for name in total)
        return min(total.values()) > 0 and (above or not low)

    limit = args.get("evictionLimits", {}).get("node")
    sources.sort(key=lambda each: sum(usage[each.name].values()), reverse=low)
    for node in sources:
        pods = [each for each in cluster.on(node.name) if evictable(each)]
        if args.get("evictionModes"):
            pods = [each for each in pods if any(getattr(each, name, 0) for name in args["thresholds"])]
        done = 0
        for pod in sorted(pods, key=lambda each: each.rank) if go_on(node) else []:
            if limit is not None and done >= limit:
                break
            if not any(
                len(pod.tolerations) >= len(each.taints) and all(map(pod.tolerates, each.taints))
                for each in targets
            ):
                continue
            if pod.namespace in args.get("evictableNamespaces", {}).get("exclude", []):
                continue
            result = yield pod, node.name
            if result == CLOSED:
                break
            if result == REFUSED:
                continue
            done += 1
            for name, amount in (("cpu", pod.cpu), ("memory", pod.memory), ("pods", 1)):
                usage[node.name][name] -= amount
                total[name] -= amount
            if not go_on(node):
                break


def _caps(cluster: PlainCluster, lines: dict[str, float]) -> dict[str, dict[str, int]]:
    return {
        node.name: {
            name: int(lines[name] * 0.01 * getattr(node, name)) if name in lines else getattr(node, name)
            for name in ("cpu", "memory", "pods")
        }
        for node in cluster.nodes
    }


def low_utilization(cluster: PlainCluster, args: Any) -> Attempts:
    """LowNodeUtilization by requests."""
    low, high = dict(args["thresholds"]), dict(args["targetThresholds"])
    if args.get("useDeviationThresholds"):
        for name, below in list(low.items()):
            mean = sum(_percent(cluster, each, name) for each in cluster.nodes) / len(cluster.nodes)
            low[name] = min(max(mean - below, 0), 100)
            high[name] = min(max(mean + high[name], 0), 100)
    under = [
        node
        for node in cluster.nodes
        if not node.cordoned and all(_percent(cluster, node, name) <= low[name] for name in low)
    ]
    over = [
        node
        for node in cluster.nodes
        if node not in under and any(_percent(cluster, node, name) > high[name] for name in high)
    ]
    if len(under) > args.get("numberOfNodes", 0) and len(under) < len(cluster.nodes):
        yield from _drained(cluster, over, under, _caps(cluster, high), args, low=True)


def high_utilization(cluster: PlainCluster, args: Any) -> Attempts:
    """HighNodeUtilization."""
    lines = args["thresholds"]
    sources = [
        node for node in cluster.nodes if all(_percent(cluster, node, name) <= lines[name] for name in lines)
    ]
    targets = [each for each in cluster.nodes if each not in sources and not each.cordoned]
    if len(sources) > args.get("numberOfNodes", 0) and len(sources) < len(cluster.nodes) and targets:
        caps = _caps(cluster, dict.fromkeys(lines, 100.0))
        yield from _drained(cluster, sources, targets, caps, args, low=False)


def spread(cluster: PlainCluster, args: Any) -> Attempts:
    """RemovePodsViolatingTopologySpreadConstraint: zones, of the pods of one app."""
    marked: dict[str, PlainPod] = {}
    wanted = args.get("constraints", ["DoNotSchedule"])
    among = sorted(
        (each for each in cluster.pods if each.active and covers(each, args) and evictable(each)),
        key=lambda each: each.key,
    )
    for _, group in groupby(among, key=lambda each: each.namespace):
        population = list(group)
        rules = {
            (pod.app, pod.skew, pod.selector, pod.required)
            for pod in population
            if pod.skew and ("ScheduleAnyway" if pod.soft else "DoNotSchedule") in wanted
        }
        for rule in sorted(rules):
            marked |= {each.key: each for each in _excess(cluster, population, *rule, args)}
    for pod in marked.values():
        yield pod, pod.node


def _excess(
    cluster: PlainCluster,
    population: list[PlainPod],
    app: str,
    skew: int,
    selector: str,
    required: tuple[str, ...],
    args: Any,
) -> Iterator[PlainPod]:
    admitted = [
        node
        for node in cluster.nodes
        if selector in ("", node.zone) and (not required or node.zone in required)
    ]
    domains: dict[str, list[PlainPod]] = {node.zone: [] for node in admitted}
    for pod in population:
        if pod.app == app and not pod.terminating:
            domains.setdefault(cluster.node(pod.node).zone, []).append(pod)
    sizes = [len(pods) for pods in domains.values()]
    if not sizes or max(sizes) - min(sizes) <= skew:
        return
    mean = sum(sizes) / len(sizes)
    below = [node for node in admitted if len(domains[node.zone]) < mean]

    def fits(pod: PlainPod) -> bool:
        return any(node.name != pod.node and cluster.fits(pod, node) for node in below)

    ordered = [domains[zone] for zone in sorted(domains, key=lambda zone: (len(domains[zone]), zone))]
    for pods in ordered:
        pods.sort(key=lambda each: (not (each.selector or each.required or each.preferred), *each.rank[:2]))
    i, j = 0, len(ordered) - 1
    while i < j:
        if len(ordered[j]) <= mean:
            j -= 1
        difference = len(ordered[j]) - len(ordered[i])
        move = min(
            math.ceil(len(ordered[j]) - mean),
            math.ceil(mean - len(ordered[i])),
            math.ceil((difference - skew) / 2),
        )
        if difference <= skew or move <= 0:
            i += 1
            continue
        ordered[j].sort(key=fits)
        taken = ordered[j][-move:]
        yield from (pod for pod in taken if fits(pod) or not args.get("topologyBalanceNodeFit", True))
        del ordered[j][-move:]
        ordered[i] += taken
