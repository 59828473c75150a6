"""Policies do not delay one another, and never make the same move."""

import asyncio
import threading
import time
from asyncio import Task
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import msgspec
import pytest

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.app.machine.clock import ThreadComputer
from plimsoll.cluster.watch_events import NodeAdded, PodAdded, PodUpdated
from plimsoll.framework import NoArgs
from plimsoll.framework.descheduling.proposals import Candidate
from plimsoll.framework.descheduling.strategy import StrategyKind
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import PodGroup
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.moves.state import MoveStage
from plimsoll.rebalancing.runs import plan_runner
from plimsoll.rebalancing.runs.plan_runner import PlanRunner
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import FakeClock, InlineComputer, settled
from plimsoll.timing.signal import Signal
from rebalancing.scene import POLICY, Scene, a_policy, web

OTHER = "other"
TAINTS = "RemovePodsViolatingNodeTaints"


class Hangs:
    """Never ends, until the test lets it."""

    name: ClassVar = "Hangs"
    kind: ClassVar = StrategyKind.DESCHEDULE
    args_model: ClassVar = NoArgs
    let_go: ClassVar = threading.Event()

    def __init__(self, args: Any = None) -> None:
        pass

    def candidates(self, context: Any) -> Iterator[None]:
        """Wait instead."""
        self.let_go.wait(30)
        return
        yield


def policy(name: str = OTHER, *strategies: str, **rebalancing: Any) -> SchedulingPolicy:
    """A policy that enforces."""
    named = [{"name": each} for each in strategies or (TAINTS,)]
    document = a_policy(strategies=named, **rebalancing).model_dump(
        mode="json", by_alias=True, exclude_none=True
    )
    document["metadata"]["name"] = name
    return SchedulingPolicy.model_validate(document)


async def until(question: Callable[..., Any], within_s: float = 300.0) -> None:
    """Wait in real time: threads are at work."""
    deadline = time.monotonic() + within_s
    while not question():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


@asynccontextmanager
async def together(scene: Scene, *policies: SchedulingPolicy) -> AsyncIterator[Any]:
    """Rebalancers at work for these policies; each is run by hand."""
    async with scene.running():
        for each in policies:
            scene.rebalancers.adopt(each)
        yield scene


def run(scene: Scene, name: str) -> Task[Any]:
    """Begin a run as the timetable does."""
    return asyncio.create_task(scene.runs.fall_due(name))


def results(scene: Scene) -> list[tuple[str, ...]]:
    """How runs have ended, by policy."""
    return [(name, result) for name, result, _ in scene.observer.runs]


async def test_a_hanging_strategy_holds_up_no_other_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others run meanwhile and after; it is Degraded, and runs again when its thread has ended."""
    monkeypatch.setattr(plan_runner, "PLANNING_S", 2.0)
    monkeypatch.setattr(plan_runner, "SLOW_S", 0.05)
    Hangs.let_go.clear()
    scene = Scene(computer=ThreadComputer())
    scene.wing.configs.registries.strategies.add(Hangs)  # type: ignore[arg-type] # a fake has only what is used

    async with together(scene, policy(POLICY, "Hangs"), policy()):
        hanging = run(scene, POLICY)
        await until(lambda: scene.wing.planning.is_slow(POLICY))
        await run(scene, OTHER)
        assert scene.evictor.evicted == ["web-1"], "while the first one plans"
        await hanging
        assert list(scene.rebalancers.troubles(POLICY)) == ["Hanging"]
        last = scene.statuses.statuses[POLICY]["lastRun"]
        assert (last["result"], last["message"]) == (
            "TimedOut",
            "the run broke off: the plan was not ready within 2 s",
        )
        await run(scene, POLICY)
        assert len(scene.wing.planning._abandoned) == 1, "it is not tried while its thread lives"

        Hangs.let_go.set()
        await until(lambda: not scene.wing.planning._abandoned)
        await run(scene, POLICY)
        assert scene.rebalancers.troubles(POLICY) == {}
    assert results(scene) == [
        (OTHER, "succeeded"),
        (POLICY, "timed_out"),
        (POLICY, "skipped"),
        (POLICY, "succeeded"),
    ]


async def test_hanging_threads_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed spec is tried, an unchanged one once an hour, and none beyond the bound."""
    monkeypatch.setattr(plan_runner, "ABANDONED", 3)
    clock, ends = FakeClock(), threading.Event()
    plans = PlanRunner(ThreadComputer(), clock, Signal())

    async def hangs(each: SchedulingPolicy) -> None:
        with pytest.raises(TimeoutError):
            await plans.make(each, lambda: ends.wait(30), 0.01)

    one, changed = policy(), policy(OTHER, limits={"total": 1})
    await hangs(one)
    assert plans.obstacle(one)
    assert plans.obstacle(changed) == ""
    await hangs(changed)
    assert plans.obstacle(changed)
    await clock.advance(plan_runner.RETRY_S)
    assert plans.obstacle(changed) == ""
    await hangs(changed)
    await clock.advance(plan_runner.RETRY_S)
    assert "3 plans hang" in plans.obstacle(changed)
    assert plans.obstacle(policy(POLICY)) == "", "a policy that never hung"
    ends.set()
    await until(lambda: not plans._abandoned)
    assert plans.obstacle(changed) == ""


async def test_slow_plans_leave_the_slots_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many plans are slow, the next one begins soon."""
    monkeypatch.setattr(plan_runner, "SLOW_S", 0.05)
    plans, ends = PlanRunner(ThreadComputer(), FakeClock(), Signal()), threading.Event()
    slow = [
        asyncio.create_task(plans.make(policy(f"p-{number}"), lambda: ends.wait(30), 60))
        for number in range(plan_runner.SLOTS)
    ]
    await asyncio.sleep(0)

    assert await asyncio.wait_for(plans.make(policy(), lambda: "done", 60), 25) == "done"
    ends.set()
    assert await asyncio.gather(*slow) == [True] * plan_runner.SLOTS


async def test_a_retried_eviction_holds_up_no_other_policy() -> None:
    """The server has no answer for the one; the other moves its pod meanwhile."""
    scene = Scene()
    scene.tell(NodeAdded(a_node("worse", taints=["worn=yes:NoSchedule"])), PodAdded(db(1, "worse")))
    scene.evictor.answers = [WriteResult(WriteOutcome.BUSY, "later", retry_after_s=3600.0)]

    async with together(scene, scoped(policy(POLICY), "web"), scoped(policy(), "db")):
        stuck = run(scene, POLICY)
        await settled()
        assert scene.phases == [["Planned", "Evicting"]]

        await asyncio.wait_for(run(scene, OTHER), 60)
        assert scene.evictor.evicted == ["db-1"]
        assert not stuck.done()
        stuck.cancel()


async def test_an_unanswered_proposal_holds_up_no_other_policy() -> None:
    """What people approved of one policy is being carried out, without an answer; the other goes on."""
    scene = Scene()
    scene.tell(NodeAdded(a_node("worse", taints=["worn=yes:NoSchedule"])), PodAdded(db(1, "worse")))
    asking = [scoped(policy(name, mode="Approve"), app) for name, app in ((POLICY, "web"), (OTHER, "db"))]

    async with together(scene, *asking):
        for name in (POLICY, OTHER):
            await run(scene, name)
        scene.evictor.answers = [WriteResult(WriteOutcome.BUSY, "later", retry_after_s=3600.0)]
        first, second = sorted(scene.records.documents, key=lambda key: "db" in key)
        for key in (first, second):
            namespace, _, name = key.partition("/")
            scene.wing.approvals.annotated(namespace, name, {"plimsoll.dev/approved": "true"})
        await scene.clock.advance(5)

        assert scene.evictor.evicted == ["db-1"]


async def test_two_policies_that_plan_together_move_a_pod_once() -> None:
    """Both plans want it; the second one finds it under way."""
    scene = slowly(Scene(computer=Simultaneous(2)))

    async with together(scene, policy(POLICY), policy()):
        await asyncio.gather(run(scene, POLICY), run(scene, OTHER))
        await settled()

    assert scene.evictor.evicted == ["web-1"]
    assert sorted(phases[-1] for phases in scene.phases) == ["Cancelled", "Evicted"]
    (called_off,) = [
        each["status"] for each in scene.records.documents.values() if each["status"]["phase"] == "Cancelled"
    ]
    assert called_off["reason"] == "AlreadyMoving"


async def until_stage(scene: Scene, stage: MoveStage) -> None:
    """Go on until the only move is there."""
    for _ in range(100):
        if [each.stage for each in scene.wing.executor.machine.open.values()] == [stage]:
            return
        await asyncio.sleep(0)
    raise AssertionError(scene.wing.executor.machine.open)


@pytest.mark.parametrize("stage", [MoveStage.OPENING, MoveStage.COMMITTING, MoveStage.EVICTING])
async def test_a_pod_that_is_about_to_leave_is_planned_by_no_other_run(stage: MoveStage) -> None:
    """Its move is being recorded, announced or sent: a second record of it would be called off."""
    scene = slowly(Scene())
    if stage is MoveStage.EVICTING:
        scene.evictor.answers = [WriteResult(WriteOutcome.BUSY, "later", retry_after_s=60.0)]
    limits = {"perWorkload": 5}

    async with together(scene, policy(POLICY, limits=limits), policy(limits=limits)):
        first = run(scene, POLICY)
        await until_stage(scene, stage)
        await scene.runs.rebalance(OTHER)
        await scene.clock.advance(61)
        await first

    assert set(scene.evictor.evicted) == {"web-1"}
    assert len(scene.records.documents) == 1
    refused = scene.statuses.statuses[OTHER]["counts"]["refused"]
    assert [each["reason"] for each in refused] == ["AlreadyMoving"]


async def test_two_policies_that_plan_together_share_the_limit_of_a_workload() -> None:
    """At most one pod of an owner is under way, whichever policy moves it."""
    scene = slowly(Scene(computer=Simultaneous(2)))
    scene.tell(PodAdded(web(3, "bad")))
    names = ((POLICY, "web-1"), (OTHER, "web-3"))
    for number, (_, pod) in enumerate(names):
        label(scene, pod, f"set-{number}")

    async with together(
        scene, *(scoped(policy(name), f"set-{number}") for number, (name, _) in enumerate(names))
    ):
        await asyncio.gather(*(run(scene, name) for name, _ in names))
        await settled()

    assert len(scene.evictor.evicted) == 1
    assert sorted(phases[-1] for phases in scene.phases) == ["Cancelled", "Evicted"]


async def test_two_policies_that_plan_together_do_not_break_a_group() -> None:
    """Its three members may spare one; each policy plans to move another one before any has left."""
    scene = slowly(Scene(computer=Simultaneous(2)))
    document = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 2}}
    scene.cache.cluster.objects.pod_groups["default/g"] = convert(PodGroup, document)
    scene.tell(*(PodAdded(grouped(name, node)) for name, node in (("a", "bad"), ("b", "bad"), ("c", "good"))))
    label(scene, "web-1", "none")

    async with together(scene, scoped(policy(POLICY), "a"), scoped(policy(), "b")):
        await asyncio.gather(run(scene, POLICY), run(scene, OTHER))
        await settled()

    assert len(scene.evictor.evicted) == 1
    (called_off,) = [
        each["status"] for each in scene.records.documents.values() if each["status"]["phase"] == "Cancelled"
    ]
    assert called_off["reason"] == "BreaksGroup"


async def test_two_policies_that_plan_together_do_not_fill_one_room_twice() -> None:
    """The target has room for one; the second one sees it held, even while the first record is written."""
    scene = slowly(Scene(computer=Simultaneous(2)))
    scene.tell(NodeAdded(a_node("worse", taints=["worn=yes:NoSchedule"])), PodAdded(db(1, "worse", cpu="3")))
    scene.tell(PodAdded(db(2, "good", cpu="500m")), PodAdded(big_web(9, "bad")))
    label(scene, "web-1", "none")

    async with together(scene, scoped(policy(POLICY), "big"), scoped(policy(), "db")):
        await asyncio.gather(run(scene, POLICY), run(scene, OTHER))
        await settled()

    assert len(scene.evictor.evicted) == 1
    assert sorted(phases[-1] for phases in scene.phases) == ["Cancelled", "Evicted"]


def slowly(scene: Scene) -> Scene:
    """Give every record a while to be written, so that others go on meanwhile."""
    for name in ("create", "write_status"):
        write = getattr(scene.records, name)

        async def later(*args: Any, write: Callable[..., Any] = write, **options: Any) -> Any:
            for _ in range(5):
                await asyncio.sleep(0)
            return await write(*args, **options)

        setattr(scene.records, name, later)
    return scene


class Simultaneous(InlineComputer):
    """Gives no plan before so many are made."""

    def __init__(self, number: int) -> None:
        self.left, self.all_made = number, asyncio.Event()

    async def compute(self, function: Any) -> Any:
        """The function's result, with the others'."""
        made = function()
        if hasattr(made, "moves"):
            self.left -= 1
            if not self.left:
                self.all_made.set()
            await self.all_made.wait()
        return made


def db(number: int, node: str, cpu: str = "100m") -> Pod:
    """A pod of the ReplicaSet db."""
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return a_pod(
        f"db-{number}", owner="ReplicaSet/db", cpu=cpu, node=node, status=status, labels={"app": "db"}
    )


def grouped(app: str, node: str) -> Pod:
    """A member of a PodGroup, each of an owner of its own."""
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    labels = {"app": app, "plimsoll.dev/pod-group": "g"}
    return a_pod(f"{app}-1", owner=f"ReplicaSet/{app}", cpu="100m", node=node, status=status, labels=labels)


def big_web(number: int, node: str) -> Pod:
    """A pod that needs most of a node."""
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return a_pod(
        f"big-{number}", owner="ReplicaSet/big", cpu="3", node=node, status=status, labels={"app": "big"}
    )


def scoped(given: SchedulingPolicy, app: str) -> SchedulingPolicy:
    """The same policy for the pods of one app; those of ReplicaSet web bear no label of their own."""
    document = given.model_dump(mode="json", by_alias=True, exclude_none=True)
    selector = (
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]}
        if app == "web"
        else {"matchLabels": {"app": app}}
    )
    document["spec"]["scope"] = {"podSelector": selector}
    document["spec"]["rebalancing"]["evictor"] = {"minReplicas": 1}
    return SchedulingPolicy.model_validate(document)


def label(scene: Scene, name: str, app: str) -> None:
    """Give a pod of the scene a label."""
    (pod,) = [each.pod for each in scene.cache.cluster.pods.values() if each.pod.name == name]
    metadata = msgspec.structs.replace(pod.metadata, labels={**pod.metadata.labels, "app": app})
    scene.tell(PodUpdated(pod, msgspec.structs.replace(pod, metadata=metadata)))


class Costly:
    """Proposes pods by turns, and takes a minute of processor time for each."""

    name: ClassVar = "Costly"
    kind: ClassVar = StrategyKind.DESCHEDULE
    args_model: ClassVar = NoArgs
    each_s: ClassVar = 50.0
    used_s: ClassVar = 0.0

    def __init__(self, args: Any = None) -> None:
        pass

    def candidates(self, context: Any) -> Iterator[Candidate]:
        """All pods of the node, one after the other."""
        for pod in context.all_pods("bad"):
            type(self).used_s += self.each_s
            yield Candidate(pod, "bad", "costly")


@pytest.mark.parametrize(("planner", "evicted"), [("Proven", []), ("Upstream", ["web-1"])])
async def test_a_plan_that_takes_too_much_is_given_up_and_says_so(
    planner: str, evicted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it found before is done, others run, and the next plan, which takes less, ends the condition.

    Planner Proven asks the strategy again while it judges the first pod, and gives up there.
    """
    monkeypatch.setattr(Costly, "used_s", 0.0)
    scene = Scene()
    scene.tell(*(PodAdded(web(number, "bad")) for number in range(2, 6)))
    scene.wing.planning.cpu_s = lambda: Costly.used_s
    scene.wing.configs.registries.strategies.add(Costly)  # type: ignore[arg-type] # a fake has only what is used

    async with together(scene, policy(POLICY, "Costly", planner=planner), policy()):
        await run(scene, POLICY)
        assert scene.evictor.evicted == evicted
        assert Costly.used_s <= 200.0, "a few of many looks"
        sentence = scene.rebalancers.troubles(POLICY)["StrategyFailed"]
        assert "given up, as the plan took more than 120 s of processor time" in sentence
        await run(scene, OTHER)
        monkeypatch.setattr(Costly, "each_s", 1.0)
        await run(scene, POLICY)

        assert scene.rebalancers.troubles(POLICY) == {}
    assert results(scene) == [(POLICY, "failed"), (OTHER, "succeeded"), (POLICY, "succeeded")]
