"""Findings are what promises have found in a run: violations, and counts of what was judged."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Facts:
    """What has been seen, for counts in reports.

    Attributes:
        evictions: With deletions by the operator.
        phases: How many records have entered each.
        transitions: How often a record went from one phase, "" at first, to another, by the name of the
            process, "" for people.
    """

    bindings: int = 0
    evictions: int = 0
    takeovers: int = 0
    phases: dict[str, int] = field(default_factory=dict)
    transitions: Counter[tuple[str, str, str]] = field(default_factory=Counter)


class Findings:
    """What all promises of one run have found.

    Attributes:
        violations: Sentences, each with its time.
    """

    def __init__(self) -> None:
        self.violations: list[str] = []
        self.facts = Facts()

    def violated(self, at: float, sentence: str) -> None:
        """A promise was broken."""
        self.violations.append(f"{at:.3f} {sentence}")
