"""Gates of gangs: the room and the conditions of gated members."""

import asyncio
from typing import Any

from plimsoll.access.rights import BIND, Access
from plimsoll.cluster.watch_events import NodeAdded, ObjectAdded, PodAdded, PodDeleted, PodUpdated
from plimsoll.model.kinds.pod import Pod
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import FakeAccessReviewer, FakeClock, RememberingObserver, settled
from scheduling.gangs.gang_scene import GangScene, a_group, gang_scene, members


def nominated(count: int, node: str = "n0", **more: Any) -> list[Pod]:
    """Members for which an earlier process has made room."""
    return members(count, status={"phase": "Pending", "nominatedNodeName": node}, **more)


async def test_a_gated_member_waits_for_no_room() -> None:
    """An earlier process nominated two members; the third has gone since, and others may have their room."""
    async with gang_scene(nodes=1, cpu="2") as one:
        one.wing.take_over()
        await one.group(members=3)
        before, after = nominated(2, priority=10), members(2, priority=10)
        await one.pods(*before)

        assert one.statuses.nominated == {"train-0": "", "train-1": ""}
        await one.see(*(PodUpdated(old, new) for old, new in zip(before, after, strict=True)))
        assert not one.nominator.by_node

        await one.pods(a_pod("other", schedulerName="s", cpu="2"))
        assert one.bound == ["other"]


async def test_members_give_their_room_up_when_a_sibling_goes() -> None:
    """Room was being made for three; the third is deleted, and no victim that leaves helps the others."""
    async with gang_scene(nodes=1, cpu="3") as one:
        low = a_pod("low", cpu="3", node="n0")
        await one.pods(low)
        await one.group(members=3)
        gang = members(3, priority=10)
        await one.pods(*gang)
        assert one.preemptor.victims == ["low"]
        assert one.nominator.by_node

        await one.see(PodDeleted(gang[2]), PodDeleted(low))
        await one.clock.advance(20)

        assert one.statuses.nominated == {"train-0": "", "train-1": "", "train-2": "n0"}
        assert not one.nominator.by_node


async def test_what_a_standby_would_have_said_is_withdrawn_when_the_gate_opens() -> None:
    """It saw the members before their PodGroup: when it leads, their nominations and conditions stay."""
    one = GangScene()
    await one.see(NodeAdded(a_node("n0", cpu="4")), *(PodAdded(each) for each in nominated(3)))
    await one.see(ObjectAdded(a_group(members=3)))

    writing = asyncio.ensure_future(one.wing.explanations.run())
    await settled()
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)

    assert one.statuses.nominated == {}
    assert one.statuses.conditions == {}


async def test_members_give_their_room_up_when_the_resources_of_their_group_are_not_there() -> None:
    """Room was made for two before a node went; an attempt that asks no filter holds none either."""
    async with gang_scene(nodes=1, cpu="2") as one:
        await one.group(members=2, minResources={"cpu": "4"})
        await one.pods(*nominated(2, priority=10))

        assert one.statuses.nominated == {"train-0": "", "train-1": ""}
        assert not one.nominator.by_node


async def test_a_gated_member_says_so_again_after_a_right_was_missing_for_a_while() -> None:
    """It says that it may not be bound, and says of its siblings again when it may."""
    reviewer = FakeAccessReviewer()
    access = Access(reviewer, FakeClock(), RememberingObserver())
    await access.review()
    one = GangScene(access=access)
    running = asyncio.ensure_future(one.wing.run())
    try:
        await one.see(NodeAdded(a_node("n0", cpu="4")))
        await one.group(members=3)
        await one.pods(*members(2))
        said = one.statuses.conditions["train-0"]
        assert said.reason == "NotReadyForScheduling"

        reviewer.denied.add(BIND)
        await access.review()
        one.queue.activate([each.uid for each in members(2)], one.clock.monotonic())
        await settled()
        assert one.statuses.conditions["train-0"].reason == "SchedulerError"

        reviewer.denied.clear()
        await access.review()
        await settled()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert one.statuses.conditions["train-0"] == said
