"""Lists PodDisruptionBudgets and policies' limits, with what plans and replays leave of them."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from plimsoll.inspection.picture import PicturedBudget
from plimsoll.inspection.plans.answer import PolicyPlan
from plimsoll.model.counted import counted
from plimsoll.simulation.report import PolicySetOutcome

#: Maximum number of rows of a page; rows with the least left are first.
MOST = 300

#: The field of a policy's limits that holds its EvictionBudgets.
EVICTION_BUDGETS = "budgets"


class Allowance(Struct, frozen=True):
    """A row: one budget or limit after one policy's plan, or after the tightest run of a replay.

    Attributes:
        kind: PodDisruptionBudget, EvictionBudget, or the field of ``spec.rebalancing.limits``.
        policy: The policy whose plans use it; "" if none does.
        detail: An explanation of the number.
        used: Disruptions of the plan, and earlier ones that count.
        refused: Number of pods that stay because of it, where counted.
    """

    kind: str
    name: str
    policy: str
    detail: str
    allowed: int
    used: int
    left: int
    refused: int = 0

    @property
    def label(self) -> str:
        """Text for screen readers."""
        return f"{self.left} of {self.allowed} left"


def allowances(budgets: Iterable[PicturedBudget], plans: Iterable[PolicyPlan]) -> list[Allowance]:
    """All budgets of the cluster and all limits of the plans; those with the least left are first."""
    made = list(plans)
    return _sorted([*_budgets(budgets, made), *_limits(made)])


def replayed_allowances(outcome: PolicySetOutcome) -> list[Allowance]:
    """All budgets and limits of a replay, each after the run that left the least of it, in the same order."""
    found = [
        Allowance(
            "PodDisruptionBudget",
            each.budget,
            each.policy,
            f"{_runs_without(each.runs_without)}; {each.evicted} evicted, {each.blocked} stopped; "
            f"allows {each.left_at_end} at the end"
            if each.policy
            else "no run touched it",
            each.allowed,
            each.used,
            each.left,
            each.refusals,
        )
        for each in outcome.budgets
    ]
    found += [
        Allowance(
            "EvictionBudget" if each.limit == EVICTION_BUDGETS else each.limit,
            each.subject or "the run",
            each.policy,
            _runs_without(each.runs_without),
            each.allowed,
            each.used,
            each.left,
        )
        for each in outcome.limits
    ]
    return _sorted(found)


def _runs_without(runs: int) -> str:
    if not runs:
        return "every run left some"
    return f"nothing left in {counted(runs, 'run')}"


def _sorted(found: Iterable[Allowance]) -> list[Allowance]:
    return sorted(found, key=lambda each: (each.left > 0, -each.refused, each.left, each.kind, each.name))


def _budgets(budgets: Iterable[PicturedBudget], plans: Iterable[PolicyPlan]) -> Iterator[Allowance]:
    used = {(plan.policy, each.budget): each for plan in plans for each in plan.budgets}
    touched: dict[str, list[str]] = {}
    for policy, budget in used:
        touched.setdefault(budget, []).append(policy)
    for each in budgets:
        detail = f"{each.healthy} of {each.expected} healthy, {each.desired} must be"
        for policy in touched.get(each.budget, [""]):
            plan = used.get((policy, each.budget))
            yield Allowance(
                "PodDisruptionBudget",
                each.budget,
                policy,
                detail,
                each.allowed,
                plan.used if plan else 0,
                plan.left if plan else each.allowed,
                plan.refused if plan else 0,
            )


def _limits(plans: Iterable[PolicyPlan]) -> Iterator[Allowance]:
    for plan in plans:
        for each in plan.limits:
            is_budget = each.limit == EVICTION_BUDGETS
            yield Allowance(
                "EvictionBudget" if is_budget else each.limit,
                each.subject or "the run",
                plan.policy,
                "open now" if is_budget else "a limit of the policy",
                each.allowed,
                each.used,
                each.left,
            )
