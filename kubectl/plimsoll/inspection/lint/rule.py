"""LintRule is one check of workloads, budgets or metadata, with its remedy."""

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Generic, TypeVar

from msgspec import Struct

from plimsoll.inspection.lint.subjects import LintedBudget, LintedObject, LintedWorkload, Neighbourhood


class Severity(StrEnum):
    """The severity of a finding."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """The rank of the severity; higher is worse."""
        return list(Severity).index(self)


SubjectT = TypeVar("SubjectT", LintedWorkload, LintedBudget, LintedObject)


class LintRule(Struct, Generic[SubjectT], frozen=True):
    """One rule.

    Attributes:
        id: In kebab case; the anchor in docs/cli/lint.md.
        summary: One sentence about what the rule finds.
        remedy: What to do.
        check: Yields a sentence for each finding in a subject.
        needs: Facts that must be known about the cluster, with the names in ``lint.subjects``.
    """

    id: str
    severity: Severity
    summary: str
    remedy: str
    check: Callable[[SubjectT, Neighbourhood], Iterator[str]]
    needs: tuple[str, ...] = ()
