"""Counts what runs of a replay leave of PodDisruptionBudgets and of the limits of policies."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import Field

from plimsoll.inspection.answer import AnswerPart
from plimsoll.inspection.plans.answer import BudgetAllowance, LimitAllowance
from plimsoll.model.kinds.workload import PodDisruptionBudget

#: Fields of limits on nodes, namespaces and workloads: of these only those that are used up are named.
BY_SUBJECT = ("perNode", "perNamespace", "perWorkload")

#: Limits of one such field that are named for one policy.
NAMED = 100


class ReplayedBudget(AnswerPart):
    """A PodDisruptionBudget in one policy's runs: what the run that left the least of it found and left."""

    policy: str = Field(description="Name of the policy; empty for a budget that no run touches.")
    budget: str = Field(description="The budget, as namespace/name.")
    allowed: int = Field(
        ge=0, description="Disruptions that it allowed in the run that left the least of it."
    )
    used: int = Field(ge=0, description="Those that this run planned to take.")
    left: int = Field(ge=0, description="What this run left of it.")
    runs_without: int = Field(ge=0, description="Runs that left nothing of it.")
    refusals: int = Field(
        ge=0, description="Pods that stay because of it, summed over the runs; a pod counts once a run."
    )
    evicted: int = Field(ge=0, description="Pods that it covers and that the policy evicted.")
    blocked: int = Field(ge=0, description="Evictions that it stopped.")
    left_at_end: int = Field(ge=0, description="Disruptions that it allows at the end.")


class ReplayedLimit(AnswerPart):
    """A limit of a policy: what the run that left the least of it found and left."""

    policy: str = Field(description="Name of the policy.")
    limit: str = Field(description="The field of spec.rebalancing.limits.")
    subject: str | None = Field(
        description="What it limits: a node, a namespace, a workload or a budget; null for the whole run."
    )
    allowed: int = Field(ge=0, description="Evictions that it allowed in the run that left the least of it.")
    used: int = Field(ge=0, description="Those of this run, and those of earlier runs that counted.")
    left: int = Field(ge=0, description="What this run left of it.")
    runs_without: int = Field(ge=0, description="Runs that left nothing of it.")


@dataclass(slots=True)
class Scarcity:
    """One budget or limit over the runs of one policy.

    Attributes:
        allowed: In the run that left the least, the first of several.
        used: In the same run.
        left: In the same run.
        runs_without: Runs that left nothing.
        refusals: Pods that stay because of it, summed over the runs.
    """

    allowed: int
    used: int
    left: int
    runs_without: int = 0
    refusals: int = 0

    def count(self, allowed: int, used: int, left: int, refused: int = 0) -> None:
        """Add a run; what is left counts first, then what was used."""
        if (left, -used) < (self.left, -self.used):
            self.allowed, self.used, self.left = allowed, used, left
        self.runs_without += not left
        self.refusals += refused


@dataclass(slots=True)
class AllowanceTally:
    """All budgets and limits over a replay.

    Attributes:
        evicted: Evictions by policy and budget (``namespace/name``).
        blocked: Those that the budget stopped, likewise.
    """

    evicted: Counter[tuple[str, str]] = field(default_factory=Counter)
    blocked: Counter[tuple[str, str]] = field(default_factory=Counter)
    _budgets: dict[tuple[str, str], Scarcity] = field(default_factory=dict)
    _limits: dict[tuple[str, str, str | None], Scarcity] = field(default_factory=dict)

    def count_run(
        self, policy: str, budgets: Iterable[BudgetAllowance], limits: Iterable[LimitAllowance]
    ) -> None:
        """Add what a run leaves."""
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
        """Every budget of the cluster in the runs of each policy that touched it, sorted by name."""
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
        """By policy and field: on the run and of EvictionBudgets all, of the others a hundred a field."""
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
