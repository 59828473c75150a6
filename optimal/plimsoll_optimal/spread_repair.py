"""Repairs topology spread by a mixed-integer program where single moves no longer help.

A move that is judged individually must lower the excess of its constraints and must not raise any other. With
several constraints for the same pods, a placement may have no such move, although a few moves together would
help. Then the program of the Optimal planner is solved for these pods alone, within a few seconds, and its
moves are proposed as one bundle.
"""

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.proposals import Bundle, Candidate, Verdict
from plimsoll.framework.descheduling.strategy import MendsSpread
from plimsoll.model.counted import counted
from plimsoll.planning.forecasts import Forecasts
from plimsoll.planning.moves import Goal, Move, Objective, PlanningContext, RebalancingConfig
from plimsoll.planning.proven.plan_builder import UNLIMITED, PlanBuilder
from plimsoll.planning.proven.verdicts import judge
from plimsoll_optimal.encoding import ProblemEncoding
from plimsoll_optimal.milp import solve
from plimsoll_optimal.move_order import walk_to
from plimsoll_optimal.problem import Solution, value_of
from plimsoll_optimal.search_time import SearchTime

#: Maximum seconds of one search, and its repetitions without arrivals that the filters reject.
MOST_S, ROUNDS = 5.0, 4


def mend_exactly(
    plan: PlanBuilder, strategy: MendsSpread, rebalancing: RebalancingConfig, context: PlanningContext
) -> str:
    """Plan and make moves that help only together; the strategy's single moves are exhausted.

    Returns:
        How the spread was planned, in a sentence for the policy's status.
    """
    moves, proven = _searched(plan, strategy, rebalancing, context)
    while moves:
        before = len(plan.refused)
        together = tuple(Candidate(move.pod, move.source, move.reason, move.target) for move in moves)
        if judge(plan, Bundle(together, one_by_one=True), strategy.name) is Verdict.ACCEPTED:
            return (
                f"topology spread: no single move helps any more; {_moves(len(moves))} planned together by a"
                f" mixed-integer program, {'proven to be the fewest' if proven else 'the best found in time'}"
            )
        del plan.refused[before:]
        moves = moves[: len(moves) // 2]
    return "topology spread: no move helps, neither alone nor by a mixed-integer program with others"


def _searched(
    plan: PlanBuilder, strategy: MendsSpread, rebalancing: RebalancingConfig, context: PlanningContext
) -> tuple[Sequence[Move], bool]:
    """The moves of the best solution that the scheduler's filters pass, and whether it is proven optimal."""
    seconds = min(rebalancing.goal.seconds, MOST_S)
    time = SearchTime(seconds, context.monotonic)
    free = replace(
        rebalancing,
        strategies=(strategy,),
        limits=UNLIMITED,
        forecasts=Forecasts(),
        planner=Planner.OPTIMAL,
        goal=Goal(Objective.FEWEST_VIOLATIONS, seconds),
    )
    cluster = plan.context.cluster
    setting = ProblemEncoding.of(free, PlanBuilder(free, cluster, context), {}, ())
    problem = setting.problem
    if not problem.stocks:
        return (), True
    before = value_of(problem, *setting.nothing)
    for _ in range(ROUNDS):
        found = solve(problem, max(time.left, 0.0), Solution(*setting.nothing, before, -np.inf))
        time.report(found.seconds)
        walk = walk_to(found, setting, PlanBuilder(free, cluster, context), {}, time)
        if not walk.impossible:
            return walk.moves, found.gap < 1e-6
        if time.is_over:
            break
        problem = setting.forbid(problem, walk.impossible, found)
    return walk.moves, False


def _moves(count: int) -> str:
    return "1 move" if count == 1 else f"{counted(count, 'move')}"
