"""The scheduling wing places pods without its optional parts, and without their modules."""

import os
import subprocess
import sys
from typing import Any

import pytest

import distributions
from plimsoll.app.scheduling_wing import GangParts
from plimsoll.cluster.pod_groups import Groups
from plimsoll.cluster.watch_events import NodeAdded, PodAdded
from plimsoll.leadership.fence import Fence
from plimsoll.scheduling.extenders.client import ExtenderClient
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import (
    FakeClock,
    FakeExtenders,
    FakePods,
    RememberingObserver,
)
from plimsoll.timing.signal import Signal
from plimsoll.timing.timer import Timer
from scheduling.gangs.gang_scene import FakeGroupStatuses
from scheduling.wing_scene import WingScene

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
    clock, observer = FakeClock(), RememberingObserver()
    chosen = {
        name: value
        for part, named in all_parts(clock, observer).items()
        if missing not in {part, "all"}
        for name, value in named.items()
    }
    scene = WingScene(clock=clock, observer=observer, **chosen)
    scene.place()
    binder = scene.binder

    async with scene.running():
        await scene.see(
            NodeAdded(a_node("n0")),
            PodAdded(a_pod("plain", schedulerName="s")),
            PodAdded(a_pod("member", schedulerName="s", labels={"plimsoll.dev/pod-group": "none"})),
        )

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
