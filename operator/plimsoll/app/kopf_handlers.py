"""kopf's settings and handlers: start-up, login, SchedulingPolicies, end.

kopf carries the policies and nothing else: tens of objects at 0.6 ms an event. Eviction records are thousands
and have a reflector, which costs a tenth (docs/adr/0001).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import chain, repeat
from typing import Any

import kopf

from plimsoll.kube.session.session import Session
from plimsoll.policies.controller import Policies
from plimsoll.ports.clock import Clock

GROUP, VERSION, PLURAL = "plimsoll.dev", "v1alpha1", "schedulingpolicies"


class Backoffs(Iterable[float]):
    """Seconds between two attempts of a request: growing to half a minute, and without an end.

    kopf ends the operator when its attempts are used up by answers such as 503; the API server may be away
    for longer than any list of attempts lasts.
    """

    def __iter__(self) -> Iterator[float]:
        return chain((1.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0), repeat(30.0))


def register(
    registry: kopf.OperatorRegistry,
    login: Callable[[], Awaitable[kopf.AiohttpSession]],
    stop: Callable[[], Awaitable[None]],
    policies: Policies,
) -> None:
    """Enter the handlers; ``stop`` ends our own tasks: kopf would wait five seconds for each of them."""

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
    async def connect(**_: Any) -> kopf.AiohttpSession:
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


#: Seconds to wait before a login with credentials that were refused, and after which they count as accepted.
PAUSES_S, ACCEPTED_S = (1.0, 2.0, 5.0, 10.0, 30.0), 60.0


class KopfLogin:
    """Logs kopf in with the current credentials of our own connection.

    kopf asks for a login when a request of its own was refused (401), and never takes again what it has seen
    to be refused; with nothing left to take it ends. A single 401 of a good token must not do that, so each
    login differs from the last, and comes later the more of them fail in a row.

    Args:
        session: Whose address, TLS and credentials are used.

    Attributes:
        task: kopf's task that asks; without it kopf waits for a login for ever.
    """

    def __init__(self, session: Session, clock: Clock) -> None:
        self._session = session
        self._clock = clock
        self._count = 0
        self._refusals = 0
        self._shown = ""
        self._at = 0.0
        self.task: asyncio.Task[Any] | None = None

    async def __call__(self) -> kopf.ConnectionInfo:
        """Credentials that differ from all that were given before."""
        self.task = asyncio.current_task()
        credentials = self._session.credentials
        if self._count:
            is_new = await credentials.refused(self._shown)
            if is_new or self._clock.monotonic() - self._at > ACCEPTED_S:
                self._refusals = 0
            if not is_new:
                await self._clock.sleep(PAUSES_S[min(self._refusals, len(PAUSES_S) - 1)])
                await credentials.refused(self._shown)
                self._refusals += 1
        self._count += 1
        self._at = self._clock.monotonic()
        self._shown = await credentials.authorization()
        scheme, _, token = self._shown.partition(" ")
        settings = self._session.configuration
        return kopf.ConnectionInfo(
            server=self._session.address,
            ca_path=settings.ssl_ca_cert,
            insecure=not settings.verify_ssl,
            scheme=scheme or None,
            token=token or None,
            certificate_path=settings.cert_file,
            private_key_path=settings.key_file,
            proxy_url=settings.proxy or None,
            priority=self._count,
        )
