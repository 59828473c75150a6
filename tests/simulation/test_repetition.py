"""Repetition of seeds: addresses that are used again, and the clock of the solver."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll_optimal import milp
from roadstead.server.request_handler import Request
from simulation.deeds.write_faults import WriteFaults
from simulation.exchanges import Exchange
from simulation.solver import MOST_S, timeless

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/plimsoll"


class AlwaysAfter:
    """Random numbers that let each deed happen after the write."""

    def random(self) -> float:
        """Nearly one."""
        return 0.9


class Noted(WriteFaults):
    """Deeds at writes that are noted, not done."""

    done = 0

    def _act(self, *_args: Any, **_how: Any) -> None:
        self.done += 1


def test_what_was_due_at_a_write_without_effect_happens_at_no_other_write() -> None:
    """Its connection was dropped; what came after it was at the same address."""
    faults = SimpleNamespace(at_write=lambda _: True)
    scene: Any = SimpleNamespace(random=AlwaysAfter(), faults=faults)
    deeds = Noted(scene, {})
    loop = asyncio.new_event_loop()
    answer: asyncio.Future[Any] = loop.create_future()
    loop.close()

    def exchange() -> Exchange:
        return Exchange("red.0", Request("PUT", LEASE, "", {}, b"{}"), answer, None, 0.0)

    for _ in range(8):
        deeds.arrives(exchange())
    for _ in range(8):
        deeds.has_taken_effect(exchange())

    assert deeds.done == 0


def test_searches_of_the_solver_take_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """By any clock, however long they are let."""
    given = []

    def run(_self: object, seconds: float, _start: object) -> tuple[str, str, float, float]:
        given.append(seconds)
        return "leaving", "arriving", 2.0, 7.5

    monkeypatch.setattr(milp._Model, "run", run)
    model: Any = milp._Model.__new__(milp._Model)
    with timeless():
        assert model.run(0.5, None) == ("leaving", "arriving", 2.0, 0.0)

    assert model.run(0.5, None) == ("leaving", "arriving", 2.0, 7.5)
    assert given == [MOST_S, 0.5]
