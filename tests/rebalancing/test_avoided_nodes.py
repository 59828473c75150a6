"""New pods prefer other nodes than those that are to be emptied later: marked, and no longer than that."""

import asyncio
from typing import Any

import pytest

from plimsoll.cluster.watch_events import NodeAdded, NodeDeleted, ObjectAdded, ObjectDeleted, PodDeleted
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.workload import Namespace
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.closed_nodes import AGAIN_S, LOOK_AFTER_S
from plimsoll.testing.builders import a_node
from plimsoll.testing.fakes import settled
from rebalancing.maintenance.test_leaving_nodes import tomorrow
from rebalancing.scene import a_policy, named
from rebalancing.test_closed_nodes import EMPTYING, Consolidation, of

#: A limit keeps all pods of the little used node.
KEPT: dict[str, Any] = {**EMPTYING, "deletionCosts": True, "limits": {"perWorkload": 0}}


async def looks(scene: Consolidation, seconds: float = 0) -> None:
    """So many seconds, and the next looks."""
    await scene.clock.advance(seconds)
    for _ in range(3):
        await scene.clock.advance(LOOK_AFTER_S)
        await settled()


def of_idle(**spec: Any) -> Any:
    """A maintenance of the little used node, whose window is closed for months."""
    return tomorrow(nodes=["idle"], **spec)


@pytest.mark.parametrize("ends", ["deleted", "suspended"])
async def test_a_node_that_waits_for_its_maintenance_is_avoided(ends: str) -> None:
    """Until the maintenance ends, and again when there is another one."""
    scene = Consolidation()
    async with scene.running(a_policy()):
        for turn in (1, 2):
            scene.wing.maintenances.take([ObjectAdded(of_idle())])
            await looks(scene)
            await looks(scene)
            assert scene.closer.done == [("avoid", "idle"), ("reopen", "idle")] * (turn - 1) + [
                ("avoid", "idle")
            ]

            news = ObjectDeleted(of_idle()) if ends == "deleted" else ObjectAdded(of_idle(suspend=True))
            scene.wing.maintenances.take([ObjectDeleted(of_idle()), news])
            await looks(scene)
            assert scene.closer.done == [("avoid", "idle"), ("reopen", "idle")] * turn


async def test_a_node_that_is_emptied_is_closed_and_not_just_avoided() -> None:
    """The stricter taint takes the other's place, and none of a maintenance is avoided that is closed."""
    scene = Consolidation()
    async with scene.running(None):
        scene.wing.maintenances.take([ObjectAdded(of_idle())])
        await looks(scene)
        assert scene.closer.done == [("avoid", "idle")]
        scene.wing.maintenances.take([ObjectAdded(of_idle(window=None, minReplicas=1))])
        await looks(scene, 10)
        assert sorted(scene.evictor.evicted) == ["api-1", "job-1"]
        assert scene.closer.done[-1] == ("close", "idle")


@pytest.mark.parametrize("mark", ["avoid", "close"])
@pytest.mark.parametrize("is_late", [False, True])
async def test_a_mark_of_an_earlier_process_that_nothing_asks_for_is_removed(
    mark: str, is_late: bool
) -> None:
    """Its last write may come after our start."""
    scene = Consolidation()
    if not is_late:
        scene.told(mark, "idle")
    async with scene.running(a_policy()):
        await looks(scene)
        if is_late:
            scene.told(mark, "idle")
            await looks(scene)

    assert scene.closer.done == [("reopen", "idle")]


async def test_a_write_that_fails_is_tried_again_after_a_while() -> None:
    """And said each time: an older admission policy refuses the taint."""
    scene = Consolidation()
    scene.closer.answer = WriteResult(WriteOutcome.REFUSED, "no")
    async with scene.running(a_policy()):
        scene.wing.maintenances.take([ObjectAdded(of_idle())])
        await looks(scene, 20)
        failed = [each for each in scene.observer.failures if "avoid" in str(each)]
        assert len(failed) == 1
        scene.closer.answer = WriteResult(WriteOutcome.DONE)
        await looks(scene, AGAIN_S)

    assert scene.closer.done == [("avoid", "idle")]


@pytest.mark.parametrize("ends", ["deleted", "no longer asks", "dry run", "stopped", "may go"])
async def test_what_a_plan_would_empty_is_avoided(ends: str) -> None:
    """Where the policy says so to what shrinks, it says so to what is placed."""
    scene = Consolidation()
    async with scene.running(a_policy(**KEPT)):
        await scene.run()
        await looks(scene)
        assert scene.evictor.evicted == []
        assert scene.closer.done == [("avoid", "idle")]
        match ends:
            case "deleted":
                scene.rebalancers.configure([])
            case "no longer asks":
                scene.rebalancers.adopt(a_policy(**{**KEPT, "deletionCosts": False}))
            case "dry run":
                scene.rebalancers.adopt(a_policy("DryRun", **KEPT))
            case "stopped":
                found = {"metadata": {"name": "plimsoll", "annotations": {"plimsoll.dev/stop": "true"}}}
                scene.tell(ObjectAdded(convert(Namespace, found)))
            case "may go":
                scene.rebalancers.adopt(a_policy(**{**KEPT, "limits": {}}))
                await scene.run()
        await looks(scene)

    last = "close" if ends == "may go" else "reopen"
    assert scene.closer.done == [("avoid", "idle"), (last, "idle")]


@pytest.mark.parametrize("other", ["a", "z"])
async def test_what_one_policy_would_empty_is_avoided_whatever_others_say(other: str) -> None:
    """And until the last that says so is over."""
    scene = Consolidation()
    async with scene.running():
        for kept in (KEPT | {"strategies": []}, KEPT):
            policies = [a_policy(**KEPT), named(a_policy(**kept), other)]
            scene.rebalancers.configure(policies)
            await scene.run()
            await scene.run(other)
            await looks(scene)
            assert scene.closer.done == [("avoid", "idle")]
        scene.rebalancers.configure(policies[1:])
        await looks(scene)
        assert scene.closer.done == [("avoid", "idle")]
        scene.rebalancers.configure([])
        await looks(scene)

    assert scene.closer.done == [("avoid", "idle"), ("reopen", "idle")]


async def test_a_node_that_is_made_again_under_its_name_is_not_avoided() -> None:
    """The plan has seen the earlier one."""
    scene = Consolidation()
    async with scene.running(a_policy(**KEPT)):
        await scene.run()
        await looks(scene)
        assert scene.closer.done == [("avoid", "idle")]
        scene.tell(*(PodDeleted(of(app, "idle")) for app in ("api", "job")))
        scene.tell(NodeDeleted(scene.present["idle"]))
        scene.present["idle"] = a_node("idle", uid="another")
        scene.tell(NodeAdded(scene.present["idle"]))
        await looks(scene)

    assert scene.closer.done == [("avoid", "idle")]


async def test_a_mark_that_is_being_removed_does_not_open_a_node_that_is_closed() -> None:
    """Both change the same taint: the removal, which was asked for first, ends first."""
    scene = Consolidation()
    scene.told("avoid", "idle")
    removes, goes_on = scene.closer.reopen, asyncio.Event()

    async def reopen(node: str) -> WriteResult:
        await goes_on.wait()
        return await removes(node)

    scene.closer.reopen = reopen  # type: ignore[method-assign] # as slow as an API server
    async with scene.running(a_policy()):
        await looks(scene)
        closing = asyncio.create_task(scene.wing.maintenances.closed.close("idle"))
        await settled()
        goes_on.set()
        assert await closing

    assert scene.closer.done == [("reopen", "idle"), ("close", "idle")]


async def test_what_is_said_again_causes_no_look() -> None:
    """It is said every few seconds, also where nothing is to be avoided; each look is at all nodes."""
    scene = Consolidation()
    closed = scene.wing.maintenances.closed
    seen = closed._seen.count
    for _ in range(2):
        closed.avoid("plans", frozenset())
    assert closed._seen.count == seen


@pytest.mark.parametrize("first", ["maintenance", "plan"])
async def test_a_node_is_avoided_until_the_last_that_asks_for_it_is_over(first: str) -> None:
    """A maintenance and a plan; whichever ends first."""
    scene = Consolidation()
    async with scene.running(a_policy(**KEPT)):
        scene.wing.maintenances.take([ObjectAdded(of_idle())])
        await scene.run()
        await looks(scene)
        assert scene.closer.done == [("avoid", "idle")]
        ends = {
            "maintenance": lambda: scene.wing.maintenances.take([ObjectDeleted(of_idle())]),
            "plan": lambda: scene.rebalancers.adopt(a_policy(**{**KEPT, "deletionCosts": False})),
        }
        ends.pop(first)()
        await looks(scene)
        assert scene.closer.done == [("avoid", "idle")]
        ends.popitem()[1]()
        await looks(scene)

    assert scene.closer.done == [("avoid", "idle"), ("reopen", "idle")]


async def test_who_asks_for_one_node_says_nothing_of_another() -> None:
    scene = Consolidation()
    async with scene.running(a_policy()):
        closed = scene.wing.maintenances.closed
        for who, nodes in (("one", {"idle"}), ("two", {"busy"})):
            closed.avoid(who, frozenset(nodes))
        await looks(scene)
        assert sorted(scene.closer.done) == [("avoid", "busy"), ("avoid", "idle")]
        closed.avoid("one", frozenset())
        await looks(scene)

    assert scene.closer.done[2:] == [("reopen", "idle")]


async def test_a_removal_that_waits_for_another_write_opens_no_node_that_is_closed_meanwhile() -> None:
    scene = Consolidation()
    scene.told("avoid", "idle")
    closes, goes_on = scene.closer.close, asyncio.Event()

    async def close(node: str) -> WriteResult:
        await goes_on.wait()
        return await closes(node)

    scene.closer.close = close  # type: ignore[method-assign] # as slow as an API server
    async with scene.running(a_policy()):
        closed = scene.wing.maintenances.closed
        first = asyncio.create_task(closed.close("busy"))
        await settled()
        await looks(scene)
        second = asyncio.create_task(closed.close("idle"))
        await settled()
        goes_on.set()
        assert await first
        assert await second

    assert scene.closer.done == [("close", "busy"), ("close", "idle")]


async def test_a_write_that_failed_once_fails_no_later_one() -> None:
    """The mark is set, taken away, and asked for again within the minute."""
    scene = Consolidation()
    scene.closer.answer = WriteResult(WriteOutcome.REFUSED, "no")
    async with scene.running(a_policy()):
        scene.wing.maintenances.take([ObjectAdded(of_idle())])
        await looks(scene)
        scene.closer.answer = WriteResult(WriteOutcome.DONE)
        await looks(scene, AGAIN_S)
        for _ in range(2):
            scene.wing.maintenances.take([ObjectDeleted(of_idle())])
            await looks(scene)
            scene.wing.maintenances.take([ObjectAdded(of_idle())])
            await looks(scene)

    assert scene.closer.done == [("avoid", "idle"), *[("reopen", "idle"), ("avoid", "idle")] * 2]


async def test_without_being_asked_a_plan_marks_no_node() -> None:
    scene = Consolidation()
    async with scene.running(a_policy(**{**KEPT, "deletionCosts": False})):
        await scene.run()
        await looks(scene)

    assert scene.closer.done == []


def test_a_node_has_the_taint_of_one_effect() -> None:
    """What is closed is not avoided, and the other way round."""
    from plimsoll.model.taints import CONSOLIDATING, is_avoided, is_closed  # noqa: PLC0415 - what this test is about

    for effect, found in (("NoSchedule", (True, False)), ("PreferNoSchedule", (False, True))):
        node = a_node("n", taints=[f"{CONSOLIDATING}:{effect}"])
        assert (is_closed(node), is_avoided(node)) == found
