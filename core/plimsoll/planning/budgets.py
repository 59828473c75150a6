"""Decides whether a PodDisruptionBudget refuses a move, before the Eviction API does.

:mod:`plimsoll.planning.history` decides how long a budget that blocked an eviction is left alone.

Rules of the eviction subresource: pods that have ended, are pending or are being deleted need no budget. Two
budgets for one pod are an error. A pod that is not ready is evicted if its unhealthyPodEvictionPolicy allows
it, or if the budget is healthy without it. Otherwise the eviction takes one of ``disruptionsAllowed``.
Source: Kubernetes v1.36, ``pkg/registry/core/pod/storage/eviction.go``.
"""

from collections.abc import Iterable

from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.model.counted import counted
from plimsoll.model.kinds.pod_info import PodInfo, PodTemplate
from plimsoll.model.kinds.workload import PodDisruptionBudget
from plimsoll.toolkit.scheduling.disruption_budgets import (
    BudgetIndex,
    counts_against,
    is_behind,
    needs_no_budget,
)

DISRUPTED_PODS = 2000
"""The eviction API refuses while it has granted so many evictions that the controller has not seen yet."""


class BudgetLedger:
    """The disruptions that the budgets still allow after the moves so far."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._index = BudgetIndex(budgets)
        self._over: dict[PodTemplate, list[PodDisruptionBudget]] = {}
        self._spent: dict[str, int] = {}

    def over(self, pod: PodInfo) -> list[PodDisruptionBudget]:
        """The budgets that cover the pod, sorted by key; a budget with an invalid selector covers none."""
        found = self._over.get(pod.template)  # whose pods have the same namespace and labels
        if found is None:
            found = self._over[pod.template] = self._index.over(pod)
        return found

    def refusal(self, pod: PodInfo, given_back: str = "") -> Refusal | None:
        """Why the Eviction API would refuse, None if it would not.

        One disruption of the budget ``given_back`` was taken and ends before this one begins.
        """
        budgets = self.over(pod)
        if not budgets or needs_no_budget(pod):
            return None
        if len(budgets) > 1:
            names = ", ".join(budget.key for budget in budgets)
            return Refusal(
                "SeveralBudgets",
                f"more than one PodDisruptionBudget covers the pod, which none allows: {names}",
            )
        if budgets[0].key == given_back or not counts_against(budgets[0], pod):
            return None
        budget = budgets[0]
        status = budget.status
        if is_behind(budget):
            return Refusal(
                "Budget", f"PodDisruptionBudget {budget.key} has changed and is still being processed"
            )
        if len(status.disrupted_pods) > DISRUPTED_PODS:
            return Refusal("Budget", f"PodDisruptionBudget {budget.key} has too many evictions under way")
        left = status.disruptions_allowed - self.taken(budget.key)
        if left <= 0:
            spent = self.taken(budget.key)
            taken = f" ({spent} taken by this plan)" if spent else ""
            allowed = counted(status.disruptions_allowed, "disruption")
            return Refusal(
                "Budget",
                f"PodDisruptionBudget {budget.key} allows {allowed}{taken}:"
                f" {status.current_healthy} of {status.expected_pods} pods are healthy,"
                f" {status.desired_healthy} must be",
            )
        return None

    def shortage(self, pod: PodInfo) -> Refusal | None:
        """Why the Eviction API would refuse even with one more healthy pod in addition to this one.

        A surge deletes the pod when its replacement is ready. Each budget that covers both then counts one
        more healthy pod than now, so every budget that is met today allows that disruption; none is taken.
        """
        for budget in self.over(pod):
            status = budget.status
            if is_behind(budget):
                return Refusal(
                    "Budget", f"PodDisruptionBudget {budget.key} has changed and is still being processed"
                )
            if status.current_healthy < status.desired_healthy:
                return Refusal(
                    "Budget",
                    f"PodDisruptionBudget {budget.key} is not met: {status.current_healthy} of"
                    f" {status.expected_pods} pods are healthy, {status.desired_healthy} must be",
                )
        return None

    def taken(self, key: str) -> int:
        """The number of counted disruptions of a budget."""
        return self._spent.get(key, 0)

    def copy(self) -> "BudgetLedger":
        """A copy, to restore when moves are undone."""
        twin = BudgetLedger(())
        twin._index, twin._over, twin._spent = self._index, self._over, dict(self._spent)
        return twin

    def take(self, pod: PodInfo, given_back: str = "") -> str:
        """Count an eviction; returns the key of the budget that covers the pod, "" if none does."""
        budgets = self.over(pod)
        if not budgets:
            return ""
        if budgets[0].key != given_back and not needs_no_budget(pod) and counts_against(budgets[0], pod):
            self._spent[budgets[0].key] = self._spent.get(budgets[0].key, 0) + 1
        return budgets[0].key
