"""HTTP extenders of a simulation: calls instead of HTTP, with whatever may be the matter with a service."""

from __future__ import annotations

import asyncio
import contextvars
import zlib
from collections import Counter
from collections.abc import Callable, Collection
from enum import StrEnum
from random import Random
from typing import Any
from urllib.parse import urlsplit

import orjson

from plimsoll.ports.extenders import Endpoint, Reply
from roadstead.server.request_handler import Request
from simulation.exchanges import Exchange
from simulation.network import Network
from simulation.transport import TOKEN

#: Seconds of one way, and of an answer that is slow; requests arrive well within the operator's patience.
ONE_WAY_S, SLOW_S = (0.0005, 0.004), (0.5, 20.0)


class Manner(StrEnum):
    """How an extender is."""

    GOOD = "answers"
    PICKY = "refuses a part of the nodes"
    SLOW = "does what was asked, and answers late"
    LOST = "does what was asked, and never answers"
    GARBAGE = "does what was asked, and answers nonsense"
    ERROR = "answers 500"
    UNREACHABLE = "refuses connections"


class ExtenderServer:
    """All extenders of a cluster; one that binds sends the binding with the name of who asked for it.

    Args:
        random: Of this alone.

    Attributes:
        manners: How each is, by the host of its address; good where nothing is said.
        counts: How often each manner has met a request.
        bound: How many pods they have bound.
        managers: Whether a node has what an extender manages for a pod (by its uid), by the extender's host.
    """

    def __init__(self, network: Network, random: Random) -> None:
        self._network = network
        self._random = random
        self._context = contextvars.copy_context()
        self.manners: dict[str, Manner] = {}
        self.counts: Counter[Manner] = Counter()
        self.bound = 0
        self.managers: dict[str, Callable[[str, str], bool]] = {}

    async def post(self, sender: str, endpoint: Endpoint, verb: str, body: bytes) -> Reply:
        """Ask: a request arrives whether its sender still waits, is paused or is dead."""
        answer: asyncio.Future[Reply] = self._network.loop.create_future()
        self._later(self._random.uniform(*ONE_WAY_S), self._arrive, sender, endpoint, verb, body, answer)
        try:
            async with asyncio.timeout(endpoint.timeout_s):
                return await answer
        except TimeoutError:
            return Reply(None, f"no complete answer within {endpoint.timeout_s:g} s")

    def _later(self, seconds: float, call: Any, *args: object) -> None:
        self._network.loop.call_later(seconds, call, *args, context=self._context)

    def _arrive(
        self, sender: str, endpoint: Endpoint, verb: str, body: bytes, answer: asyncio.Future[Reply]
    ) -> None:
        host = urlsplit(endpoint.url).hostname or ""
        manner = self.manners.get(host, Manner.GOOD)
        self.counts[manner] += 1
        self._network.trace.note(sender, f"extender {endpoint.url} {verb}: {manner}", body)
        late_s = self._random.uniform(*(SLOW_S if manner is Manner.SLOW else ONE_WAY_S))
        if manner is Manner.UNREACHABLE:
            reply = Reply(None, "connection refused")
        elif manner is Manner.ERROR:
            reply = Reply(None, "code 500")
        else:
            content = self._carried_out(sender, host, verb, orjson.loads(body), manner)
            reply = Reply(content[: len(content) // 2] if manner is Manner.GARBAGE else content)
        if manner is not Manner.LOST:
            self._later(late_s, _settle, answer, reply)

    def _carried_out(self, sender: str, host: str, verb: str, asked: Any, manner: Manner) -> bytes:
        if verb == "bind":
            return orjson.dumps({"Error": self._bind(sender, asked)})
        return answered(verb, asked, self.managers.get(host), is_picky=manner is Manner.PICKY)

    def _bind(self, sender: str, asked: Any) -> str:
        """Why the API server did not bind, "" when it did."""
        namespace, name = asked["PodNamespace"], asked["PodName"]
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": asked["PodUID"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": asked["Node"]},
        }
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        request = Request("POST", path, "", headers, orjson.dumps(binding))
        loop = self._network.loop
        response = self._network.response(Exchange(sender, request, loop.create_future(), None, loop.time()))
        self.bound += response.status == 201
        return "" if response.status == 201 else f"the binding got {response.status}"


class SimulatedExtenders:
    """The way of one process to extenders: a :class:`plimsoll.ports.extenders.ExtenderPort`."""

    def __init__(self, server: ExtenderServer, sender: str) -> None:
        self._server = server
        self._sender = sender

    def problem_of(self, endpoint: Endpoint) -> str:
        """No extender has certificates."""
        return ""

    async def post(self, endpoint: Endpoint, verb: str, body: bytes) -> Reply:
        """Ask."""
        return await self._server.post(self._sender, endpoint, verb, body)

    async def retain(self, endpoints: Collection[Endpoint]) -> None:
        """Nothing is open."""


def _meta_victims(asked: Any) -> dict[str, Any]:
    """All candidates, as they are."""
    if asked.get("NodeNameToMetaVictims") is not None:
        return dict(asked["NodeNameToMetaVictims"])
    return {
        node: {
            "Pods": [{"UID": pod["metadata"]["uid"]} for pod in victims["Pods"]],
            "NumPDBViolations": victims["NumPDBViolations"],
        }
        for node, victims in asked["NodeNameToVictims"].items()
    }


def _settle(answer: asyncio.Future[Reply], reply: Reply) -> None:
    if not answer.done():
        answer.set_result(reply)


def answered(verb: str, asked: Any, has_room: Callable[[str, str], bool] | None, *, is_picky: bool) -> bytes:
    """What an extender says that is well.

    Args:
        verb: ``preempt``, ``prioritize`` or ``filter``.
        asked: The request.
        has_room: Whether a node has what the extender manages for a pod (by its uid).
        is_picky: Whether it refuses a part of the nodes.
    """
    if verb == "preempt":
        return orjson.dumps({"NodeNameToMetaVictims": _meta_victims(asked)})
    names = asked["NodeNames"]
    if names is None:
        names = [each["metadata"]["name"] for each in asked["Nodes"]["items"]]
    uid = asked["Pod"]["metadata"]["uid"]
    marks = {name: zlib.crc32(f"{uid} {name}".encode()) for name in names}
    if verb == "prioritize":
        return orjson.dumps([{"Host": name, "Score": marks[name] % 11} for name in names])
    refused = [
        name for name in names if (is_picky and marks[name] % 2) or (has_room and not has_room(uid, name))
    ]
    passed = [name for name in names if name not in refused]
    items = [{"metadata": {"name": name}} for name in passed]
    shown = {"NodeNames": passed} if asked["NodeNames"] is not None else {"Nodes": {"items": items}}
    return orjson.dumps({**shown, "FailedNodes": dict.fromkeys(refused, "not this one")})
