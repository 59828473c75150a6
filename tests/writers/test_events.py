"""Events: equal ones share an object with a count, and writers never wait."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kube.scripted_server import ToldServer
from plimsoll.kube.session.session import Session
from plimsoll.ports.events import EventNote
from plimsoll.ports.pod_writes import pod_reference
from plimsoll.testing.builders import a_pod
from plimsoll.testing.fakes import FakeClock
from plimsoll.writers import events
from plimsoll.writers.events import (
    FORGET_S,
    MOST_WRITERS,
    NOTE_BYTES,
    SERIES_BURST,
    SERIES_S,
    TOGETHER,
    WRITERS,
    WRITERS_PER_S,
    EventPoster,
    micro_time,
)


def a_note(text: str = "0/3 nodes are available: 3 Insufficient cpu.", pod: str = "web-1") -> EventNote:
    """Why a pod waits."""
    return EventNote(
        pod_reference(a_pod(pod)),
        "FailedScheduling",
        "Scheduling",
        text,
        is_warning=True,
        reporter="plimsoll",
    )


@asynccontextmanager
async def recording(session: Session) -> AsyncIterator[Any]:
    """A recorder at work, and its clock."""
    clock = FakeClock()
    recorder = EventPoster(session, clock, "instance-1")
    task = asyncio.create_task(recorder.run())
    try:
        yield recorder, clock
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_an_event_is_written_as_kubectl_describe_shows_it(told: tuple[ToldServer, Session]) -> None:
    """events.k8s.io/v1, in the pod's namespace, about this very pod."""
    server, session = told
    server.then({}, 201)

    async with recording(session) as (recorder, _):
        recorder.record(a_note())
        await recorder.drain()

    method, path, body, _ = server.requests[0]
    assert (method, path) == ("POST", "/apis/events.k8s.io/v1/namespaces/default/events")
    assert body["regarding"]["uid"] == "uid-default-web-1"
    assert (body["type"], body["reason"], body["action"]) == ("Warning", "FailedScheduling", "Scheduling")
    assert body["reportingController"] == "plimsoll"
    assert body["note"] == "0/3 nodes are available: 3 Insufficient cpu."


async def test_equal_events_become_a_series_that_is_seldom_written(told: tuple[ToldServer, Session]) -> None:
    """A hundred failures of one pod are one event and, a minute later, one count."""
    server, session = told
    server.then({}, 201)
    server.then({})

    async with recording(session) as (recorder, clock):
        for _ in range(100):
            recorder.record(a_note())
        await recorder.drain()
        await clock.advance(SERIES_S)
        recorder.record(a_note())
        await recorder.drain()

    assert [method for method, _, _, _ in server.requests] == ["POST", "PATCH"]
    assert server.requests[1][2]["series"]["count"] == 101


async def test_another_sentence_is_another_event(told: tuple[ToldServer, Session]) -> None:
    """What changed is news."""
    server, session = told
    server.then({}, 201)
    server.then({}, 201)

    async with recording(session) as (recorder, _):
        recorder.record(a_note("one"))
        recorder.record(a_note("two"))
        await recorder.drain()

    assert sorted(body["note"] for _, _, body, _ in server.requests) == ["one", "two"]


async def test_the_same_much_later_is_a_new_event(told: tuple[ToldServer, Session]) -> None:
    """A series ends when nothing was heard of it for a while."""
    server, session = told
    server.then({}, 201)
    server.then({}, 201)

    async with recording(session) as (recorder, clock):
        recorder.record(a_note())
        await recorder.drain()
        await clock.advance(FORGET_S)
        recorder.record(a_note())
        await recorder.drain()

    assert [method for method, _, _, _ in server.requests] == ["POST", "POST"]


async def test_series_that_are_over_take_no_memory(told: tuple[ToldServer, Session]) -> None:
    """A busy leader kept 20,000 events, 22 MiB; one that was counted later is kept longer."""
    server, session = told
    for _ in range(TOGETHER):
        server.then({}, 201)

    async with recording(session) as (recorder, clock):
        for number in range(4):
            recorder.record(a_note(pod=f"web-{number}"))
        await recorder.drain()
        await clock.advance(SERIES_S)
        recorder.record(a_note(pod="web-1"))  # its count is written
        await recorder.drain()
        await clock.advance(FORGET_S - SERIES_S)
        recorder.record(a_note(pod="web-9"))
        await recorder.drain()

        assert [key[1] for key in recorder._series] == ["web-1", "web-9"]


async def test_only_so_many_series_are_remembered(
    told: tuple[ToldServer, Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest one goes when there is one too many."""
    monkeypatch.setattr(events, "REMEMBERED", 2)
    server, session = told
    for _ in range(TOGETHER):
        server.then({}, 201)

    async with recording(session) as (recorder, _):
        for number in range(3):
            recorder.record(a_note(pod=f"web-{number}"))
        await recorder.drain()

        assert [key[1] for key in recorder._series] == ["web-1", "web-2"]


async def test_a_refused_event_is_counted_and_forgotten(told: tuple[ToldServer, Session]) -> None:
    """Events are a courtesy: nothing depends on them, and the next one is written in full."""
    server, session = told
    server.then({"code": 403}, 403)
    server.then({}, 201)

    async with recording(session) as (recorder, _):
        recorder.record(a_note())
        await recorder.drain()
        recorder.record(a_note())
        await recorder.drain()

    assert [method for method, _, _, _ in server.requests] == ["POST", "POST"]
    assert recorder.dropped == 1


async def test_long_sentences_are_cut_as_kube_scheduler_cuts_them(told: tuple[ToldServer, Session]) -> None:
    """1,024 bytes at most, never within a character."""
    server, session = told
    server.then({}, 201)

    async with recording(session) as (recorder, _):
        recorder.record(a_note("é" * 2000))
        await recorder.drain()

    note = server.requests[0][2]["note"]
    assert len(note.encode()) <= NOTE_BYTES
    assert note.endswith("é ...")


async def test_a_text_that_cannot_be_sent_is_dropped_alone(told: tuple[ToldServer, Session]) -> None:
    """A plugin's message with half a character in it: the next event is written."""
    server, session = told
    server.then({}, 201)

    async with recording(session) as (recorder, _):
        for _ in range(10):
            recorder.record(a_note("\ud800"))
        recorder.record(a_note())
        await recorder.drain()

    assert recorder.dropped == 10
    assert [body["note"] for _, _, body, _ in server.requests] == [a_note().text]


async def test_counts_of_many_series_are_written_at_a_bounded_rate(told: tuple[ToldServer, Session]) -> None:
    """A thousand pods fail again a minute later; some counts are written then, others with later failures."""
    server, session = told
    for _ in range(1000):
        server.then({}, 201)
    for _ in range(SERIES_BURST):
        server.then({})

    async with recording(session) as (recorder, clock):
        for _ in range(2):
            for number in range(1000):
                recorder.record(a_note(pod=f"web-{number}"))
            await recorder.drain()
            await clock.advance(SERIES_S + 1)

    methods = [method for method, *_ in server.requests]
    assert (methods.count("POST"), methods.count("PATCH")) == (1000, SERIES_BURST)


async def test_events_without_an_answer_are_sent_once_more(told: tuple[ToldServer, Session]) -> None:
    """The connection ends after the first of three; the second is there already, the third is not."""
    server, session = told
    server.then({}, 201, {"Connection": "close"})
    server.then({"reason": "AlreadyExists"}, 409)
    server.then({}, 201)

    async with recording(session) as (recorder, _):
        for word in ("one", "two", "three"):
            recorder.record(a_note(word))
        await recorder.drain()

    assert [body["note"] for _, _, body, _ in server.requests] == ["one", "two", "three"]
    assert recorder.dropped == 0


async def test_the_longer_events_wait_the_more_of_them_are_written(told: tuple[ToldServer, Session]) -> None:
    """A server that answers nothing: so many groups, no more for as long as no second passes, never all."""
    _, session = told

    async with recording(session) as (recorder, clock):
        for number in range((MOST_WRITERS + 9) * TOGETHER):
            recorder.record(a_note(pod=f"web-{number}"))
        writing = []
        for seconds in (0.0, 0.9 / WRITERS_PER_S, 0.2 / WRITERS_PER_S, 1.0, 60.0):
            await clock.advance(seconds)
            writing.append(recorder.writing)

    assert writing == [WRITERS, WRITERS, WRITERS + 1, WRITERS + 1 + WRITERS_PER_S, MOST_WRITERS]


async def test_an_event_says_when_it_happened(told: tuple[ToldServer, Session]) -> None:
    """Not when it is written."""
    server, session = told
    server.then({}, 201)

    async with recording(session) as (recorder, clock):
        happened = clock.now()
        recorder.record(a_note())
        clock.time += 3.0
        await recorder.drain()

    assert server.requests[0][2]["eventTime"] == micro_time(happened)
    assert micro_time(1767225600.25) == "2026-01-01T00:00:00.250000Z"
    assert micro_time(1767225599.9999999) == "2026-01-01T00:00:00.000000Z"


async def test_a_wall_clock_that_is_set_back_holds_no_event(
    told: tuple[ToldServer, Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events that wait for their turn are written as soon as if it had not been."""
    _, session = told

    async with recording(session) as (recorder, clock):
        for number in range(MOST_WRITERS * TOGETHER):
            recorder.record(a_note(pod=f"web-{number}"))
        await clock.advance(0.0)
        monkeypatch.setattr(clock, "now", lambda: clock.time - 3600.0)
        await clock.advance(1.0)

        assert recorder.writing > WRITERS + 1
