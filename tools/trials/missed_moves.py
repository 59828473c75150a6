"""Looks at a resting cluster for moves that a planner has missed, by trying every pod on every best node.

Nothing of a planner's search is used: the scheduler ranks the nodes for each pod as if it had left, the pod
is put on each of the nodes with the highest score, and the strategies report their complaints about the whole
cluster before and after.
"""

from dataclasses import dataclass

from plimsoll.framework.descheduling.complaints import Complaining, Gravity
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.aftermath import ForkAttempt, settled
from plimsoll.planning.complaint_comparison import complaints_of
from plimsoll.planning.moves import PlanningContext, RebalancingConfig
from plimsoll.planning.planners import make_plan
from plimsoll.planning.proven.plan_builder import PlanBuilder

#: Why a pod may stay though a move would lower the complaints: others forbid it, or it has just been moved.
LAWFUL = frozenset({"LastReady", "MinReplicas", "MovedRecently", "Protected"})


@dataclass(frozen=True, slots=True)
class Missed:
    """A move that lowers the number of violated rules, and that was not planned.

    Attributes:
        refusal: Reason and message of the planner's refusals of the pod; empty if no strategy proposed it.
    """

    pod: str
    source: str
    target: str
    before: float
    after: float
    refusal: tuple[str, ...]


def missed(cluster: Cluster, policy: RebalancingConfig, around: PlanningContext) -> list[Missed]:
    """The moves that no plan contains, though no protection forbids them, one a pod."""
    refused: dict[str, list[tuple[str, str]]] = {}
    for each in make_plan(policy, cluster, around).refused:
        refused.setdefault(each.pod.uid, []).append((each.refusal.reason, each.refusal.message))
    builder = PlanBuilder(policy, cluster, around)
    fork, found = builder.fork, []
    before = violated(builder, policy)
    for pod, row in sorted(fork.placed(), key=lambda each: each[0].key):
        reasons = refused.get(pod.uid, [])
        forbidden = builder.ledger.refusal(pod) or any(reason in LAWFUL for reason, _ in reasons)
        ranking = None if forbidden else builder.schedulers.ranked(pod)
        source = fork.nodes[row].name
        for target in [] if ranking is None else ranking.best:
            if target == source:
                continue
            attempt = ForkAttempt(fork)
            attempt.move(pod, target, settled(pod, fork, target, around.now))
            after = violated(builder, policy)
            attempt.undo()
            if after < before:
                said = tuple(f"{reason}: {message}" for reason, message in reasons)
                found.append(Missed(pod.key, source, target, before, after, said))
                break
    return found


def violated(builder: PlanBuilder, policy: RebalancingConfig) -> float:
    """The amount of all complaints about rules of the scheduler, over the whole cluster."""
    builder.context.kept.clear()
    return sum(
        amount
        for strategy in policy.strategies
        if isinstance(strategy, Complaining)
        for complaint, amount in complaints_of(strategy.name, strategy, builder.context).items()
        if complaint.gravity is Gravity.RULE
    )
