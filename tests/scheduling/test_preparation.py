"""The scheduling loop prepares attempts in parts, between which other tasks of the process run."""

import asyncio

import pytest

from devices.builders import a_claim, a_device, a_slice
from plimsoll.devices.node_answers import NodeAnswers
from plimsoll.plugins.dynamic_resources import DynamicResources
from plimsoll.testing.builders import a_node
from scheduling.binding.devices import DeviceScene

NAMES = [f"n{number}" for number in range(400)]

#: Takes a hundred steps a device, so that a part has a few nodes.
SLOW = "[1, 2, 3, 4, 5, 6, 7, 8, 9].all(a, [1, 2, 3, 4, 5, 6, 7, 8].all(b, a + b > 0))"


class Searches:
    """A scene of many nodes with a device each, and a count of the searches.

    Attributes:
        seen: How many searches another task saw, each time it ran.
    """

    def __init__(self) -> None:
        exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
        selecting = {**exactly, "selectors": [{"cel": {"expression": SLOW}}]}
        self.scene = DeviceScene(
            a_claim("mine", {"name": "r", "exactly": selecting}),
            slices=[a_slice(name, [a_device("d")]) for name in NAMES],
            nodes=[a_node(name) for name in NAMES],
        )
        self.seen: list[int] = []

    @property
    def count(self) -> int:
        """Searches of all shapes of claims."""
        kept = (each for each in self.scene.devices._kept.values() if isinstance(each, NodeAnswers))
        return sum(each.searches for each in kept)

    async def until(self, count: int) -> None:
        """Let other tasks run until there were so many searches."""
        while self.count < count:
            self.seen.append(self.count)
            await asyncio.sleep(0)


async def test_other_tasks_run_while_a_new_shape_is_searched_for() -> None:
    """No part is long, and the pod is bound in the attempt that follows."""
    searches = Searches()
    scene = searches.scene
    async with scene:
        scene.wants()
        await searches.until(len(NAMES))
        await scene.later()

    shares = [later - earlier for earlier, later in zip(searches.seen, searches.seen[1:], strict=False)]
    assert len([each for each in shares if each]) > 5
    assert max(shares) < len(NAMES) // 4
    assert list(scene.binder.bound) == ["default/pod"]


async def test_a_pod_that_goes_meanwhile_is_not_tried() -> None:
    """And the next one finds what was worked out."""
    searches = Searches()
    scene = searches.scene
    async with scene:
        pod = scene.wants()
        await searches.until(50)
        scene.removes(pod)
        await scene.later()
        stopped = searches.count
        scene.wants("next")
        await scene.later()
        await scene.later()

    assert stopped < len(NAMES)
    assert searches.count == len(NAMES)
    assert list(scene.binder.bound) == ["default/next"]


async def test_what_happens_meanwhile_counts() -> None:
    """Nodes that have gone, and devices that others have taken, are not chosen."""
    searches = Searches()
    scene = searches.scene
    async with scene:
        scene.wants()
        await searches.until(50)
        for name in NAMES[:-1]:
            scene.devices.remove_slice(f"{name}-gpu")
        await scene.later()
        await scene.later()

    assert scene.binder.bound == {"default/pod": NAMES[-1]}


async def test_a_plugin_that_breaks_while_it_prepares_ends_the_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pod is rejected once, and is not tried without the preparation."""
    searches = Searches()
    scene = searches.scene

    def prepare(*_: object) -> bool:
        raise ValueError("out of order")

    monkeypatch.setattr(DynamicResources, "prepare", prepare)
    async with scene:
        scene.wants()
        await scene.later()

    assert scene.binder.bound == {}
    assert "out of order" in scene.statuses.conditions["pod"].message
    assert scene.queue.depths()["backoff"] == 1
