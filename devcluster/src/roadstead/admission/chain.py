"""Runs the steps of admission in their order, and once more those that a later change concerns.

Source: apiserver v1.36 ``pkg/admission/reinvocation.go``, ``plugin/{webhook,policy}/mutating``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from roadstead.store.admission import Attempt
    from roadstead.values.resources import Obj


class Mutation(Protocol):
    """A policy with a binding, or a webhook, for one write."""

    @property
    def repeats(self) -> bool:
        """Whether it runs again after a later one has changed the object."""
        ...

    def applied(self, attempt: Attempt) -> Attempt | None:
        """The write with its object changed; None where the mutation does not concern it.

        Raises:
            StatusError: the write is rejected.
        """
        ...


class Mutating(Protocol):
    """A step that changes writes."""

    def mutations(self, attempt: Attempt) -> Iterable[Mutation]:
        """What may change a write, in order."""
        ...


class Validating(Protocol):
    """A step that judges writes."""

    def validated(self, attempt: Attempt) -> None:
        """As of ``Admission``."""
        ...


@dataclass(frozen=True, slots=True)
class AdmissionChain:
    """All steps of a server."""

    mutating: Sequence[Mutating]
    validating: Sequence[Validating]

    def mutated(self, attempt: Attempt) -> Obj | None:
        """As of ``Admission``."""
        first = attempt.obj
        ran: list[tuple[int, Mutation]] = []
        last_change = -1  # the index in ran of the last one that has changed the object
        for number, step in enumerate(self.mutating):
            for one in step.mutations(attempt):
                changed = one.applied(attempt)
                if changed is None:
                    continue
                if changed.obj != attempt.obj:
                    last_change = len(ran)
                attempt = changed
                ran.append((number, one))
        by: int | None = None  # the step that has changed the object again
        for index, (number, one) in enumerate(ran):
            if one.repeats and (index < last_change or (by is not None and by < number)):
                changed = one.applied(attempt)
                if changed is not None:
                    by = number if changed.obj != attempt.obj and by is None else by
                    attempt = changed
        return None if attempt.obj == first else attempt.obj

    def validated(self, attempt: Attempt) -> None:
        """As of ``Admission``."""
        for step in self.validating:
            step.validated(attempt)
