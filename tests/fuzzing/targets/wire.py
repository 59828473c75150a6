"""Targets of the wire: HTTP answers, lists, watches."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import orjson

from cluster.invariants import check_cache
from fuzzing import specimens
from fuzzing.target import Bound, Broken, Target, kind_of
from fuzzing.told_session import LOOPS, ToldTransport, a_session
from plimsoll.cluster.cache import Cache
from plimsoll.cluster.ingestion import Ingestion, Mirror
from plimsoll.cluster.watch_events import Synced, WatchEvent
from plimsoll.cluster.watched_resources import WatchedResource
from plimsoll.kube.session.response_parser import BODY_BYTES, Response, ResponseParser
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.ports.observer import Observer
from plimsoll.testing.builders import a_node
from plimsoll.watches.reflector import Reflector

PODS = WatchedResource("pods", "/api/v1/pods", Pod)

#: Turns of the event loop in which a reflector must have come to its end.
TURNS = 4000


# -- HTTP ------------------------------------------------------------------------------------------------


def http(data: bytes) -> object:
    """Answers to one request or to several; in whatever pieces they come, they are the same.

    The first byte says how many are expected, the second how long the pieces are.
    """
    expected = 1 + (data[0] % 3 if data else 0)
    size = 1 + (data[1] if len(data) > 1 else 0)
    stream = data[2:]
    whole = _parsed([stream] if stream else [], expected)
    pieces = _parsed([stream[at : at + size] for at in range(0, len(stream), size)], expected)
    # What follows an answer matters only when it comes together with it.
    if _plain(whole) != _plain(pieces) and len(stream) < 2**16:
        raise Broken(f"in pieces of {size} it is {pieces}, as a whole {whole}"[:600])
    answers, problem = pieces
    for each in answers:
        if not (0 < each.status < 1000 and len(each.content) <= min(len(stream), BODY_BYTES)):
            raise Broken(f"an answer with status {each.status} and {len(each.content)} bytes")
    return len(answers), kind_of(problem) if problem else "", answers[-1].status // 100 if answers else 0


def _parsed(pieces: Sequence[bytes], expected: int) -> tuple[list[Response], str]:
    """The answers as far as the client takes them, and why it takes no more."""
    parser = ResponseParser()
    parser.begin(expected)
    try:
        for piece in pieces:
            response = parser.feed(piece)
            if response is not None:
                return [*parser.earlier, response], ""
        ended = parser.end()
    except ValueError as exc:
        return list(parser.earlier), str(exc)
    return [*parser.earlier, *([ended] if ended else [])], ""


def _plain(found: tuple[list[Response], str]) -> object:
    answers, problem = found
    return [(each.status, each.content) for each in answers], bool(problem)


def _http_seeds() -> list[bytes]:
    ok = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;a=b\r\nabcd\r\n0\r\nX: y\r\n\r\n"
    return [
        b"\x00\x7f" + ok,
        b"\x00\x03" + chunked,
        b"\x01\x20" + ok + chunked,
        b"\x02\x01" + ok + ok + ok,
        b"\x00\x10HTTP/1.1 100 Continue\r\n\r\n" + ok,
        b"\x00\x50HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nuntil the end",
        b"\x00\x50HTTP/1.1 204 No Content\r\n\r\n",
        b"\x00\x50HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n",
    ]


# -- lists and watches -----------------------------------------------------------------------------------


class _Seen(Observer):
    """Counts what a reflector says."""

    def __init__(self) -> None:
        self.skipped: list[str] = []
        self.failures: list[str] = []

    def object_skipped(self, resource: str, name: str, problem: str) -> None:
        self.skipped.append(kind_of(problem))
        kind_of(name, needed=False)

    def watch_failed(self, resource: str, problem: str, status: int = 0) -> None:
        self.failures.append(kind_of(problem))

    def failed(self, where: str, problem: str) -> None:
        raise Broken(f"{where}: {problem}"[:600])


class _Clock:
    """Waits end immediately."""

    def __init__(self) -> None:
        self.time = 1e9

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds
        await asyncio.sleep(0)


class _Randomness:
    def below(self, n: int) -> int:
        return n - 1

    def fraction(self) -> float:
        return 0.5


def _pod(name: str, version: int, **status: str) -> dict[str, Any]:
    requests = {"cpu": "100m", "memory": "64Mi"}
    return {
        "metadata": {"name": name, "namespace": "near", "uid": name, "resourceVersion": str(version)},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": {"requests": requests}}]},
        "status": {"phase": "Running", **status},
    }


def _list(*items: bytes, version: int) -> bytes:
    return b'{"metadata":{"resourceVersion":"%d"},"items":[%b]}' % (version, b",".join(items))


A, B, C = (json.dumps(_pod(name, 5)).encode() for name in "abc")
LINES = b"".join(
    b'{"type":"%b","object":%b}\n' % (kind, json.dumps(_pod(name, 9, message="x")).encode())
    for kind, name in ((b"ADDED", "c"), (b"MODIFIED", "a"), (b"DELETED", "b"))
)


class _Scene:
    """A reflector of pods into the columns of a cluster.

    Attributes:
        lists: How often it has listed.
    """

    def __init__(self, lists: Sequence[bytes], watches: Sequence[bytes]) -> None:
        self.seen = _Seen()
        self.cache = Cache()
        self.cache.set_node(a_node("n1"))
        self.ingestion = Ingestion((Mirror(self.cache, self.seen),), self.seen)
        self.lists = 0
        self.synced = 0
        self._lists, self._watches = list(lists), list(watches)
        self.at_rest = asyncio.Event()
        transport = ToldTransport(self._listed, self._watched)
        self.reflector = Reflector(
            a_session(transport),
            PODS,
            self._take,
            clock=_Clock(),
            randomness=_Randomness(),
            observer=self.seen,
        )

    def _listed(self, _method: str, _path: str) -> tuple[int, bytes]:
        self.lists += 1
        return 200, self._lists.pop(0) if len(self._lists) > 1 else self._lists[0]

    def _watched(self) -> list[bytes] | None:
        if self._watches:
            return [self._watches.pop(0)]
        self.at_rest.set()
        return None

    def _take(self, events: Sequence[WatchEvent]) -> None:
        self.synced += sum(isinstance(each, Synced) for each in events)
        self.ingestion.apply(events)

    def requested(self) -> dict[str, int]:
        """Milli-CPU by pod of the neighbours."""
        return {
            pod.name: int(pod.requests.get("cpu", 0))
            for pod in self.cache.cluster.pods.values()
            if pod.namespace == "near"
        }

    async def until_at_rest(self) -> None:
        """Until all that there is was read.

        Raises:
            Broken: The reflector has ended, or never converges.
        """
        task = asyncio.create_task(self.reflector.run())
        rest = asyncio.create_task(self.at_rest.wait())
        try:
            for _ in range(TURNS):
                await asyncio.sleep(0)
                if task.done():
                    task.result()
                    raise Broken("the reflector has ended")
                if rest.done():
                    break
            else:
                raise Broken(f"no rest in {TURNS} turns: {self.seen.failures[:3]}")
        finally:
            task.cancel()
            rest.cancel()
            await asyncio.gather(task, rest, return_exceptions=True)


def watch(data: bytes) -> object:
    """Lines of a watch among those of neighbours: whatever they hold, the neighbours come through."""
    return LOOPS.run(_watch(data))


async def _watch(data: bytes) -> object:
    near = b",".join((A, B))
    after = (json.dumps(_pod(name, 9, message="x")).encode() for name in "ac")
    scene = _Scene([_list(near, version=5), _list(*after, version=9)], [data + b"\n" + LINES, LINES])
    await scene.until_at_rest()
    found = {name for name in scene.requested() if name in "abc"}
    if not _is_near(data) and found != {"a", "c"}:
        raise Broken(f"the neighbours are {found} after {scene.lists} lists")
    check_cache(scene.cache)
    return scene.lists, tuple(scene.seen.skipped[:2]), tuple(scene.seen.failures[:2])


def listed(data: bytes) -> object:
    """A list of pods with one item of others': it never keeps the rest from being known."""
    return LOOPS.run(_listed(data))


async def _listed(data: bytes) -> object:
    scene = _Scene([_list(A, data, B, version=5), _list(A, B, version=6)], [])
    await scene.until_at_rest()
    if not _is_near(data) and not {"a", "b"} <= scene.requested().keys():
        raise Broken(f"the neighbours are {set(scene.requested())} after {scene.lists} lists")
    if scene.lists > 1 and _is_json(data):  # and no part of another item
        raise Broken(f"an object costs a list: {scene.seen.failures[:2]}")
    return scene.lists, tuple(scene.seen.skipped[:2]), tuple(scene.seen.failures[:2])


def _is_near(data: bytes) -> bool:
    """Whether the input may be about a neighbour: in the namespace, or with a uid of theirs."""
    return b"near" in data or any(b'"%b"' % uid in data for uid in (b"a", b"b", b"c")) or b"\\" in data


def _is_json(data: bytes) -> bool:
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return data.lstrip()[:1] == b"{"


def page(data: bytes) -> object:
    """The answer to a list, as a whole."""
    return LOOPS.run(_page(data))


async def _page(data: bytes) -> object:
    scene = _Scene([data, _list(A, B, version=6)], [b""])
    await scene.until_at_rest()
    return scene.lists, tuple(scene.seen.skipped[:2]), tuple(scene.seen.failures[:2])


def _watch_seeds() -> list[bytes]:
    pod = specimens.document(Pod, name="x", namespace="far")
    events = [
        b'{"type":"%b","object":%b}' % (kind, pod)
        for kind in (b"ADDED", b"MODIFIED", b"DELETED", b"BOOKMARK")
    ]
    status = b'{"kind":"Status","status":"Failure","message":"too old","reason":"Expired","code":410}'
    node = specimens.document(Node, name="n2")
    return [
        *events,
        b"\n".join(events),
        b'{"type":"ERROR","object":%b}' % status,
        b'{"type":"ADDED","object":%b}' % node,
        b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}',
        status,
        b"",
    ]


def _list_seeds() -> list[bytes]:
    return [specimens.document(Pod, name="x", namespace="far"), C, specimens.document(Node, name="n2")]


TARGETS = (
    Target(
        "http",
        "kube.session.response_parser",
        "answers of the API server to our writes, and of whatever stands between",
        http,
        _http_seeds,
        (
            b"Content-Length: ",
            b"Transfer-Encoding: chunked\r\n",
            b"HTTP/1.1 ",
            b"\r\n\r\n",
            b"0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n",
            b"Connection: close\r\n",
            b"Upgrade: h2c\r\n",
            b"gzip",
            b"ffffffff\r\n",
            b"Content-Encoding: ",
            b": ",
            b';x="',
            b"HTTP/2 200\r\n",
        ),
        Bound(seconds=1.0),
    ),
    Target(
        "watch",
        "watches.reflector, cluster.ingestion",
        "lines of a watch, among neighbours",
        watch,
        _watch_seeds,
        (
            b'{"type":"ADDED","object":',
            b'"type":"ERROR"',
            b'"code":410',
            b'"resourceVersion":',
            b"\n",
            b'"near"',
            b'"a"',
        ),
        Bound(seconds=1.0, seconds_each=2e-5, memory_each=200.0),
    ),
    Target(
        "list",
        "watches.reflector, cluster.ingestion",
        "one item of a list, among neighbours",
        listed,
        _list_seeds,
        (b'"metadata":', b'"near"', b"]}", b'"nodeName":"n1"', b'"requests":'),
        Bound(seconds=1.0, seconds_each=2e-5, memory_each=200.0),
    ),
    Target(
        "page",
        "watches.reflector",
        "the answer to a list",
        page,
        lambda: [
            _list(A, B, version=5),
            b'{"metadata":{"resourceVersion":"1"},"items":null}',
            b'{"kind":"Status"}',
        ],
        (b'"continue":"x"', b'"items":', b'"resourceVersion":""'),
        Bound(seconds=1.0, seconds_each=2e-5, memory_each=200.0),
    ),
)
