"""Exchanges at work: small pods leave a cool node, and then a large pod of a hot node takes their place."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from plimsoll.cluster.watch_events import (
    NodeAdded,
    NodeDeleted,
    ObjectAdded,
    PodAdded,
    PodDeleted,
    PodUpdated,
)
from plimsoll.engine.attempt import schedule
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import PodGroup
from plimsoll.planning import planners
from plimsoll.ports.usage import UsageReading
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.execution import revalidation
from plimsoll.rebalancing.moves.outcomes import PATIENCE_S, STUCK_S
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import FakeEvictor, FakeRecords, settled
from rebalancing.moves.test_approving import annotate
from rebalancing.scene import Scene, a_policy, status_of
from rebalancing.test_load_records import MIB, MILLI

#: Thousandths of a core that each pod uses of the four of its node, by node.
USED = {
    "hot": {"large-1": 1_800, "large-2": 1_800},
    "cool": {"small-1": 80, "small-2": 80},
    "mid": {"other-1": 1_500},
}
ARGS = {
    "thresholds": {"cpu": 40},
    "targetThresholds": {"cpu": 60},
    "metricsUtilization": {"source": "KubernetesMetrics"},
}
DONE, BLOCKED = WriteResult(WriteOutcome.DONE), WriteResult(WriteOutcome.BLOCKED, "no", "default/large")


def of(name: str, node: str = "", **metadata: Any) -> Pod:
    """A pod that requests half of a node's memory, or a quarter, and has run since before all readings."""
    pod = a_pod(
        name,
        owner=f"ReplicaSet/{name.partition('-')[0]}",
        cpu="100m",
        memory="4Gi" if name.startswith("tiny") else "8Gi",
        node=node,
        status=status_of(node),
        metadata={"creationTimestamp": "2025-12-31T00:00:00Z", **metadata},
    )
    status = msgspec.structs.replace(pod.status, start_time=datetime(1970, 1, 1, tzinfo=UTC))
    return msgspec.structs.replace(pod, status=status)


class Exchange(Scene):
    """By requests the cool node is full; no large pod fits elsewhere."""

    def __init__(
        self, *documents: Any, evictor: Any = None, gone: tuple[str, ...] = (), used: Any = USED
    ) -> None:
        super().__init__(*documents, evictor=evictor, places_by_load=True)
        self.used = used
        self.tell(NodeDeleted(a_node("bad")), NodeDeleted(a_node("good")))
        for node, pods in used.items():
            self.tell(NodeAdded(a_node(node, cpu="4", memory="16Gi")))
            self.tell(*(PodAdded(of(name, node)) for name in pods if name not in gone))

    async def measured(self) -> None:
        """Six minutes pass; everything is read every fifteen seconds."""
        for _ in range(24):
            now = self.clock.now()
            self.meter.node_readings = [
                UsageReading(node, {"cpu": sum(pods.values()) * MILLI, "memory": 100 * MIB}, now)
                for node, pods in self.used.items()
            ]
            self.meter.pod_readings = [
                UsageReading(f"default/{name}", {"cpu": use * MILLI, "memory": 100 * MIB}, now)
                for pods in self.used.values()
                for name, use in pods.items()
            ]
            await self.clock.advance(15)
            await settled()

    async def replaced(self) -> Pod:
        """The small pod terminates, and its replacement is ready; the pod."""
        (name,) = self.evictor.evicted
        old = of(name, "cool")
        self.leaving(old)
        self.land(name, "mid")
        await settled()
        return old

    def land(self, name: str, node: str) -> None:
        """The replacement of a pod is created, and ready on a node."""
        late = "2026-06-01T00:00:00Z"
        waiting, there = (of(f"{name[:-1]}3", each, creationTimestamp=late) for each in ("", node))
        self.tell(PodAdded(waiting), PodUpdated(waiting, there))

    @property
    def ends(self) -> dict[str, tuple[str, str]]:
        """The phase and reason of each record, by pod."""
        return {
            each["spec"]["pod"]["name"].partition("-")[0]: (each["status"]["phase"], each["status"]["reason"])
            for each in self.records.documents.values()
        }


def policy(mode: str = "Enforce", **more: Any) -> Any:
    more = {"strategies": [{"name": "LowNodeUtilization", "args": ARGS}], **more}
    return a_policy(
        mode, evictor={"minReplicas": 0}, metricsProviders=[{"source": "KubernetesMetrics"}], **more
    )


async def ran(scene: Exchange, mode: str = "Enforce") -> None:
    """A run has proposed an exchange, and whatever it proposed is approved."""
    await scene.measured()
    await scene.run()
    if mode == "Approve":
        assert scene.evictor.evicted == []
        for key in list(scene.keeper.known):
            annotate(scene, "true", key)
        await scene.clock.advance(1)
        await settled()


async def begun(scene: Exchange, mode: str = "Enforce") -> None:
    """A run has begun an exchange; the large pod waits."""
    await ran(scene, mode)
    assert scene.evictor.evicted
    assert all(name.startswith(("small", "tiny")) for name in scene.evictor.evicted)


@pytest.mark.parametrize("mode", ["Enforce", "Approve"])
async def test_the_large_pod_leaves_as_soon_as_the_small_one_is_gone(mode: str) -> None:
    """Nothing else has to happen in the cluster for it, whatever was ready first."""
    scene = Exchange()
    async with scene.running(policy(mode)):
        await begun(scene, mode)
        old = await scene.replaced()
        terminating = len(scene.evictor.evicted)
        scene.tell(PodDeleted(old))
        await settled()

    assert terminating == 1
    assert [name.partition("-")[0] for name in scene.evictor.evicted] == ["small", "large"]


class Thief:
    """A pod that waits, and would take any room for a pod of half a node, whenever a server is asked."""

    def __init__(self, scene: Exchange) -> None:
        self.found: list[str] = []  #: nodes on which it had found room
        self._scene = scene
        (profile,) = scene.wing.configs.profiles.values()
        self._scheduler = ProfileScheduler(profile, scene.cache.cluster, nominator=scene.nominator)
        self._pod = scene.cache.cluster.templates.info(of("thief-1"))
        for each in (scene.records, scene.evictor):
            for name in ("create", "write_status", "evict"):
                if hasattr(each, name):
                    setattr(each, name, self._before(getattr(each, name)))

    def tries(self) -> None:
        """Attempt to find a place, as the scheduling loop does."""
        decision = schedule(self._scheduler, self._pod)
        if decision.node:
            self.found.append(decision.node)

    def _before(self, call: Any) -> Any:
        async def called(*args: Any, **named: Any) -> Any:
            self.tries()
            answer = await call(*args, **named)
            self.tries()
            return answer

        return called


@pytest.mark.parametrize("is_in_thread", [False, True])
async def test_no_other_pod_takes_the_room_that_is_made(
    is_in_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first eviction until the large pod's replacement: not while its record is written, either."""
    monkeypatch.setattr(revalidation, "MANY_PODS", 0 if is_in_thread else 1_000)
    asked = []

    def ask_again(move: Any, *args: Any) -> Any:
        asked.append(move.pod.name)
        return planners.ask_again(move, *args)

    monkeypatch.setattr(revalidation, "ask_again", ask_again)
    scene = Exchange()
    async with scene.running(policy()):
        thief = Thief(scene)
        await begun(scene)
        old = await scene.replaced()
        scene.tell(PodDeleted(old))
        thief.tries()
        await settled()
        thief.tries()
        (_, evicted) = scene.evictor.evicted
        large = of(evicted, "hot")
        scene.leaving(large)
        waiting = of("large-3", creationTimestamp="2026-06-01T00:00:00Z")
        scene.tell(PodAdded(waiting))
        thief.tries()
        there = of("large-3", "cool", creationTimestamp="2026-06-01T00:00:00Z")
        scene.tell(PodUpdated(waiting, there))
        thief.tries()
        await settled()

    assert "cool" not in thief.found
    assert asked == scene.evictor.evicted
    assert scene.ends["large"] == ("Settled", "Verified")
    assert not any(scene.nominator.by_node.values())


async def test_small_pods_leave_a_node_on_which_the_large_one_has_its_room() -> None:
    """The second one is judged although the place is reserved already, and no other pod takes the first's."""
    cool = {f"tiny{letter}-1": 40 for letter in "abcd"}
    scene = Exchange(used={**USED, "cool": cool, "spare": {"other-2": 1_500}})
    async with scene.running(policy()):
        thief = Thief(scene)
        await begun(scene)
        thief.tries()
        evicted = list(scene.evictor.evicted)

    assert len(evicted) == 2
    assert "cool" not in thief.found


class Landing(FakeEvictor):
    """Answers when the pod is gone, and its replacement is there and was not read yet."""

    scene: Exchange

    async def evict(self, pod: Pod) -> WriteResult:
        answer = await super().evict(pod)
        self.scene.tell(PodDeleted(pod))
        node = next(
            each["spec"]["targetNode"]
            for each in self.scene.records.documents.values()
            if each["spec"]["pod"]["name"] == pod.name
        )
        self.scene.land(pod.name, node)
        return answer


@pytest.mark.parametrize("evictor", [FakeEvictor, Landing])
@pytest.mark.parametrize("mode", ["Enforce", "Approve"])
async def test_small_pods_of_one_exchange_go_to_the_same_node(mode: str, evictor: type[FakeEvictor]) -> None:
    """Reserved or there: what was not read yet counts with the use of the pod whose place it takes."""
    scene = Exchange(used={**USED, "cool": {f"tiny{letter}-1": 40 for letter in "abcd"}}, evictor=evictor())
    scene.evictor.scene = scene
    async with scene.running(policy(mode)):
        await ran(scene, mode)
        small = list(scene.evictor.evicted[:2])
        if evictor is FakeEvictor:
            for name in small:
                scene.tell(PodDeleted(of(name, "cool")))
                scene.land(name, "mid")
            await settled()

    assert all(name.startswith("tiny") for name in small)
    assert [name.startswith("large") for name in scene.evictor.evicted] == [False, False, True]


async def test_what_no_move_brought_there_counts_as_not_measured() -> None:
    """Such as a pod that another scheduler puts on the target: neither was it read, nor what it replaces."""
    scene = Exchange(used={**USED, "cool": {f"tiny{letter}-1": 40 for letter in "abcd"}})
    scene.evictor.when_done = lambda _: scene.tell(PodAdded(a_pod("stranger", cpu="1", node="mid")))
    async with scene.running(policy()):
        await ran(scene)

    assert len(scene.evictor.evicted) == 1
    assert scene.ends == {"tinya": ("Evicted", "Accepted"), "tinyb": ("Cancelled", "NotMeasured")}


@pytest.mark.parametrize("evictor", [FakeEvictor, Landing])
async def test_single_moves_of_one_plan_go_to_the_same_node(evictor: type[FakeEvictor]) -> None:
    """By the score, which counts load."""
    used = {"hot": {f"tiny{letter}-1": 900 for letter in "abcd"}, "cool": {"tinye-1": 100}}
    scene = Exchange(used=used, evictor=evictor())
    scene.evictor.scene = scene
    strategies = [{"name": "LowNodeUtilization", "args": ARGS | {"targetThresholds": {"cpu": 95}}}]
    strategies += [{"name": "FollowScore", "args": {"marginPercent": 1}}]
    async with scene.running(policy(strategies=strategies)):
        await ran(scene)

    assert len(scene.evictor.evicted) == 2


async def test_a_pod_that_has_ended_is_not_waited_for() -> None:
    """Its object may stay, but it takes no room."""
    scene = Exchange()
    async with scene.running(policy()):
        await begun(scene)
        old = await scene.replaced()
        ended = msgspec.structs.replace(old.status, phase="Succeeded")
        scene.tell(PodUpdated(old, msgspec.structs.replace(old, status=ended)))
        await settled()

    assert len(scene.evictor.evicted) == 2


async def test_a_small_pod_that_is_stuck_is_not_waited_for_without_end() -> None:
    """A finalizer keeps it: after an hour the large pod's move is given up, and its record says why."""
    scene = Exchange()
    async with scene.running(policy()):
        await begun(scene)
        await scene.replaced()
        await scene.clock.advance(STUCK_S)
        await scene.measured()
        await scene.run()
        assert not scene.wing.executor.machine.bundles

    assert len(scene.evictor.evicted) == 1
    assert scene.ends["large"] == ("Cancelled", "NotFeasible")


async def test_a_large_pod_whose_room_is_taken_stays_and_its_record_says_so() -> None:
    """Another scheduler, or a kubelet, does not see what is reserved."""
    scene = Exchange()
    async with scene.running(policy()):
        await begun(scene)
        old = await scene.replaced()
        scene.tell(PodDeleted(old), PodAdded(of("thief-1", "cool")))
        await settled()
        assert not scene.wing.executor.machine.bundles

    assert len(scene.evictor.evicted) == 1
    assert scene.ends["small"][0] == "Settled"
    assert scene.ends["large"] == ("Cancelled", "NotFeasible")
    assert not any(scene.nominator.by_node.values())


async def test_a_budget_of_the_large_pod_ends_the_exchange() -> None:
    scene = Exchange(evictor=FakeEvictor(DONE, BLOCKED))
    async with scene.running(policy()):
        await begun(scene)
        old = await scene.replaced()
        scene.tell(PodDeleted(old))
        await settled()
        assert not scene.wing.executor.machine.bundles

    assert scene.ends["large"] == ("Blocked", "PodDisruptionBudget")
    assert not any(scene.nominator.by_node.values())


async def test_without_a_replacement_of_the_small_pod_the_large_one_stays() -> None:
    """The exchange ends with the small pod's move."""
    scene = Exchange()
    async with scene.running(policy()):
        await begun(scene)
        scene.tell(PodDeleted(of(scene.evictor.evicted[0], "cool")))
        await scene.clock.advance(PATIENCE_S + 1)
        await settled()
        assert not scene.wing.executor.machine.bundles

    assert len(scene.evictor.evicted) == 1
    assert scene.ends["small"][0] == "Failed"
    assert "large" not in scene.ends


async def test_after_a_change_of_leaders_the_large_pod_stays() -> None:
    """The new one follows the small pod to its place, and decides afresh about the large one."""
    scene = Exchange()
    async with scene.running(policy()):
        await begun(scene)
    name = scene.evictor.evicted[0]
    later = Exchange(FakeRecords(*scene.records.documents.values()), gone=(name,))
    async with later.running(policy()):
        await later.clock.advance(1)
        waiting = of("small-3", creationTimestamp="2026-06-01T00:00:00Z")
        later.tell(PodAdded(waiting), PodUpdated(waiting, of("small-3", "mid")))
        await settled()
        assert not later.wing.executor.machine.bundles

    assert later.evictor.evicted == []
    assert later.ends == {"small": ("Settled", later.ends["small"][1])}


async def test_a_dry_run_evicts_neither() -> None:
    scene = Exchange()
    async with scene.running(policy("DryRun")):
        await scene.measured()
        await scene.run()

    assert scene.evictor.evicted == []
    assert sorted(scene.ends) == ["large", "small"]


async def test_a_member_of_a_group_makes_no_room() -> None:
    """It would break its group."""
    scene = Exchange()
    for name in ("small-1", "small-2"):
        group = {"plimsoll.dev/pod-group": "train", "plimsoll.dev/pod-group-min-member": "2"}
        scene.tell(PodUpdated(of(name, "cool"), of(name, "cool", labels=group)))
    spec = {"metadata": {"name": "train", "namespace": "default"}, "spec": {"minMember": 2}}
    scene.tell(ObjectAdded(convert(PodGroup, spec)))
    async with scene.running(policy()):
        await scene.measured()
        await scene.run()

    assert scene.evictor.evicted == []
