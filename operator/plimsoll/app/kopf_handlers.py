"""kopf's settings and handlers: start-up, login, SchedulingPolicies, end.

kopf carries the policies and nothing else: tens of objects at 0.6 ms an event. Eviction records are thousands
and have a reflector, which costs a tenth (docs/adr/0001).
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from itertools import chain, repeat
from typing import Any, Protocol

import kopf

GROUP, VERSION, PLURAL = "plimsoll.dev", "v1alpha1", "schedulingpolicies"


class PolicySink(Protocol):
    """Takes policies."""

    def set(self, document: Mapping[str, Any]) -> Awaitable[None]:
        """A policy was added or changed."""

    def remove(self, name: str) -> Awaitable[None]:
        """A policy is gone."""


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
    policies: PolicySink,
) -> None:
    """Enter the handlers.

    Args:
        registry: Of the operator.
        login: Gives the credentials that all of us use, each time others than before.
        stop: Ends our own tasks; kopf would wait five seconds for each task that is not its own.
        policies: Takes the policies.
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

    # Raw events: handlers of changes write annotations into the user's object, and timers a finalizer, with
    # which it could not be deleted while the operator is away.
    @kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)
    async def policy_changed(event: kopf.RawEvent, name: str | None, **_: Any) -> None:
        if event["type"] == "DELETED":
            await policies.remove(name or "")
        else:
            await policies.set(dict(event["object"]))

    @kopf.on.cleanup(registry=registry)
    async def cleanup(**_: Any) -> None:
        await stop()
