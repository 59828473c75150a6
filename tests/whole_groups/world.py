"""Random clusters with groups of all kinds, played with the whole operator.

The whole operator decides (``cases.world``): strategies of a policy run, and pods and gangs of higher
priority or of poorer queues arrive. Removals of pods by the operator are noted as the API server receives
them, and judged by marks that this module writes itself.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from cases.world import World
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.strategy import planners_of
from plimsoll.model.kinds.pod import Pod
from plimsoll.ports.writes import WriteResult
from plimsoll.strategies import IN_TREE
from plimsoll.testing.fakes import settled

NOW = "2026-01-01T12:00:00+00:00"

STRATEGIES: tuple[dict[str, Any], ...] = (
    {"name": "RemovePodsViolatingNodeTaints"},
    {
        "name": "RemovePodsViolatingNodeAffinity",
        "args": {"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]},
    },
    {"name": "RemovePodsViolatingInterPodAntiAffinity"},
    {"name": "RemoveDuplicates"},
    {"name": "RemovePodsViolatingTopologySpreadConstraint"},
    {"name": "RemovePodsHavingTooManyRestarts", "args": {"podRestartThreshold": 5}},
    {"name": "PodLifeTime", "args": {"maxPodLifeTimeSeconds": 3600}},
    {"name": "RemoveFailedPods"},
    {
        "name": "LowNodeUtilization",
        "args": {"thresholds": {"cpu": 35}, "targetThresholds": {"cpu": 45}},
    },
    {"name": "HighNodeUtilization", "args": {"thresholds": {"cpu": 40}}},
    {"name": "ConsolidateNodes", "args": {"thresholds": {"cpu": 60}}},
    {"name": "DefragmentResource", "args": {"block": {"cpu": "3"}}},
    {"name": "MakeRoomForPending", "args": {"maxMovesPerPod": 3}},
    {"name": "FollowScore"},
    {
        "name": "ImproveTopology",
        "args": {"topologyKey": "zone", "slowdownPercent": 100, "restartSeconds": 0},
    },
)


@dataclass(frozen=True)
class Marked:
    """A group, as its pods name it: metadata and spec of a pod."""

    kind: str
    name: str
    size: int
    least: int

    def mark(self, pod: dict[str, Any]) -> dict[str, Any]:
        """The pod with the marks of its group."""
        labels = pod["metadata"].setdefault("labels", {})
        notes = pod["metadata"].setdefault("annotations", {})
        match self.kind:
            case "plimsoll":
                labels["plimsoll.dev/pod-group"] = self.name
            case "scheduler-plugins":
                labels["scheduling.x-k8s.io/pod-group"] = self.name
            case "schedulingGroup" | "core gang" | "core whole":
                pod["spec"]["schedulingGroup"] = {"podGroupName": self.name}
            case "composite":
                number = int(pod["metadata"]["name"].rpartition("-")[2])
                pod["spec"]["schedulingGroup"] = {"podGroupName": f"{self.name}-{number % 2}"}
            case "workloadRef":
                pod["spec"]["workloadRef"] = {"name": self.name, "podGroup": "workers"}
            case "Volcano":
                notes["scheduling.k8s.io/group-name"] = self.name
            case "KAI":
                notes["pod-group-name"] = self.name
            case "Kueue":
                labels["kueue.x-k8s.io/pod-group-name"] = self.name
                notes["kueue.x-k8s.io/pod-group-total-count"] = str(self.size)
            case "LeaderWorkerSet":
                labels["leaderworkerset.sigs.k8s.io/name"] = self.name
                labels["leaderworkerset.sigs.k8s.io/group-index"] = "0"
                notes["leaderworkerset.sigs.k8s.io/size"] = str(self.size)
            case "JobSet":
                labels["jobset.sigs.k8s.io/jobset-name"] = self.name
            case "Koordinator":
                notes["gang.scheduling.koordinator.sh/name"] = self.name
                notes["gang.scheduling.koordinator.sh/min-available"] = str(self.least)
        return pod


KINDS = ("plimsoll", "plimsoll", "core gang", "core gang", "core whole", "scheduler-plugins",
         "schedulingGroup", "workloadRef", "Volcano", "KAI", "Kueue", "LeaderWorkerSet", "JobSet",
         "Koordinator")  # fmt: skip
HAVE_LEAST = ("plimsoll", "core gang", "scheduler-plugins", "Koordinator")
#: A gang of two that arrives, and has to start in one zone.
RACKED = "racked"
IN_A_ZONE = {
    "schedulingPolicy": {"gang": {"minCount": 2}},
    "schedulingConstraints": {"topology": [{"key": "zone"}]},
}
#: A composite group that runs, and one that arrives, of which both groups have to start.
TREE, BOTH = "tree", "both"
OBJECTS = ("plimsoll", "core gang", "core whole", "scheduler-plugins")


@dataclass
class Story:
    """What happened in one cluster.

    Attributes:
        broken: Sentences about groups that the operator broke.
        counts: Pods that left and groups that left whole, by cause.
    """

    broken: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


class GroupWorld(World):
    """Notes which pods the operator removed, and judges what is left of their groups."""

    def __init__(self, groups: list[Marked]) -> None:
        super().__init__(NOW)
        self.groups = {each.name: each for each in groups}
        self.story = Story()
        self._removed: set[str] = set()
        self._before: dict[str, set[str]] = {}

    async def preempt(self, victim: Pod, scheduler: str) -> WriteResult:
        self._note_removal(victim, "preempted")
        return await super().preempt(victim, scheduler)

    async def evict(self, pod: Pod) -> WriteResult:
        answer = await super().evict(pod)
        if answer.is_done:
            self._note_removal(pod, "evicted")
        return answer

    def _note_removal(self, pod: Pod, cause: str) -> None:
        self.story.counts[cause] += 1
        self._removed.add(pod.uid)

    def begin(self) -> None:
        """Remember the groups that run."""
        self._removed.clear()
        self._before = self._running()

    def judge(self, step: str) -> None:
        """Say which of these groups the operator broke since."""
        for name, before in self._before.items():
            group = self.groups[name]
            least = group.least if group.kind in HAVE_LEAST else len(before)
            gone = before & self._removed
            left = before - gone
            if not gone or len(before) < least:
                continue
            if not left:
                self.story.counts["groups that left whole"] += 1
            elif len(left) < least:
                self.story.broken.append(
                    f"{step}: {group.kind} group {name} needs {least}, {len(left)} are left of {len(before)}"
                )
            else:
                self.story.counts["spare members that left"] += len(gone)

    def judge_zones(self, step: str) -> None:
        """Say whether the gang that has to be in one zone was placed in part, or in two zones."""
        nodes = [
            document["spec"]["nodeName"]
            for (kind, _), document in self._documents.items()
            if kind == "Pod"
            and document["metadata"].get("labels", {}).get("group") == RACKED
            and document["spec"].get("nodeName")
        ]
        zones = {self._documents["Node", node]["metadata"]["labels"]["zone"] for node in nodes}
        self.story.counts["members in a zone"] += len(nodes)
        if len(nodes) == 1 or len(zones) > 1:
            self.story.broken.append(f"{step}: {len(nodes)} of {RACKED} are placed, in zones {sorted(zones)}")

    def judge_trees(self, step: str) -> None:
        """Say whether the composite group that arrives was placed in part, or in two zones."""
        placed = [
            document
            for (kind, _), document in self._documents.items()
            if kind == "Pod"
            and document["metadata"].get("labels", {}).get("group") == BOTH
            and document["spec"].get("nodeName")
        ]
        groups = {each["spec"]["schedulingGroup"]["podGroupName"] for each in placed}
        tree = self._documents.get(("CompositePodGroup", BOTH), {"spec": {}})
        labels = [each["key"] for each in tree["spec"].get("schedulingConstraints", {}).get("topology", ())]
        zones = {
            self._documents["Node", each["spec"]["nodeName"]]["metadata"]["labels"][label]
            for each in placed
            for label in labels
        }
        self.story.counts["members of composite groups"] += len(placed)
        if len(groups) == 1 or len(zones) > 1:
            self.story.broken.append(f"{step}: of {BOTH} only {sorted(groups)} run, in zones {sorted(zones)}")

    def _running(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for (kind, _), document in self._documents.items():
            name = document["metadata"].get("labels", {}).get("group", "")
            is_placed = kind == "Pod" and bool(document["spec"].get("nodeName"))
            if is_placed and name in self.groups and document["status"].get("phase") == "Running":
                found.setdefault(name, set()).add(document["metadata"]["uid"])
        return found


async def play(seed: int) -> Story:
    """What the operator does to the groups of one cluster."""
    draw = random.Random(seed)
    policy = _policy(draw)
    shares = "fairShare" in policy["spec"]["scheduling"]
    nodes = [_node(f"n{number}", draw) for number in range(draw.randint(3, 6))]
    groups = [_group(f"g{number}", draw) for number in range(draw.randint(2, 5))]
    trees = _trees(random.Random(-seed))
    groups += [Marked("composite", TREE, 3, 3)] if trees else []
    pods = _pods(nodes, groups, draw)
    arriving = [*_arrivals(draw), *(each for each in trees if each["kind"] == "Pod")]
    for pod in (*pods, *arriving) if shares else ():
        # A victim of a queue that is more important than the pod of the other queue comes back immediately.
        pod["spec"]["priority"] = 0
    world = GroupWorld(groups)
    async with world.running():
        await world.set_policy(policy)
        assert not world.observed(), policy
        world.apply(
            *nodes,
            *(_pod_group(each) for each in groups if each.kind in OBJECTS),
            {"kind": "PodGroup", "metadata": {"name": "urgent"}, "spec": {"minMember": 2}},
            {"kind": "CorePodGroup", "metadata": {"name": RACKED}, "spec": IN_A_ZONE},
            *(each for each in trees if each["kind"] != "Pod"),
            *pods,
        )
        await settled()
        for step, act in (
            ("run", None),
            ("arrival", arriving),
            ("second run", None),
        ):
            world.begin()
            if act is None:
                await world.rebalance("p")
            else:
                world.apply(*act)
                await world.wait(30)
            await settled()
            world.judge(step)
            world.judge_zones(step)
            world.judge_trees(step)
            await world.wait(600)
        world.observed()
    return world.story


def _policy(draw: random.Random) -> dict[str, Any]:
    planner = draw.choice(("Proven", "Proven", "Optimal", "Upstream"))
    limited = {each.name: planners_of(each) for each in IN_TREE}
    usable = [each for each in STRATEGIES if planner in (limited[each["name"]] or tuple(Planner))]
    chosen = draw.sample(usable, draw.randint(3, 6))
    if {"LowNodeUtilization", "HighNodeUtilization"} <= {each["name"] for each in chosen}:
        chosen = [each for each in chosen if each["name"] != "HighNodeUtilization"]
    scheduling: dict[str, Any] = {"schedulerName": "default-scheduler"}
    if draw.random() < 0.3:
        scheduling["preemption"] = {"viaEviction": True}
    if draw.random() < 0.4:
        queues = [{"name": "rich"}, {"name": "poor", "weight": 3}]
        scheduling["fairShare"] = {"queues": queues, "reclaim": "AboveDeserved"}
    rebalancing = {
        "mode": "Enforce",
        "planner": planner,
        "strategies": chosen,
        "limits": dict.fromkeys(("total", "perNode", "perNamespace", "perWorkload", "perMinute"), "100%"),
        "evictor": {"minReplicas": 0, "podProtections": {"defaultDisabled": ["FailedBarePods"]}},
    }
    if planner == "Optimal":
        rebalancing["optimizer"] = {"timeLimitSeconds": 1}
    spec = {"scheduling": scheduling, "rebalancing": rebalancing}
    return {"kind": "SchedulingPolicy", "metadata": {"name": "p"}, "spec": spec}


def _node(name: str, draw: random.Random) -> dict[str, Any]:
    spec = {}
    if draw.random() < 0.3:
        spec = {"taints": [{"key": "tired", "effect": "NoSchedule"}]}
    labels = {"zone": draw.choice("ab"), "disk": draw.choice(("ssd", "hdd"))}
    capacity = {"cpu": str(draw.randint(4, 8)), "memory": "32Gi", "pods": "110"}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": capacity},
    }


def _group(name: str, draw: random.Random) -> Marked:
    kind, size = draw.choice(KINDS), draw.randint(2, 4)
    spare = draw.choice((0, 0, 1)) if kind in HAVE_LEAST else 0
    return Marked(kind, name, size, max(1, size - spare))


def _pod_group(group: Marked) -> dict[str, Any]:
    metadata = {"name": group.name}
    if group.kind not in ("core gang", "core whole"):
        return {"kind": "PodGroup", "metadata": metadata, "spec": {"minMember": group.least}}
    least = group.least if group.kind == "core gang" else 1
    mode = "Pod" if group.kind == "core gang" else "PodGroup"
    spec = {"schedulingPolicy": {"gang": {"minCount": least}}, "disruptionMode": mode}
    return {"kind": "CorePodGroup", "metadata": metadata, "spec": spec}


def _pods(nodes: list[dict[str, Any]], groups: list[Marked], draw: random.Random) -> list[dict[str, Any]]:
    free = {each["metadata"]["name"]: int(each["status"]["allocatable"]["cpu"]) for each in nodes}
    pods = [
        group.mark(_pod(f"{group.name}-{number}", group.name, draw))
        for group in groups
        for number in range(group.size)
    ]
    pods += [_pod(f"loose-{number}", f"app{number % 3}", draw) for number in range(draw.randint(3, 10))]
    draw.shuffle(pods)
    placed = []
    for pod in pods:
        cpu = int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])
        fitting = [name for name, left in free.items() if left >= cpu]
        if fitting:
            name = draw.choice(fitting)
            free[name] -= cpu
            pod["spec"]["nodeName"] = name
            placed.append(pod)
    return placed


def _pod(name: str, owner: str, draw: random.Random) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "priority": draw.choice((0, 0, 0, 5)),
        "containers": [
            {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(draw.choice((1, 1, 2)))}}}
        ],
    }
    terms = [
        {
            "labelSelector": {"matchLabels": {"group": owner}},
            "topologyKey": draw.choice(("kubernetes.io/hostname", "zone")),
        }
    ]
    match draw.randint(0, 5):
        case 0:
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        case 1:
            wanted = [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]
            spec["affinity"] = {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": wanted}
                }
            }
        case 2:
            spec["topologySpreadConstraints"] = [
                {
                    "maxSkew": 1,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"group": owner}},
                }
            ]
    metadata: dict[str, Any] = {"name": name, "uid": f"uid-{name}", "labels": {"group": owner}}
    if draw.random() < 0.4:
        metadata["labels"]["plimsoll.dev/queue"] = draw.choice(("rich", "rich", "poor"))
    if draw.random() < 0.9:
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner}
        metadata["ownerReferences"] = [{**reference, "controller": True}]
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    status["startTime"] = f"2026-01-01T{draw.randint(0, 11):02}:00:00Z"
    status["containerStatuses"] = [{"name": "c", "ready": True, "restartCount": draw.choice((0, 0, 9))}]
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def _trees(draw: random.Random) -> list[dict[str, Any]]:
    """In every second cluster a composite group that runs, and one that arrives with its pods."""
    if draw.random() < 0.5:
        return []
    found: list[dict[str, Any]] = []
    for name in (TREE, BOTH):
        spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}}
        if name == BOTH and draw.random() < 0.5:
            spec["schedulingConstraints"] = {"topology": [{"key": "zone"}]}
        found.append({"kind": "CompositePodGroup", "metadata": {"name": name}, "spec": spec})
        for number in range(2):
            part = {"schedulingPolicy": {"gang": {"minCount": 1}}, "parentCompositePodGroupName": name}
            found.append({"kind": "CorePodGroup", "metadata": {"name": f"{name}-{number}"}, "spec": part})
    for number in range(draw.randint(2, 4)):
        requests = {"cpu": str(draw.randint(1, 3))}
        metadata = {"name": f"{BOTH}-{number}", "uid": f"uid-{BOTH}-{number}", "labels": {"group": BOTH}}
        spec = {
            "priority": 10,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}],
            "schedulingGroup": {"podGroupName": f"{BOTH}-{number % 2}"},
        }
        found.append({"kind": "Pod", "metadata": metadata, "spec": spec})
    return found


def _arrivals(draw: random.Random) -> list[dict[str, Any]]:
    """Pods that need room: two of a gang, single ones of priority, or one of a poor queue."""
    found = []
    for number in range(draw.randint(2, 5)):
        labels: dict[str, str] = {"group": "arrived"}
        priority, more = 10, dict[str, Any]()
        match draw.randint(0, 3):
            case 0:
                labels["plimsoll.dev/pod-group"] = "urgent"
            case 3:
                labels["group"], more = RACKED, {"schedulingGroup": {"podGroupName": RACKED}}
            case 1:
                labels["plimsoll.dev/queue"], priority = "poor", 0
        requests = {"cpu": str(draw.randint(1, 4))}
        found.append(
            {
                "kind": "Pod",
                "metadata": {"name": f"arrived-{number}", "uid": f"uid-arrived-{number}", "labels": labels},
                "spec": {
                    "priority": priority,
                    "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}],
                    **more,
                },
            }
        )
    return found
