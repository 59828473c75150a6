"""RemovePodsViolatingNodeTaints: evict pods from nodes with taints that they do not tolerate.

Formula::

    candidate = its node has a NoSchedule or NoExecute taint (PreferNoSchedule too, on request) that the
                arguments include and that no toleration of the pod matches, as in TaintToleration

Units: none.
Edges: ``includedTaints: []`` includes none; the cordon's taint counts only if ``includedTaints`` names it;
our own PreferNoSchedule of a node that is to be emptied later never counts, but under planner Upstream.
The controller manager deletes pods because of NoExecute as well, without a budget or a proven place.
Source: descheduler v0.36, ``removepodsviolatingnodetaints``.
Differs: under planner Upstream NoExecute does not count, a cordon drains the node unless excluded, and the
numeric operators of tolerations count, which the scheduler ignores; pods come in the order in which they
are listed.
"""

from typing import ClassVar, Self

from pydantic import Field, StrictBool, StrictStr, model_validator

from plimsoll.framework import Node, PodInfo
from plimsoll.framework.descheduling import Strategy, StrategyContext, StrategyKind
from plimsoll.framework.descheduling.complaints import (
    Complaint,
    Complaints,
    Gravity,
    Vicinity,
    pods_near,
)
from plimsoll.framework.descheduling.proposals import Candidate, Candidates, Destinations, until_closed
from plimsoll.framework.selectors import (
    HARD_EFFECTS,
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    UNSCHEDULABLE_TAINT,
    Taint,
    says_later,
    untolerated,
)
from plimsoll.toolkit.descheduling.eviction_order import cheapest_candidates_first
from plimsoll.toolkit.descheduling.pod_scope import ScopedArgs


class RemovePodsViolatingNodeTaintsArgs(ScopedArgs):
    """Arguments, as in descheduler v1alpha2."""

    include_prefer_no_schedule: StrictBool = Field(
        default=False, description="Whether taints with the effect PreferNoSchedule count too."
    )
    excluded_taints: tuple[StrictStr, ...] = Field(
        default=(), description="Taints that do not count, each as key or key=value."
    )
    included_taints: tuple[StrictStr, ...] | None = Field(
        default=None, description="The only taints that count; left out, all; an empty list, none."
    )

    @model_validator(mode="after")
    def _one_list(self) -> Self:
        if self.excluded_taints and self.included_taints:
            raise ValueError("either includedTaints or excludedTaints can be set, but not both")
        return self


class RemovePodsViolatingNodeTaints(Strategy):
    """Move pods off nodes whose taints they do not tolerate."""

    name: ClassVar = "RemovePodsViolatingNodeTaints"
    kind: ClassVar = StrategyKind.DESCHEDULE
    args_model: ClassVar = RemovePodsViolatingNodeTaintsArgs

    def __init__(self, args: RemovePodsViolatingNodeTaintsArgs) -> None:
        self.args = args
        soft = (PREFER_NO_SCHEDULE,) if args.include_prefer_no_schedule else ()
        self._effects = HARD_EFFECTS.union(soft)
        self._exact_effects = frozenset((NO_SCHEDULE, *soft))

    def candidates(self, context: StrategyContext) -> Candidates:
        """Node by node, the least important pods first."""
        for name in context.nodes:
            taints = self._relevant(context.node(name), context)
            if not taints:
                continue
            found = []
            for pod in context.pods(name):
                taint = self._untolerated(pod, taints, context)
                if taint is None or not self.args.covers(pod):
                    continue
                reason = f"the pod does not tolerate taint {written(taint)} of its node"
                if context.may_go(pod, reason):
                    found.append(Candidate(pod, name, reason, destinations=self._destinations(pod, context)))
            yield from until_closed(cheapest_candidates_first(found, context))

    def complaints(self, context: StrategyContext, near: Vicinity | None = None) -> Complaints:
        """Pods that do not tolerate a taint of their node, 1 each."""
        found: dict[Complaint, float] = {}
        for pod, name in pods_near(context, near):
            if not self.args.covers(pod):
                continue
            taints = self._relevant(context.node(name), context)
            hard = [taint for taint in taints if taint.effect != PREFER_NO_SCHEDULE]
            sentence = f"pod {pod.key} does not tolerate a taint of its node"
            if self._untolerated(pod, hard, context):
                found[Complaint(sentence, Gravity.RULE)] = 1.0
            elif self._untolerated(pod, taints, context):
                found[Complaint(sentence, Gravity.PREFERENCE)] = 1.0
        return found

    def _untolerated(self, pod: PodInfo, taints: list[Taint], context: StrategyContext) -> Taint | None:
        return untolerated(taints, pod.pod.spec.tolerations, self._effects, numeric=context.is_exact)

    def _destinations(self, pod: PodInfo, context: StrategyContext) -> Destinations:
        return Destinations(
            lambda name: self._untolerated(pod, self._relevant(context.node(name), context), context) is None
        )

    def _relevant(self, node: Node, context: StrategyContext) -> list[Taint]:
        included, excluded = self.args.included_taints, self.args.excluded_taints
        effects = self._exact_effects if context.is_exact else self._effects
        return [
            taint
            for taint in node.spec.taints
            if taint.effect in effects
            and not _named(taint, excluded)
            and (included is None or _named(taint, included))
            and (context.is_exact or included or taint.key != UNSCHEDULABLE_TAINT.key)
            and (context.is_exact or not says_later(taint))
        ]


def _named(taint: Taint, names: tuple[str, ...]) -> bool:
    return taint.key in names or (taint.value != "" and f"{taint.key}={taint.value}" in names)


def written(taint: Taint) -> str:
    """The taint in kubectl's notation."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
