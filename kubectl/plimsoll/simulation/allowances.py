"""Tracks what the runs of a replay leave of PodDisruptionBudgets and of policies' limits."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field
from pydantic import Field

from plimsoll.answers.answer import AnswerPart
from plimsoll.inspection.plans.answer import BudgetAllowance, LimitAllowance
from plimsoll.model.kinds.workload import PodDisruptionBudget

#: Limits per node, namespace and workload; only exhausted ones are listed.
BY_SUBJECT = ("perNode", "perNamespace", "perWorkload")

#: Maximum number of limits of one such field listed per policy.
NAMED = 100


class ReplayedBudget(AnswerPart):
    """A PodDisruptionBudget in the runs of one policy: before and after the run that left the least of it."""

    policy: str = Field(description="Name of the policy; empty for a budget that no run touches.")
    budget: str = Field(description="The budget, as namespace/name.")
    allowed: int = Field(
        ge=0, description="Disruptions that it allowed in the run that left the least of it."
    )
    used: int = Field(ge=0, description="Disruptions that this run planned to take.")
    left: int = Field(ge=0, description="What this run left of it.")
    runs_without: int = Field(ge=0, description="Runs that left nothing of it.")
    refusals: int = Field(
        ge=0, description="Pods that stay because of it, summed over the runs; a pod counts once a run."
    )
    evicted: int = Field(ge=0, description="Pods that it covers and that the policy evicted.")
    blocked: int = Field(ge=0, description="Evictions that it stopped.")
    left_at_end: int = Field(ge=0, description="Disruptions that it allows at the end.")


class ReplayedLimit(AnswerPart):
    """A limit of a policy: before and after the run that left the least of it."""

    policy: str = Field(description="Name of the policy.")
    limit: str = Field(description="The field of spec.rebalancing.limits.")
    subject: str | None = Field(
        description="What it limits: a node, a namespace, a workload or a budget; null for the whole run."
    )
    allowed: int = Field(ge=0, description="Evictions that it allowed in the run that left the least of it.")
    used: int = Field(ge=0, description="Evictions of this run, and those of earlier runs that counted.")
    left: int = Field(ge=0, description="What this run left of it.")
    runs_without: int = Field(ge=0, description="Runs that left nothing of it.")


class Scarcity(Struct):
    """One budget or limit over the runs of one policy.

    Attributes:
        allowed: In the first of the runs that left the least.
        used: In the same run.
        left: In the same run.
        runs_without: Number of runs that left nothing.
        refusals: Number of pods that stayed because of it, summed over the runs.
    """

    allowed: int
    used: int
    left: int
    runs_without: int = 0
    refusals: int = 0

    def count(self, allowed: int, used: int, left: int, refused: int = 0) -> None:
        """Add a run; the tightest run is the one with the least left, then with the most used."""
        if (left, -used) < (self.left, -self.used):
            self.allowed, self.used, self.left = allowed, used, left
        self.runs_without += not left
        self.refusals += refused


class AllowanceTally(Struct):
    """All budgets and limits over a replay.

    Attributes:
        evicted: Evictions by policy and budget (``namespace/name``).
        blocked: Evictions that the budget blocked, by policy and budget.
    """

    evicted: Counter[tuple[str, str]] = field(default_factory=Counter)
    blocked: Counter[tuple[str, str]] = field(default_factory=Counter)
    _budgets: dict[tuple[str, str], Scarcity] = field(default_factory=dict)
    _limits: dict[tuple[str, str, str | None], Scarcity] = field(default_factory=dict)

    def count_run(
        self, policy: str, budgets: Iterable[BudgetAllowance], limits: Iterable[LimitAllowance]
    ) -> None:
        """Add what a run leaves of budgets and limits."""
        for each in budgets:
            found = self._budgets.setdefault(
                (policy, each.budget), Scarcity(each.allowed, each.used, each.left)
            )
            found.count(each.allowed, each.used, each.left, each.refused)
        for one in limits:
            if one.left and one.limit in BY_SUBJECT:
                continue
            known = self._limits.setdefault(
                (policy, one.limit, one.subject), Scarcity(one.allowed, one.used, one.left)
            )
            known.count(one.allowed, one.used, one.left)

    def budgets(self, at_end: Mapping[str, PodDisruptionBudget]) -> Iterator[ReplayedBudget]:
        """Every budget of the cluster, for each policy whose runs used it, sorted by name."""
        touched: dict[str, list[str]] = {}
        for policy, budget in sorted(self._budgets):
            touched.setdefault(budget, []).append(policy)
        for budget, now in sorted(at_end.items()):
            left = now.status.disruptions_allowed
            for policy in touched.get(budget, [""]):
                found = self._budgets.get((policy, budget)) or Scarcity(left, 0, left)
                yield ReplayedBudget(
                    policy=policy,
                    budget=budget,
                    allowed=found.allowed,
                    used=found.used,
                    left=found.left,
                    runs_without=found.runs_without,
                    refusals=found.refusals,
                    evicted=self.evicted[policy, budget],
                    blocked=self.blocked[policy, budget],
                    left_at_end=left,
                )

    def limits(self) -> Iterator[ReplayedLimit]:
        """Limits by policy and field: all on runs and of EvictionBudgets, a hundred per other field."""
        ordered = sorted(
            self._limits.items(), key=lambda each: (*each[0][:2], -each[1].runs_without, each[0][2] or "")
        )
        shown: Counter[tuple[str, str]] = Counter()
        for (policy, limit, subject), found in ordered:
            shown[policy, limit] += 1
            if limit in BY_SUBJECT and shown[policy, limit] > NAMED:
                continue
            yield ReplayedLimit(
                policy=policy,
                limit=limit,
                subject=subject,
                allowed=found.allowed,
                used=found.used,
                left=found.left,
                runs_without=found.runs_without,
            )
