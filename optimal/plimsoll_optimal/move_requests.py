"""Collects the wishes of strategies: the pods that should move, each with a reason and a strategy."""

from collections.abc import Callable, Container

from msgspec import Struct

from plimsoll.framework import PluginError, PodInfo
from plimsoll.framework.descheduling.complaints import Complaining, Gravity, Vicinity
from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.proposals import Bundle, Candidate, Candidates, Proposal, Verdict
from plimsoll.framework.descheduling.strategy import MendsSpread, NamesSurplus, Strategy, wants_even_spread
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.names import PodUid
from plimsoll.planning.complaint_comparison import complaints_of
from plimsoll.planning.moves import Objective, PlanningContext, RebalancingConfig
from plimsoll.planning.proven.checks import WITHOUT_LIMITS, CheckedCandidate, first_refusal
from plimsoll.planning.proven.plan_builder import PlanBuilder
from plimsoll.planning.strategy_run import run_strategy
from plimsoll_optimal.problem import WEIGHTS

#: The resources whose use is evened out, in the order of the cluster's columns: cpu and memory.
EVENED = (0, 1)


class MoveRequest(Struct, frozen=True):
    """Why a pod should move, and the strategy that wants it.

    Attributes:
        evenly: Whether the strategy wants its kind to be spread evenly.
        gravity: Of what the strategy complains of there.
    """

    strategy: str
    reason: str
    evenly: bool = False
    gravity: Gravity = Gravity.BALANCE

    @property
    def weight(self) -> float:
        """How many violations it counts as."""
        return WEIGHTS[self.gravity]


def wishes_of(
    rebalancing: RebalancingConfig,
    cluster: Cluster,
    planning_context: PlanningContext,
    *,
    complaints: bool = False,
    known: Container[str] = (),
) -> dict[PodUid, MoveRequest]:
    """The pods that each strategy would move if every proposal were accepted, by pod uid.

    Strategies that repair topology spread, and those named in ``known``, are left out: the program knows
    their constraints, and proposals for one constraint at a time would be too many. With ``complaints``,
    strategies that propose nothing for lack of targets report their complaints instead, and pods that violate
    a rule count though evictors protect them: a move may end or begin the protection of other pods.
    """
    wishes: dict[PodUid, MoveRequest] = {}
    for strategy in rebalancing.strategies:
        if isinstance(strategy, MendsSpread) or strategy.name in known:
            continue
        try:
            plan = PlanBuilder(rebalancing, cluster, planning_context)
            found = _wishes_of(strategy, plan, planning_context)
            if complaints:
                found |= _protected_from(strategy, plan)
            if isinstance(strategy, NamesSurplus) and (found or complaints):
                plan = PlanBuilder(rebalancing, cluster, planning_context)
                found |= _wishes_of(strategy, plan, planning_context, strategy.surplus)
        except PluginError:
            continue  # Proven has reported it
        wishes = found | wishes
    return wishes


def _wishes_of(
    strategy: Strategy,
    plan: PlanBuilder,
    planning_context: PlanningContext,
    source: Callable[[StrategyContext], Candidates] | None = None,
) -> dict[PodUid, MoveRequest]:
    """The pods that one strategy would move, or what ``source`` yields instead."""
    wishes: dict[PodUid, MoveRequest] = {}
    evenly = wants_even_spread(strategy)

    def judge(proposal: Proposal) -> Verdict:
        if not isinstance(proposal, Bundle) and (strategy.name, proposal.node) in planning_context.too_early:
            return Verdict.NODE_CLOSED
        together = proposal.candidates if isinstance(proposal, Bundle) else (proposal,)
        for each in together:
            if not each.pod.pod.is_terminal:
                gravity = _gravity(strategy, plan.context, each.pod, each.node)
                wishes.setdefault(each.pod.uid, MoveRequest(strategy.name, each.reason, evenly, gravity))
                plan.context.cluster.displace(each.pod.uid)
        return Verdict.ACCEPTED

    run_strategy(strategy, plan.context, judge, source)
    return wishes


def _protected_from(strategy: Strategy, plan: PlanBuilder) -> dict[PodUid, MoveRequest]:
    """The pods that violate a rule and that evictors protected from the strategy."""
    found = {}
    for each in plan.context.protected:
        gravity = _gravity(strategy, plan.context, each.pod, plan.context.node_of(each.pod))
        if gravity is Gravity.RULE:
            found[each.pod.uid] = MoveRequest(strategy.name, each.wanted, gravity=gravity)
    return found


def _gravity(strategy: Strategy, context: StrategyContext, pod: PodInfo, node: str) -> Gravity:
    """Of the worst complaint about the pod and its node; balance if the strategy reports none."""
    if not isinstance(strategy, Complaining):
        return Gravity.BALANCE
    near = Vicinity((pod,), frozenset((node,)))
    return max(
        (each.gravity for each in complaints_of(strategy.name, strategy, context, near)),
        default=Gravity.BALANCE,
    )


def default_wish(rebalancing: RebalancingConfig) -> MoveRequest:
    """The wish of pods that no strategy wants to move: its reason is the policy's objective."""
    objective = rebalancing.goal.objective
    sentences = {
        Objective.FEWEST_VIOLATIONS: "it makes room or evens out domains, so that fewer rules are violated",
        Objective.SMALLEST_SPREAD: "nodes are then used to a more even degree",
        Objective.FEWEST_NODES: "a node is then free of pods that could leave",
    }
    return MoveRequest(objective.value, sentences[objective])


def may_be_sent(plan: PlanBuilder, pod: PodInfo, node: str, strategy: str) -> bool:
    """Whether a pod may be moved to a given node, as far as ``WITHOUT_LIMITS`` tells."""
    if pod.is_terminating or pod.uid in plan.moved or pod.stands_in_for is not None:
        return False
    if plan.schedulers.deciding(pod) is None:
        return False
    try:
        candidate = CheckedCandidate.of(Candidate(pod, node, ""), strategy)
        return first_refusal(WITHOUT_LIMITS, candidate, plan) is None
    except PluginError:
        return False
