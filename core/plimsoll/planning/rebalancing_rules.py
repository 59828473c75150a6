"""RebalancingRules keeps pods on their nodes that the owner of their namespace does not want moved.

It is an evictor of each policy, next to the policy's scope, so all planners and the check right before an
eviction ask it. Rules only forbid; what they leave is for the policy to decide (docs/adr/0055).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from msgspec import Struct

from plimsoll.framework.args import NoArgs
from plimsoll.framework.descheduling.context import Evictor, StrategyContext
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.selectors import EVERYTHING, Selector

#: The reason of refusals.
HELD = "HeldByRule"

#: Seconds over which a rule counts the moves of its namespace.
HOUR_S = 3_600.0


class PresentRule(Struct, frozen=True):
    """A rule as of now.

    Attributes:
        name: Its name, as ``namespace/name``.
        forbids: Why pods that it selects do not move now, in a clause; "" if they may.
        most: Moves of the namespace an hour, at most; None for any number.
        invalid: Why it cannot be carried out, "" if it can; then it forbids everything.
    """

    name: str
    selector: Selector = EVERYTHING
    forbids: str = ""
    most: int | None = None
    invalid: str = ""

    def keeps(self, pod: PodInfo) -> Refusal | None:
        """Why the pod stays, None if this rule lets it go."""
        if not self.forbids or not self.selector.matches(pod.labels):
            return None
        return Refusal(HELD, f"RebalancingRule {self.name} {self.forbids}")


PresentRules = Callable[[str], tuple[PresentRule, ...]]
"""The rules of a namespace as of now; empty for most."""


def no_rules(namespace: str) -> tuple[PresentRule, ...]:  # noqa: ARG001 - the callable's shape
    """The rules of a cluster without rules."""
    return ()


def fewest_an_hour(rules: tuple[PresentRule, ...]) -> PresentRule | None:
    """The rule that allows the fewest moves an hour, None if no rule counts."""
    counting = [each for each in rules if each.most is not None]
    return min(counting, key=lambda each: (each.most, each.name)) if counting else None


@dataclass(frozen=True)
class RebalancingRules(Evictor):
    """The evictor of all rules."""

    name: ClassVar = "RebalancingRules"
    args_model: ClassVar = NoArgs

    of: PresentRules = no_rules

    def filter(self, pod: PodInfo, context: StrategyContext) -> Refusal | None:  # noqa: ARG002 - the port's shape
        """The refusal of the first rule that has one."""
        return self.holds(pod)

    def holds(self, pod: PodInfo) -> Refusal | None:
        """The same, outside of a plan."""
        return next((held for rule in self.of(pod.namespace) if (held := rule.keeps(pod))), None)

    def pre_eviction_filter(self, pod: PodInfo, context: StrategyContext) -> Refusal | None:  # noqa: ARG002 - the port's shape
        """No further check."""
        return None


def held_by_rules(pod: PodInfo, evictors: Iterable[Evictor]) -> Refusal | None:
    """Why rules keep the pod, by those among the evictors; None if none does."""
    found = (each.holds(pod) for each in evictors if isinstance(each, RebalancingRules))
    return next((held for held in found if held), None)
