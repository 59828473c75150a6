"""kopf's start-up: it leaves users' objects alone, and outlives the API server."""

from collections.abc import Sized
from itertools import islice

import kopf
import pytest
from kopf._cogs.configs.configuration import OperatorSettings

from plimsoll.app import kopf_handlers


async def nothing() -> None:
    """Nothing to give or to end."""


@pytest.fixture
def settings() -> OperatorSettings:
    """Kopf's settings after our start-up handler."""
    registry = kopf.OperatorRegistry()
    kopf_handlers.register(registry, nothing, nothing, None)  # type: ignore[arg-type] # a fake has only what is used
    (startup,) = [
        handler
        for handler in registry._activities.get_all_handlers()
        if handler.fn.__name__ == "startup"  # type: ignore[attr-defined] # known to exist in this test
    ]
    settings = kopf.OperatorSettings()
    startup.fn(settings=settings)  # type: ignore[call-arg] # known in this test
    return settings


def test_requests_are_tried_for_ever(settings: OperatorSettings) -> None:
    """Kopf counts attempts of whatever has a length, and ends the operator after the last one."""
    backoffs = settings.networking.error_backoffs

    assert not isinstance(backoffs, Sized)
    assert list(islice(backoffs, 11)) == [1, 1, 2, 3, 5, 8, 13, 21, 30, 30, 30]  # type: ignore[arg-type] # a fake has only what is used
    assert list(islice(backoffs, 1)) == [1]  # type: ignore[arg-type] # a fake has only what is used


def test_nothing_is_written_into_users_objects(settings: OperatorSettings) -> None:
    """No events of kopf's, no peering objects."""
    assert settings.posting.enabled is False
    assert settings.peering.standalone is True
