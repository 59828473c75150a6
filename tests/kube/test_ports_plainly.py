"""Outcomes, readings, references and observers of ports, each by a table that was written by hand."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from plimsoll.ports.observer import Observer, told_to_all
from plimsoll.ports.pod_writes import pod_reference
from plimsoll.ports.usage import UsageReading, is_possible_amount, result_of
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.testing.builders import a_pod

#: By outcome: whether the write happened, whether it failed, its HTTP status, what readers of usage count.
OUTCOMES = {
    WriteOutcome.DONE: (True, False, 0, "answered"),
    WriteOutcome.CONFLICT: (False, True, 409, "refused"),
    WriteOutcome.GONE: (False, True, 404, "refused"),
    WriteOutcome.BLOCKED: (False, True, 0, "refused"),
    WriteOutcome.BUSY: (False, True, 429, "refused"),
    WriteOutcome.DEFERRED: (False, True, 429, "refused"),
    WriteOutcome.REFUSED: (False, True, 403, "refused"),
    WriteOutcome.UNKNOWN: (False, True, 0, "unanswered"),
    WriteOutcome.FENCED: (False, False, 0, "refused"),
}


@pytest.mark.parametrize("outcome", WriteOutcome)
def test_each_outcome_of_a_write_is_one_or_the_other(outcome: WriteOutcome) -> None:
    answer = WriteResult(outcome)

    assert (answer.is_done, answer.is_failure, answer.status, result_of(answer)) == OUTCOMES[outcome]


#: What a machine may have, in billionths: 10,000 cores and more than a petabyte are not possible.
AMOUNTS = [
    ("cpu", 0, True),
    ("cpu", 64 * 10**9, True),
    ("cpu", -1, False),
    ("cpu", 10**18, False),
    ("memory", 0, True),
    ("memory", 10**12 * 10**9, True),
    ("memory", -(10**9), False),
    ("memory", 10**19 * 10**9, False),
    ("pods", 0, True),
    ("pods", 1, False),
]


@pytest.mark.parametrize(("resource", "billionths", "is_possible"), AMOUNTS)
def test_a_reading_is_sound_if_every_amount_is_possible(
    resource: str, billionths: int, is_possible: bool
) -> None:
    """Whichever other amounts it has, before or after."""
    assert is_possible_amount(resource, billionths) is is_possible
    for others in ({}, {"cpu": 10**9}, {"memory": 10**18}):
        for usage in (
            {**others, resource: billionths},
            {resource: billionths} | others | {resource: billionths},
        ):
            assert UsageReading("n", usage, 0.0).is_sound is is_possible


def test_a_reference_names_one_pod() -> None:
    assert pod_reference(a_pod("p", namespace="x")) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "x",
        "name": "p",
        "uid": "uid-x-p",
    }


HOOKS = [name for name, _ in inspect.getmembers(Observer, inspect.isfunction) if not name.startswith("_")]


class Noting(Observer):
    """Notes every hook that it has."""

    def __init__(self, said: list[Any], number: int) -> None:
        self.said, self.number = said, number


@pytest.mark.parametrize("count", [0, 1, 2, 3])
@pytest.mark.parametrize("deaf", [0, 1])
def test_every_hook_reaches_every_observer_that_has_it(count: int, deaf: int) -> None:
    """In their order, with all that was said; those that do not override it are left out."""
    said: list[Any] = []

    def noting(name: str) -> Any:
        return lambda self, *args, **named: self.said.append((self.number, name, args, named))

    kind: Any = type("All", (Noting,), {name: noting(name) for name in HOOKS})
    observers = [*(kind(said, number) for number in range(count)), *[Observer()] * deaf]
    whole: Any = told_to_all(observers)
    for _ in range(2):
        for name in HOOKS:
            said.clear()
            getattr(whole, name)(1, "b", third=3)
            assert said == [(number, name, (1, "b"), {"third": 3}) for number in range(count)]
