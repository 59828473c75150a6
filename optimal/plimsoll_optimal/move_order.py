"""Finds single moves that lead to a program's solution, in an order in which each of them is feasible."""

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct

from plimsoll.framework import PodInfo, PodTemplate
from plimsoll.framework.descheduling.proposals import Candidate, Verdict
from plimsoll.model.names import PodUid
from plimsoll.planning.moves import Move
from plimsoll.planning.proven.plan_builder import PlanBuilder
from plimsoll.planning.proven.verdicts import judge
from plimsoll_optimal.encoding import ProblemEncoding
from plimsoll_optimal.move_requests import MoveRequest
from plimsoll_optimal.problem import Solution
from plimsoll_optimal.search_time import SearchTime

#: Maximum number of attempts to move, in all and in addition for each leaving pod; an order needs few.
TRIES, TRIES_A_POD = 1_000, 5


class MoveOrder(Struct):
    """The moves to a solution, in order, and the arrivals that no order makes possible."""

    moves: list[Move]
    impossible: Counter[tuple[PodTemplate, str]]


def walk_to(
    found: Solution,
    setting: ProblemEncoding,
    plan: PlanBuilder,
    wishes: Mapping[PodUid, MoveRequest],
    time: SearchTime,
) -> MoveOrder:
    """Find single moves, each feasible after the earlier ones, within the time and a number of attempts."""
    leaving, arrivals = setting.unfolded(found)
    impossible: Counter[tuple[PodTemplate, str]] = Counter()
    left = TRIES + TRIES_A_POD * sum(map(len, leaving.values()))
    progress = True
    while progress:
        progress = False
        for template, pods in leaving.items():
            for pod in list(pods):
                if left <= 0 or time.is_over:
                    break
                left -= 1
                if _step(pod, arrivals[template], setting, plan, wishes):
                    pods.remove(pod)
                    progress = True
        progress = progress and left > 0 and not time.is_over
    for template, open_targets in arrivals.items():
        for target, count in open_targets.items():
            if count:
                impossible[template, target] += count
    return MoveOrder(plan.moves, impossible)


def _step(
    pod: PodInfo,
    open_targets: Counter[str],
    setting: ProblemEncoding,
    plan: PlanBuilder,
    wishes: Mapping[PodUid, MoveRequest],
) -> bool:
    """Move a pod to the best target that is feasible now; returns whether there is one."""
    source = setting.source_of(pod)
    if pod.uid in plan.moved:  # it moved together with one whose claim it shares
        target = next((move.target for move in plan.moves if move.pod.uid == pod.uid), "")
        open_targets[target] = max(open_targets[target] - 1, 0)
        return True
    ranking = plan.schedulers.ranked(pod)
    if ranking is None:
        return False
    totals = dict(zip(ranking.nodes, ranking.totals.tolist(), strict=True))
    possible = [name for name, count in open_targets.items() if count and name != source and name in totals]
    if not possible:
        return False
    target = max(possible, key=lambda name: (totals[name], name))
    wish = wishes.get(pod.uid) or setting.default_wish
    if judge(plan, Candidate(pod, source, wish.reason, target), wish.strategy) is not Verdict.ACCEPTED:
        return False
    open_targets[target] -= 1
    return True
