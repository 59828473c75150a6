"""FollowScore: move pods whose best node scores higher than their present one by a margin.

Formula, with the pod removed, and the scheduler's scores for its replacement::

    gain      = total of the best node - total of the pod's own
    candidate = gain >= ceil(marginPercent / 100 * 100 * sum of the score plugins' weights)

Units: points, as the scheduler's weighted totals; the margin in percent of the highest possible total.
Edges: a pod whose own node is no longer feasible stays: other strategies repair violations. Pods that an
extender or another scheduler places stay. Siblings are judged together by the first one's scores; the plan
then judges each pod. The cheapest pods go first (priority, deletion cost, readiness, restarts, age).
Source: our own; descheduler has no such strategy, but its issue 335 requests one.
Differs: there is nothing upstream to differ from; planner Proven only.
"""

from typing import ClassVar

from pydantic import Field, StrictInt

from plimsoll.framework import PodInfo
from plimsoll.framework.descheduling import Planner, Strategy, StrategyContext, StrategyKind, Verdict
from plimsoll.framework.descheduling.complaints import Complaint, Complaints, Vicinity, pods_near
from plimsoll.framework.descheduling.proposals import Candidate, Candidates
from plimsoll.toolkit.descheduling.eviction_order import eviction_cost
from plimsoll.toolkit.descheduling.pod_scope import ScopedArgs


class FollowScoreArgs(ScopedArgs):
    """Arguments; the strategy does not exist upstream."""

    margin_percent: StrictInt = Field(
        default=20,
        ge=1,
        le=100,
        description="Points by which the best node must at least beat the pod's own, in percent of the "
        "highest possible total (100 times the sum of the score plugins' weights).",
    )


class FollowScore(Strategy):
    """Move pods to the nodes that the scheduler would choose today."""

    name: ClassVar = "FollowScore"
    kind: ClassVar = StrategyKind.BALANCE
    args_model: ClassVar = FollowScoreArgs
    planners: ClassVar = frozenset({Planner.PROVEN})

    def __init__(self, args: FollowScoreArgs) -> None:
        self.args = args

    def least_gain(self, highest: int) -> int:
        """Minimum gain of a move in points, given the highest possible total."""
        return -(-self.args.margin_percent * highest // 100)

    def candidates(self, context: StrategyContext) -> Candidates:
        """The cheapest pods first, among those with a sufficient gain."""
        settled: set[tuple[str, str, object]] = set()
        for pod, template in sorted(
            self._promising(context), key=lambda each: (eviction_cost(each[0]), each[0].key)
        ):
            node = context.node_of(pod)
            place = (node, pod.namespace, template)
            if not node or place in settled:
                continue
            reason = f"another node scores higher by {self.args.margin_percent}% of the highest total or more"
            if not context.may_go(pod, reason):
                continue
            verdict = yield Candidate(pod, node, reason)
            if verdict is not Verdict.ACCEPTED:
                settled.add(place)  # its result applies to siblings on the same node

    def complaints(self, context: StrategyContext, near: Vicinity | None = None) -> Complaints:
        """Pods for which another node is better by the margin, with the difference in points."""
        found = {}
        for pod, name in pods_near(context, near):
            outlook = context.prospects.outlook(pod) if self.args.covers(pod) else None
            if outlook is None or name not in outlook.totals:
                continue
            gain = max(outlook.totals.values()) - outlook.totals[name]
            if gain >= self.least_gain(outlook.highest):
                found[Complaint(f"pod {pod.key} would score higher on another node")] = float(gain)
        return found

    def _promising(self, context: StrategyContext) -> list[tuple[PodInfo, object]]:
        """Pods whose node scores too low, judged by the first of their siblings."""
        found: list[tuple[PodInfo, object]] = []
        for template, siblings in context.siblings():
            pods = [pod for pod in siblings if self.args.covers(pod) and not pod.is_terminating]
            outlook = context.prospects.outlook(pods[0]) if pods else None
            if outlook is None or not outlook.totals:
                continue
            line = max(outlook.totals.values()) - self.least_gain(outlook.highest)
            # A node that is infeasible for a second such pod may suit the present one: the plan will check.
            found += [
                (pod, template) for pod in pods if outlook.totals.get(context.node_of(pod), line) <= line
            ]
        return found
