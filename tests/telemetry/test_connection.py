"""The connection to the API server, as Prometheus sees it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from kube.scripted_server import ToldServer, told_server
from plimsoll.kube.session.errors import APIError, Unavailable
from plimsoll.kube.session.session import Session
from plimsoll.telemetry.process import ProcessMetrics


@pytest.fixture
async def connection(tmp_path: Path) -> AsyncIterator[Any]:
    """A server whose answers a test tells, an observed session to it, and what was counted."""
    registry = CollectorRegistry()
    async with told_server(tmp_path) as (server, session):
        yield server, session.observed(ProcessMetrics(registry)), registry.get_sample_value


async def test_requests_are_counted_by_their_answer(
    connection: tuple[ToldServer, Session, Callable[..., Any]],
) -> None:
    """Rejections are counted by status, unanswered requests apart; writes and reads alike."""
    server, session, value = connection
    server.then()
    server.then({"message": "no"}, 503)

    await session.request("GET", "/api")
    with pytest.raises(APIError, match="no"):
        await session.request("POST", "/api", {})
    with pytest.raises(Unavailable):
        await session.request("GET", "/api", timeout_s=0.05)

    name = "plimsoll_rest_client_requests_total"
    assert value(name, {"method": "GET", "code": "200"}) == 1
    assert value(name, {"method": "POST", "code": "503"}) == 1
    assert value(name, {"method": "GET", "code": "<error>"}) == 1
    assert value("plimsoll_rest_client_request_duration_seconds_count", {"method": "GET"}) == 2


async def test_a_watch_is_counted_when_it_opens(
    connection: tuple[ToldServer, Session, Callable[..., Any]],
) -> None:
    """Not when it ends, which may be minutes later."""
    server, session, value = connection
    hold = asyncio.Event()
    server.then_stream(hold=hold)

    async with session.stream("/api/v1/pods", {}, 5.0):
        counted = value("plimsoll_rest_client_requests_total", {"method": "WATCH", "code": "200"})
    hold.set()

    assert counted == 1


async def test_what_was_called_off_is_no_error(
    connection: tuple[ToldServer, Session, Callable[..., Any]],
) -> None:
    """A process that ends must not look like a server that fails."""
    server, session, value = connection
    asking = asyncio.create_task(session.request("GET", "/api"))
    while not server.requests:  # noqa: ASYNC110 - until the request is there
        await asyncio.sleep(0.01)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)

    assert value("plimsoll_rest_client_requests_total", {"method": "GET", "code": "<error>"}) is None


def test_the_last_word_of_a_collection_is_remembered() -> None:
    """By the wall clock, so that time() tells how long ago it was."""
    registry = CollectorRegistry()
    metrics = ProcessMetrics(registry)
    metrics.watch_heard("pods", 1000.0)
    metrics.watch_heard("pods", 1060.0)

    assert (
        registry.get_sample_value("plimsoll_watch_last_heard_timestamp_seconds", {"resource": "pods"}) == 1060
    )
