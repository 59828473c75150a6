"""Each strategy of descheduler against the plain one, on random small clusters under planner Upstream.

The evictor refuses some pods and closes nodes. Ranks on a node differ, so that only one order is upstream's.
"""

import random
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.framework.descheduling.proposals import Candidate, Verdict
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.planning.strategy_run import run_strategy
from plimsoll.strategies import IN_TREE
from plimsoll.testing.builders import a_node, a_pod
from strategies import plain_strategies as plain
from strategies.builders import NOW, a_context
from strategies.plain_strategies import (
    CRITICAL,
    Limited,
    PlainCluster,
    PlainNode,
    PlainPod,
    PlainTaint,
    PlainToleration,
    Rule,
)

#: Clusters for each example.
EACH = 4
GIB = 2**30
GUARANTEED = 2
ZONES = ("a", "b", "c")
APPS = ("web", "db")
VERDICTS = {plain.GONE: Verdict.ACCEPTED, plain.REFUSED: Verdict.REFUSED, plain.CLOSED: Verdict.NODE_CLOSED}
STRATEGIES = {each.name: each for each in IN_TREE}
AFFINITY = tuple(f"{kind}DuringSchedulingIgnoredDuringExecution" for kind in ("required", "preferred"))
RANKS = [
    (priority, quality, spared)
    for priority in (None, 0, 5, 9, CRITICAL)
    for quality in (0, 1, 2)
    for spared in (False, True)
]


def a_plain_node(draw: random.Random, name: str) -> PlainNode:
    """A node of some size, sometimes tainted or cordoned."""
    taints = [
        PlainTaint(
            key, draw.choice(("", "x", "y")), draw.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
        )
        for key in ("red", "blue")
        if draw.random() < 0.3
    ]
    cordoned = draw.random() < 0.15
    if cordoned and draw.random() < 0.8:
        taints.append(PlainTaint("node.kubernetes.io/unschedulable", "", "NoSchedule"))
    size = draw.choice((2, 4, 4))
    pods = draw.choice((4, 8, 110))
    return PlainNode(name, draw.choice(ZONES), size * 1000, size * 2 * GIB, pods, tuple(taints), cordoned)


def a_toleration(draw: random.Random) -> PlainToleration:
    """A toleration, sometimes of every key or effect."""
    operator = draw.choice(("Exists", "Exists", "Equal"))
    keys = ("red", "blue", "", "node.kubernetes.io/unschedulable")
    key = draw.choice(keys if operator == "Exists" else keys[:2])
    value = "" if operator == "Exists" else draw.choice(("", "x", "y"))
    return PlainToleration(key, operator, value, draw.choice(("", "", "", "NoSchedule", "PreferNoSchedule")))


def a_plain_pod(draw: random.Random, name: str, node: str, rank: Any, *, is_full: bool) -> PlainPod:
    """A pod; most are evictable."""
    priority, quality, spared = rank
    owners = draw.choice(
        (("ReplicaSet/web",),) * 3 + (("Job/j",), ("ReplicaSet/web", "Job/j"), (), ("DaemonSet/d",))
    )
    phase = (
        draw.choice(("Running",) * 6 + ("Pending", "Failed", "Failed", "Succeeded")) if is_full else "Running"
    )
    ended = draw.choice(("Error", "OOMKilled")) if phase == "Failed" and draw.random() < 0.8 else ""
    size = draw.choice((1, 2, 3, 6))
    return PlainPod(
        name=name,
        namespace=draw.choice(("one", "one", "two")),
        node=node,
        app=draw.choice(APPS),
        owners=owners,
        images=("app",)
        if quality == GUARANTEED
        else draw.choice((("app",), ("app", "side"), ("side", "app"))),
        priority=priority,
        quality=quality,
        spared=spared,
        cpu=0 if quality == 0 else 100 * size + draw.randrange(3),
        memory=0 if quality == 0 else draw.choice((1, 2)) * GIB // 4,
        tolerations=tuple(a_toleration(draw) for _ in range(draw.choice((0, 1, 2)))),
        selector=draw.choice(("", "", "", *ZONES)),
        required=draw.choice(((), (), (), ("a",), ("b", "c"))),
        preferred=draw.choice(({}, {}, {"a": 10}, {"b": 5, "c": 7})),
        rules=draw.choice(((), (Rule(draw.choice(APPS), draw.choice(("host", "zone"))),))),
        skew=draw.choice((0, 1, 1, 2)),
        soft=draw.random() < 0.2,
        phase=phase,
        restarts=(0, 0),
        waiting=draw.choice(("", "", "CrashLoopBackOff")) if not ended else "",
        ended=ended,
        code=draw.choice((1, 137)),
        age=0,
        terminating=draw.random() < 0.1,
        marked=draw.random() < 0.05,
    )


def a_plain_cluster(draw: random.Random) -> PlainCluster:
    """Two to five nodes; their pods have different ranks, ages and numbers of restarts."""
    nodes = [a_plain_node(draw, f"n{number}") for number in range(draw.choice((2, 2, 3, 3, 5)))]
    pods = []
    is_full = draw.random() < 0.5
    for node in nodes:
        number = draw.choice((0, 1, 3, 6))
        for at, rank in enumerate(draw.sample(RANKS, number)):
            pods.append(a_plain_pod(draw, f"p{at}-{node.name}", node.name, rank, is_full=is_full))
    for place, pod in enumerate(draw.sample(pods, len(pods))):
        pod.age = 90 * place - 60
        pod.restarts = (2 * place, draw.choice((0, 40)))
    return PlainCluster(nodes, pods)


def as_node(node: PlainNode) -> Node:
    """As the API has it."""
    return a_node(
        node.name,
        cpu=f"{node.cpu}m",
        memory=node.memory,
        pods=node.pods,
        labels={"zone": node.zone},
        taints=[
            f"{each.key}={each.value}:{each.effect}" if each.value else f"{each.key}:{each.effect}"
            for each in node.taints
        ],
        unschedulable=node.cordoned,
    )


def _resources(pod: PlainPod) -> dict[str, Any]:
    requests = {"cpu": f"{pod.cpu}m", "memory": pod.memory}
    return {0: {}, 1: {"requests": requests}, 2: {"requests": requests, "limits": requests}}[pod.quality]


def _affinity(pod: PlainPod) -> dict[str, Any]:
    def term(zones: Any) -> dict[str, Any]:
        return {"matchExpressions": [{"key": "zone", "operator": "In", "values": list(zones)}]}

    by_node: dict[str, Any] = {}
    if pod.required:
        by_node[AFFINITY[0]] = {"nodeSelectorTerms": [term(pod.required)]}
    if pod.preferred:
        by_node[AFFINITY[1]] = [
            {"weight": weight, "preference": term([zone])} for zone, weight in pod.preferred.items()
        ]
    apart = [
        {
            "labelSelector": {"matchLabels": {"app": rule.app}},
            "topologyKey": "zone" if rule.key == "zone" else "kubernetes.io/hostname",
        }
        for rule in pod.rules
    ]
    found: dict[str, Any] = {"nodeAffinity": by_node} if by_node else {}
    return found | ({"podAntiAffinity": {AFFINITY[0]: apart}} if apart else {})


def as_pod(pod: PlainPod) -> Pod:
    """As the API has it."""
    state: dict[str, Any] = {}
    if pod.ended:
        state = {"terminated": {"reason": pod.ended, "exitCode": pod.code}}
    elif pod.waiting:
        state = {"waiting": {"reason": pod.waiting}}
    began = (NOW - timedelta(seconds=pod.age)).isoformat()
    constraint = {
        "maxSkew": pod.skew,
        "topologyKey": "zone",
        "whenUnsatisfiable": "ScheduleAnyway" if pod.soft else "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": pod.app}},
    }
    prefix = "descheduler.alpha.kubernetes.io/"
    return a_pod(
        pod.name,
        namespace=pod.namespace,
        node=pod.node,
        labels={"app": pod.app},
        annotations={
            **({f"{prefix}prefer-no-eviction": ""} if pod.spared else {}),
            **({f"{prefix}evict": "true"} if pod.marked else {}),
        },
        priority=pod.priority,
        node_selector={"zone": pod.selector} if pod.selector else {},
        tolerations=[
            {key: value for key, value in each._asdict().items() if value} for each in pod.tolerations
        ],
        affinity=_affinity(pod) or None,
        metadata={
            "creationTimestamp": began,
            **({"deletionTimestamp": NOW.isoformat()} if pod.terminating else {}),
            "ownerReferences": [
                {"kind": kind, "name": name, "uid": f"uid-{kind}"}
                for kind, name in (each.split("/") for each in pod.owners)
            ],
        },
        status={
            "phase": pod.phase,
            "containerStatuses": [{"name": "main", "restartCount": pod.restarts[0], "state": state}],
            "initContainerStatuses": [{"name": "init", "restartCount": pod.restarts[1]}],
        },
        containers=[
            {
                "name": f"c{at}",
                "image": image,
                "resources": _resources(pod) if at == 0 or pod.quality == 0 else {},
            }
            for at, image in enumerate(pod.images)
        ],
        topologySpreadConstraints=[constraint] if pod.skew else [],
    )


def some(draw: random.Random, **choices: Any) -> dict[str, Any]:
    """Arguments: some of these, each one of its values."""
    return {name: draw.choice(values) for name, values in choices.items() if draw.random() < 0.5}


def scope(draw: random.Random) -> dict[str, Any]:
    """The arguments that most strategies have."""
    return some(
        draw,
        namespaces=[{"include": ["one"]}, {"exclude": ["one"]}],
        labelSelector=[{"matchLabels": {"app": "web"}}],
    )


def taint_args(draw: random.Random) -> dict[str, Any]:
    lists: tuple[list[str], ...] = ([], ["red"], ["blue=x", "red=y"])
    which = draw.choice(("includedTaints", "excludedTaints"))
    return scope(draw) | some(draw, includePreferNoSchedule=[True, False], **{which: lists})


def affinity_args(draw: random.Random) -> dict[str, Any]:
    return {**scope(draw), "nodeAffinityType": draw.sample(AFFINITY, draw.randint(1, 2))}


def restart_args(draw: random.Random) -> dict[str, Any]:
    more = some(draw, includingInitContainers=[True], states=[["Running"], ["CrashLoopBackOff"]])
    return {**scope(draw), **more, "podRestartThreshold": draw.choice((1, 6, 40))}


def life_args(draw: random.Random) -> dict[str, Any]:
    more = some(
        draw,
        states=[["Failed", "Pending"], ["CrashLoopBackOff"], ["OOMKilled"]],
        exitCodes=[[137], [1, 2]],
        ownerKinds=[{"include": ["Job"]}, {"exclude": ["Job"]}],
    )
    return {**scope(draw), **more, "maxPodLifeTimeSeconds": draw.choice((30, 210, 600))}


def failed_args(draw: random.Random) -> dict[str, Any]:
    more = some(draw, excludeOwnerKinds=[["Job"]], reasons=[["OOMKilled"], ["Error"]], exitCodes=[[137]])
    return {**scope(draw), **more, "minPodLifetimeSeconds": draw.choice((0, 30, 300))}


def duplicate_args(draw: random.Random) -> dict[str, Any]:
    return some(draw, excludeOwnerKinds=[["Job"]], namespaces=[{"include": ["one"]}, {"exclude": ["one"]}])


def high_args(draw: random.Random) -> dict[str, Any]:
    names = draw.sample(("cpu", "memory", "pods"), draw.randint(1, 2))
    more = some(
        draw,
        numberOfNodes=[1, 2],
        evictableNamespaces=[{"exclude": ["two"]}],
        evictionModes=[["OnlyThresholdingResources"]],
    )
    return {"thresholds": {name: draw.choice((10, 25, 40)) for name in names}, **more}


def low_args(draw: random.Random) -> dict[str, Any]:
    names = draw.sample(("cpu", "memory", "pods"), draw.randint(1, 2))
    more = some(
        draw,
        numberOfNodes=[1, 2],
        evictableNamespaces=[{"exclude": ["two"]}],
        evictionLimits=[{"node": 1}, {"node": 2}, {"node": 0}],
        useDeviationThresholds=[True],
    )
    lines = (2, 5) if more.get("useDeviationThresholds") else (10, 20)
    return {
        "thresholds": {name: draw.choice(lines) for name in names},
        "targetThresholds": {name: draw.choice(lines) + (0 if lines[0] == 2 else 10) for name in names},
        **more,
    }


def spread_args(draw: random.Random) -> dict[str, Any]:
    return scope(draw) | some(
        draw,
        constraints=[["ScheduleAnyway"], ["DoNotSchedule", "ScheduleAnyway"]],
        topologyBalanceNodeFit=[False],
    )


PLAIN = {
    "RemovePodsViolatingNodeTaints": (plain.node_taints, taint_args),
    "RemovePodsViolatingNodeAffinity": (plain.node_affinity, affinity_args),
    "RemovePodsViolatingInterPodAntiAffinity": (plain.anti_affinity, scope),
    "RemovePodsHavingTooManyRestarts": (plain.too_many_restarts, restart_args),
    "PodLifeTime": (plain.life_time, life_args),
    "RemoveFailedPods": (plain.failed_pods, failed_args),
    "RemoveDuplicates": (plain.duplicates, duplicate_args),
    "HighNodeUtilization": (plain.high_utilization, high_args),
    "LowNodeUtilization": (plain.low_utilization, low_args),
    "RemovePodsViolatingTopologySpreadConstraint": (plain.spread, spread_args),
}


def taken_plainly(name: str, cluster: PlainCluster, args: Any, limited: Limited) -> list[str]:
    """What the plain strategy evicts."""
    attempts = PLAIN[name][0](cluster, args)
    try:
        pod, node = next(attempts)
        while True:
            result = limited.evict(pod.key, node)
            if result == plain.GONE:
                cluster.leave(pod.key)
            pod, node = attempts.send(result)
    except StopIteration:
        return limited.taken


def taken_by(name: str, cluster: PlainCluster, args: Any, limited: Limited) -> list[str]:
    """What ours evicts."""
    kind = STRATEGIES[name]
    context = a_context(list(map(as_node, cluster.nodes)), list(map(as_pod, cluster.pods)))

    def judge(candidate: Candidate) -> Verdict:
        result = limited.evict(candidate.pod.key, candidate.node)
        if result == plain.GONE:
            context.cluster.displace(candidate.pod.uid)
            context.unplaced.discard(candidate.pod.uid)
        return VERDICTS[result]

    run_strategy(kind(kind.args_model.model_validate(args)), context, judge)  # type: ignore[arg-type] # a fake has only what is used
    return limited.taken


@pytest.mark.parametrize("name", PLAIN)
@given(seed=st.integers(0, 2**32))
def test_a_strategy_evicts_what_the_plain_one_does(name: str, seed: int) -> None:
    for number in range(EACH):
        draw = random.Random(f"{name} {seed} {number}")
        cluster, args = a_plain_cluster(draw), PLAIN[name][1](draw)
        refused = {each.key for each in cluster.pods if draw.random() < 0.2}
        per_node = draw.choice((None, None, 1, 2))
        if name.endswith("TopologySpreadConstraint"):  # upstream's order among these is any
            per_node = None
            for place, pod in enumerate(cluster.pods):
                pod.priority = None if pod.priority is None and place == 0 else place

        ours = taken_by(name, cluster, args, Limited(refused, per_node))
        expected = taken_plainly(name, cluster, args, Limited(refused, per_node))

        if name.endswith("TopologySpreadConstraint"):
            ours, expected = sorted(ours), sorted(expected)
        assert ours == expected, (args, per_node, refused, cluster)
