"""The Optimal planner: the cheapest moves to the best placement, proven, and never worse than Proven's.

1. Proven plans, without limits: its moves are the first solution.
2. The program (:mod:`plimsoll_optimal.encoding`) encodes which pods strategies want to move, which
   pods may move at all, where each template is feasible, and which topology constraints apply.
3. Its solution states how many pods of which template leave and arrive where. Single moves are found in an
   order in which each is feasible after the earlier ones, by the scheduler's own filters. Among the arrivals
   that are feasible for a pod, the one with the highest score is taken.
4. The strategies report the complaints that they would have after all moves, whether or not they would
   propose anything then: these are the plan's value. Arrivals that strategies would want to move again are
   forbidden, and so are arrivals that the filters reject although the program allowed them (rules that it
   does not know, such as anti-affinity). Then the program is solved again, a few times.
5. The best of all plans, including Proven's and doing nothing, is carried out as far as the policy's limits
   allow, and only as far as the moves of this cycle lower the objective by more than their price. So the
   objective falls from cycle to cycle, and cycles end.
6. Then strategies that make room for pending pods propose, and each of their bundles is proven as before. For
   pods that stay pending, neighbourhoods are searched (:mod:`plimsoll_optimal.neighbourhoods`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from plimsoll.framework import PluginError, PodTemplate
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.proposals import Bundle, Candidate
from plimsoll.framework.descheduling.strategy import ServesPending
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.names import PodUid
from plimsoll.planning.aftermath import aftermath
from plimsoll.planning.forecasts import Forecasts
from plimsoll.planning.moves import (
    EvictionPlan,
    Move,
    Objective,
    Optimisation,
    PlanningContext,
    RebalancingConfig,
    replacement_uid,
)
from plimsoll.planning.proven.plan_builder import UNLIMITED, PlanBuilder
from plimsoll.planning.proven.planner import plan
from plimsoll.planning.proven.verdicts import judge as judged
from plimsoll.planning.proven.verdicts import judge_strategy
from plimsoll.toolkit.descheduling.starting_nodes import why_not_emptied
from plimsoll_optimal.encoding import ProblemEncoding
from plimsoll_optimal.load_encoding import lacks_readings, loads_of
from plimsoll_optimal.milp import solve
from plimsoll_optimal.move_order import walk_to
from plimsoll_optimal.move_requests import MoveRequest, wishes_of
from plimsoll_optimal.neighbourhoods import NeighbourhoodSearch
from plimsoll_optimal.problem import VIOLATION, Solution, value_of
from plimsoll_optimal.search_time import SearchTime
from plimsoll_optimal.spread_repair import mend_exactly

#: How often the program is solved again when filters reject what it allowed.
ROUNDS = 4

#: The minimum by which the moves of one cycle must lower the objective, including their price.
LEAST_GAIN = 1e-6


def optimal_plan(rebalancing: RebalancingConfig, cluster: Cluster, context: PlanningContext) -> EvictionPlan:
    """Plan one cycle; the cluster is only read."""
    goal = rebalancing.goal
    serving = [each for each in rebalancing.strategies if isinstance(each, ServesPending)]
    strategies = tuple(each for each in rebalancing.strategies if each not in serving)
    free = replace(rebalancing, strategies=strategies, limits=UNLIMITED, forecasts=Forecasts())
    proven = plan(replace(free, planner=Planner.PROVEN), cluster, context, mend_exactly)
    ended = tuple(move for move in proven.moves if not move.target)
    seeds = tuple(move for move in proven.moves if move.target)
    context = replace(context, too_early=_too_early(rebalancing, proven, context))
    if lacks_readings(free, cluster):
        free = replace(free, goal=replace(goal, objective=Objective.FEWEST_VIOLATIONS))
    builder = PlanBuilder(free, cluster, context)
    loads = loads_of(free, builder, proven.classes, context.too_early)
    wishes = wishes_of(free, cluster, context, known=frozenset() if loads is None else loads.known)
    left_alone = {node for _, node in context.too_early}
    if goal.objective is Objective.FEWEST_NODES:
        left_alone |= {
            node.name
            for row, node in enumerate(cluster.nodes)
            if why_not_emptied(node, cluster.pods_on(row), context.now)
        }
    setting = ProblemEncoding.of(free, builder, wishes, seeds, left_alone, loads)
    judge = _Judge(free, cluster, context, setting)
    before, seeded = judge.value(()), judge.value(seeds)
    plans = [(before, ()), (seeded, seeds)]
    problem, bound, time = setting.problem, float("-inf"), SearchTime(goal.seconds, context.monotonic)
    for _ in range(ROUNDS):
        if time.is_over or not problem.stocks:
            break
        found = solve(problem, time.left, Solution(*setting.solution_of(seeds), seeded, bound))
        time.report(found.seconds)
        if bound == float("-inf"):
            bound = found.bound  # without the later rounds' restrictions, so it holds for all of them
        book = PlanBuilder(free, cluster, context)
        walk = walk_to(found, setting, book, {**setting.heated, **wishes}, time)
        moves = tuple(walk.moves if loads is None else sorted(walk.moves, key=loads.urgency))
        plans.append((judge.value(moves), moves))
        forbidden = walk.impossible | judge.unwelcome(moves)
        if not forbidden:
            break
        problem = setting.forbid(problem, forbidden, found)
    plans.sort(key=lambda each: each[0])
    best_value, best = plans[0]
    made = _first_steps([moves for value, moves in plans if value < before], ended, judge, rebalancing)
    rooms = _make_room(serving, made, rebalancing, time)
    optimisation = Optimisation(
        objective=goal.objective,
        before=before,
        value=best_value,
        bound=_proven_bound(setting, bound + judge.stuck, best_value, before),
        proven=seeded,
        moves=len(best),
        seconds=time.spent,
        waiting=rooms.waiting,
        served=len(
            {
                each.pod.uid
                for move in made.moves
                if move.beneficiary
                for each in move.beneficiary.all
                if not each.pod.pod.node_name
            }
        ),
    )
    return EvictionPlan(
        tuple(made.moves),
        (*made.refused, *proven.refused),
        (*proven.failures, *rooms.failures),
        proven.classes,
        proven.remarks,
        optimisation,
    )


class _Rooms(Struct):
    """The result of making room for pending pods.

    Attributes:
        waiting: Pods that fitted nowhere before.
        failures: Strategies that failed to report pending pods, or to propose moves.
    """

    waiting: int = 0
    failures: list[PluginError] = field(default_factory=list)


def _make_room(
    serving: Iterable[ServesPending], made: PlanBuilder, rebalancing: RebalancingConfig, time: SearchTime
) -> _Rooms:
    """Book moves that make room for pending pods; no objective counts them, as other pods benefit."""
    found, known = _Rooms(), set[str]()
    for strategy in serving:
        search = NeighbourhoodSearch(made, rebalancing, strategy, time)
        try:
            known |= {pod.uid for pod in search.waiting()}
            judge_strategy(made, strategy)
            search.run()
        except PluginError as exc:
            found.failures.append(exc)
        found.failures += made.context.failures
        made.context.failures.clear()
    found.waiting = len(known)
    return found


def _too_early(
    rebalancing: RebalancingConfig, proven: EvictionPlan, context: PlanningContext
) -> frozenset[tuple[str, str]]:
    """Strategies and nodes that they have not found over-used often enough to act."""
    return frozenset(
        (strategy, node)
        for strategy, found in proven.classes
        for node in found.overutilized
        if context.over_for.get((strategy, node), 0) + 1 < rebalancing.anomaly_rounds
    )


class _Judge:
    """Values plans by the strategies' complaints after all moves.

    The program takes present wishes as given. A move may grant one wish and create another: a filled node is
    over-used, and an emptied one has room for others. Complaints also count where a strategy proposes nothing
    because the last target is full.
    """

    def __init__(
        self,
        rebalancing: RebalancingConfig,
        cluster: Cluster,
        context: PlanningContext,
        setting: ProblemEncoding,
    ) -> None:
        self.cluster, self.context = cluster, context
        self._rebalancing = rebalancing
        self._setting = setting
        self._known: dict[tuple[tuple[str, str], ...], tuple[dict[PodUid, MoveRequest], Counter[str]]] = {}

    @property
    def stuck(self) -> float:
        """The part of the objective without columns: unwanted pods that must not move."""
        stocks = self._setting.problem.stocks
        present = sum(wish.weight for wish in self._after(())[0].values())
        return VIOLATION * (present - sum(stock.weight * stock.unwanted for stock in stocks))

    def value(self, moves: Sequence[Move]) -> float:
        """The objective after all moves, including their price."""
        setting = self._setting
        level = None if setting.loads is None else setting.loads.level_after(moves)
        unwanted = sum(wish.weight for wish in self._after(moves)[0].values())
        return value_of(setting.problem, *setting.solution_of(moves), unwanted, level)

    def unwelcome(self, moves: Sequence[Move]) -> Counter[tuple[PodTemplate, str]]:
        """Arrivals that a strategy would want to move again, or that make it want to move others.

        Of the latter, the last ones: as many as there are additional complaints.
        """
        wanted, by_node = self._after(moves)
        present = self._after(())[1]
        surplus = by_node - present
        found: Counter[tuple[PodTemplate, str]] = Counter()
        for again in (True, False):
            for move in reversed(moves):
                if (replacement_uid(move.pod) in wanted) is again and (again or surplus[move.target] > 0):
                    found[move.pod.template, move.target] += 1
                    surplus[move.target] -= 1
        return found

    def _after(self, moves: Sequence[Move]) -> tuple[dict[PodUid, MoveRequest], Counter[str]]:
        """The pods with complaints after the moves, by uid, and the number of these on each node."""
        key = tuple((move.pod.uid, move.target) for move in moves)
        if key not in self._known:
            fork, around = aftermath(self.cluster, self.context, moves)
            known = frozenset() if self._setting.loads is None else self._setting.loads.known
            wishes = wishes_of(self._rebalancing, fork, around, complaints=True, known=known)
            self._known[key] = wishes, _by_node(wishes, fork)
        return self._known[key]


def _proven_bound(setting: ProblemEncoding, bound: float, value: float, before: float) -> float:
    """The program's bound for the best plan; by load it has only some nodes and pods, and proves nothing."""
    if not setting.problem.stocks:
        return before
    return 0.0 if setting.loads is not None else _bound(bound, value)


def _bound(bound: float, value: float) -> float:
    """The program's bound for a plan; none if the plan beats it, because wishes have become fewer."""
    return bound if 0 <= bound <= value + LEAST_GAIN else 0.0


def _by_node(wishes: Iterable[str], cluster: Cluster) -> Counter[str]:
    rows = (cluster.row_of_pod(uid) for uid in wishes)
    return Counter(cluster.nodes[row].name for row in rows if row is not None)


def _first_steps(
    plans: Iterable[Sequence[Move]], ended: Sequence[Move], judge: _Judge, rebalancing: RebalancingConfig
) -> PlanBuilder:
    """The moves of the first plan of which the limits allow some that are worth their price on their own.

    The next cycle may not find the rest of a plan, so the moves of one cycle must be worth their price alone:
    the objective falls from cycle to cycle by more than that price, and cycles end.
    """
    for moves in plans:
        book = _limited((*ended, *moves), rebalancing, judge)
        steps = [move for move in book.moves if move.target]
        while steps:
            if judge.value(steps) < judge.value(()) - LEAST_GAIN:
                return book
            del steps[len(steps) // 2 :]
            book = _limited((*ended, *steps), rebalancing, judge)
    return _limited(ended, rebalancing, judge)


def _limited(moves: Sequence[Move], rebalancing: RebalancingConfig, judge: _Judge) -> PlanBuilder:
    """As many of the moves, in their order, as the policy's limits allow in one cycle; all are directed."""
    book = PlanBuilder(rebalancing, judge.cluster, judge.context)
    together: dict[str, list[Move]] = {}
    for move in moves:  # pods that share a claim are judged together
        together.setdefault(move.bundle or move.pod.uid, []).append(move)
    for each in together.values():
        found = tuple(Candidate(move.pod, move.source, move.reason, move.target) for move in each)
        proposal = Bundle(found) if len(found) > 1 else found[0]
        if any(move.pod.uid in book.moved for move in each):
            continue
        if judged(book, proposal, each[0].strategy) is None:
            break
    return book
