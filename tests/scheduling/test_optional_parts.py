"""The scheduling wing places pods without its optional parts, and without their modules."""

import asyncio
import contextlib
import os
import subprocess
import sys
from typing import Any

import pytest

import distributions
from plimsoll.app.machine.clock import SeededRandomness
from plimsoll.app.scheduling_wing import GangParts, PodPorts, SchedulingWing, WingParts
from plimsoll.cluster.cache import Cache
from plimsoll.cluster.pod_groups import Groups
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.leadership.fence import Fence
from plimsoll.model.kinds.watch_event import NodeAdded, PodAdded
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.scheduling.extenders.client import ExtenderClient
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import (
    FakeBinder,
    FakeClaims,
    FakeClock,
    FakeExtenders,
    FakePods,
    FakePreemptor,
    FakeRecorder,
    FakeStatuses,
    FakeVolumes,
    RememberingObserver,
    a_book,
    settled,
)
from plimsoll.timing.signal import Signal
from plimsoll.timing.timer import Timer
from scheduling.gangs.gang_scene import FakeGroupStatuses

OPTIONAL = {"gangs", "extenders", "fair_share"}


def all_parts(clock: Any, observer: Any) -> Any:
    """Every optional part."""
    fence = Fence(clock)
    fence.open(float("inf"))
    extending = ExtenderClient(
        FakeExtenders(), FakePods(), fence=fence, clock=clock, observer=observer, conditions=Signal()
    )
    return {
        "gangs": {"gangs": GangParts(Groups(), FakeGroupStatuses(), Timer(clock, observer))},
        "extenders": {"extending": extending},
        "fair_share": {"fair_share": True},
    }


@pytest.mark.parametrize("missing", [*sorted(OPTIONAL), "", "all"])
async def test_pods_are_placed_without_an_optional_part(missing: Any) -> None:
    """Each alone, and all together; a pod that names a PodGroup is an ordinary one without gangs."""
    clock, observer, binder, cache = FakeClock(), RememberingObserver(), FakeBinder(), Cache()
    book = a_book(cache)
    chosen = {
        name: value
        for part, named in all_parts(clock, observer).items()
        if missing not in {part, "all"}
        for name, value in named.items()
    }
    wing = SchedulingWing(
        book,
        PodPorts(binder, FakeVolumes(), FakePreemptor(), FakeStatuses(), FakeRecorder(), FakeClaims()),
        clock,
        SeededRandomness(0),
        observer,
        WingParts(**chosen),
    )
    enabled = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
    profile = build_profile(ProfileConfig("s"), Registry(IN_TREE), enabled)
    wing.serve({"s": ProfileScheduler(profile, cache.cluster, nominator=book.nominator)})
    ingestion = wing.ingestion((), observer)

    ingestion.apply(
        [
            NodeAdded(a_node("n0")),
            PodAdded(a_pod("plain", schedulerName="s")),
            PodAdded(a_pod("member", schedulerName="s", labels={"plimsoll.dev/pod-group": "none"})),
        ]
    )
    task = asyncio.ensure_future(wing.run())
    await settled()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task

    assert "default/plain" in binder.bound
    assert ("default/member" in binder.bound) == (missing in {"gangs", "all"})
    assert observer.failures == []


def test_the_loop_needs_no_optional_module() -> None:
    """The packages may be removed: nothing that an ordinary pod meets imports them."""
    modules = ("loop", "failures", "preemption", "queue.feed", "queue.queue_plugins", "binding.pipeline")
    loaded = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys\n"
            + "".join(f"import plimsoll.scheduling.{each}\n" for each in modules)
            + "print(*(each for each in sys.modules if each.startswith('plimsoll.scheduling.')))",
        ],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": os.pathsep.join(str(distributions.ROOT / each) for each in distributions.PRODUCT)},
    ).stdout.split()

    assert "plimsoll.scheduling.loop" in loaded
    assert not {each.split(".")[2] for each in loaded} & OPTIONAL
