"""Start-up settings, login and probes of the kopf operator."""

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
    login: Callable[[], kopf.ConnectionInfo],
    broken: Callable[[], str],
    stop: Callable[[], Awaitable[None]],
) -> None:
    """Enter the handlers.

    Args:
        registry: Of the operator.
        login: The connection that all of us use.
        broken: Why the process should be started anew, "" when it should not; for the liveness probe.
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
    def connect(**_: Any) -> kopf.ConnectionInfo:
        return login()

    @kopf.on.probe(registry=registry, id="loops")
    def loops(**_: Any) -> str:
        if problem := broken():
            raise kopf.PermanentError(problem)  # any other error would be tried again for a minute
        return "running"

    @kopf.on.cleanup(registry=registry)
    async def cleanup(**_: Any) -> None:
        await stop()
