"""Notices are CloudEvents that a receiver gets in its own time; nothing waits for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from plimsoll.kube.cloud_events import CloudEventClient
from plimsoll.ports.observer import Observer
from plimsoll.telemetry.notices import BURST, MOST_WAITING, Notices
from plimsoll.testing.fakes import FakeClock, settled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

FACTS = {"pod": "shop/web-1", "policy": "tidy", "reason": "ReplacementReady", "message": "it runs"}


class Counts(Observer):
    """Counts the ends of notices."""

    def __init__(self) -> None:
        self.ends: dict[str, int] = {}
        self.problems: list[str] = []

    def notice_ended(self, result: str, problem: str = "") -> None:
        """Count one."""
        self.ends[result] = self.ends.get(result, 0) + 1
        self.problems += [problem] if problem else []


class Receiver:
    """Takes events, or answers with other words."""

    def __init__(self, *answers: str) -> None:
        self.events: list[Mapping[str, Any]] = []
        self.answers = list(answers)

    async def post(self, event: Mapping[str, object]) -> str:
        """Take an event."""
        answer = self.answers.pop(0) if self.answers else ""
        if not answer:
            self.events.append(event)
        return answer


async def told(
    receiver: Receiver, tell: Any, seconds: float = 0.0, per_minute: int = 60, idle_s: float = 0.0
) -> Counts:
    """What becomes of notices that begin after a while."""
    clock, counts = FakeClock(), Counts()
    notices = Notices(receiver.post, "west", per_minute, clock, counts)
    task = asyncio.create_task(notices.run())
    await settled()
    await clock.advance(idle_s)
    tell(notices)
    await settled()
    await clock.advance(seconds)
    await settled()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return counts


async def test_a_notice_is_a_cloud_event() -> None:
    """Version 1.0, with an id of its own, who sent it, what it is about, and the facts."""
    receiver = Receiver()

    await told(receiver, lambda notices: notices.move_told("shop/r1", "Settled", FACTS))

    (event,) = receiver.events
    assert event["specversion"] == "1.0"
    assert event["type"] == "dev.plimsoll.move.settled"
    assert event["source"] == "/clusters/west/plimsoll"
    assert event["subject"] == "shop/r1"
    assert event["datacontenttype"] == "application/json"
    assert event["time"] == "1970-03-11T10:40:00Z"  # six million seconds, by the wall clock
    assert event["data"] == {"cluster": "west", "phase": "Settled", "record": "shop/r1", **FACTS}


@pytest.mark.parametrize(
    ("step", "makes_one"),
    [
        ("Predicted", False),
        ("Planned", False),
        ("Evicting", True),
        ("Evicted", False),
        ("Surging", True),
        ("Settled", True),
        ("Returned", True),
        ("Blocked", True),
        ("Cancelled", True),
        ("Failed", True),
    ],
)
async def test_beginnings_ends_and_refusals_of_moves_make_notices(step: str, makes_one: bool) -> None:
    """Predictions are not: the notice of a dry run has counts."""
    receiver = Receiver()

    await told(receiver, lambda notices: notices.move_told("shop/r1", step, FACTS))

    assert bool(receiver.events) is makes_one


@pytest.mark.parametrize(
    ("kind", "makes_one"),
    [("SchedulingPolicy", True), ("NodeMaintenance", True), ("Pod", False), ("Lease", False)],
)
async def test_events_of_policies_make_notices(kind: str, makes_one: bool) -> None:
    """Stops, and runs in counts; events of pods are too many."""
    receiver = Receiver()

    await told(
        receiver, lambda notices: notices.object_noted(kind, "tidy", "Stopped", "why", is_warning=True)
    )

    assert [each["type"] for each in receiver.events] == (
        [f"dev.plimsoll.{kind.lower()}.stopped"] * makes_one
    )


async def test_the_rate_is_limited() -> None:
    """A burst, then as many a minute as are allowed; none is lost meanwhile."""

    def many(notices: Notices) -> None:
        for number in range(BURST + 40):
            notices.move_told(f"shop/r{number}", "Settled", FACTS)

    assert (await told(Receiver(), many)).ends == {"sent": BURST}
    assert (await told(Receiver(), many, seconds=30.5)).ends == {"sent": BURST + 30}
    assert (await told(Receiver(), many, idle_s=3600)).ends == {"sent": BURST}


async def test_a_full_queue_loses_the_oldest_and_counts_it() -> None:
    """The caller notices nothing."""
    receiver = Receiver()

    def too_many(notices: Notices) -> None:
        for number in range(MOST_WAITING + 3):
            notices.move_told(f"shop/r{number}", "Settled", FACTS)

    counts = await told(receiver, too_many)

    assert counts.ends == {"dropped": 3, "sent": BURST}
    assert receiver.events[0]["subject"] == "shop/r3"


async def test_a_failure_is_tried_again_and_then_counted() -> None:
    """Twice refused, then accepted; three times refused is given up, and the next notice goes."""
    patient, lost = Receiver("HTTP 503", "HTTP 503"), Receiver("HTTP 503", "HTTP 503", "HTTP 503")

    once = await told(patient, lambda notices: notices.move_told("shop/r1", "Settled", FACTS), 15.0)

    def two(notices: Notices) -> None:
        notices.move_told("shop/r1", "Settled", FACTS)
        notices.move_told("shop/r2", "Settled", FACTS)

    twice = await told(lost, two, 15.0)
    assert once.ends == {"sent": 1}
    assert twice.ends == {"failed": 1, "sent": 1}
    assert twice.problems == ["HTTP 503"]
    assert [each["subject"] for each in lost.events] == ["shop/r2"]


@pytest.fixture
async def served() -> AsyncIterator[tuple[str, list[Any]]]:
    """An HTTP server that keeps requests, and sends others elsewhere."""
    kept: list[Any] = []

    async def take(request: web.Request) -> web.Response:
        kept.append((request.path, dict(request.headers), await request.json()))
        headers = {"Location": "/elsewhere"} if request.path == "/moved" else {}
        return web.Response(status=302 if headers else 202, headers=headers)

    app = web.Application()
    app.router.add_post("/{any}", take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}", kept
    await runner.cleanup()


async def test_it_is_posted_in_structured_mode_with_the_token_of_the_moment(
    served: tuple[str, list[Any]], tmp_path: Path
) -> None:
    """A rotated token is used for the next notice; redirects are not followed, so no other host gets it."""
    url, kept = served
    token = tmp_path / "token"
    token.write_text("first\n", encoding="ascii")
    client = CloudEventClient(f"{url}/events", token)

    assert await client.post({"specversion": "1.0"}) == ""
    token.write_text("second\n", encoding="ascii")
    assert await client.post({"specversion": "1.0"}) == ""
    assert await CloudEventClient(f"{url}/moved", token).post({"specversion": "1.0"}) == "HTTP 302"
    assert await CloudEventClient("http://127.0.0.1:1/secret-path").post({}) == "ClientConnectorError"
    token.unlink()
    assert await client.post({}) == "FileNotFoundError"

    assert [path for path, _, _ in kept] == ["/events", "/events", "/moved"]
    _, headers, body = kept[0]
    assert headers["Content-Type"] == "application/cloudevents+json; charset=utf-8"
    assert headers["Authorization"] == "Bearer first"
    assert kept[1][1]["Authorization"] == "Bearer second"
    assert body == {"specversion": "1.0"}
