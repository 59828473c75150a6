"""A bundle that is refused leaves no trace: the plan is that of the accepted ones, and goes on as theirs.

Whatever was made before one of its pods had to stay: places, room, limits, budgets and measured use.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec.structs import asdict

from planning.proven.test_planner import READY, a_budget
from planning.rounds import NOW, a_policy
from plimsoll.framework import NoArgs
from plimsoll.framework.descheduling.measurements import Measurements
from plimsoll.framework.descheduling.proposals import Beneficiary, Bundle, Candidate, Verdict
from plimsoll.framework.descheduling.strategy import StrategyKind
from plimsoll.planning.limits import Ceiling, Limits
from plimsoll.planning.moves import EvictionPlan, PlanningContext
from plimsoll.planning.planners import proven_plan
from plimsoll.testing.builders import a_cluster, a_node, a_pod

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plimsoll.framework.descheduling.context import StrategyContext

NODES = {"a": 4, "b": 4, "c": 6, "d": 8}
OWNERS = ("web", "web", "web", "db", "db", "api", "api", "api")
LOW: Any = (
    "LowNodeUtilization",
    {
        "thresholds": {"cpu": 40},
        "targetThresholds": {"cpu": 60},
        "metricsUtilization": {"source": "KubernetesMetrics"},
    },
)


class Proposes:
    """Proposes bundles by the names of their pods, and notes the verdicts of each run."""

    name: ClassVar = "Proposes"
    kind: ClassVar = StrategyKind.DESCHEDULE
    args_model: ClassVar = NoArgs

    def __init__(self, proposals: Sequence[dict[str, Any]]) -> None:
        self.proposals = proposals
        self.verdicts: list[list[tuple[int, Verdict]]] = []

    def candidates(self, context: StrategyContext) -> Iterator[Bundle]:
        mine: list[tuple[int, Verdict]] = []
        self.verdicts.append(mine)
        for number, proposal in enumerate(self.proposals):
            pods = {pod.name: pod for pod in context.cluster.pods.values()}
            candidates = tuple(
                Candidate(pods[name], context.node_of(pods[name]), "it is sent", target)
                for name, target in proposal["sent"]
                if name in pods
            )
            waiting = {pod.name: pod for pod in context.unplaced.pending()}
            served = [Beneficiary(waiting[name], node) for name, node in proposal["for"] if name in waiting]
            beneficiary = served[0] if served else None
            if candidates:
                verdict: Any = yield Bundle(candidates, beneficiary, **proposal["how"])
                mine.append((number, verdict))


def a_proposal(random: Random) -> dict[str, Any]:
    names = random.sample(range(len(OWNERS)), random.randint(1, 3))
    return {
        "sent": [(f"p{n}", random.choice([*NODES])) for n in names],
        "for": [("waits", random.choice([*NODES]))] if random.random() < 0.4 else [],
        "how": random.choice(
            [{}, {}, {"one_by_one": True}, {"one_by_one": True, "follows": True}, {"group": "g"}]
        ),
    }


def a_plan(seed: int, proposals: Sequence[dict[str, Any]]) -> tuple[EvictionPlan, list[dict[str, Any]]]:
    """The plan for a cluster, and the proposals that were accepted."""
    random = Random(seed)
    pods = [
        a_pod(
            f"p{n}",
            cpu=random.choice(["500m", "1", "2"]),
            node=random.choice([*NODES]),
            owner=f"ReplicaSet/{owner}",
            labels={"app": owner},
            priority=5,
            status=READY,
        )
        for n, owner in enumerate(OWNERS)
    ]
    cluster = a_cluster([a_node(name, cpu=str(cores)) for name, cores in NODES.items()], pods)
    budget = a_budget(allowed=random.randint(0, 2), selector={"app": "web"})
    cluster.objects.budgets[budget.key] = budget
    waits = cluster.templates.info(a_pod("waits", cpu="5", priority=9))
    nano = 10**9
    measured = Measurements(
        nodes={
            name: {"cpu": random.choice([1, 1, cores - 1, cores]) * nano, "memory": nano}
            for name, cores in NODES.items()
        },
        pods={
            f"default/p{n}": {"cpu": random.choice([nano // 4, 3 * nano]), "memory": 1}
            for n in range(len(OWNERS))
        },
    )
    limits = Limits(
        total=Ceiling(count=random.randint(2, 8)),
        per_namespace=Ceiling(count=random.randint(2, 8)),
        per_node=Ceiling(count=random.randint(1, 3)),
        per_workload=Ceiling(count=random.randint(1, 3)),
    )
    policy = a_policy(LOW, limits=limits, evictor={"minReplicas": 0})
    strategy: Any = Proposes(proposals)
    policy = type(policy)(
        strategies=[strategy, *policy.strategies],
        evictors=policy.evictors,
        profiles=policy.profiles,
        limits=limits,
    )
    made = proven_plan(policy, cluster, PlanningContext(NOW, unplaced=[waits], measurements=measured))
    verdicts = strategy.verdicts[0]
    return made, [proposals[number] for number, verdict in verdicts if verdict is Verdict.ACCEPTED]


def written(plan: EvictionPlan) -> list[dict[str, Any]]:
    """The moves, with keys instead of pods: each plan reads a cluster of its own."""
    served = [each.beneficiary and (each.beneficiary.pod.key, each.beneficiary.node) for each in plan.moves]
    return [
        {**asdict(move), "pod": move.pod.key, "beneficiary": whom}
        for move, whom in zip(plan.moves, served, strict=True)
    ]


def test_what_is_refused_leaves_no_trace_in_the_plan() -> None:
    reasons: Counter[str] = Counter()
    mixed = later = 0
    for seed in range(45):
        random = Random(f"proposals {seed}")
        proposals = [a_proposal(random) for _ in range(random.randint(2, 6))]

        made, accepted = a_plan(seed, proposals)
        again, all_of_them = a_plan(seed, accepted)

        assert all_of_them == accepted
        assert written(again) == written(made)
        mixed += 0 < len(accepted) < len(proposals)
        later += any(move.strategy == LOW[0] for move in made.moves)
        reasons.update(each.refusal.reason for each in made.refused if each.strategy == Proposes.name)
    assert mixed > 10
    assert later > 3
    assert {"NotAll", "NotFeasible", "NoRoomMade"} <= reasons.keys(), reasons
