"""The live page receives everything at first, then what changed; and streams are as few as allowed."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson
import pytest

from app.test_explain_endpoint import Reviews, nothing
from inspection.contents import NOW, a_node_document, a_pod_document
from inspection.test_history import NOW as NOON
from inspection.test_history import a_record
from plimsoll.api.schema.conditions import Condition, ConditionStatus
from plimsoll.api.v1alpha1.node_maintenance import NodeMaintenance
from plimsoll.app.endpoints import Endpoints, serving
from plimsoll.app.memory import live_page, live_views
from plimsoll.app.memory.caller_gate import CallerGate
from plimsoll.app.memory.live_page import STREAM, LivePage
from plimsoll.app.memory.live_views import LiveViews
from plimsoll.cluster.cache import Cache
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import PodGroup
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import FakeClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable


RACK = "example.com/rack"


class NoPods:
    """A queue in which nothing waits."""

    def depths(self) -> dict[str, int]:
        return {"active": 0}

    def listed(self) -> Iterable[Any]:
        return ()


#: A policy as the API server has it, after a run.
DOCUMENT = {
    "metadata": {"name": "tidy"},
    "spec": {"scheduling": {"schedulerName": "ours"}, "rebalancing": {"mode": "Approve"}, "suspend": True},
    "status": {
        "lastRun": {"startTime": "2026-01-31T11:55:00Z", "message": "3 candidates: 1 proposed"},
        "nextRunTime": "2026-01-31T12:05:00Z",
        "counts": {"refused": [{"reason": "Budget", "count": 2}]},
        "totals": {"moved": 5, "returned": 1, "failed": 2},
    },
}


class OnePolicy:
    """A policy that is ready."""

    def described(self) -> Iterable[tuple[dict[str, Any], tuple[Condition, ...]]]:
        ready = Condition(
            type="Ready",
            status=ConditionStatus.TRUE,
            reason="Serving",
            message="it serves",
            last_transition_time=NOW,
        )
        yield DOCUMENT, (ready,)


def some_views(cache: Cache) -> LiveViews:
    return LiveViews(NoPods(), cache, OnePolicy(), {}, list, FakeClock(), lambda: "leading", tuple)  # type: ignore[arg-type] # reads two methods of the queue


def test_maintenances_are_shown_with_what_is_missing() -> None:
    """Also one that the operator has not looked at yet."""
    made = {"metadata": {"name": "kernel"}, "spec": {"nodes": ["a", "b"]}}
    condition = {
        "type": "Drained",
        "status": "False",
        "reason": "Draining",
        "message": "1 of 2 nodes is drained",
    }
    condition["lastTransitionTime"] = "2026-01-31T12:00:00Z"
    status = {"phase": "Draining", "drained": 1, "total": 2, "expectedEnd": "2026-01-31T13:00:00Z"}
    seen = NodeMaintenance.from_wire({**made, "status": {**status, "conditions": [condition]}})
    given = [seen, NodeMaintenance.from_wire({**made, "metadata": {"name": "new"}})]

    view, _ = replace(some_views(a_cache()), maintenances=lambda: given).since({})

    first, second = view.maintenances
    assert (first.maintenance, first.phase, first.drained, first.total) == ("kernel", "Draining", 1, 2)
    assert (first.expected_end, first.message) == ("2026-01-31T13:00:00Z", "1 of 2 nodes is drained")
    assert (second.maintenance, second.phase, second.expected_end, second.message) == ("new", "", "", "")


def a_cache(*nodes: str) -> Cache:
    cache = Cache()
    for each in nodes:
        cache.cluster.set_node(convert(Node, a_node_document(each)))
    return cache


def test_a_stream_receives_what_changed() -> None:
    """All nodes at first; then none, the one that took a pod, and the one that went."""
    cache = a_cache("a", "b")
    views = some_views(cache)

    view, seen = views.since({})
    assert [(each.node, each.cpu_percent, each.is_open) for each in view.nodes] == [
        ("a", 0, True),
        ("b", 0, True),
    ]
    (policy,) = view.policies
    assert policy.conditions[0].reason == "Serving"
    assert (policy.policy, policy.mode, policy.scheduler, policy.is_suspended) == (
        "tidy",
        "Approve",
        "ours",
        True,
    )
    assert (policy.last_result, policy.next_run) == ("3 candidates: 1 proposed", "2026-01-31T12:05:00Z")
    assert (policy.moved, policy.failed) == (5, 3)
    assert [(each.reason, each.count) for each in policy.refused] == [("Budget", 2)]
    view, seen = views.since(seen)
    assert (view.nodes, view.gone, view.node_count) == ((), (), 2)

    pod = convert(Pod, a_pod_document("web", "b", cpu="2"))
    cache.cluster.place(cache.cluster.templates.info(pod), "b")
    view, seen = views.since(seen)
    assert [(each.node, each.pods, each.cpu_percent) for each in view.nodes] == [("b", 1, 50)]

    cache.cluster.remove_node("a")
    view, seen = views.since(seen)
    assert (view.nodes, view.gone, view.pod_count) == ((), ("a",), 1)


def test_what_people_read_first_needs_no_nodes() -> None:
    """All but the nodes; they follow, also after the last one is gone."""
    cache = a_cache("a", "b")
    views = some_views(cache)

    first, seen = views.since(None)
    whole, _ = views.since(seen)
    cache.cluster.remove_node("a")
    cache.cluster.remove_node("b")
    empty, _ = views.since({})

    assert (first.node_count, first.nodes, first.gone, first.is_whole) == (2, (), (), False)
    assert first.policies == whole.policies
    assert ([each.node for each in whole.nodes], whole.is_whole) == (["a", "b"], True)
    assert (empty.node_count, empty.nodes, empty.is_whole) == (0, (), True)


def test_a_policy_without_spec_and_status_is_shown() -> None:
    """One that was just created, or that only places pods."""
    found = live_views._policy({"metadata": {"name": "new"}, "spec": {"rebalancing": {}}}, ())

    assert (found.policy, found.mode, found.moved, found.last_run) == ("new", "DryRun", 0, "")
    assert live_views._policy({"metadata": {"name": "places"}}, ()).mode == ""


def test_a_node_has_its_zone_and_the_taints_that_keep_pods_out() -> None:
    cache = Cache()
    taints = [
        {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
        {"key": "soft", "effect": "PreferNoSchedule"},
        {"key": "old", "effect": "NoExecute"},
    ]
    node = a_node_document("a", taints=taints)
    node["metadata"]["labels"][live_views.ZONE] = "east"
    cache.cluster.set_node(convert(Node, node))

    (shown,) = some_views(cache).since({})[0].nodes

    assert (shown.zone, shown.taints) == ("east", ("gpu=yes:NoSchedule", "old:NoExecute"))


def test_the_last_hours_have_moves_by_quarter_and_what_became_of_policies() -> None:
    """At 12:00: moves that left a node, by the end of their records; and changes of six hours alone."""
    clock = FakeClock(NOON.timestamp(), ahead_s=0)
    records = [
        a_record("a", minutes_ago=31, took=0),
        a_record("b", minutes_ago=31, took=60),
        a_record("c", "Failed", minutes_ago=31, took=0),
        a_record("d", "Cancelled", minutes_ago=31, took=0),
        a_record("e", minutes_ago=400, took=0),
        a_record("f", "Evicting", minutes_ago=31, took=0),
    ]

    def state(kind: str, status: str, hours: float) -> Condition:
        return Condition(
            type=kind,
            status=ConditionStatus(status),
            reason="Why",
            message=f"{kind} {status}",
            last_transition_time=NOON - timedelta(hours=hours),
        )

    class Policies:
        def described(self) -> Iterable[tuple[dict[str, Any], tuple[Condition, ...]]]:
            old = {"metadata": {"name": "old", "creationTimestamp": "2025-01-01T00:00:00Z"}}
            yield (
                old,
                (state("Paused", "False", 1), state("Ready", "False", 3), state("Degraded", "False", 7)),
            )
            created = f"{NOON - timedelta(hours=2):%Y-%m-%dT%H:%M:%SZ}"
            yield (
                {"metadata": {"name": "new", "creationTimestamp": created}},
                (state("Ready", "True", 2), state("Paused", "False", 2)),
            )
            yield (
                {"metadata": {"name": "bad", "creationTimestamp": created}},
                (state("Accepted", "False", 2),),
            )

    views = replace(
        some_views(a_cache()),
        records={each.key: each for each in records},
        policies=Policies(),
        clock=clock,
    )
    view, _ = views.since({})

    assert len(view.slots) == live_views.SLOTS
    assert view.slots[-1].start <= view.time
    busy = [(each.settled, each.failed) for each in view.slots if each.settled + each.failed]
    assert busy == [(1, 1), (1, 0)]
    assert [(each.policy, each.what) for each in view.changes] == [
        ("old", "Not Paused"),
        ("bad", "Not Accepted"),
        ("bad", "Created"),
        ("new", "Created"),
        ("old", "Not Ready"),
    ]


@asynccontextmanager
async def served(look: Any, clock: FakeClock) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of the live page, whose views are what ``look`` gives."""
    page = LivePage(CallerGate(Reviews(), clock), look)
    said = Endpoints(lambda: "", lambda: "", lambda: "", nothing, None, page)
    async with (
        serving("127.0.0.1", [0], said) as (port,),
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http,
    ):
        yield http


async def test_streams_are_few_end_by_themselves_and_need_the_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_page, "STREAMS", 1)
    monkeypatch.setattr(live_page, "PERIOD_S", 0.01)
    views, clock, went = some_views(a_cache("a")), FakeClock(), asyncio.Event()

    async def look(seen: Any) -> Any:
        await went.wait()
        await clock.advance(5.0)
        return views.since(seen)

    async with served(look, clock) as http:
        jane, joe = ({"Authorization": f"Bearer {name}'s"} for name in ("jane", "joe"))
        async with http.get("/ui") as answer:
            assert "connect-src 'self'" in answer.headers["Content-Security-Policy"]
            assert "http" not in (await answer.text()).replace("http-equiv", "")
        async with http.get(STREAM, headers=joe) as answer:
            assert (answer.status, "plimsoll-explain grants it" in await answer.text()) == (403, True)
        async with http.get(STREAM, headers=jane) as first:
            async with http.get(STREAM, headers=jane) as second:
                assert (second.status, await second.text()) == (
                    503,
                    "1 pages are looked at already; close one\n",
                )
            went.set()
            events = (await first.text()).strip().split("\n\n")
        async with http.get(STREAM, headers=jane) as third:
            assert third.status == 200

    told = [orjson.loads(each.partition("data: ")[2]) for each in events]
    seen = [(each["nodeCount"], len(each["nodes"]), each["isWhole"]) for each in told]
    assert seen == [(1, 0, False), (1, 1, True), (1, 0, False)]


async def test_the_next_stream_goes_on_where_the_last_one_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, from the event that ended it; from any other, and later, all nodes are sent, after the rest."""
    monkeypatch.setattr(live_page, "PERIOD_S", 0.01)
    cache, clock = a_cache("a", "b"), FakeClock()
    views = some_views(cache)

    async def look(seen: Any) -> Any:
        await clock.advance(5.0)
        return views.since(seen)

    async with served(look, clock) as http:

        async def stream(last: str) -> tuple[list[str], list[tuple[int, bool, list[str]]]]:
            headers = {"Authorization": "Bearer jane's", live_page.LAST: last}
            async with http.get(STREAM, headers=headers) as answer:
                events = (await answer.text()).strip().split("\n\n")
            told = [orjson.loads(each.partition("data: ")[2]) for each in events]
            ids = [each.partition("\n")[0].removeprefix("id: ") for each in events]
            return ids, [(len(each["nodes"]), each["isWhole"], each["gone"]) for each in told]

        whole: list[Any] = [(0, False, []), (1, True, [])]
        ids, _ = await stream("")
        cache.cluster.remove_node("a")
        assert (await stream(ids[0]))[1][:2] == whole  # it did not receive the last event
        (*_, last), told = await stream(ids[-1])
        assert told[0] == (0, False, ["a"])
        assert (await stream(ids[-1]))[1][:2] == whole  # a second time
        monkeypatch.setattr(live_page, "KEPT_S", 0.0)
        (*_, lost), told = await stream(last)
        assert told[0] == (0, False, [])
        assert (await stream(lost))[1][:2] == whole


async def test_nothing_is_looked_at_unless_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither while the page is served, nor for callers who are refused, nor after the last stream ended."""
    monkeypatch.setattr(live_page, "PERIOD_S", 0.01)
    looks = 0
    views, clock = some_views(a_cache("a")), FakeClock()

    async def look(seen: Any) -> Any:
        nonlocal looks
        looks += 1
        await clock.advance(5.0)
        return views.since(seen)

    before = asyncio.all_tasks()
    async with served(look, clock) as http:
        jane, joe = ({"Authorization": f"Bearer {name}'s"} for name in ("jane", "joe"))
        async with http.get("/ui") as answer:
            await answer.read()
        async with http.get(STREAM, headers=joe) as answer:
            await answer.read()
        assert looks == 0

        async with http.get(STREAM, headers=jane) as answer:
            await answer.read()
        ended = looks
        assert ended > 0
        await asyncio.sleep(0.2)  # twenty periods
        assert looks == ended

        async with http.get(STREAM, headers=jane) as answer:
            await answer.content.readline()
            answer.close()  # the tab is closed in the middle of a stream
    assert asyncio.all_tasks() <= before | {asyncio.current_task()}


def test_racks_are_shown_with_the_groups_that_have_members_there() -> None:
    """A rack without members is counted only; members that come change the picture."""
    cache = Cache()
    cluster = cache.cluster
    for name in ("a0", "a1", "b0", "c0"):
        cluster.set_node(a_node(name, labels={RACK: name[0]}))
    wishes = {"minMember": 2, "topology": {"preferred": RACK}}
    metadata = {"name": "train", "namespace": "default"}
    cluster.objects.pod_groups["default/train"] = convert(PodGroup, {"metadata": metadata, "spec": wishes})

    def place(name: str, node: str) -> None:
        pod = a_pod(name, node=node, labels={"plimsoll.dev/pod-group": "train"})
        cluster.place(cluster.templates.info(pod), node)

    place("m0", "a0")
    place("m1", "b0")
    views = some_views(cache)
    before, _ = views.since({})
    place("m2", "a0")
    after, _ = views.since({})

    assert (before.rack_label, before.rack_count) == (RACK, 3)
    assert [(each.domain, each.nodes, each.without) for each in before.racks] == [("a", 2, 1), ("b", 1, 0)]
    assert [each.groups[0].members for each in before.racks] == [1, 1]
    assert [each.groups[0].members for each in after.racks] == [2, 1]
    assert after.racks[0].groups[0].group == "PodGroup default/train"
