"""Measures the walks of a pod to its binding and of a policy to a verified move: modules entered, returns."""

import asyncio
from datetime import timedelta
from typing import Any, cast

import msgspec

from plimsoll.cluster.ingestion import Ingestion, Mirror
from plimsoll.cluster.watch_events import NodeAdded, PodAdded, PodDeleted, PodUpdated
from plimsoll.cluster.watched_resources import WATCHED
from plimsoll.model.kinds.pod import Pod
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import (
    settled,
)
from plimsoll.watches.reflector import Reflector
from plimsoll.writers.pods import PodBinder, PodEvictor
from rebalancing.scene import POLICY, Scene, a_policy, web
from scheduling.wing_scene import WingScene
from walks import POLICY_FRONTS, POLICY_PASSIVE, Walk

#: What the walk of a pod takes, which is what ADR 24 aims at; these may only shrink.
ROOMS, RETURNS = 13, 10

#: What the walk of a policy takes, all of its calls counted; may only shrink (ADR 24 aims at 18).
POLICY_ROOMS = 24


class _Session:
    """Accepts every request, and has pods."""

    def __init__(self, *pods: Pod) -> None:
        self._metadata = [msgspec.to_builtins(each.metadata) for each in pods]

    async def request(self, *_args: Any, **_options: Any) -> bytes:
        return msgspec.json.encode({"items": [{"metadata": each} for each in self._metadata]})


async def pods_walk() -> Walk:
    """From the reflector's batch to the request that binds a pod to one of two nodes, which are scored.

    A pod of its template was placed before.
    """
    session = cast("Any", _Session())
    scene = WingScene(ports={"binder": PodBinder(session)})
    scene.place()
    reflector = Reflector(
        session,
        WATCHED[1],
        scene.ingestion.apply,
        clock=scene.clock,
        randomness=cast("Any", None),
        observer=scene.observer,
    )
    async with scene.running():
        nodes = [NodeAdded(a_node(name)) for name in ("n0", "n1")]
        await scene.see(*nodes, PodAdded(a_pod("warm", schedulerName="s")))
        with Walk(is_over=lambda module, function: (module, function) == ("writers.pods", "bind")) as walk:
            await reflector._hand_over([PodAdded(a_pod("p", schedulerName="s"))])
            await settled()
    return walk


async def test_a_pods_walk_is_short() -> None:
    """A change that sends a pod through more modules, or back and forth more often, says why here."""
    walk = await pods_walk()

    assert walk.rooms[0] == "watches.reflector"
    assert walk.rooms[-1] == "writers.pods"
    assert len(walk.rooms) <= ROOMS, walk.report()
    assert len(walk.returns) <= RETURNS, walk.report()


async def policys_walk() -> Walk:
    """From the job of its schedule to the record Settled: one pod violates a taint, and is replaced."""
    old, waiting = web(1, "bad"), web(3, created="2026-06-01T00:00:00Z")
    scene = Scene(evictor=PodEvictor(cast("Any", _Session(old))))
    mirror = Mirror(scene.cache, scene.observer)
    ingestion = Ingestion((scene.groups, mirror, *scene.wing.subscribers), scene.observer)
    placed = web(3, "good", created="2026-06-01T00:00:00Z")
    async with scene.running():
        scene.rebalancers.configure([a_policy(schedule={"intervalSeconds": 3600})])
        await settled()
        scene.wing.rebalancers.timetable.hasten(POLICY, timedelta())
        with Walk(passive=POLICY_PASSIVE, fronts=POLICY_FRONTS, apart=(), first=1_000_000) as walk:
            async with asyncio.timeout(300):
                while not scene.phases or scene.phases[0][-1] != "Evicted":
                    await settled()
            ingestion.apply([PodDeleted(old), PodAdded(waiting), PodUpdated(waiting, placed)])
            await settled()
    assert scene.phases == [["Planned", "Evicting", "Evicted", "Settled"]]
    return walk


async def test_a_policys_walk_is_short() -> None:
    """Through schedule, run, planner, machine, executor, records, and back in by the watch."""
    walk = await policys_walk()

    assert walk.rooms[:2] == ["rebalancing.timetable", "rebalancing.runs.run"]
    assert "writers.pods" in walk.rooms, "the eviction was sent"
    assert len(walk.rooms) <= POLICY_ROOMS, walk.report()
