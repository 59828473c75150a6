"""Figures of a replay: event counts, waiting times of pods, and utilisation over time."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from msgspec import Struct, field

from plimsoll.offline.cluster import OfflineCluster
from plimsoll.simulation.refusals import RefusalTallies


class ClusterSample(Struct, frozen=True):
    """The cluster at one moment.

    Attributes:
        at: Seconds since the start of the replay.
        cpu: Requested share of the nodes' cpu, 0 to 1.
        memory: Requested share of the nodes' memory, 0 to 1.
        nodes_in_use: Number of nodes with at least one pod.
        waiting: Number of pods without a node.
        evicted: Number of pods that policies have evicted so far.
    """

    at: float
    cpu: float
    memory: float
    nodes_in_use: int
    waiting: int
    evicted: int


def sample(world: OfflineCluster, at: float, evicted: int) -> ClusterSample:
    """Sample the cluster now."""
    cluster = world.fork
    nodes = len(cluster)
    requested = cluster.requested[:nodes].sum(axis=0)
    allocatable = np.maximum(cluster.allocatable[:nodes].sum(axis=0), 1)
    cpu, memory = (float(requested[axis] / allocatable[axis]) for axis in (0, 1))
    in_use = sum(1 for row in range(nodes) if any(True for _ in cluster.pods_on(row)))
    return ClusterSample(at, cpu, memory, in_use, len(world.waiting), evicted)


class Figures(Struct):
    """Totals of the replay so far.

    Attributes:
        waits: Seconds from arrival to placement, for each pod placed.
        moved: Evictions by policy and strategy.
        violations: Number of violations by policy and strategy, in the first run.
        remaining: The same at the end.
        refused: Pods that stayed although strategies proposed them, by policy and reason.
        placements: Uid and node in order; equal for equal replays.
    """

    arrived: int = 0
    ended: int = 0
    preempted: int = 0
    replaced: int = 0
    returned: int = 0
    late: int = 0
    blocked: int = 0
    runs: Counter[str] = field(default_factory=Counter)
    predicted: Counter[tuple[str, str]] = field(default_factory=Counter)
    moved: Counter[tuple[str, str]] = field(default_factory=Counter)
    violations: dict[tuple[str, str], int] = field(default_factory=dict)
    remaining: dict[tuple[str, str], int] = field(default_factory=dict)
    refused: RefusalTallies = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)
    samples: list[ClusterSample] = field(default_factory=list)
    placements: list[tuple[str, str]] = field(default_factory=list)
    problems: dict[str, None] = field(default_factory=dict)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values do not exceed; 0 without values."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)] if ordered else 0.0
