"""Pods lose their places while a policy moves pods: it rests, says so, and goes on when they have one."""

from typing import Any

import pytest

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.watch_events import PodAdded, PodDeleted, PodUpdated
from plimsoll.model.kinds.pod import Pod
from plimsoll.rebalancing.breakers import ALLOWED, PATIENCE_S, WINDOW_S
from plimsoll.testing.builders import a_pod
from plimsoll.testing.fakes import settled
from rebalancing.moves.test_approving import annotate
from rebalancing.scene import POLICY, Scene, a_policy, status_of
from rebalancing.test_rooms import BIG, MAKES_ROOM, crowded

FREE = {
    "total": "100%",
    "perMinute": "100%",
    "perNode": "100%",
    "perNamespace": "100%",
    "perWorkload": "100%",
}
LOST = ALLOWED + 1


def of(
    app: str,
    number: int | str,
    node: str = "",
    *,
    born: str = "1970-01-01T00:00:00Z",
    reason: str = "Unschedulable",
    **spec: Any,
) -> Pod:
    """A pod of an application, placed or rejected by the scheduler."""
    status = status_of(node)
    if not node:
        condition = {"type": "PodScheduled", "status": "False", "reason": reason}
        status = {"phase": "Pending", "conditions": [condition]}
    return a_pod(
        f"{app}-{number}",
        owner=f"ReplicaSet/{app}",
        cpu="100m",
        node=node,
        status=status,
        metadata={"creationTimestamp": born},
        **spec,
    )


class Shop(Scene):
    """An application of many pods on the tainted node, and one elsewhere that stays."""

    def __init__(self, *documents: Any, pods: int = LOST + 2) -> None:
        super().__init__(*documents)
        self.tell(*(PodDeleted(pod.pod) for pod in list(self.cache.cluster.pods.values())))
        self.tell(*(PodAdded(of("shop", n, "bad")) for n in range(pods)))
        self.tell(*(PodAdded(of("other", n, "good")) for n in range(LOST)))

    def unplaced(self, app: str, number: int, **kwargs: Any) -> Pod:
        """The owner makes a pod, and the scheduler finds no node for it."""
        pod = of(app, f"new{number}", **kwargs)
        self.tell(PodAdded(pod))
        return pod

    def evicted_and_stuck(self, count: int, **kwargs: Any) -> list[Pod]:
        """So many of the evicted pods are gone, and what replaces them finds no place."""
        gone = self.evictor.evicted[:count]
        self.tell(*(PodDeleted(of("shop", name.removeprefix("shop-"), "bad")) for name in gone))
        return [self.unplaced("shop", n, **kwargs) for n in range(count)]

    def reasons(self) -> set[str]:
        """Why the last run left pods where they are."""
        return {each["reason"] for each in self.statuses.statuses[POLICY]["counts"]["refused"]}


def moves(at_most: int = LOST, **more: Any) -> SchedulingPolicy:
    return a_policy(limits={**FREE, "total": at_most}, evictor={"minReplicas": 1}, **more)


@pytest.mark.parametrize("reason", ["Unschedulable", "NotReadyForScheduling"])
async def test_a_policy_rests_when_what_it_moved_finds_no_place(reason: str) -> None:
    """It says what, since when, and how to go on; it goes on by itself when the last of them has a place."""
    scene = Shop()
    async with scene.running(moves()):
        await scene.run()
        before = list(scene.evictor.evicted)
        stuck = scene.evicted_and_stuck(LOST, reason=reason)
        await scene.clock.advance(PATIENCE_S)
        await scene.run()
        assert (scene.evictor.evicted, scene.reasons()) == (before, {"PodsDisplaced"})
        sentence = scene.rebalancers.troubles(POLICY)["PodsDisplaced"]
        for pod in stuck[:-1]:
            scene.tell(PodUpdated(pod, of("shop", pod.name.removeprefix("shop-"), "good")))
        await scene.run()
        assert scene.evictor.evicted == before, "one of them still waits"
        scene.tell(PodUpdated(stuck[-1], of("shop", stuck[-1].name.removeprefix("shop-"), "good")))
        await settled()
        await scene.run()

    assert len(before) == LOST
    assert len(scene.evictor.evicted) > LOST
    assert [list(each) for each in scene.troubled] == [["PodsDisplaced"], ["PodsDisplaced"], []]
    assert f"{LOST} now, such as default/shop-new0" in sentence
    assert "change the policy to go on immediately" in sentence


@pytest.mark.parametrize(
    ("count", "kwargs", "wait_s"),
    [
        pytest.param(ALLOWED, {}, PATIENCE_S, id="few"),
        pytest.param(LOST, {"born": "2126-01-01T00:00:00Z"}, PATIENCE_S, id="just-made"),
        pytest.param(LOST, {"reason": "SchedulingGated"}, PATIENCE_S, id="gated"),
        pytest.param(LOST, {"schedulerName": "somebody"}, PATIENCE_S, id="of-another-scheduler"),
    ],
)
async def test_others_that_wait_do_not_stop_it(count: int, kwargs: dict[Any, Any], wait_s: float) -> None:
    """A few, some that were made just now, some that are not ours to place."""
    scene = Shop()

    async with scene.running(moves(at_most=LOST)):
        await scene.run()
        scene.evicted_and_stuck(count, **kwargs)
        await scene.clock.advance(wait_s)
        await scene.run()

    assert "PodsDisplaced" not in scene.rebalancers.troubles(POLICY)
    assert len(set(scene.evictor.evicted)) == LOST + 2


async def test_a_burst_of_new_pods_does_not_stop_it() -> None:
    """A workload is scaled up, another is new, and there is no room for them: they never had a place."""
    scene = Shop()

    async with scene.running(moves(at_most=2)):
        await scene.run()
        for number in range(20):
            scene.unplaced("other", number)
            scene.unplaced("fresh", number)
        await scene.clock.advance(PATIENCE_S)
        await scene.run()

    assert scene.rebalancers.troubles(POLICY) == {}
    assert len(scene.evictor.evicted) == 4


async def test_pods_that_others_displaced_stop_it_too() -> None:
    """They were preempted, or their node went: no time to move pods, whatever the cause."""
    scene = Shop()

    async with scene.running(moves(at_most=1)):
        await scene.run()
        scene.tell(*(PodDeleted(of("other", n, "good")) for n in range(LOST)))
        for number in range(LOST):
            scene.unplaced("other", number)
        await scene.clock.advance(PATIENCE_S)
        await scene.run()

    assert list(scene.rebalancers.troubles(POLICY)) == ["PodsDisplaced"]
    assert len(scene.evictor.evicted) == 1


async def test_it_goes_on_after_half_an_hour() -> None:
    """Nothing speaks for its moves as the cause any more; what is missing by then is how things are."""
    scene = Shop()

    async with scene.running(moves()):
        await scene.run()
        scene.evicted_and_stuck(LOST)
        await scene.clock.advance(PATIENCE_S)
        await scene.run()
        resting = dict(scene.rebalancers.troubles(POLICY))
        await scene.clock.advance(WINDOW_S)
        await scene.run()

    assert list(resting) == ["PodsDisplaced"]
    assert "PodsDisplaced" not in scene.rebalancers.troubles(POLICY)


@pytest.mark.parametrize("ahead_s", [-3600.0, 3600.0])
async def test_a_wall_clock_that_is_set_does_not_change_how_long_it_rests(
    ahead_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half an hour passes as before, although the clock shows an hour more, or less."""
    scene = Shop()
    troubles = []
    async with scene.running(moves()):
        await scene.run()
        scene.evicted_and_stuck(LOST)
        monkeypatch.setattr(scene.clock, "now", lambda: scene.clock.time + ahead_s)
        for wait_s in (PATIENCE_S, WINDOW_S):
            await scene.clock.advance(wait_s)
            await scene.run()
            troubles.append("PodsDisplaced" in scene.rebalancers.troubles(POLICY))

    assert troubles == [True, False]


async def test_a_change_of_the_policy_ends_the_rest() -> None:
    """Its author has seen to it."""
    scene = Shop()

    async with scene.running(moves()):
        scene.rebalancers.configure([moves()])
        await scene.run()
        scene.evicted_and_stuck(LOST)
        await scene.clock.advance(PATIENCE_S)
        await scene.run()
        resting = dict(scene.rebalancers.troubles(POLICY))
        scene.rebalancers.configure([moves(at_most=LOST + 1)])
        await scene.run()

    assert list(resting) == ["PodsDisplaced"]
    assert "PodsDisplaced" not in scene.rebalancers.troubles(POLICY)


async def test_a_pod_that_room_is_made_for_does_not_stop_the_policy_that_makes_it() -> None:
    """Pending pods are what it is for."""
    scene = crowded()
    stuck = [of("waits", n) for n in range(10)]
    scene.tell(*map(PodAdded, stuck))
    policy = a_policy(limits=FREE, evictor={"minReplicas": 0}, **MAKES_ROOM)  # type: ignore[arg-type] # fields as in the API

    async with scene.running(policy):
        await scene.run()
        assert len(scene.evictor.evicted) == 2
        await scene.clock.advance(PATIENCE_S)
        await scene.run()

    assert scene.rebalancers.troubles(POLICY) == {}
    assert BIG.uid not in scene.cache.cluster.pods


async def test_answers_to_proposals_wait_while_it_rests() -> None:
    """They keep; when the pods have their places again the moves are made."""
    scene = Shop()

    async with scene.running(a_policy("Approve", limits=FREE, evictor={"minReplicas": 1})):
        await scene.run()
        first, *others = sorted(scene.keeper.known)
        annotate(scene, "true", first)
        await scene.clock.advance(3)
        assert len(scene.evictor.evicted) == 1
        scene.tell(PodDeleted(of("shop", scene.evictor.evicted[0].removeprefix("shop-"), "bad")))
        scene.tell(PodAdded(of("shop", "back", "good")))
        scene.tell(*(PodDeleted(of("other", n, "good")) for n in range(LOST)))
        stuck = [scene.unplaced("other", number) for number in range(LOST)]
        await scene.clock.advance(PATIENCE_S)
        await scene.run()
        for key in others:
            annotate(scene, "true", key)
        await scene.clock.advance(5)
        await scene.run()
        during = [scene.keeper.known[key].phase for key in others]
        assert len(scene.evictor.evicted) == 1
        for pod in stuck:
            scene.tell(PodUpdated(pod, of("other", pod.name.removeprefix("other-"), "good")))
        await scene.run()
        await scene.clock.advance(5)

    assert during == ["Planned"] * len(others)
    assert len(scene.evictor.evicted) == 2
