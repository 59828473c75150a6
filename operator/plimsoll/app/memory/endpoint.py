"""The endpoint /explain/ serves the operator's in-memory state of pods and nodes to authorized callers.

::

    GET /explain/pods/NAMESPACE/NAME     PodMemory
    GET /explain/nodes/NAME              NodeMemory

Callers pass the gate first; then a few requests per second are allowed. Responses are short.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from aiohttp import web

from plimsoll.answers.answer import AnswerPart
from plimsoll.app.memory.caller_gate import CallerGate, CallerRefusal
from plimsoll.timing.rate_limit import RateLimiter

PREFIX = "/explain/"

#: Requests of admitted callers per second in the long run, and in a burst.
PER_S, BURST = 5.0, 10

#: Maximum wait of a response for the main loop, in seconds.
ANSWER_S = 5.0


@dataclass(eq=False)
class ExplainEndpoint:
    """Handles requests below the prefix, in the thread of the endpoints.

    Attributes:
        pod: Returns the state of a pod; awaits the main loop.
        node: Returns the state of a node; awaits the main loop.
    """

    gate: CallerGate
    pod: Callable[[str, str], Awaitable[AnswerPart]]
    node: Callable[[str], Awaitable[AnswerPart]]
    _pace: RateLimiter = field(init=False)

    def __post_init__(self) -> None:
        """Start with a full token bucket."""
        self._pace = RateLimiter(self.gate.clock, PER_S, BURST)

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Respond to one request."""
        names: tuple[str, str] | tuple[str]
        match request.path.removeprefix(PREFIX).split("/"):
            case ["pods", namespace, name] if namespace and name:
                kind, names = "pods", (namespace, name)
            case ["nodes", name] if name:
                kind, names = "nodes", (name,)
            case _:
                text = f"not found; there are {PREFIX}pods/NAMESPACE/NAME and {PREFIX}nodes/NAME"
                return CallerRefusal(404, text).response()
        refusal = await self.gate.refusal(request.headers, f"{PREFIX}{kind}", request.remote or "")
        if refusal is None and not self._pace.try_accept():
            refusal = CallerRefusal(429, "too many requests; try again in a second")
        if refusal is not None:
            return refusal.response()
        try:
            async with asyncio.timeout(ANSWER_S):
                found = await (self.pod(*names) if len(names) == 2 else self.node(*names))
        except TimeoutError:
            return CallerRefusal(503, "the main event loop is busy").response()
        return web.Response(body=found.model_dump_json(by_alias=True), content_type="application/json")
