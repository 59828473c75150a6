"""CallerGate admits callers with a valid token and the right to a path; results are cached for seconds.

The caller's bearer token is reviewed (TokenReview), then the right to get the path (SubjectAccessReview of a
non-resource URL). A caller behind the API server's proxy sends a token for the audience plimsoll.dev in a
separate header, which accepts no other token.

Reviews are limited by the address of the caller, so that invalid tokens from one keep no other out.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
from aiohttp import web

from plimsoll.kube.access_reviews import Caller
from plimsoll.kube.session.errors import APIError, Unauthorized
from plimsoll.ports.audience import AUDIENCE, HEADER
from plimsoll.ports.clock import Clock
from plimsoll.timing.rate_limit import RateLimiter

#: Seconds for which the result of a review is cached, and maximum number of cached results.
KEPT_S, KEPT = 10.0, 256

#: Reviews a second for one address in the long run, and in a burst; maximum number of remembered addresses.
REVIEWS_PER_S, REVIEWS, ADDRESSES = 5.0, 10, 256

#: The remedy if the operator may not review.
GRANTS = "apply deploy/components/explain (chart: explain.enabled: true)"


class CallerReviewer(Protocol):
    """Authenticates callers and reviews their rights; raises APIError."""

    async def caller(self, token: str, audience: str = "") -> Caller | None:
        """The user of a token; None if it is not valid for the audience ("" is the API server's)."""

    async def may_get(self, caller: Caller, path: str) -> bool:
        """Whether the caller may get a path."""


class CallerRefusal(msgspec.Struct, frozen=True):
    """The status and message of a rejected request."""

    status: int
    text: str

    def response(self) -> web.Response:
        """The refusal as a response."""
        headers = {"WWW-Authenticate": "Bearer"} if self.status == 401 else {}
        return web.Response(status=self.status, text=f"{self.text}\n", headers=headers)


@dataclass(eq=False)
class CallerGate:
    """Reviews callers."""

    reviews: CallerReviewer
    clock: Clock
    _kept: dict[tuple[bytes, str, str], tuple[float, CallerRefusal | None]] = field(
        default_factory=dict, init=False
    )
    _paces: dict[str, RateLimiter] = field(default_factory=dict, init=False)  # by address

    async def refusal(self, headers: Mapping[str, str], path: str, address: str) -> CallerRefusal | None:
        """Why the caller is rejected; None when it is admitted."""
        audience = AUDIENCE if HEADER in headers else ""
        authorization = headers.get(HEADER if audience else "Authorization", "")
        scheme, _, token = authorization.partition(" ")
        # Bytes that are not ASCII arrive as lone surrogates, and cannot be part of a token.
        if scheme.lower() != "bearer" or not token.strip() or not token.isascii():
            return CallerRefusal(401, "a bearer token of the cluster is needed")
        key = (hashlib.sha256(token.encode()).digest(), audience, path)
        now = self.clock.monotonic()
        until, refusal = self._kept.get(key, (0.0, None))
        if now < until:
            return refusal
        if not self._pace(address).try_accept():
            return CallerRefusal(429, "too many tokens to review from this address; try again in a second")
        try:
            refusal = await self._reviewed(token.strip(), audience, path)
        except Unauthorized as exc:
            text = f"the operator may not review callers: {exc.message}; {GRANTS}"
            return CallerRefusal(503, text)
        except APIError as exc:
            return CallerRefusal(503, f"the API server does not review callers: {exc}")
        self._kept.pop(key, None)
        if len(self._kept) >= KEPT:
            del self._kept[next(iter(self._kept))]  # the oldest
        self._kept[key] = (now + KEPT_S, refusal)
        return refusal

    def _pace(self, address: str) -> RateLimiter:
        """The rate of reviews for an address; the one that was used longest ago is forgotten first."""
        pace = self._paces.pop(address, None) or RateLimiter(self.clock, REVIEWS_PER_S, REVIEWS)
        if len(self._paces) >= ADDRESSES:
            del self._paces[next(iter(self._paces))]
        self._paces[address] = pace
        return pace

    async def _reviewed(self, token: str, audience: str, path: str) -> CallerRefusal | None:
        caller = await self.reviews.caller(token, audience)
        if caller is None:
            meant = f" for the audience {audience}" if audience else ""
            return CallerRefusal(401, f"the API server does not accept the token{meant}")
        if not await self.reviews.may_get(caller, path):
            text = (
                f'User "{caller.user}" cannot get path "{path}"; the ClusterRole plimsoll-explain grants it'
            )
            return CallerRefusal(403, text)
        return None
