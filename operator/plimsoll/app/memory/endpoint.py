"""The endpoint /explain/ serves the operator's memory of pods and nodes to authorized callers.

::

    GET /explain/pods/NAMESPACE/NAME     PodMemory
    GET /explain/nodes/NAME              NodeMemory

The caller's bearer token is reviewed (TokenReview), then the right to get the path (SubjectAccessReview of a
non-resource URL); outcomes are kept for seconds. A caller behind the API server's proxy shows a token of the
audience plimsoll.dev in a header of its own, and no other token is accepted there. Requests are few a second,
and their answers short.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from aiohttp import web

from plimsoll.inspection.answer import AnswerPart
from plimsoll.kube.access_reviews import Caller
from plimsoll.kube.session.errors import APIError, Unauthorized
from plimsoll.ports.audience import AUDIENCE, HEADER
from plimsoll.ports.clock import Clock
from plimsoll.timing.rate_limit import Pace

PREFIX = "/explain/"

#: Requests in a second in the long run, and simultaneously.
PER_S, BURST = 5.0, 10

#: Seconds that the outcome of a review is kept, and outcomes that are.
KEPT_S, KEPT = 10.0, 256

#: Seconds that an answer waits for the main loop.
ANSWER_S = 5.0

#: What to do so that the operator may review.
GRANTS = "apply deploy/components/explain (chart: explain.enabled: true)"


class CallerReviewer(Protocol):
    """Says who calls, and what they may; raises APIError."""

    async def caller(self, token: str, audience: str = "") -> Caller | None:
        """Whose token it is, None when it is no valid one for the audience; "" is the API server's."""

    async def may_get(self, caller: Caller, path: str) -> bool:
        """Whether they may get a path."""


@dataclass(frozen=True, slots=True)
class ExplainRefusal:
    """A status and a sentence."""

    status: int
    text: str


@dataclass(eq=False)
class ExplainEndpoint:
    """Answers requests below the prefix, in the thread of the endpoints.

    Attributes:
        pod: What is known of a pod; awaits the main loop.
        node: What is known of a node; likewise.
    """

    reviews: CallerReviewer
    clock: Clock
    pod: Callable[[str, str], Awaitable[AnswerPart]]
    node: Callable[[str], Awaitable[AnswerPart]]
    _pace: Pace = field(init=False)
    _kept: dict[tuple[bytes, str, str], tuple[float, ExplainRefusal | None]] = field(
        default_factory=dict, init=False
    )

    def __post_init__(self) -> None:
        """Begin with a full bucket."""
        self._pace = Pace(self.clock, PER_S, BURST)

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer one request."""
        if not self._pace.try_accept():
            return _said(ExplainRefusal(429, "too many requests; try again in a second"))
        names: tuple[str, str] | tuple[str]
        match request.path.removeprefix(PREFIX).split("/"):
            case ["pods", namespace, name] if namespace and name:
                kind, names = "pods", (namespace, name)
            case ["nodes", name] if name:
                kind, names = "nodes", (name,)
            case _:
                text = f"not found; there are {PREFIX}pods/NAMESPACE/NAME and {PREFIX}nodes/NAME"
                return _said(ExplainRefusal(404, text))
        refusal = await self._refusal(request.headers, f"{PREFIX}{kind}")
        if refusal is not None:
            return _said(refusal)
        try:
            async with asyncio.timeout(ANSWER_S):
                found = await (self.pod(*names) if len(names) == 2 else self.node(*names))
        except TimeoutError:
            return _said(ExplainRefusal(503, "the main event loop is busy"))
        return web.Response(body=found.model_dump_json(by_alias=True), content_type="application/json")

    async def _refusal(self, headers: Mapping[str, str], path: str) -> ExplainRefusal | None:
        """Why the caller receives no answer; None when they do."""
        audience = AUDIENCE if HEADER in headers else ""
        authorization = headers.get(HEADER if audience else "Authorization", "")
        scheme, _, token = authorization.partition(" ")
        # Bytes that are not ASCII are no token, and come as lone surrogates.
        if scheme.lower() != "bearer" or not token.strip() or not token.isascii():
            return ExplainRefusal(401, "a bearer token of the cluster is needed")
        key = (hashlib.sha256(token.encode()).digest(), audience, path)
        now = self.clock.monotonic()
        until, refusal = self._kept.get(key, (0.0, None))
        if now < until:
            return refusal
        try:
            refusal = await self._reviewed(token.strip(), audience, path)
        except Unauthorized as exc:
            text = f"the operator may not review callers: {exc.message}; {GRANTS}"
            return ExplainRefusal(503, text)
        except APIError as exc:
            return ExplainRefusal(503, f"the API server does not review callers: {exc}")
        if len(self._kept) >= KEPT:
            self._kept.clear()
        self._kept[key] = (now + KEPT_S, refusal)
        return refusal

    async def _reviewed(self, token: str, audience: str, path: str) -> ExplainRefusal | None:
        caller = await self.reviews.caller(token, audience)
        if caller is None:
            meant = f" for the audience {audience}" if audience else ""
            return ExplainRefusal(401, f"the API server does not accept the token{meant}")
        if not await self.reviews.may_get(caller, path):
            text = (
                f'User "{caller.user}" cannot get path "{path}"; the ClusterRole plimsoll-explain grants it'
            )
            return ExplainRefusal(403, text)
        return None


def _said(refusal: ExplainRefusal) -> web.Response:
    headers = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else {}
    return web.Response(status=refusal.status, text=f"{refusal.text}\n", headers=headers)
