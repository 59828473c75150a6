"""Measures the walk of a pod from the watch to its binding: modules entered, and returns to one."""

import asyncio
import contextlib
from typing import Any, cast

from plimsoll.app.clock import SeededRandomness
from plimsoll.app.scheduling_wing import PodPorts, SchedulingWing
from plimsoll.cluster.cache import Cache
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.kube.pods import PodBinder
from plimsoll.kube.reflector import Reflector
from plimsoll.model.kinds.watch_event import NodeAdded, PodAdded
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import (
    FakeClock,
    FakePreemptor,
    FakeRecorder,
    FakeStatuses,
    FakeVolumes,
    RememberingObserver,
    a_book,
    settled,
)
from walks import Walk

#: What the walk of a pod takes, which is what ADR 24 aims at; these may only shrink.
ROOMS, RETURNS = 12, 10


class _Session:
    """Accepts every request."""

    async def request(self, *_args: Any, **_options: Any) -> dict[str, Any]:
        return {}


async def pods_walk() -> Walk:
    """From the reflector's batch to the request that binds a pod to one of two nodes, which are scored.

    A pod of its template was placed before.
    """
    clock, observer, cache = FakeClock(), RememberingObserver(), Cache()
    book, session = a_book(cache), cast("Any", _Session())
    ports = PodPorts(PodBinder(session), FakeVolumes(), FakePreemptor(), FakeStatuses(), FakeRecorder())
    wing = SchedulingWing(book, ports, clock, SeededRandomness(0), observer)
    enabled = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
    profile = build_profile(ProfileConfig("s"), Registry(IN_TREE), enabled)
    wing.serve({"s": ProfileScheduler(profile, cache.cluster, nominator=book.nominator)})
    ingestion = wing.ingestion((), observer)
    reflector = Reflector(
        session,
        cast("Any", None),
        ingestion.apply,
        clock=clock,
        randomness=cast("Any", None),
        observer=observer,
    )
    task = asyncio.ensure_future(wing.run())
    nodes = [NodeAdded(a_node(name)) for name in ("n0", "n1")]
    ingestion.apply([*nodes, PodAdded(a_pod("warm", schedulerName="s"))])
    await settled()
    with Walk(is_over=lambda module, function: (module, function) == ("kube.pods", "bind")) as walk:
        await reflector._hand_over([PodAdded(a_pod("p", schedulerName="s"))])
        await settled()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return walk


async def test_a_pods_walk_is_short() -> None:
    """A change that sends a pod through more modules, or back and forth more often, says why here."""
    walk = await pods_walk()

    assert walk.rooms[0] == "kube.reflector"
    assert walk.rooms[-1] == "kube.pods"
    assert len(walk.rooms) <= ROOMS, walk.report()
    assert len(walk.returns) <= RETURNS, walk.report()
