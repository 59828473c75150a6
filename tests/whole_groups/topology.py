"""Random clusters of racks in blocks, half of them with devices: where a group starts, against the optimum.

A case is small enough for a search through all ways: whether a group can start at all, and in how few racks,
is answered by an integer program (HiGHS).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import highspy

from plimsoll.engine.gangs.placement import place_together
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_cluster, a_node, a_pod

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.model.columns.cluster import Cluster
    from plimsoll.model.kinds.pod import Pod

RACK, BLOCK, GPU = "example.com/rack", "example.com/block", "example.com/gpu"
PROFILE = build_profile(
    ProfileConfig("s"), Registry(IN_TREE), [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
)


@dataclass
class Outcome:
    """What became of one group.

    Attributes:
        faults: Sentences about what must not happen.
        racks: The racks that it was given, and the fewest that would do; 0 where no level is preferred.
        started: Whether it started.
    """

    faults: list[str] = field(default_factory=list)
    racks: tuple[int, int] = (0, 0)
    started: bool = False


def start(seed: int) -> Outcome:
    """Let one random group start."""
    draw = random.Random(seed)
    has_devices = bool(seed % 2)
    cluster = _racks(draw, has_devices=has_devices)
    pods = _members(draw, has_devices=has_devices)
    within = draw.choice(("", "", RACK, BLOCK))
    near = draw.choice(((), (RACK,))) if within != RACK else ()
    needed = len(pods) if near else draw.randint(max(1, len(pods) - 2), len(pods))
    scheduler = ProfileScheduler(PROFILE, cluster)
    members = [(cluster.templates.info(pod), scheduler) for pod in pods]

    found = place_together(members, cluster, needed, within=within, near=near)

    outcome = Outcome(started=found.is_feasible)
    nodes = [each.node for each in found.placements] if found.is_feasible else []
    domains = {cluster.nodes[cluster.rows[node]].labels[within] for node in nodes} if within else set()
    if len(domains) > 1:
        outcome.faults.append(f"members are in {sorted(domains)}, and {within} must be the same")
    if found.is_feasible and _is_overfull(
        cluster, [(each.decision.pod.requests, each.node) for each in found.placements]
    ):
        outcome.faults.append("a node has more than it can hold")
    fewest = _fewest(cluster, pods, needed, within)
    if bool(fewest) != found.is_feasible:
        outcome.faults.append(
            f"it {'starts' if nodes else 'waits'}, and {fewest or 'no'} racks hold {needed}"
        )
    if near and found.is_feasible and fewest:
        outcome.racks = len({cluster.nodes[cluster.rows[node]].labels[RACK] for node in nodes}), fewest
    return outcome


def _racks(draw: random.Random, *, has_devices: bool) -> Cluster:
    """Up to six racks in up to three blocks, partly in use."""
    nodes, pods = [], []
    for rack in range(draw.randint(1, 6)):
        for number in range(draw.randint(1, 4)):
            name = f"r{rack}-{number}"
            gpus = {"cpu": str(draw.randint(2, 8)), "memory": "64Gi", "pods": "110"}
            if has_devices:
                gpus[GPU] = str(draw.choice((0, 4, 8)))
            labels = {RACK: f"r{rack}", BLOCK: f"b{rack // 2}"}
            nodes.append(a_node(name, allocatable=gpus, labels=labels))
            if draw.random() < 0.5:
                used = {"cpu": "1", GPU: str(draw.randint(1, 3))} if int(gpus.get(GPU, "0")) else {"cpu": "1"}
                pods.append(a_pod(f"old-{name}", requests=used, node=name))
    return a_cluster(nodes, pods)


def _members(draw: random.Random, *, has_devices: bool) -> list[Pod]:
    """Equal members, or members of two kinds."""
    kinds: list[dict[str, str]] = []
    for _ in range(draw.choice((1, 1, 2))):
        kinds.append({"cpu": str(draw.randint(1, 4))})
        if has_devices:
            kinds[-1][GPU] = str(draw.choice((1, 2, 4)))
    return [a_pod(f"m-{number}", requests=kinds[number % len(kinds)]) for number in range(draw.randint(2, 8))]


def _is_overfull(cluster: Cluster, placed: Sequence[tuple[dict[str, int], str]]) -> bool:
    free = (cluster.allocatable - cluster.requested).copy()
    for requests, node in placed:
        free[cluster.rows[node]] -= cluster.requests_row(requests)
    return bool((free[: len(cluster)] < 0).any())


def _fewest(cluster: Cluster, pods: Sequence[Pod], needed: int, within: str) -> int:
    """The fewest racks that hold so many of the pods, in one domain of a given label; 0 if none do."""
    domains = {node.labels.get(within, "") for node in cluster.nodes}
    answers = [_program(cluster, pods, needed, within, domain) for domain in domains]
    return min((each for each in answers if each), default=0)


def _program(cluster: Cluster, pods: Sequence[Pod], needed: int, within: str, domain: str) -> int:
    """The same for one domain."""
    solver = highspy.Highs()  # type: ignore[no-untyped-call]  # its constructor has no types
    solver.setOptionValue("output_flag", False)  # noqa: FBT003 - the library's signature
    rows = [row for row, node in enumerate(cluster.nodes) if not within or node.labels.get(within) == domain]
    wanted = [cluster.requests_row(cluster.templates.info(pod).requests) for pod in pods]
    free = cluster.allocatable - cluster.requested
    racks = {cluster.nodes[row].labels[RACK]: solver.addBinary(obj=1.0) for row in rows}
    put: dict[tuple[int, int], Any] = {}
    for at in range(len(pods)):
        for row in rows:
            put[at, row] = solver.addBinary()
            solver.addConstr(put[at, row] <= racks[cluster.nodes[row].labels[RACK]])
        solver.addConstr(sum(put[at, row] for row in rows) <= 1)
    solver.addConstr(sum(put.values()) >= needed)
    for row in rows:
        for axis in range(free.shape[1]):
            amounts = [float(wanted[at][axis]) for at in range(len(pods))]
            unit = max(amounts)
            if unit:
                used = sum(amount / unit * put[at, row] for at, amount in enumerate(amounts) if amount)
                solver.addConstr(used <= float(free[row, axis]) / unit)
    solver.run()
    is_solved = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return round(solver.getInfo().objective_function_value) if is_solved else 0
