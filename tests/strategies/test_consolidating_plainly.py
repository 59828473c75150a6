"""Compares ConsolidateNodes with lists and loops: cycle after cycle, while pods come, go and are refused.

Each cycle's bundles are accepted, or refused as a whole; what is accepted runs on its target in the next one.
"""

import random
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.framework.descheduling.proposals import Bundle, Verdict
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.taints import CONSOLIDATING
from plimsoll.planning.strategy_run import run_strategy
from plimsoll.strategies.consolidate_nodes import ConsolidateNodes
from plimsoll.testing.builders import a_node, a_pod
from strategies.builders import a_context, a_strategy

#: Worlds in one example, and cycles in each.
EACH, CYCLES = 4, 3

DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
CRITICAL = 2_000_000_000
STAYING = ("DaemonSet/agent", "Node/n0")

#: Requests, in milli and Mi. Sums and nodes differ, so no two nodes are used equally: the score decides then.
CPU, MEMORY = (101, 203, 407, 809, 1613), (517, 1031, 1031, 2063, 3083)


@dataclass(eq=False)
class Plain:
    """A pod: cpu in milli, memory in Mi."""

    name: str
    node: str
    cpu: int
    memory: int
    owner: str = "ReplicaSet/web"
    zone: str = ""
    priority: int = 0
    mirror: bool = False
    leaving: bool = False

    @property
    def counts(self) -> bool:
        """Whether it could leave."""
        return self.owner not in STAYING and not self.mirror and not self.leaving

    @property
    def rank(self) -> tuple[int, str]:
        """From low to high."""
        return self.priority, self.name


@dataclass
class Machine:
    """A node: cpu in milli, memory in Mi; ``forbids`` is the value of an annotation."""

    name: str
    cpu: int
    memory: int
    slots: int = 110
    zone: str = "a"
    forbids: str = ""
    closed: bool = False
    cordoned: bool = False


@dataclass
class World:
    """Nodes, keyed by name, and pods."""

    nodes: dict[str, Machine]
    pods: list[Plain]

    def on(self, name: str) -> list[Plain]:
        """The pods of a node."""
        return [each for each in self.pods if each.node == name]

    def used(self, name: str, resource: str) -> int:
        """What they request."""
        return sum(getattr(each, resource) for each in self.on(name))

    def share(self, name: str, resource: str, more: int = 0) -> float:
        """The requested part of a node's resource."""
        return (self.used(name, resource) + more) / int(getattr(self.nodes[name], resource))

    def fits(self, pod: Plain, node: Machine) -> bool:
        """Whether the scheduler would place the pod there."""
        return (
            not node.cordoned
            and not node.closed
            and pod.zone in ("", node.zone)
            and len(self.on(node.name)) < node.slots
            and all(
                self.used(node.name, each) + getattr(pod, each) <= getattr(node, each)
                for each in ("cpu", "memory")
            )
        )


@dataclass
class Answers:
    """What was proposed, why pods stay, and what is remarked."""

    bundles: list[list[tuple[str, str, str]]]
    reasons: list[str]
    protected: list[tuple[str, str]]
    remarks: list[str]


def consolidated(world: World, args: Any) -> Generator[tuple[str, list[tuple[Plain, str]]], bool, Answers]:
    """The nodes that can be emptied, each with the targets of its pods; the caller says what is accepted."""
    lines, most = args["thresholds"], 1 - args["headroomPercent"] / 100
    answers = Answers([], [], [], [])
    places = {
        each.name
        for each in world.nodes.values()
        if not each.closed and any(p.counts for p in world.on(each.name))
    }
    shares = {name: [100 * world.share(name, each) for each in lines] for name in world.nodes}
    little_used = {
        name
        for name in places
        if all(share <= line for share, line in zip(shares[name], lines.values(), strict=True))
    }
    answers.remarks = [
        f"node {name} is not emptied: "
        + (
            f"annotation {DISABLED}: true of cluster-autoscaler"
            if world.nodes[name].forbids == "true"
            else f"annotation {DISABLED}: 'maybe' cannot be read"
            ' (allowed are "true" or "false"), so it counts as set'
        )
        for name in sorted(little_used)
        if world.nodes[name].forbids not in ("", "false")
    ][:3]
    sources = [name for name in little_used if world.nodes[name].forbids in ("", "false")]
    received: set[str] = set()
    emptied = 0
    for source in sorted(sources, key=lambda name: (max(shares[name]), name)):
        if emptied == args["nodes"]:
            break
        if source in received:
            continue
        leaving = [each for each in world.on(source) if each.counts]
        wanted = [each for each in sorted(leaving, key=lambda each: each.name) if each.priority >= CRITICAL]
        if wanted:
            answers.protected.append((wanted[0].name, "SystemCriticalPods"))
            continue

        def bulk(pod: Plain, node: str = source) -> float:
            return max(int(getattr(pod, each)) / int(getattr(world.nodes[node], each)) for each in lines)

        trial = World(world.nodes, [Plain(**vars(each)) for each in world.pods])
        trips: list[tuple[Plain, str]] = []
        for pod in sorted(leaving, key=lambda each: (-bulk(each), each.rank)):
            after = {
                name: max(trial.share(name, each, getattr(pod, each)) for each in lines)
                for name in places - {source}
                if trial.fits(pod, world.nodes[name])
            }
            after = {name: share for name, share in after.items() if share <= most}
            if not after:
                answers.protected.append((pod.name, "NoRoom"))
                break
            target = max(after, key=lambda name: after[name])
            next(each for each in trial.pods if each.name == pod.name).node = target
            trips.append((pod, target))
        else:
            answers.bundles.append([(pod.name, source, target) for pod, target in trips])
            answers.reasons.append(
                "its node is little used: "
                + ", ".join(f"{name} {share:.0f}%" for name, share in zip(lines, shares[source], strict=True))
            )
            if (yield source, trips):
                for pod, target in trips:
                    pod.node = target
                    received.add(target)
                places.discard(source)
                emptied += 1
    return answers


def a_world(draw: random.Random) -> World:
    """Three to seven nodes of different sizes, most of them little used."""
    nodes = {
        name: Machine(
            name,
            cpu=draw.choice((4001, 8009, 16_033)) + 16 * number,
            memory=draw.choice((8192, 16_384, 65_536)) + 32 * number,
            slots=draw.choice((110, 110, 3)),
            zone=draw.choice("ab"),
            forbids=draw.choice(("", "", "", "", "", "true", "false", "maybe")),
            closed=draw.random() < 0.1,
            cordoned=draw.random() < 0.1,
        )
        for number in range(draw.choice((3, 4, 5, 7)))
        for name in [f"n{number}"]
    }
    world = World(nodes, [])
    for name in nodes:
        for number in range(draw.choice((0, 1, 2, 2, 3))):
            arrive(draw, world, f"{name}-{number}", name)
    return world


def arrive(draw: random.Random, world: World, name: str, node: str) -> None:
    """A pod appears on a node, if it has room."""
    pod = Plain(
        name,
        node,
        cpu=draw.choice(CPU),
        memory=draw.choice(MEMORY),
        owner=draw.choice((*["ReplicaSet/web"] * 6, *STAYING)),
        zone=draw.choice(("", "", "", "a", "b")),
        priority=draw.choice((0, 0, 0, 0, 0, 5, 9, CRITICAL)),
        mirror=draw.random() < 0.05,
        leaving=draw.random() < 0.05,
    )
    machine = world.nodes[node]
    if all(
        world.used(node, each) + getattr(pod, each) <= getattr(machine, each) for each in ("cpu", "memory")
    ):
        world.pods.append(pod)


def as_node(node: Machine) -> Node:
    """As the API has it."""
    return a_node(
        node.name,
        cpu=f"{node.cpu}m",
        memory=f"{node.memory}Mi",
        pods=node.slots,
        labels={"zone": node.zone},
        annotations={DISABLED: node.forbids} if node.forbids else {},
        taints=[f"{CONSOLIDATING}:NoSchedule"] if node.closed else [],
        unschedulable=node.cordoned,
    )


def as_pod(pod: Plain) -> Pod:
    """As the API has it."""
    return a_pod(
        pod.name,
        node=pod.node,
        owner=pod.owner,
        cpu=f"{pod.cpu}m",
        memory=f"{pod.memory}Mi",
        priority=pod.priority,
        node_selector={"zone": pod.zone} if pod.zone else {},
        annotations={"kubernetes.io/config.mirror": "x"} if pod.mirror else {},
        metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"} if pod.leaving else {},
    )


def ours(world: World, args: Any, accepted: list[bool]) -> Answers:
    """What the strategy does, in the same form; ``accepted`` says what becomes of the first bundles."""
    context = a_context(list(map(as_node, world.nodes.values())), list(map(as_pod, world.pods)), exact=False)
    found = Answers([], [], [], [])
    verdicts = iter(accepted)

    def judge(bundle: Any) -> Verdict:
        assert isinstance(bundle, Bundle)
        assert bundle.one_by_one
        found.bundles.append([(each.pod.name, each.node, each.target) for each in bundle.candidates])
        (reason,) = {each.reason for each in bundle.candidates}
        found.reasons.append(reason)
        if not next(verdicts, True):
            return Verdict.REFUSED
        for each in bundle.candidates:
            context.cluster.displace(each.pod.uid)
            context.cluster.place(each.pod, each.target)
        return Verdict.ACCEPTED

    run_strategy(a_strategy(ConsolidateNodes, **args), context, judge)
    found.protected = [(each.pod.name, each.refusal.reason) for each in context.protected]
    found.remarks = list(context.remarks)
    return found


def plainly_emptied(world: World, args: Any, accepted: list[bool]) -> Answers:
    """What the plain search says; what is accepted moves in the world."""
    search, verdicts = consolidated(world, args), iter(accepted)
    try:
        next(search)
        while True:
            search.send(next(verdicts, True))
    except StopIteration as end:
        answers: Answers = end.value
        return answers


@given(seed=st.integers(0, 2**32))
def test_cycle_after_cycle_the_nodes_are_emptied_that_a_plain_search_empties(seed: int) -> None:
    for number in range(EACH):
        draw = random.Random(f"{seed} {number}")
        world = a_world(draw)
        args = {
            "thresholds": draw.choice(({"cpu": 40}, {"cpu": 60, "memory": 50}, {"memory": 30})),
            "headroomPercent": draw.choice((0, 10, 30)),
            "nodes": draw.choice((1, 2, 5)),
        }
        for cycle in range(CYCLES):
            accepted = [draw.random() < 0.8 for _ in range(7)]
            found = ours(world, args, accepted)

            assert found == plainly_emptied(world, args, accepted), (args, world)
            world.pods = [each for each in world.pods if not each.leaving and draw.random() < 0.9]
            arrive(draw, world, f"new-{cycle}", draw.choice(sorted(world.nodes)))


@pytest.mark.parametrize("preferred", ["a", "b"])
def test_among_equally_used_nodes_the_one_that_the_scheduler_prefers_is_filled(preferred: str) -> None:
    wish = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [preferred]}]}
    affinity = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": wish}]
        }
    }
    context = a_context(
        [a_node(name, cpu="10") for name in ("a", "b", "idle")],
        [a_pod(f"on-{name}", node=name, owner=f"ReplicaSet/{name}", cpu="6") for name in ("a", "b")]
        + [a_pod("p", node="idle", owner="ReplicaSet/p", cpu="1", affinity=affinity)],
        exact=False,
    )
    bundles = []

    def judge(bundle: Any) -> Verdict:
        bundles.append([(each.pod.name, each.target) for each in bundle.candidates])
        return Verdict.REFUSED

    run_strategy(a_strategy(ConsolidateNodes), context, judge)

    assert bundles == [[("p", preferred)]]
