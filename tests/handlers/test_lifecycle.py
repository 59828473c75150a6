"""kopf's start-up: it leaves users' objects alone, and outlives the API server."""

import asyncio
from collections.abc import Sized
from itertools import islice

import aiohttp
import kopf
import pytest
from kopf._core.engines import probing

from e2e.operating import free_port
from plimsoll.handlers import lifecycle


async def nothing():
    """Nothing to end."""


@pytest.fixture
def settings():
    """Kopf's settings after our start-up handler."""
    registry = kopf.OperatorRegistry()
    lifecycle.register(registry, login=lambda: None, broken=lambda: "", stop=nothing)
    (startup,) = [
        handler for handler in registry._activities.get_all_handlers() if handler.fn.__name__ == "startup"
    ]
    settings = kopf.OperatorSettings()
    startup.fn(settings=settings)
    return settings


def test_requests_are_tried_for_ever(settings):
    """Kopf counts attempts of whatever has a length, and ends the operator after the last one."""
    backoffs = settings.networking.error_backoffs

    assert not isinstance(backoffs, Sized)
    assert list(islice(backoffs, 11)) == [1, 1, 2, 3, 5, 8, 13, 21, 30, 30, 30]
    assert list(islice(backoffs, 1)) == [1]


def test_nothing_is_written_into_users_objects(settings):
    """No events of kopf's, no peering objects."""
    assert settings.posting.enabled is False
    assert settings.peering.standalone is True


@pytest.mark.parametrize(("problem", "status"), [("", 200), ("the scheduling loop hangs for 901 s", 500)])
async def test_the_liveness_probe_fails_at_once_when_something_is_broken(problem, status):
    """As kopf serves it: an answer in time, for a kubelet waits five seconds."""
    registry, ready = kopf.OperatorRegistry(), asyncio.Event()
    lifecycle.register(registry, login=lambda: None, broken=lambda: problem, stop=nothing)
    url = f"http://127.0.0.1:{free_port()}/healthz"
    serving = asyncio.create_task(
        probing.health_reporter(
            url,
            memo=kopf.Memo(),
            indices={},
            registry=registry,
            settings=kopf.OperatorSettings(),
            ready_flag=ready,
        )
    )
    try:
        async with asyncio.timeout(20), aiohttp.ClientSession() as http:
            await ready.wait()
            async with http.get(url, timeout=aiohttp.ClientTimeout(total=5)) as answer:
                assert answer.status == status
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
