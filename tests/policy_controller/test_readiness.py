"""A workload's next move waits until the last replacement is Ready, in all circumstances."""

from plimsoll.cluster.watch_events import PodAdded, PodUpdated
from plimsoll.testing.fakes import settled
from rebalancing.scene import POLICY, Scene, a_policy, web
from rebalancing.test_controller import OLD, a_record, replaced

BORN = "2026-06-01T00:00:00Z"


def reasons(scene: Scene) -> list[str]:
    """Why the last run left pods where they are."""
    return [each["reason"] for each in scene.statuses.statuses[POLICY]["counts"]["refused"]]


def becomes_ready(scene: Scene, number: int = 3) -> None:
    """The replacement's probe passes at last."""
    scene.tell(PodUpdated(web(number, "good", created=BORN, ready=False), web(number, "good", created=BORN)))


async def test_a_replacement_that_runs_and_is_not_ready_holds_the_next_move_back() -> None:
    """One eviction of a workload at a time, and the next waits for Ready."""
    scene = Scene()
    scene.tell(PodAdded(web(7, "bad")))

    async with scene.running(a_policy()):
        await scene.run()
        (first,) = scene.evictor.evicted
        scene.gone(web(int(first[-1]), "bad"))
        replaced(scene, "good", ready=False)
        await scene.clock.advance(120)
        await scene.run()
        assert scene.evictor.evicted == [first]
        assert reasons(scene) == ["WorkloadLimit"]
        assert scene.statuses.statuses[POLICY]["counts"]["verified"] == 0

        becomes_ready(scene)
        await settled()
        await scene.run()

    assert sorted(scene.evictor.evicted) == ["web-1", "web-7"]


async def test_a_replacement_that_never_becomes_ready_fails_the_move_and_holds_the_owner_back() -> None:
    """It runs in time and is given five minutes more; then the record says so, and the memory counts it."""
    scene = Scene()
    scene.tell(PodAdded(web(7, "bad")))

    async with scene.running(a_policy()):
        await scene.run()
        scene.gone(web(int(scene.evictor.evicted[0][-1]), "bad"))
        replaced(scene, "good", ready=False)
        await scene.clock.advance(290)
        assert scene.phases[0][-1] == "Evicted"
        await scene.clock.advance(30)
        await scene.run()
        told = scene.statuses.statuses[POLICY]["counts"]["refused"]

    assert scene.phases == [["Planned", "Evicting", "Evicted", "Failed"]]
    assert scene.record["status"]["reason"] == "ReplacementNotReady"
    assert scene.record["status"]["replacement"]["node"] == "good"
    assert [each["reason"] for each in told] == ["ReplacementNotReady"]
    assert "is not ready: its phase is Running; no further one is moved until it is" in told[0]["message"]


async def test_a_restart_in_between_changes_nothing() -> None:
    """The next process waits for the same replacement, and moves nothing of the workload meanwhile."""
    scene = Scene(a_record("Evicted"))
    scene.gone(OLD)
    scene.tell(PodAdded(web(7, "bad")))
    replaced(scene, "good", ready=False)

    async with scene.running(a_policy()):
        await scene.run()
        assert (scene.evictor.evicted, reasons(scene)) == ([], ["WorkloadLimit"])
        becomes_ready(scene)
        await settled()
        assert scene.phases == [["Settled"]]
        await scene.run()

    assert scene.evictor.evicted == ["web-7"]


async def test_a_replacement_that_is_never_ready_is_given_up_after_a_restart_too() -> None:
    """Time begins again with the process, and ends."""
    scene = Scene(a_record("Evicted"))
    scene.gone(OLD)
    replaced(scene, "good", ready=False)

    async with scene.running():
        await scene.clock.advance(320)

    assert scene.phases == [["Failed"]]
    assert scene.record["status"]["reason"] == "ReplacementNotReady"


async def test_no_room_is_held_for_a_replacement_that_has_its_place() -> None:
    """While it is not Ready it counts once, as the pod that it is."""
    scene = Scene()

    async with scene.running(a_policy()):
        await scene.run()
        scene.gone(OLD)
        replaced(scene, "good", ready=False)

        assert scene.nominator.by_node == {}
