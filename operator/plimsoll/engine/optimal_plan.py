"""The Optimal planner: the cheapest moves to the best placement, proved, and never worse than Proven's.

1. Proven plans, without limits: its moves are the first solution.
2. What strategies want elsewhere, which pods may move at all, where each template is feasible and which
   topology constraints bind them becomes a program (:mod:`plimsoll.engine.optimal_problem`).
3. Its solution says how many pods of which template leave and arrive where. Single moves are found in an
   order in which each is feasible when those before it are made, by the scheduler's own filters; among
   the arrivals that are feasible for a pod the one with the highest score is taken.
4. What the filters refuse although the program allowed it (rules it does not know, such as anti-affinity)
   is forbidden, and the program is solved again, a few times.
5. The better of both plans, by the objective after its moves, is carried out under the policy's limits. As
   every step lies on the way to the best placement, the next cycle goes on where this one stopped.
6. Strategies that make room for pending pods propose then, and each of their bundles is proved as ever.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from plimsoll.engine.book import Book
from plimsoll.engine.limits import NO_CEILING, Limits
from plimsoll.engine.moves import Circumstances, EvictionPlan, Move, Optimisation, Rebalancing
from plimsoll.engine.optimal_problem import Setting, Wish, wishes_of
from plimsoll.engine.optimum import Solution, solve, value_of
from plimsoll.engine.plan import plan
from plimsoll.framework import Cluster, PluginError, PodInfo, PodTemplate
from plimsoll.framework.strategy import Candidate, Verdict

#: Solve again that often when the filters refuse what the program allowed.
ROUNDS = 4

UNLIMITED = Limits(per_workload=NO_CEILING)


def optimal_plan(rebalancing: Rebalancing, cluster: Cluster, circumstances: Circumstances) -> EvictionPlan:
    """Plan one cycle; the cluster is only read."""
    goal = rebalancing.goal
    serving = [each for each in rebalancing.strategies if getattr(each, "serves_pending", False)]
    strategies = tuple(each for each in rebalancing.strategies if each not in serving)
    free = replace(rebalancing, strategies=strategies, limits=UNLIMITED)
    proven = plan(free, cluster, circumstances)
    wishes = wishes_of(free, cluster, circumstances)
    setting = Setting.of(free, cluster, circumstances, wishes, proven.moves)
    problem = setting.problem
    seed = setting.solution_of(proven.moves)
    before = value_of(problem, *setting.nothing)
    seeded = value_of(problem, *seed)
    best, best_value, bound, spent = proven.moves, seeded, float("-inf"), 0.0
    for _ in range(ROUNDS):
        left = goal.seconds - spent
        if left <= 0 or not problem.stocks:
            break
        found = solve(problem, left, Solution(*seed, seeded, bound))
        spent += found.seconds
        if bound == float("-inf"):
            bound = found.bound  # of the program without what later rounds forbid: it holds for all of them
        walk = _walk(found, setting, Book(free, cluster, circumstances), wishes)
        value = value_of(problem, *setting.solution_of(walk.moves))
        if value < best_value:
            best, best_value = tuple(walk.moves), value
        if not walk.impossible:
            break
        problem = setting.forbid(problem, walk.impossible)
    made = _limited(best, rebalancing, cluster, circumstances)
    failures = list(proven.failures)
    for strategy in serving:  # what they propose is for other pods than those that move: no objective has it
        try:
            made.hear(strategy)
        except PluginError as exc:
            failures.append(exc)
    optimisation = Optimisation(
        objective=goal.objective,
        before=before,
        value=best_value,
        bound=max(min(bound, best_value), 0.0),
        proven=seeded,
        moves=len(best),
        seconds=spent,
    )
    return EvictionPlan(
        tuple(made.moves),
        (*made.refused, *proven.refused),
        tuple(failures),
        proven.classes,
        optimisation,
    )


@dataclass(slots=True)
class _Walk:
    """Moves that lead to a solution, in order, and arrivals that no order makes possible."""

    moves: list[Move]
    impossible: Counter[tuple[PodTemplate, str]]


def _walk(found: Solution, setting: Setting, book: Book, wishes: dict[str, Wish]) -> _Walk:
    """Find single moves, each feasible when those before it are made."""
    leaving, arrivals = setting.unfolded(found)
    impossible: Counter[tuple[PodTemplate, str]] = Counter()
    progress = True
    while progress:
        progress = False
        for template, pods in leaving.items():
            for pod in list(pods):
                if _step(pod, arrivals[template], setting, book, wishes):
                    pods.remove(pod)
                    progress = True
    for template, open_targets in arrivals.items():
        for target, count in open_targets.items():
            if count:
                impossible[template, target] += count
    return _Walk(book.moves, impossible)


def _step(
    pod: PodInfo, open_targets: Counter[str], setting: Setting, book: Book, wishes: dict[str, Wish]
) -> bool:
    """Send a pod to the best target that takes it now; whether there is one."""
    source = setting.source_of(pod)
    ranking = book.ranked(pod, source)
    if ranking is None:
        return False
    totals = dict(zip(ranking.nodes, ranking.totals.tolist(), strict=True))
    possible = [name for name, count in open_targets.items() if count and name != source and name in totals]
    if not possible:
        return False
    target = max(possible, key=lambda name: (totals[name], name))
    wish = wishes.get(pod.uid) or setting.default_wish
    if book.judge(Candidate(pod, source, wish.reason, target), wish.strategy) is not Verdict.ACCEPTED:
        return False
    open_targets[target] -= 1
    return True


def _limited(
    moves: Sequence[Move], rebalancing: Rebalancing, cluster: Cluster, circumstances: Circumstances
) -> Book:
    """As many of the moves, in their order, as the policy's limits allow in one cycle."""
    book = Book(rebalancing, cluster, circumstances)
    for move in moves:
        target = move.target if move.is_directed else ""
        if book.judge(Candidate(move.pod, move.source, move.reason, target), move.strategy) is None:
            break
    return book
