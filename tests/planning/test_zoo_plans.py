"""Every strategy and every option plans moves for a crowded cluster with one of everything.

PLIMSOLL_WRITE_GOLDEN=1 writes the files; a change of the planner shows in them which moves it concerns.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from cli.commands import say
from cli.golden_files import check, text_of
from cli.planning_scenes import past
from inspection.contents import Document, a_policy_document, content_of
from inspection.zoo import HOST, ZONE, a_budget, a_node, a_pod, a_term, named, on_nodes, required, spread
from plimsoll.inspection.plans.plans import plan_of
from plimsoll.inspection.state import ClusterState
from plimsoll.snapshots.file import save
from plimsoll.strategies import IN_TREE

NODES = tuple(f"n{each}" for each in range(9))
#: What strategies need, or what makes them look at more than by default.
ARGS: dict[str, list[Document]] = {
    "ConsolidateNodes": [
        {"thresholds": {"cpu": 60}},
        {"thresholds": {"cpu": 90}, "headroomPercent": 5, "nodes": 3},
    ],
    "DefragmentResource": [
        {"block": {"cpu": "3"}},
        {"block": {"cpu": "3500m", "memory": "1Gi"}, "maxMovesPerBlock": 2},
    ],
    "DrainNodes": [
        {"nodes": ["n2", "n4"], "most": 1},
        {"nodes": ["n1", "n5"], "avoided": ["n3"], "ignoreDaemonSets": False},
    ],
    "FollowScore": [{}, {"marginPercent": 1}],
    "HighNodeUtilization": [
        {"thresholds": {"cpu": 40}},
        {"thresholds": {"cpu": 60, "pods": 20}, "numberOfNodes": 1},
    ],
    "ImproveTopology": [
        {"topologyKey": "kubernetes.io/hostname", "restartSeconds": 0},
        {"topologyKey": ZONE, "slowdownPercent": 100, "maxMembers": 2},
    ],
    "LowNodeUtilization": [
        {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 60}},
        {
            "thresholds": {"cpu": 10, "pods": 10},
            "targetThresholds": {"cpu": 10, "pods": 10},
            "useDeviationThresholds": True,
        },
        {
            "thresholds": {"cpu": 50},
            "targetThresholds": {"cpu": 50},
            "evictionLimits": {"node": 1},
            "evictableNamespaces": {"exclude": ["bank"]},
        },
    ],
    "MakeRoomForPending": [{}, {"maxMovesPerPod": 1, "namespaces": {"include": ["shop"]}}],
    "PodLifeTime": [
        {"maxPodLifeTimeSeconds": 3600},
        {"maxPodLifeTimeSeconds": 60, "states": ["Running"], "ownerKinds": {"exclude": ["StatefulSet"]}},
    ],
    "RemoveDuplicates": [{}, {"excludeOwnerKinds": ["StatefulSet"], "namespaces": {"exclude": ["bank"]}}],
    "RemoveFailedPods": [{}, {"reasons": ["Evicted"], "minPodLifetimeSeconds": 60}],
    "RemovePodsFromUnhealthyNodes": [
        {},
        {"unhealthyNodeConditions": [{"type": "Ready", "timeoutSeconds": 0}], "maxNodes": 2},
    ],
    "RemovePodsHavingTooManyRestarts": [
        {"podRestartThreshold": 3},
        {"podRestartThreshold": 3, "states": ["CrashLoopBackOff"]},
    ],
    "RemovePodsViolatingNodeAffinity": [
        {"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]}
    ],
    "RemovePodsViolatingNodeTaints": [{}, {"includePreferNoSchedule": True, "excludedTaints": ["old"]}],
    "RemovePodsViolatingTopologySpreadConstraint": [{}, {"constraints": ["DoNotSchedule", "ScheduleAnyway"]}],
}
#: Options of a policy, each tried with the same strategies.
OPTIONS: dict[str, Document] = {
    "nothing": {},
    "dry run": {"mode": "DryRun"},
    "upstream's planner": {"planner": "Upstream"},
    "surges": {"surge": True},
    "a gain": {"minimumGainPercent": 20},
    "anomalies": {"anomalyRounds": 3},
    "one in all": {"limits": {"total": 1}},
    "one a node": {"limits": {"perNode": 1}},
    "one a namespace": {"limits": {"perNamespace": 1}},
    "two a workload": {"limits": {"perWorkload": 2}},
    "old pods": {"evictor": {"minPodAge": "30m"}},
    "many replicas": {"evictor": {"minReplicas": 3}},
    "a label": {"evictor": {"labelSelector": {"matchLabels": {"app": "w1"}}}},
    "a namespace's label": {"evictor": {"namespaceLabelSelector": {"matchLabels": {"team": "shop"}}}},
    "a priority": {"evictor": {"priorityThreshold": {"value": 5}}},
    "nodes": {"evictor": {"nodeSelector": f"{ZONE}=a"}},
}


def crowd() -> list[Document]:
    """Nine nodes, and pods of ten workloads: more than half of them on the first nodes."""
    random = Random(5)
    taint = {"key": "old", "effect": "NoSchedule"}
    soft = {"key": "spot", "value": "yes", "effect": "PreferNoSchedule"}
    nodes = [
        a_node(name, "abc"[at % 3], labels={"disk": "ssd"} if at < 6 else {}) for at, name in enumerate(NODES)
    ]
    nodes[1]["spec"]["taints"] = [taint]
    nodes[2]["spec"]["taints"] = [soft]
    nodes[8]["spec"]["unschedulable"] = True
    features: list[Document] = [
        {},
        {},
        spread("w2", ZONE),
        spread("w3", HOST, whenUnsatisfiable="ScheduleAnyway"),
        required("podAntiAffinity", a_term("w5", HOST)),
        {"priority": 10},
        on_nodes({"key": "disk", "operator": "In", "values": ["ssd"]}),
        {"tolerations": [{"key": "old", "operator": "Exists"}]},
        {"volumes": [{"name": "d", "emptyDir": {}}]},
        {"schedulerName": "default-scheduler"},
    ]
    pods = []
    for number in range(46):
        at = number % len(features)
        node = random.choice(NODES[:4] if number % 3 else NODES)
        namespace = "bank" if at == 1 and number > 20 else "shop"
        pod = a_pod(
            f"p{number}",
            node,
            owner=f"w{at}",
            namespace=namespace,
            cpu=f"{random.choice((100, 250, 400, 700))}m",
            kind="StatefulSet" if at == 5 else "",
            **features[at],
        )
        restarts = {
            "name": "main",
            "restartCount": number % 7,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}} if number % 7 == 6 else {"running": {}},
        }
        pod["status"]["containerStatuses"] = [restarts]
        pod["metadata"]["creationTimestamp"] = f"2026-01-31T{8 + number % 4:02}:{number:02}:00Z"
        pod["status"]["startTime"] = pod["metadata"]["creationTimestamp"]
        if number % 15 == 14:
            pod["status"] |= {"phase": "Failed", "reason": "Evicted" if number > 20 else "OutOfcpu"}
        if at == 7:
            pod["metadata"]["labels"]["plimsoll.dev/pod-group"] = "band"
        pods.append(pod)
    waiting = [
        a_pod("large", cpu="3300m", owner="large", nodeSelector={"disk": "ssd"}),
        a_pod("larger", cpu="3700m", owner="large", priority=20, nodeSelector={"disk": "ssd"}),
    ]
    budgets = [
        a_budget("w0", "w0", 1),
        a_budget("w1", "w1", 1, "bank"),
        a_budget("w2", "w2", 0),
        a_budget("w3", "w3", 2),
    ]
    group = named("PodGroup", "band", "shop", spec={"minMember": 4})
    shop, bank = named("Namespace", "shop"), named("Namespace", "bank")
    shop["metadata"]["labels"] = {"team": "shop"}
    return [*nodes, *pods, *waiting, *budgets, group, shop, bank, *past()]


@pytest.fixture(scope="module")
def state() -> ClusterState:
    """The crowd without policies."""
    return ClusterState.of(content_of(crowd()))


def policy_of(strategies: list[Document], **options: Any) -> Document:
    """A policy that places the pods and moves them by these strategies."""
    rebalancing = {"mode": "Enforce", "strategies": strategies, **options}
    return a_policy_document("one", scheduling={"schedulerName": "plimsoll"}, rebalancing=rebalancing)


def planned(state: ClusterState, strategies: list[Document], **options: Any) -> Document:
    """The plan of one policy."""
    policy = policy_of(strategies, **options)
    document = plan_of(state.with_policies([policy])).model_dump(mode="json", by_alias=True)
    (found,) = document["policies"]
    for plain in ("nodes", "spread", "budgets"):  # follow from the moves; tests/inspection shows them
        del found[plain]
    return {key: value for key, value in found.items() if key != "policy"}


def test_each_strategy_is_here() -> None:
    assert {*ARGS, "RemovePodsViolatingInterPodAntiAffinity"} == {each.name for each in IN_TREE} - {
        "DefaultEvictor"
    }


def test_each_strategy_plans_as_before(state: ClusterState) -> None:
    plans = [
        (f"{name} {args}", planned(state, [{"name": name, "args": args}]))
        for name in sorted({*ARGS, "RemovePodsViolatingInterPodAntiAffinity"})
        for args in ARGS.get(name, [{}])
    ]
    check("zoo", "plans-of-strategies", "text", text_of(*plans))


def test_each_option_plans_as_before(state: ClusterState) -> None:
    names = ("RemoveDuplicates", "RemovePodsViolatingNodeTaints", "LowNodeUtilization")
    strategies = [{"name": name, "args": ARGS[name][0]} for name in names]
    plans = [(name, planned(state, strategies, **options)) for name, options in OPTIONS.items()]
    check("zoo", "plans-with-options", "text", text_of(*plans))


def test_strategies_of_one_policy_plan_together_as_before(state: ClusterState) -> None:
    """In this order and in the other: what one has moved is no candidate of the next."""
    every = [
        {"name": name, "args": args[0]}
        for name, args in ARGS.items()
        if name not in ("HighNodeUtilization", "ConsolidateNodes")
    ]
    plans = [("in order", planned(state, every)), ("in the other order", planned(state, every[::-1]))]
    check("zoo", "plans-together", "text", text_of(*plans))


@pytest.mark.parametrize(
    "words",
    [("--until", "15m", "--enforce", "--seed", "3")],
)
def test_a_replay_of_the_crowd_goes_as_before(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Budgets that close, replacements that come late, and pods that nothing places."""
    names = ("RemoveDuplicates", "RemovePodsViolatingNodeTaints", "LowNodeUtilization", "PodLifeTime")
    chosen = [{"name": name, "args": ARGS[name][0]} for name in names]
    drawn = a_policy_document("drawn", rebalancing={"mode": "DryRun", "strategies": chosen[:2]})
    policies = [policy_of(chosen, schedule={"intervalSeconds": 120}), drawn]
    file = tmp_path / "crowd.json.gz"
    save(replace(content_of([*crowd(), *policies]), source="FILE"), file)
    said = say("replay", str(file), *words, "-o", "json")
    assert said.code == 0, said.err
    check("zoo", f"replay{'-'.join(words)}", "text", text_of(("report", json.loads(said.out))))
