"""Start-up settings, login and end of the kopf operator."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import chain, repeat
from typing import Any

import kopf


class Backoffs(Iterable[float]):
    """Seconds between two attempts of a request: growing to half a minute, and without an end.

    kopf ends the operator when its attempts are used up by answers such as 503; the API server may be away
    for longer than any list of attempts lasts.
    """

    def __iter__(self) -> Iterator[float]:
        return chain((1.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0), repeat(30.0))


def register(
    registry: kopf.OperatorRegistry,
    login: Callable[[], Awaitable[kopf.ConnectionInfo]],
    stop: Callable[[], Awaitable[None]],
) -> None:
    """Enter the handlers.

    Args:
        registry: Of the operator.
        login: Gives the credentials that all of us use, each time others than before.
        stop: Ends our own tasks; kopf would wait five seconds for each task that is not its own.
    """

    @kopf.on.startup(registry=registry)
    def startup(settings: kopf.OperatorSettings, **_: Any) -> None:
        # No peering objects, no events and no annotations of kopf's: users' objects stay theirs.
        settings.peering.standalone = True
        settings.posting.enabled = False
        settings.scanning.disabled = False
        settings.networking.request_timeout = 30
        settings.networking.error_backoffs = Backoffs()
        settings.watching.server_timeout = 290
        settings.watching.client_timeout = 320

    @kopf.on.login(registry=registry)
    async def connect(**_: Any) -> kopf.ConnectionInfo:
        return await login()

    @kopf.on.cleanup(registry=registry)
    async def cleanup(**_: Any) -> None:
        await stop()
