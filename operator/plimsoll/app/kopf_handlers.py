"""kopf's settings and handlers: start-up, login, SchedulingPolicies, shutdown.

kopf serves only the policies: tens of objects at 0.6 ms per event. Eviction records number thousands and have
a reflector, which costs a tenth (docs/adr/0001).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import chain, repeat
from typing import Any

import kopf

from plimsoll.kube.session.session import Session
from plimsoll.policy_controller.controller import PolicyController
from plimsoll.ports.clock import Clock

GROUP, VERSION, PLURAL = "plimsoll.dev", "v1alpha1", "schedulingpolicies"


class Backoffs(Iterable[float]):
    """Seconds between two attempts of a request: growing to half a minute, endless.

    kopf ends the operator when responses such as 503 have used up its attempts, and the API server may be
    down for longer than any finite list of pauses lasts.
    """

    def __iter__(self) -> Iterator[float]:
        return chain((1.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0), repeat(30.0))


def register(
    registry: kopf.OperatorRegistry,
    login: Callable[[], Awaitable[kopf.AiohttpSession]],
    stop: Callable[[], Awaitable[None]],
    policies: PolicyController,
) -> None:
    """Register the handlers; ``stop`` ends our own tasks, since kopf would wait five seconds for each."""

    @kopf.on.startup(registry=registry)
    def startup(settings: kopf.OperatorSettings, **_: Any) -> None:
        # No peering objects, events or annotations of kopf: users' objects stay as they are.
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

    # Raw events: change handlers write annotations into the user's object, and timers add a finalizer, which
    # would prevent deletion while the operator is down.
    @kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)
    async def policy_changed(event: kopf.RawEvent, name: str | None, **_: Any) -> None:
        if event["type"] == "DELETED":
            await policies.remove(name or "")
        else:
            await policies.set(dict(event["object"]))

    @kopf.on.cleanup(registry=registry)
    async def cleanup(**_: Any) -> None:
        await stop()


#: Seconds before a login with credentials that were refused, and seconds after which they count as accepted.
PAUSES_S, ACCEPTED_S = (1.0, 2.0, 5.0, 10.0, 30.0), 60.0


class KopfLogin:
    """Logs kopf in with the current credentials of our own session.

    kopf requests a login after a 401 response, never accepts credentials again that it has seen refused, and
    ends when it has no others. A single 401 of a valid token must not cause that. So each login differs from
    the previous one, and is delayed longer the more of them fail in a row.

    Args:
        session: The session whose address, TLS settings and credentials are used.

    Attributes:
        task: The task of kopf that requests logins; without it kopf waits for a login forever.
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
        """Return credentials that differ from all earlier ones."""
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
