"""Runs the steps of admission in their order."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roadstead.store.admission import Attempt
    from roadstead.values.resources import Obj


class Mutating(Protocol):
    """A step that changes writes."""

    def mutated(self, attempt: Attempt) -> Obj | None:
        """As of ``Admission``."""
        ...


class Validating(Protocol):
    """A step that judges writes."""

    def validated(self, attempt: Attempt) -> list[str]:
        """As of ``Admission``."""
        ...


@dataclass(frozen=True, slots=True)
class AdmissionChain:
    """All steps of a server."""

    mutating: Sequence[Mutating]
    validating: Sequence[Validating]

    def mutated(self, attempt: Attempt) -> Obj | None:
        """As of ``Admission``."""
        changed = None
        for step in self.mutating:
            obj = step.mutated(attempt)
            if obj is not None:
                changed = obj
                attempt = dataclasses.replace(attempt, obj=obj)
        return changed

    def validated(self, attempt: Attempt) -> list[str]:
        """As of ``Admission``."""
        return [warning for step in self.validating for warning in step.validated(attempt)]
