"""Runs the steps of admission in their order, and once more those that a later change concerns.

Source: apiserver v1.36 ``pkg/admission/reinvocation.go``, ``plugin/{webhook,policy}/mutating``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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


@dataclass(slots=True)
class _Run:
    """The mutations of one step for one write, which run once, and some of them once more.

    Attributes:
        mutations: in order.
        has_changed: whether one has changed the object.
    """

    mutations: Sequence[Mutation]
    has_changed: bool = False
    _ran: set[int] = field(default_factory=set)  # those that may run again
    _again: set[int] = field(default_factory=set)  # those after which the object has changed
    _last: Obj | None = None

    def first(self, attempt: Attempt) -> Attempt:
        """The write after all mutations."""
        return self._after(attempt, range(len(self.mutations)))

    def second(self, attempt: Attempt) -> Attempt:
        """The write after those that must run again; one that changes the object makes others run, too."""
        if attempt.obj != self._last:
            self._mark()
        return self._after(attempt, None)

    def _after(self, attempt: Attempt, chosen: range | None) -> Attempt:
        for index, one in enumerate(self.mutations):
            if index not in (self._again if chosen is None else chosen):
                continue
            changed = one.applied(attempt)
            if changed is None:
                continue
            if changed.obj != attempt.obj:
                self._mark()
                self.has_changed = True
            attempt = changed
            if one.repeats:
                self._ran.add(index)
        self._last = attempt.obj
        return attempt

    def _mark(self) -> None:
        """Let all that have run before a change run again."""
        self._again |= self._ran
        self._ran.clear()


@dataclass(frozen=True, slots=True)
class AdmissionChain:
    """All steps of a server."""

    mutating: Sequence[Mutating]
    validating: Sequence[Validating]

    def mutated(self, attempt: Attempt) -> Obj | None:
        """As of ``Admission``."""
        first = attempt.obj
        runs = [_Run(list(step.mutations(attempt))) for step in self.mutating]
        for run in runs:
            attempt = run.first(attempt)
        if any(run.has_changed for run in runs):
            attempt = replace(attempt, is_again=True)
            for run in runs:
                attempt = run.second(attempt)
        return None if attempt.obj == first else attempt.obj

    def validated(self, attempt: Attempt) -> None:
        """As of ``Admission``."""
        for step in self.validating:
            step.validated(attempt)
