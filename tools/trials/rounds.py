"""Plays a planner cycle by cycle without a server: evictions, placements with random ties, outcomes.

The server is played as strictly as the real one: an eviction that a PodDisruptionBudget does not allow is
refused. Between two cycles every pod becomes ready, and pods that found no node are tried again.
"""

import random
import statistics
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PodInfo
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.snapshot import CPU
from plimsoll.model.selectors import EVERYTHING
from plimsoll.planning.aftermath import settled
from plimsoll.planning.budgets import BudgetLedger
from plimsoll.planning.limits import NO_CEILING, Limits
from plimsoll.planning.moves import Move, Optimisation, PlanningContext, RebalancingConfig
from plimsoll.planning.planners import ask_again, make_plan
from plimsoll.planning.upstream.planner import upstream_run
from plimsoll.testing.columns import validate

#: The strategies that most policies run, with their arguments.
USUAL: tuple[tuple[str, dict[str, Any]], ...] = (
    ("RemovePodsViolatingNodeTaints", {}),
    (
        "RemovePodsViolatingNodeAffinity",
        {
            "nodeAffinityType": [
                "requiredDuringSchedulingIgnoredDuringExecution",
                "preferredDuringSchedulingIgnoredDuringExecution",
            ]
        },
    ),
    ("RemovePodsViolatingInterPodAntiAffinity", {}),
    ("RemoveDuplicates", {}),
    ("RemovePodsViolatingTopologySpreadConstraint", {"constraints": ["DoNotSchedule", "ScheduleAnyway"]}),
    (
        "LowNodeUtilization",
        {"thresholds": {"cpu": 30, "pods": 30}, "targetThresholds": {"cpu": 50, "pods": 60}},
    ),
)


@dataclass(slots=True)
class Story:
    """What happened.

    Attributes:
        moves: By cycle, those that were planned.
        evicted: How many pods were evicted.
        returned: Moves whose replacement came back to the node that it was moved from.
        pending: Moves whose replacement found no node at first.
        homeless: Pods that have no node at the end.
        dropped: Moves that did not hold any more when their turn came.
        blocked: Evictions that a PodDisruptionBudget did not allow.
        over_limit: Moves planned beyond a limit of the policy.
        again: Moves of pods that are replacements of moved pods themselves.
        rested: Whether a cycle planned nothing more.
        objectives: What the planner Optimal found at the beginning of each cycle, and what it looked for.
    """

    moves: list[list[Move]] = field(default_factory=list)
    evicted: int = 0
    returned: list[Move] = field(default_factory=list)
    pending: list[Move] = field(default_factory=list)
    homeless: list[PodInfo] = field(default_factory=list)
    dropped: list[Move] = field(default_factory=list)
    blocked: list[Move] = field(default_factory=list)
    over_limit: int = 0
    again: list[Move] = field(default_factory=list)
    rested: bool = False
    objectives: list[Optimisation] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Moves that were planned."""
        return sum(len(each) for each in self.moves)


@dataclass(frozen=True, slots=True)
class Measures:
    """How good a placement is.

    Attributes:
        violations: Pods that descheduler would evict by the same strategies, without limits.
        spread: Standard deviation of the requested share of cpu over schedulable nodes, percentage points.
    """

    violations: int
    spread: float


def rounds(
    cluster: Cluster,
    policy: RebalancingConfig,
    scheduler_name: str,
    around: PlanningContext,
    *,
    cycles: int,
    seed: int,
) -> Story:
    """Plan, evict and place until a cycle plans nothing, or ``cycles`` are over; the cluster is changed."""
    chance = random.Random(seed)
    scheduler = ProfileScheduler(policy.profiles[scheduler_name], cluster, choose=chance.randrange)
    story = Story()
    heirs: set[str] = set()
    for _ in range(cycles):
        around = replace(around, moved=frozenset(heirs))  # all cycles lie within one hour
        made = make_plan(policy, cluster, around)
        if made.failures:
            raise made.failures[0]
        if made.optimisation is not None:
            story.objectives.append(made.optimisation)
        if not made.moves:
            story.rested = True
            break
        story.moves.append(list(made.moves))
        story.over_limit += _over_limit(made.moves, policy.limits)
        server = BudgetLedger(cluster.objects.budgets.values())
        for move in made.moves:
            present = ask_again(move, policy, cluster, around)
            if not isinstance(present, Move):
                story.dropped.append(move)
            elif server.refusal(present.pod) is not None:
                story.blocked.append(move)
            else:
                server.take(present.pod)
                if present.pod.uid in heirs:
                    story.again.append(present)
                heirs.add(_carry_out(present, cluster, scheduler, story, around.now))
        waiting, story.homeless = story.homeless, []
        for pod in waiting:
            if not _placed(pod, cluster, scheduler):
                story.homeless.append(pod)
        validate(cluster)
    return story


def upstream_moves(policy: RebalancingConfig, cluster: Cluster, now: datetime) -> tuple[Move, ...]:
    """What descheduler would evict by the same strategies, without limits; new places are not looked for."""
    unlimited = replace(policy, nodes=EVERYTHING, limits=Limits(per_workload=NO_CEILING), profiles={})
    return upstream_run(unlimited, cluster, PlanningContext(now=now)).rehearse().moves


def measured(cluster: Cluster, policy: RebalancingConfig, around: PlanningContext) -> Measures:
    """Judge a placement by the yardstick that all planners share."""
    shares = [
        100 * int(cluster.requested[row, CPU]) / int(cluster.allocatable[row, CPU])
        for row, node in enumerate(cluster.nodes)
        if not node.spec.unschedulable and cluster.allocatable[row, CPU]
    ]
    return Measures(
        len(upstream_moves(policy, cluster, around.now)), statistics.pstdev(shares) if shares else 0.0
    )


def _carry_out(move: Move, cluster: Cluster, scheduler: ProfileScheduler, story: Story, now: datetime) -> str:
    """Evict the pod and place its heir, whose uid is returned."""
    pod = cluster.displace(move.pod.uid)
    assert pod is not None
    story.evicted += 1
    heir = _heir(pod, cluster, now)
    if move.target and not move.is_forecast:  # the target of a move is held for its replacement
        scheduler.nominator.add(heir, move.target)
    node = _placed(heir, cluster, scheduler)
    scheduler.nominator.remove(heir.uid)
    if not node:
        story.pending.append(move)
        story.homeless.append(heir)
    elif node == move.source and not move.renews:
        story.returned.append(move)
    return heir.uid


def _heir(pod: PodInfo, cluster: Cluster, now: datetime) -> PodInfo:
    """What the owner makes in its place: a pod like any other, that may be moved in its turn."""
    fresh = settled(pod, cluster, "", now).pod
    metadata = msgspec.structs.replace(fresh.metadata, name=f"{pod.name}-r", uid=f"{pod.uid}-r")
    return cluster.templates.info(msgspec.structs.replace(fresh, metadata=metadata))


def _placed(heir: PodInfo, cluster: Cluster, scheduler: ProfileScheduler) -> str:
    """Place a pod as the scheduler does; its node, "" for none."""
    decision = schedule(scheduler, heir)
    if decision.outcome is not AttemptOutcome.SCHEDULED:
        return ""
    spec = msgspec.structs.replace(heir.pod.spec, node_name=decision.node)
    cluster.place(cluster.templates.info(msgspec.structs.replace(heir.pod, spec=spec)), decision.node)
    return decision.node


def _over_limit(moves: tuple[Move, ...], limits: Limits) -> int:
    """How many moves of one cycle there are too many of, by the limits that are counts."""
    single = [move for move in moves if not move.bundle]
    counted = (
        (limits.total, {"": len(moves)}),
        (limits.per_node, Counter(move.source for move in single)),
        (limits.per_namespace, Counter(move.pod.namespace for move in moves)),
        (limits.per_workload, Counter(move.workload.key for move in moves)),
    )
    return sum(
        max(count - ceiling.count, 0)
        for ceiling, counts in counted
        if ceiling.count is not None
        for count in counts.values()
    )
