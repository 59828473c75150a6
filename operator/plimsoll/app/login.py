"""Login of kopf with the current credentials of our own connection.

kopf asks for a login when a request of its own was refused (401), and never takes again what it has seen to
be refused; with nothing left to take it ends. A single 401 of a token that is good must not do that, so each
login differs from the last, and comes later the more of them fail in a row.
"""

import asyncio
from typing import Any

import kopf

from plimsoll.kube.session.session import Session
from plimsoll.ports.clock import Clock

#: Seconds to wait before a login with credentials that were refused, and after which they count as accepted.
PAUSES_S = (1.0, 2.0, 5.0, 10.0, 30.0)
ACCEPTED_S = 60.0


class KopfLogin:
    """Logs kopf in, whenever kopf requests it.

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
