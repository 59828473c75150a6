"""Reflectors against a real HTTP stream: events, resumption, restarts and skipped objects."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from msgspec import structs

from kube.scripted_server import ToldServer
from plimsoll.cluster.listed_objects import ObjectReader
from plimsoll.cluster.watch_events import NodeAdded, ObjectAdded, PodAdded, PodDeleted, PodUpdated, Synced
from plimsoll.cluster.watched_resources import WatchedResource
from plimsoll.kube.session.session import Session
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.workload import PodDisruptionBudget
from plimsoll.testing.fakes import FakeClock, FakeRandomness, RememberingObserver, settled
from plimsoll.watches.reflector import COMPLETE, SLICE, Reflector

PODS = WatchedResource("pods", "/api/v1/pods", Pod)
NEVER = "0000-01-01T00:00:00Z"


def wire(name: Any, version: int, uid: Any = "", **more: Any) -> dict[str, Any]:
    """A pod as the server sends it."""
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": uid or name,
            "resourceVersion": str(version),
        },
        **more,
    }


def a_list(*items: dict[str, Any], version: int = 10, following: str = "") -> dict[str, Any]:
    """A page of a list."""
    return {"metadata": {"resourceVersion": str(version), "continue": following}, "items": list(items)}


def line(kind: str, obj: dict[str, Any]) -> dict[str, Any]:
    """A line of a watch."""
    return {"type": kind, "object": obj}


def brief(event: Any) -> str:
    """An event in a word or two."""
    match event:
        case PodAdded(pod):
            return f"+{pod.name}"
        case PodUpdated(_, pod):
            return f"~{pod.name}"
        case PodDeleted(pod):
            return f"-{pod.name}"
        case NodeAdded(new) | ObjectAdded(new):
            return f"+{new.metadata.name}"
        case Synced(kind):
            return f"synced {kind}"
    raise AssertionError(event)


def brought(event: Any) -> Any:
    """The object that an event brings for the first time, None for other events."""
    match event:
        case PodAdded(new) | NodeAdded(new) | ObjectAdded(new):
            return new
    return None


class Sink:
    """Records the emitted events, and can wait for them."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.added: list[Any] = []
        self._more = asyncio.Event()

    def __call__(self, events: Any) -> None:
        """Take a batch."""
        self.told += [brief(event) for event in events]
        self.added += [read for event in events if (read := brought(event)) is not None]
        self._more.set()

    async def until(self, expected: Any) -> None:
        """Wait until exactly this was emitted."""
        async with asyncio.timeout(300):
            while len(self.told) < len(expected):
                self._more.clear()
                await self._more.wait()
        assert self.told == expected


@asynccontextmanager
async def reflecting(
    session: Session,
    clock: FakeClock | None = None,
    observer: RememberingObserver | None = None,
    resource: WatchedResource = PODS,
    streaming: bool = False,
) -> AsyncIterator[Any]:
    """A running reflector's sink."""
    sink = Sink()
    reflector = Reflector(
        session,
        resource,
        sink,
        clock=clock or FakeClock(),
        randomness=FakeRandomness(),
        observer=observer or RememberingObserver(),
        streaming=streaming,
    )
    task = asyncio.create_task(reflector.run())
    try:
        yield sink
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_lists_page_by_page_then_watches(told: tuple[ToldServer, Session]) -> None:
    """Everything that is there, then Synced, then what happens, in order."""
    server, session = told
    server.then(a_list(wire("a", 1), following="more"))
    server.then(a_list(wire("b", 2)))
    server.then_stream(
        line("ADDED", wire("c", 11)),
        line("MODIFIED", wire("a", 12)),
        line("DELETED", wire("b", 13)),
        hold=asyncio.Event(),
    )

    async with reflecting(session) as sink:
        await sink.until(["+a", "+b", "synced pods", "+c", "~a", "-b"])

    paths = [path for _, path, _, _ in server.requests]
    assert "continue=more" in paths[1]
    assert "resourceVersion=10" in paths[2]


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("selector", ["", "app=web"])
async def test_a_selector_is_in_each_request(
    told: tuple[ToldServer, Session], selector: str, streaming: bool
) -> None:
    """Of each page, and of the watch; without one it is in none."""
    server, session = told
    if streaming:
        end = {"metadata": {"resourceVersion": "10", "annotations": {COMPLETE: "true"}}}
        server.then_stream(
            line("ADDED", wire("a", 1)),
            line("BOOKMARK", end),
            line("ADDED", wire("b", 11)),
            hold=asyncio.Event(),
        )
    else:
        server.then(a_list(wire("a", 1), following="more"))
        server.then(a_list())
        server.then_stream(line("ADDED", wire("b", 11)), hold=asyncio.Event())
    resource = structs.replace(PODS, selector=selector)

    async with reflecting(session, resource=resource, streaming=streaming) as sink:
        await sink.until(["+a", "synced pods", "+b"])

    selected = [request.query.get("labelSelector", "") for *_, request in server.requests]
    assert selected == [selector] * (1 if streaming else 3)


async def test_a_long_list_is_taken_in_slices(told: tuple[ToldServer, Session]) -> None:
    """Other tasks get their turn after each hundred objects: twenty thousand pods block no other task."""
    server, session = told
    pages, of = 40, 500
    for number in range(pages):
        items = [wire(f"{number}-{each}", 1 + each) for each in range(of)]
        server.then(a_list(*items, following="more" if number < pages - 1 else ""))
    batches: list[int] = []
    turns: list[int] = []

    async def others() -> None:
        while True:
            turns.append(len(batches))
            await asyncio.sleep(0)

    reflector = Reflector(
        session,
        PODS,
        lambda events: batches.append(len(events)),
        clock=FakeClock(),
        randomness=FakeRandomness(),
        observer=RememberingObserver(),
    )
    tasks = [asyncio.create_task(others()), asyncio.create_task(reflector.run())]
    async with asyncio.timeout(300):
        while sum(batches) <= pages * of:  # noqa: ASYNC110 - others take their turns
            await asyncio.sleep(0.01)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert sum(batches) == pages * of + 1, "each pod, and that the list is complete"
    assert max(batches) <= SLICE
    assert set(range(pages * of // SLICE)) <= set(turns), "a turn after each slice"


async def test_a_burst_of_a_watch_is_taken_in_slices(told: tuple[ToldServer, Session]) -> None:
    """All lines that have arrived are read together, yet other tasks run in between."""
    server, session = told
    server.then(a_list())
    server.then_stream(
        b"".join(orjson.dumps(line("ADDED", wire(f"p{each}", 11 + each))) + b"\n" for each in range(1000)),
        hold=asyncio.Event(),
    )
    batches: list[int] = []
    reflector = Reflector(
        session,
        PODS,
        lambda events: batches.append(len(events)),
        clock=FakeClock(),
        randomness=FakeRandomness(),
        observer=RememberingObserver(),
    )
    task = asyncio.create_task(reflector.run())
    async with asyncio.timeout(300):
        while sum(batches) < 1001:  # noqa: ASYNC110 - likewise
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert max(batches) <= SLICE


@pytest.mark.parametrize("status", [401, 403])
async def test_a_watch_that_is_refused_goes_on_where_it_was(
    told: tuple[ToldServer, Session], status: int
) -> None:
    """Credentials and rights come back; a hundred thousand pods are not listed again for that."""
    server, session = told
    clock = FakeClock()
    server.then(a_list(wire("a", 1)))
    server.then({"code": status, "message": "no"}, status)
    server.then_stream(line("ADDED", wire("b", 11)), hold=asyncio.Event())

    async with reflecting(session, clock=clock) as sink:
        await until_asked(server, clock, 3)
        await sink.until(["+a", "synced pods", "+b"])

    assert "resourceVersion=10" in server.requests[2][1]


async def test_resumes_where_a_bookmark_left_it(told: tuple[ToldServer, Session]) -> None:
    """A watch that the server ends is taken up again without a list."""
    server, session = told
    server.then(a_list(wire("a", 1)))
    server.then_stream(line("BOOKMARK", wire("", 77)))
    server.then_stream(line("ADDED", wire("b", 78)), hold=asyncio.Event())

    async with reflecting(session) as sink:
        await sink.until(["+a", "synced pods", "+b"])

    assert "resourceVersion=77" in server.requests[2][1]


async def test_each_sign_of_life_is_reported(told: tuple[ToldServer, Session]) -> None:
    """A list, the opening of a watch, a bookmark: a collection in which nothing happens is not stale."""
    server, session = told
    observer = RememberingObserver()
    server.then(a_list())
    server.then_stream(line("BOOKMARK", wire("", 77)))
    server.then_stream(line("ADDED", wire("b", 78)), hold=asyncio.Event())

    async with reflecting(session, observer=observer) as sink:
        await sink.until(["synced pods", "+b"])

    assert observer.heard == ["pods"] * 5


async def test_a_version_too_old_means_listing_again(told: tuple[ToldServer, Session]) -> None:
    """410 as an event: the new list is emitted as a difference."""
    server, session = told
    server.then(a_list(wire("a", 1), wire("b", 2)))
    server.then_stream(line("ERROR", {"kind": "Status", "code": 410, "message": "too old"}))
    server.then(a_list(wire("b", 20), wire("c", 21), version=30))
    server.then_stream(hold=asyncio.Event())

    async with reflecting(session) as sink:
        await sink.until(["+a", "+b", "synced pods", "~b", "+c", "-a", "synced pods"])


async def test_a_pod_made_again_is_another_one(told: tuple[ToldServer, Session]) -> None:
    """A StatefulSet's pod is deleted and made again under its name while no watch was open."""
    server, session = told
    server.then(a_list(wire("db-0", 1, uid="old")))
    server.then(b"", 410)
    server.then(a_list(wire("db-0", 9, uid="new")))
    server.then_stream(hold=asyncio.Event())

    async with reflecting(session) as sink:
        await sink.until(["+db-0", "synced pods", "-db-0", "+db-0", "synced pods"])


async def test_an_object_that_cannot_be_read_harms_only_itself(told: tuple[ToldServer, Session]) -> None:
    """It is named and skipped, in the list and in the watch; the version moves on."""
    server, session = told
    observer = RememberingObserver()
    server.then(a_list(wire("bad", 1, spec={"priority": "high"}), wire("a", 2)))
    server.then_stream(
        line("MODIFIED", wire("worse", 15, spec={"containers": 7})),
        line("ADDED", wire("b", 16)),
        hold=asyncio.Event(),
    )

    async with reflecting(session, observer=observer) as sink:
        await sink.until(["+a", "synced pods", "+b"])

    assert [name for name, _ in observer.skipped] == ["default/bad", "default/worse"]


async def test_an_object_that_breaks_what_compares_it_harms_only_itself(
    told: tuple[ToldServer, Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named and counts as gone; the watch goes on."""
    server, session = told
    observer = RememberingObserver()
    share = ObjectReader.sharing

    def sharing(reader: ObjectReader, new: Any, old: Any) -> Any:
        if new.spec.scheduler_name == "hostile":
            raise RecursionError("too deep")
        return share(reader, new, old)

    monkeypatch.setattr(ObjectReader, "sharing", sharing)
    hostile = {"schedulerName": "hostile"}
    server.then(a_list(wire("bad", 1, spec=hostile), wire("a", 2), wire("b", 3)))
    server.then_stream(
        line("MODIFIED", wire("a", 15, spec=hostile)), line("ADDED", wire("c", 16)), hold=asyncio.Event()
    )

    async with reflecting(session, observer=observer) as sink:
        await sink.until(["+a", "+b", "synced pods", "-a", "+c"])

    assert observer.skipped == [
        ("default/bad", "RecursionError('too deep')"),
        ("default/a", "RecursionError('too deep')"),
    ]


async def test_a_placed_pod_counts_without_what_cannot_be_read_of_it(
    told: tuple[ToldServer, Session],
) -> None:
    """It takes room all the same: wrong parts are named and left out, of a list and of a watch."""
    observer = RememberingObserver()
    odd = {
        "spec": {
            "nodeName": "n1",
            "priority": "high",
            "containers": [
                {"name": 7, "resources": {"requests": {"cpu": "6", "memory": [1], "example.com/x": True}}}
            ],
        },
        "status": {"startTime": "0000-01-01T00:00:00Z"},
    }
    server, session = told
    server.then(a_list(wire("odd", 1, **odd)))
    server.then_stream(line("ADDED", wire("odder", 16, **odd)), hold=asyncio.Event())

    async with reflecting(session, observer=observer) as sink:
        await sink.until(["+odd", "synced pods", "+odder"])

    for pod in sink.added:
        assert pod.node_name == "n1"
        assert pod.spec.containers[0].resources.requests == {"cpu": "6"}
    assert {name for name, _ in observer.skipped} == {"default/odd", "default/odder"}
    assert len(observer.skipped) == 2 * 4


@pytest.mark.parametrize(
    ("kind", "document", "expected"),
    [
        pytest.param(
            Node,
            {
                "status": {
                    "allocatable": {"cpu": "4"},
                    "conditions": [{"type": "Ready", "lastTransitionTime": NEVER}],
                }
            },
            lambda node: (
                node.status.allocatable == {"cpu": "4"} and node.status.conditions[0].type == "Ready"
            ),
            id="node",
        ),
        pytest.param(
            PodDisruptionBudget,
            {"spec": {"minAvailable": 1}, "status": {"disruptionsAllowed": 2, "disruptedPods": {"a": NEVER}}},
            lambda budget: (budget.spec.min_available, budget.status.disruptions_allowed) == (1, 2),
            id="budget",
        ),
        pytest.param(
            Pod, {"status": {"startTime": NEVER}}, lambda pod: pod.status.start_time is None, id="waiting-pod"
        ),
    ],
)
async def test_an_object_is_read_without_what_cannot_be_read_of_its_status(
    told: tuple[ToldServer, Session],
    kind: type[Node] | type[PodDisruptionBudget] | type[Pod],
    document: dict[str, Any],
    expected: Callable[..., Any],
) -> None:
    """A time in the year 0, which the API server takes: the rest counts."""
    server, session = told
    observer = RememberingObserver()
    server.then(a_list(wire("odd", 1, **document)))
    server.then_stream(hold=asyncio.Event())

    resource = WatchedResource("pods", "/api/v1/pods", kind)
    async with reflecting(session, observer=observer, resource=resource) as sink:
        await sink.until(["+odd", "synced pods"])

    assert expected(sink.added[0])
    assert [name for name, _ in observer.skipped] == ["default/odd"]


@pytest.mark.parametrize("unreadable", [{"priority": "high"}, {"containers": [{"name": 7}]}])
async def test_a_waiting_pod_of_whose_spec_a_part_cannot_be_read_is_left_out(
    told: tuple[ToldServer, Session], unreadable: dict[str, Any]
) -> None:
    """Also if a part of its status cannot be read either: placed by half a spec, it would go anywhere."""
    server, session = told
    observer = RememberingObserver()
    odd = {"spec": unreadable, "status": {"startTime": NEVER}}
    server.then(a_list(wire("odd", 1, **odd), wire("plain", 2)))
    server.then_stream(hold=asyncio.Event())

    async with reflecting(session, observer=observer) as sink:
        await sink.until(["+plain", "synced pods"])

    assert [name for name, _ in observer.skipped] == ["default/odd"]


async def test_nulls_unknown_fields_and_a_megabyte_of_annotations_are_read(
    told: tuple[ToldServer, Session],
) -> None:
    """What the API takes is read, however odd; lines far beyond a read buffer arrive whole."""
    server, session = told
    odd = wire("odd", 2, spec=None, status=None, unknown={"deep": [{}]})
    odd["metadata"] |= {"labels": None, "annotations": {"big": "x" * 1_000_000}}
    server.then(a_list(odd))
    server.then_stream(line("MODIFIED", {**odd, "metadata": odd["metadata"] | {"resourceVersion": "3"}}),
                       hold=asyncio.Event())  # fmt: skip

    async with reflecting(session) as sink:
        await sink.until(["+odd", "synced pods", "~odd"])


async def test_a_broken_stream_is_taken_up_after_a_pause(told: tuple[ToldServer, Session]) -> None:
    """Garbage in the middle of a watch: the version so far is kept, the back-off is waited for."""
    server, session = told
    clock = FakeClock()
    server.then(a_list(wire("a", 1)))
    server.then_stream(line("ADDED", wire("b", 12)), b"{broken\n")
    server.then_stream(line("ADDED", wire("c", 13)), hold=asyncio.Event())

    async with reflecting(session, clock=clock) as sink:
        await sink.until(["+a", "synced pods", "+b"])
        async with asyncio.timeout(300):
            while len(server.requests) < 3:
                await clock.advance(1)
                await asyncio.sleep(0.01)
        await sink.until(["+a", "synced pods", "+b", "+c"])


async def test_a_collection_that_is_not_served_counts_as_empty(told: tuple[ToldServer, Session]) -> None:
    """An optional API that this server lacks does not delay the start."""
    server, session = told
    server.then({"code": 404, "reason": "NotFound"}, 404)

    async with reflecting(session) as sink:
        await sink.until(["synced pods"])


async def until_asked(server: ToldServer, clock: FakeClock, requests: int) -> None:
    """Let back-offs pass until so many requests were made."""
    async with asyncio.timeout(300):
        while len(server.requests) < requests:
            await clock.advance(1)
            await asyncio.sleep(0.01)


async def requests_stay(server: ToldServer, count: int) -> None:
    """Wait until so many requests were made; no other one follows."""
    async with asyncio.timeout(300):
        while len(server.requests) < count:  # noqa: ASYNC110 - the server takes its turns
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    assert len(server.requests) == count


async def test_a_line_that_breaks_every_watch_is_listed_past(told: tuple[ToldServer, Session]) -> None:
    """Resuming at the same version would meet it again for ever; a list goes round it."""
    server, session = told
    clock = FakeClock()
    server.then(a_list(wire("a", 1)))
    server.then_stream(b"{broken\n")
    server.then(a_list(wire("a", 1), wire("b", 12), version=20))
    server.then_stream(hold=asyncio.Event())

    async with reflecting(session, clock=clock) as sink:
        await until_asked(server, clock, 3)
        await sink.until(["+a", "synced pods", "+b", "synced pods"])


async def test_a_version_that_the_server_does_not_know_yet_means_listing_again(
    told: tuple[ToldServer, Session],
) -> None:
    """A server restored from a backup refuses the watch with 504; it would do so for ever."""
    server, session = told
    clock = FakeClock()
    server.then(a_list(wire("a", 100), version=100))
    server.then({"code": 504, "message": "Too large resource version"}, 504)
    server.then(a_list(wire("b", 5), version=7))
    server.then(a_list(wire("b", 5), version=7))
    server.then_stream(hold=asyncio.Event())

    async with reflecting(session, clock=clock) as sink:
        await until_asked(server, clock, 4)
        await sink.until(["+a", "synced pods", "+b", "-a", "synced pods"])


async def test_watches_that_end_immediately_are_not_reopened_in_a_loop(
    told: tuple[ToldServer, Session],
) -> None:
    """A proxy that closes every stream costs a request a back-off, not a core."""
    server, session = told
    server.then(a_list())
    for _ in range(20):
        server.then_stream()

    async with reflecting(session) as sink:
        await sink.until(["synced pods"])
        await requests_stay(server, 2)


async def test_versions_that_are_always_too_old_are_not_listed_in_a_loop(
    told: tuple[ToldServer, Session],
) -> None:
    """The first 410 lists again immediately, those that follow wait."""
    server, session = told
    for _ in range(20):
        server.then(a_list())
        server.then(b"", 410)

    async with reflecting(session):
        await requests_stay(server, 4)


@pytest.mark.parametrize("is_watching", [True, False])
async def test_a_new_leader_has_a_fresh_list(told: tuple[ToldServer, Session], is_watching: bool) -> None:
    """A watch that is open is cut, a list that was begun before is followed by another one."""
    server, session = told
    clock, sink, listed = FakeClock(), Sink(), asyncio.Event()
    server.then_stream(a_list(wire("a", 1)), hold=listed)
    if is_watching:
        listed.set()
        server.then_stream(hold=asyncio.Event())
    server.then(a_list(wire("a", 1), wire("b", 20), version=30))
    server.then_stream(hold=asyncio.Event())
    reflector = Reflector(
        session, PODS, sink, clock=clock, randomness=FakeRandomness(), observer=RememberingObserver()
    )
    task = asyncio.create_task(reflector.run())
    await until_asked(server, clock, 2 if is_watching else 1)
    clock.time += 1
    leads_since = clock.time

    reflector.list_since(leads_since)
    reflector.list_since(leads_since)
    listed.set()
    await sink.until(["+a", "synced pods", "+b", "synced pods"])

    assert reflector.listed_from >= leads_since
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_new_list_decodes_only_what_changed(
    told: tuple[ToldServer, Session], monkeypatch: pytest.MonkeyPatch, streaming: bool
) -> None:
    """A new leader lists 100,000 pods, of which its watch has shown nearly all: same uid, same version."""
    server, session = told
    first = [wire("a", 1), wire("b", 2), wire("c", 3), wire("d", 4)]
    second = [wire("a", 1), wire("b", 5), wire("c", 3, uid="another"), wire("e", 6)]
    for shown, version in ((first, 10), (second, 20)):
        if streaming:
            server.then_stream(*(line("ADDED", each) for each in shown), complete(version))
        else:
            server.then(a_list(*shown, version=version))
        if version == 10:
            server.then(b"", 410)
        elif not streaming:
            server.then_stream(hold=asyncio.Event())
    decoded: list[str] = []

    def noting(name: str) -> None:
        original = getattr(ObjectReader, name)

        def noted(reader: ObjectReader, document: bytes) -> Any:
            read = original(reader, document)
            value = read[0] if name == "document" else read[1]
            decoded.append(value.metadata.name)
            return read

        monkeypatch.setattr(ObjectReader, name, noted)

    noting("document")
    noting("line")
    listed: list[int] = []

    class Counting(RememberingObserver):
        def watch_listed(self, resource: str, objects: int) -> None:
            listed.append(objects)

    async with reflecting(session, observer=Counting(), streaming=streaming) as sink:
        await sink.until(["+a", "+b", "+c", "+d", "synced pods", "~b", "-c", "+c", "+e", "-d", "synced pods"])

    assert [name for name in decoded if name] == ["a", "b", "c", "d", "b", "c", "e"]
    assert listed == [4, 4]


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_server_that_was_restored_may_repeat_versions(
    told: tuple[ToldServer, Session], streaming: bool
) -> None:
    """Its list is older than what was seen: then no version is trusted until another list is complete."""
    server, session = told
    first = [wire("a", 1), wire("b", 90)]
    second = [wire("a", 1), wire("b", 90, spec={"nodeName": "n"}), wire("c", 91)]
    for shown, version in ((first, 100), (second, 95), (second, 96), (second, 97)):
        if streaming:
            server.then_stream(*(line("ADDED", each) for each in shown), complete(version))
        else:
            server.then(a_list(*shown, version=version))
        if version in (100, 96):
            server.then(b"", 410)
    server.then_stream(hold=asyncio.Event())

    clock = FakeClock()
    async with reflecting(session, clock, streaming=streaming) as sink:
        await until_asked(server, clock, 5 if streaming else 7)
        await sink.until(["+a", "+b", "synced pods", "+c", "~b", "synced pods", "synced pods"])


async def test_a_list_that_is_fresh_enough_is_not_made_again(told: tuple[ToldServer, Session]) -> None:
    """A process that leads from its start lists once."""
    server, session = told
    clock, sink = FakeClock(), Sink()
    server.then(a_list(wire("a", 1)))
    server.then_stream(hold=asyncio.Event())
    reflector = Reflector(
        session, PODS, sink, clock=clock, randomness=FakeRandomness(), observer=RememberingObserver()
    )
    task = asyncio.create_task(reflector.run())
    await until_asked(server, clock, 2)

    reflector.list_since(clock.time - 1)
    await settled()

    assert not task.done()
    assert len(server.requests) == 2
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def complete(version: int) -> dict[str, Any]:
    """The bookmark at the end of a streamed list."""
    mark = wire("", version)
    mark["metadata"]["annotations"] = {"k8s.io/initial-events-end": "true"}
    return line("BOOKMARK", mark)


async def test_a_streamed_list_is_the_beginning_of_a_watch(told: tuple[ToldServer, Session]) -> None:
    """One request brings what is there and what happens; changes may come before the list is complete."""
    server, session = told
    server.then_stream(
        line("ADDED", wire("a", 1)),
        line("ADDED", wire("b", 2)),
        line("MODIFIED", wire("a", 11)),
        complete(12),
        line("DELETED", wire("b", 13)),
    )
    server.then_stream(line("ADDED", wire("c", 14)), hold=asyncio.Event())

    async with reflecting(session, streaming=True) as sink:
        await sink.until(["+a", "+b", "~a", "synced pods", "-b", "+c"])

    first, second = (path for _, path, _, _ in server.requests)
    assert "sendInitialEvents=true" in first
    assert "resourceVersionMatch=NotOlderThan" in first
    assert "resourceVersion=&" in first, "as fresh as a list: no watch cache that lags behind"
    assert "resourceVersion=13" in second
    assert "sendInitialEvents" not in second


async def test_a_streamed_list_says_what_is_gone(told: tuple[ToldServer, Session]) -> None:
    """After 410 the next stream is a difference; one that broke off in between deletes nothing."""
    server, session = told
    clock = FakeClock()
    server.then_stream(line("ADDED", wire("a", 1)), line("ADDED", wire("b", 2)), complete(10))
    server.then(b"", 410)
    server.then_stream(line("ADDED", wire("c", 20)), b"{broken\n")
    server.then_stream(
        line("ADDED", wire("b", 2)), line("ADDED", wire("c", 20)), complete(30), hold=asyncio.Event()
    )

    listed: list[int] = []

    class Counting(RememberingObserver):
        def watch_listed(self, resource: str, objects: int) -> None:
            listed.append(objects)

    async with reflecting(session, clock=clock, observer=Counting(), streaming=True) as sink:
        await until_asked(server, clock, 4)
        await sink.until(["+a", "+b", "synced pods", "+c", "-a", "synced pods"])

    assert listed == [2, 2]


@pytest.mark.parametrize("refusal", ["refused", "broken", "ended"])
async def test_a_server_without_streamed_lists_is_read_by_pages(
    told: tuple[ToldServer, Session], refusal: str
) -> None:
    """An older server calls the parameter invalid, or knows none of it and ends the watch some time.

    One with an old etcd says that the storage feature RequestWatchProgress is disabled.
    """
    server, session = told
    if refusal == "refused":
        server.then({"code": 422, "reason": "Invalid", "message": "sendInitialEvents is forbidden"}, 422)
    elif refusal == "broken":
        server.then(
            {"code": 500, "reason": "InternalError", "message": "RequestWatchProgress is disabled"}, 500
        )
    else:
        server.then_stream(line("ADDED", wire("a", 1)))
    server.then(a_list(wire("a", 1)))
    server.then_stream(line("ADDED", wire("b", 11)), hold=asyncio.Event())
    observer = RememberingObserver()

    async with reflecting(session, observer=observer, streaming=True) as sink:
        await sink.until(["+a", "synced pods", "+b"])

    assert "limit=500" in server.requests[1][1]
    assert "resourceVersion=10" in server.requests[2][1]


async def test_a_line_that_makes_no_sense_ends_no_streamed_list(told: tuple[ToldServer, Session]) -> None:
    """It is skipped, and the list is complete without it."""
    server, session = told
    observer = RememberingObserver()
    server.then_stream(
        line("ADDED", wire("bad", 1, spec={"priority": "high"})),
        line("ADDED", wire("a", 2)),
        complete(10),
        hold=asyncio.Event(),
    )

    async with reflecting(session, observer=observer, streaming=True) as sink:
        await sink.until(["+a", "synced pods"])

    assert [name for name, _ in observer.skipped] == ["default/bad"]


async def test_a_list_is_asked_for_while_no_watch_is_open(told: tuple[ToldServer, Session]) -> None:
    """Between a watch that broke and the next one: the list comes first, and the next watch is cut."""
    server, session = told
    clock, sink = FakeClock(), Sink()
    server.then(a_list(wire("a", 1)))
    server.then_stream(line("ADDED", wire("b", 12)), b"{broken\n")
    server.then(a_list(wire("a", 1), wire("b", 12), wire("c", 13), version=20))
    server.then_stream(hold=asyncio.Event())
    server.then(a_list(wire("a", 1), wire("b", 12), wire("c", 13), wire("d", 21), version=30))
    server.then_stream(hold=asyncio.Event())
    reflector = Reflector(
        session, PODS, sink, clock=clock, randomness=FakeRandomness(), observer=RememberingObserver()
    )
    task = asyncio.create_task(reflector.run())
    await sink.until(["+a", "synced pods", "+b"])
    await settled()
    for more in ("+c", "+d"):
        clock.time += 1
        reflector.list_since(clock.time)
        async with asyncio.timeout(300):
            while sink.told[-1] != "synced pods" or more not in sink.told:
                await clock.advance(1)
                await asyncio.sleep(0.01)
        await until_asked(server, clock, 4 if more == "+c" else 6)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
