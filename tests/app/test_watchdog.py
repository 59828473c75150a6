"""The dead man's switch: when it withdraws policies, and when it does not."""

from __future__ import annotations

import asyncio
from typing import Any

from plimsoll.app.watchdog import watch
from plimsoll.ports.leases import Lease
from plimsoll.ports.writes import DONE, WriteOutcome, WriteResult
from plimsoll.testing.fakes import FakeClock

NO_ANSWER = WriteResult(WriteOutcome.UNKNOWN, "no answer")


def a_policy(name: str, ready: str = "True", **scheduling: Any) -> dict[str, Any]:
    """A policy as the API server has it."""
    moment = "2026-01-01T00:00:00Z"
    told = [{"type": "Accepted", "status": "True"}, {"type": "Ready", "status": ready}]
    conditions = [{**each, "reason": "Serving", "message": "", "lastTransitionTime": moment} for each in told]
    return {
        "metadata": {"name": name, "resourceVersion": "7"},
        "spec": {"scheduling": {"schedulerName": name, **scheduling}},
        "status": {"conditions": conditions},
    }


class Cluster:
    """A lease and policies; ``renewed_until`` is the moment of the last renewal, in seconds."""

    def __init__(self, *policies: Any, renewed_until: float = 0.0, duration_s: int = 15) -> None:
        self.clock = FakeClock()
        self.began = self.clock.monotonic()
        self.policies = list(policies)
        self.renewed_until = renewed_until
        self.duration_s = duration_s
        self.exists = True
        self.silent: range = range(0)
        self.written: list[tuple[float, str, Any, str]] = []
        self.outcomes: list[WriteResult] = []

    @property
    def passed_s(self) -> float:
        """Seconds since the beginning."""
        return self.clock.monotonic() - self.began

    async def read(self) -> tuple[WriteResult, Lease | None]:
        """The lease."""
        if int(self.passed_s) in self.silent:
            return NO_ANSWER, None
        version = f"v{min(self.passed_s, self.renewed_until):.0f}"
        return DONE, Lease("a", self.duration_s, 0.0, 0.0, version=version) if self.exists else None

    async def list(self) -> tuple[WriteResult, list[Any]]:
        """The policies."""
        return DONE, self.policies

    async def write_status(self, name: str, status: Any, *, version: str) -> WriteResult:
        """Write a status."""
        answer = self.outcomes.pop(0) if self.outcomes else DONE
        self.written.append((self.passed_s, name, status, version))
        if answer.is_done:
            found = next(each for each in self.policies if each["metadata"]["name"] == name)
            found["status"] = {**found["status"], **status}
        return answer

    async def watched(self, seconds: float = 55.0, operator: str = "") -> str:
        """What the watchdog says after some seconds."""
        task = asyncio.ensure_future(watch(self, self, self.clock, seconds, operator))  # type: ignore[arg-type] # a fake
        await self.clock.advance(seconds + 10)
        return await task


async def test_a_policy_is_withdrawn_once_the_lease_was_unchanged_for_its_duration() -> None:
    cluster = Cluster(a_policy("plain"), a_policy("web", adopt={}), renewed_until=12.0)

    said = await cluster.watched()

    assert said == "no operator leads: web adopts no more pods"
    ((when, name, status, version),) = cluster.written
    assert (when, name, version) == (30.0, "web", "7")
    accepted, ready = status["conditions"]
    assert (accepted["type"], accepted["status"]) == ("Accepted", "True")
    assert (ready["status"], ready["reason"]) == ("False", "NoLeader")


async def test_it_withdraws_the_policies_of_its_own_operator() -> None:
    """The lease of one operator says nothing about the policies of another."""
    red = a_policy("red", adopt={})
    red["metadata"]["labels"] = {"plimsoll.dev/operator": "r"}

    for operator, withdrawn in (("", "web"), ("r", "red")):
        cluster = Cluster(a_policy("web", adopt={}), red)
        await cluster.watched(operator=operator)
        assert [each[1] for each in cluster.written] == [withdrawn]


async def test_a_renewed_lease_withdraws_nothing() -> None:
    cluster = Cluster(a_policy("web", adopt={}), renewed_until=1000.0)

    assert await cluster.watched() == "an operator leads"
    assert not cluster.written


async def test_a_longer_lease_is_waited_for_and_a_released_one_as_long_as_others() -> None:
    """A lease that was released is valid for a second: its successor needs longer."""
    long, short = (
        Cluster(a_policy("a", adopt={}), duration_s=40),
        Cluster(a_policy("a", adopt={}), duration_s=1),
    )

    await long.watched()
    await short.watched()

    assert [each.written[0][0] for each in (long, short)] == [40.0, 15.0]


async def test_a_lease_that_does_not_exist_is_stale_as_well() -> None:
    cluster = Cluster(a_policy("web", adopt={}))
    cluster.exists = False

    assert await cluster.watched() == "no operator leads: web adopts no more pods"


async def test_silence_of_the_server_says_nothing_about_the_leader() -> None:
    """The time without answers does not count."""
    cluster = Cluster(a_policy("web", adopt={}))
    cluster.silent = range(5, 20)

    await cluster.watched(34.0)

    assert not cluster.written


async def test_a_policy_that_changed_in_between_is_withdrawn_at_the_next_look() -> None:
    cluster = Cluster(a_policy("web", adopt={}))
    cluster.outcomes = [WriteResult(WriteOutcome.CONFLICT, "changed")]

    assert await cluster.watched() == "no operator leads: web adopts no more pods"
    assert [when for when, *_ in cluster.written] == [15.0, 20.0]


async def test_what_is_withdrawn_already_is_left_alone() -> None:
    cluster = Cluster(a_policy("web", ready="False", adopt={}), {"metadata": {"name": "odd"}, "spec": None})

    assert await cluster.watched() == "no operator leads, and no policy adopts pods"
    assert not cluster.written
