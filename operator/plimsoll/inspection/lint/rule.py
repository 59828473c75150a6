"""LintRule is one thing that lint looks for in workloads or in budgets, with its remedy."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from plimsoll.inspection.lint.subjects import LintedBudget, LintedWorkload, Neighbourhood


class Severity(StrEnum):
    """How bad a finding is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """Higher is worse."""
        return list(Severity).index(self)


SubjectT = TypeVar("SubjectT", LintedWorkload, LintedBudget)


@dataclass(frozen=True, slots=True)
class LintRule(Generic[SubjectT]):
    """One rule.

    Attributes:
        id: In kebab case; the anchor in docs/cli/lint.md.
        summary: What is found, in a sentence.
        remedy: What to do.
        check: Yields a sentence for each finding in a subject.
        needs: What of the cluster must be known, by the names of ``lint.subjects``.
    """

    id: str
    severity: Severity
    summary: str
    remedy: str
    check: Callable[[SubjectT, Neighbourhood], Iterator[str]]
    needs: tuple[str, ...] = ()
