"""Reasons for Degraded equal those of a page that keeps all that has happened; runs overlap and end."""

from __future__ import annotations

import asyncio
from random import Random
from types import SimpleNamespace
from typing import Any

from plimsoll.framework import PluginError
from plimsoll.planning.load.load_guards import TWO_YARDSTICKS
from plimsoll.rebalancing.runs.degraded_reasons import OVERDUE_S, DegradedReasons
from plimsoll.rebalancing.runs.load_conditions import NOT_MEASURED
from plimsoll.rebalancing.runs.status import RunResult
from plimsoll.testing.fakes import FakeClock, settled
from plimsoll.timing.signal import Signal

NAMES = ("one", "two")


class World:
    """The parts that are asked, each of which says what it was set to say."""

    def __init__(self) -> None:
        self.hanging: set[str] = set()
        self.displaced: dict[str, str] = {}
        self.is_allowed, self.surge_trouble, self.is_stopped = True, "", False
        self.scope: dict[str, dict[str, str]] = {}
        self.forgotten: list[tuple[str, str]] = []
        self.clock, self.conditions, self.changed = FakeClock(), Signal(), Signal()
        self.policies: dict[str, Any] = {}

        def forgets(part: str) -> Any:
            return lambda name: self.forgotten.append((part, name))

        breakers: Any = SimpleNamespace(
            planning=SimpleNamespace(
                is_hanging=lambda name: name in self.hanging,
                forget=forgets("plans"),
                call_off=forgets("plan"),
            ),
            displacements=SimpleNamespace(
                sentence=lambda name: self.displaced.get(name, ""), forget=forgets("displacements")
            ),
            access=SimpleNamespace(allows=lambda _: self.is_allowed),
            stop=SimpleNamespace(sentence="it is stopped"),
        )
        self.breakers = breakers
        scopes: Any = SimpleNamespace(
            troubles=lambda name: self.scope.get(name, {}), advice=lambda _: {}, forget=forgets("scope")
        )
        contested: Any = SimpleNamespace(advice=lambda _: {}, forget=forgets("contested"))
        surges: Any = SimpleNamespace(trouble="")
        self.surges = surges
        self.reasons = DegradedReasons(
            self.policies, breakers, scopes, contested, surges, self.clock, self.changed, self.conditions
        )
        # what a page has of each policy
        self.begun: dict[str, float] = {}
        self.skipped: set[str] = set()
        self.broken: dict[str, str] = {}
        self.found: dict[str, dict[str, str]] = {}

    def expected(self, name: str) -> set[str]:
        """The reasons."""
        found = {"Hanging"} if name in self.hanging else set()
        if self.broken.get(name):
            found.add("RunFailed")
        is_late = name in self.begun and self.clock.monotonic() - self.begun[name] >= OVERDUE_S
        if name in self.skipped and is_late:
            found.add("RunOverdue")
        found |= {reason for reason, said in self.found.get(name, {}).items() if said}
        return found | {*self.scope.get(name, {})}

    def advised(self, name: str) -> bool:
        return self.is_stopped and name in self.policies

    def look_back(self, random: Random, name: str) -> None:
        """A run has found something; whether it looked at load or not."""
        resting, suspended = random.choice(["", "it rests"]), random.choice([[], ["s"]])
        memory: Any = SimpleNamespace(rest=lambda _: (resting, False), suspended=lambda _: suspended)
        failures = [PluginError("A", "balance", "no")] if random.random() < 0.3 else []
        surges, halted = random.random() < 0.5, random.choice(["", "nodes are unhealthy"])
        by_load = random.choice([None, None, {}, {TWO_YARDSTICKS: "two"}, {NOT_MEASURED: "none"}])
        before = self.found.get(name, {})
        self.reasons.look_back(name, memory, failures, surges=surges, by_load=by_load, halted=halted)
        kept = {reason: before.get(reason, "") for reason in (TWO_YARDSTICKS, NOT_MEASURED)}
        self.found[name] = {
            "Resting": resting,
            "PodsDisplaced": self.displaced.get(name, ""),
            "NodesUnhealthy": halted,
            "StrategySuspended": "".join(suspended),
            "StrategyFailed": "no" if failures else "",
            **(kept if by_load is None else by_load),
            "SurgeForbidden": self.surges.trouble if surges and self.is_allowed else "",
        }

    async def step(self, random: Random) -> None:
        """One thing happens."""
        name = random.choice(NAMES)
        match random.choice((0, 0, 0, 1, 2, 4, 5, 6, 6, 6, 7, 8, 9)):
            case 0 if name not in self.begun:
                self.reasons.run_begun(name)
                self.begun[name] = self.clock.monotonic()
            case 0 | 1 if name in self.begun:
                self.reasons.run_skipped(name)
                self.skipped.add(name)
            case 2:
                result = random.choice([*RunResult])
                problem = random.choice(["", "it broke"])
                self.reasons.run_ended(name, result, problem)
                self.begun.pop(name, None)
                self.skipped.discard(name)
                if result is not RunResult.SKIPPED:
                    is_known = result is RunResult.TIMED_OUT and name in self.hanging
                    self.broken[name] = "" if is_known else problem
            case 4:
                self.look_back(random, name)
            case 5:
                self.forgotten.clear()
                self.policies.pop(name, None)
                self.reasons.forget(name)
                self.changed.notify()
                self.found.pop(name, None)
                self.broken.pop(name, None)
                parts = ["plans", "displacements", "plan", "scope", "contested"]
                assert sorted(self.forgotten) == sorted((part, name) for part in parts)
            case 6:
                await self.clock.advance(random.choice([1.0, OVERDUE_S - 1, OVERDUE_S]))
            case 7:
                self.hanging ^= {name}
                self.changed.notify()
            case 8:
                self.surges.trouble = random.choice(["", "the right is missing"])
                self.is_allowed = random.random() < 0.7
                self.displaced = random.choice([{}, {name: "pods wait"}])
                self.is_stopped = random.random() < 0.3
                self.breakers.stop.is_pressed = self.is_stopped
                self.scope = random.choice([{}, {name: {"ScopeBroken": "it matches nothing"}}])
                self.changed.notify()
            case 9:
                if name in self.policies:
                    del self.policies[name]
                else:
                    policy: Any = object()
                    self.policies[name] = policy
                self.changed.notify()


async def test_reasons_are_those_of_a_page_and_statuses_are_written_when_they_change() -> None:
    """Also when time alone makes a run overdue; never when nothing has changed."""
    late = 0
    for seed in range(60):
        random, world = Random(seed), World()
        world.breakers.stop.is_pressed = False
        world.policies |= dict.fromkeys(NAMES)
        task = asyncio.ensure_future(world.reasons.run())
        await settled()
        shown: dict[str, Any] = {}
        for _ in range(30):
            count = world.conditions.count
            await world.step(random)
            await settled()
            present = {}
            for name in NAMES:
                said = world.reasons.of(name)
                assert {*said} == world.expected(name), seed
                assert ("Paused" in world.reasons.advice(name)) == world.advised(name)
                late += "RunOverdue" in said
                if name in world.policies and (said or world.reasons.advice(name)):
                    present[name] = dict(said), world.advised(name)
            assert (world.conditions.count > count) == (present != shown), seed
            shown = present
        task.cancel()
    assert late > 20
