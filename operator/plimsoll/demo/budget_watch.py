"""Watching budgets: every state each PodDisruptionBudget went through, judged.

A budget is violated when, having been met, it has fewer healthy pods than it demands. Judging begins when
the workloads stand: before that, budgets are unmet because their pods do not run yet, and preemption, which
prefers to keep budgets but need not, makes room.
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class BudgetWatch:
    """Collects violations from watched PodDisruptionBudgets.

    Attributes:
        judging: Whether violations are recorded.
        met: Budgets that have been met since judging began, by name.
        violations: One sentence for each state that broke a budget.
        seen: How many states were judged.
    """

    judging: bool = False
    met: set[str] = field(default_factory=set)
    violations: list[str] = field(default_factory=list)
    seen: int = 0

    def observe(self, budget: dict[str, Any]) -> None:
        """Judge one state of one budget."""
        name, status = budget["metadata"]["name"], budget.get("status", {})
        if status.get("observedGeneration") != budget["metadata"].get("generation"):
            return
        healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
        if not self.judging:
            return
        self.seen += 1
        if healthy >= desired:
            self.met.add(name)
        elif name in self.met:
            self.violations.append(f"{name}: {healthy} healthy pods where {desired} are demanded")
