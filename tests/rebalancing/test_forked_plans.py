"""Plans made in forks of the process are those made in it, and do no harm when they end badly."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from planning.test_row_order import NOW, a_drifted_cluster
from planning.test_row_order import a_policy as a_rebalancing
from plimsoll.app.forks import child_process
from plimsoll.app.forks.child_process import ChildProcess
from plimsoll.app.forks.forked_computer import ForkedComputer
from plimsoll.cluster.watch_events import PodAdded
from plimsoll.framework import NoArgs, PluginError
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.proposals import Candidate, Refusal
from plimsoll.framework.descheduling.strategy import StrategyKind
from plimsoll.planning import strategy_run
from plimsoll.planning.moves import EvictionPlan, PlanningContext, Refused, replacement_of
from plimsoll.planning.planners import make_plan
from plimsoll.planning.strategy_run import TIMER, StrategyTimer
from plimsoll.rebalancing.runs import plan_runner
from plimsoll.rebalancing.runs.plan_parcel import PlanParcel
from plimsoll.rebalancing.runs.refusal_examples import abridged
from plimsoll.rebalancing.runs.status import RunTotals, run_status
from plimsoll.testing.fakes import FakeClock, InlineComputer, settled
from plimsoll.timing.signal import Signal
from rebalancing import test_upstream_run as upstream
from rebalancing.scene import POLICY, Scene, a_policy, web
from rebalancing.test_isolation import OTHER, TAINTS, policy, results, run, together

#: Tests run policies by hand.
NEVER = {"cron": "0 0 1 1 *"}
STRATEGIES = ("RemovePodsViolatingNodeTaints", "RemoveDuplicates", "LowNodeUtilization")


class Breaks:
    """A strategy that ends the process which asks it, or keeps it waiting."""

    name: ClassVar = "Breaks"
    kind: ClassVar = StrategyKind.DESCHEDULE
    args_model: ClassVar = NoArgs
    operator: ClassVar = os.getpid()
    hangs: ClassVar = False
    kills_after: ClassVar = 0

    def __init__(self, args: Any = None) -> None:
        pass

    def candidates(self, context: Any) -> Iterator[Candidate]:
        """Do harm, but not to the tests."""
        for pod in context.all_pods("bad")[: self.kills_after]:
            yield Candidate(pod, "bad", "it is in the way")
        if os.getpid() != self.operator:
            if self.hangs:
                time.sleep(60)
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(autouse=True)
def forked() -> Iterator[list[ChildProcess]]:
    """The processes that were forked; none may be left when a test ends."""
    fork, children = child_process.fork, list[ChildProcess]()

    def noted(function: Callable[[bytes], bytes]) -> ChildProcess:
        children.append(fork(function))
        return children[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child_process, "fork", noted)
        yield children
    for each in children:
        with pytest.raises(ChildProcessError):
            os.waitpid(each.pid, os.WNOHANG)


@pytest.fixture
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small a plan is, it is made in a fork."""
    for limit in ("FEW_PODS", "SMALL_S", "TRIAL_S"):
        monkeypatch.setattr(plan_runner, limit, -1)


def a_scene(*, hangs: bool = False, kills_after: int = 0) -> Scene:
    """Plans are made in forks; two policies are to come, one of which breaks."""
    scene = Scene(forks=ForkedComputer())
    strategy = type("Breaks", (Breaks,), {"hangs": hangs, "kills_after": kills_after})
    scene.wing.configs.registries.strategies.add(strategy)
    return scene


@pytest.mark.usefixtures("_always")
@pytest.mark.parametrize("planner", list(Planner))
async def test_a_plan_is_the_same_wherever_it_is_made(planner: Planner) -> None:
    """All of it: moves with the very same pods, refusals, findings; the times of strategies arrive, too."""
    rebalancing, cluster = a_rebalancing(planner, *STRATEGIES), a_drifted_cluster(1)
    context = PlanningContext(now=NOW)
    timer = StrategyTimer(time.monotonic)

    async def made(forks: ForkedComputer | None) -> EvictionPlan:
        plans = plan_runner.PlanRunner(InlineComputer(), FakeClock(), Signal(), forks)
        parcel = PlanParcel("plan", cluster)
        return await plans.make_apart(policy(), lambda: make_plan(rebalancing, cluster, context), parcel, 60)

    here = await made(None)
    outer = TIMER.set(timer)
    try:
        there = await made(ForkedComputer())
    finally:
        TIMER.reset(outer)

    assert here.moves
    assert here.refused
    if here.optimisation is not None:
        assert there.optimisation is not None
        here = replace(here, optimisation=replace(here.optimisation, seconds=there.optimisation.seconds))
    assert there == here
    assert all(move.pod is cluster.pods[move.pod.uid] for move in there.moves)
    assert timer.seconds.keys() == set(STRATEGIES)


def test_a_parcel_carries_pods_of_the_fork_alone_and_failures() -> None:
    """A stand-in of the plan's fork; a failure loses only what third parties have added."""
    cluster = a_drifted_cluster(1)
    pod = next(iter(cluster.pods.values()))
    stand_in = replacement_of(pod, cluster.fork(), "n07")
    failure = PluginError("Mine", "candidates", "no idea", "in its module")
    failure.connection = lambda: None  # type: ignore[attr-defined] # what cannot be pickled
    waiting = replacement_of(pod, cluster.fork())
    parcel = PlanParcel("plan", cluster, [waiting])

    found: Any = parcel.unpack(parcel.pack((pod, waiting, stand_in, failure)))
    known, unplaced, new, failed = found

    assert known is pod
    assert unplaced is waiting
    assert (new.pod, new.stands_in_for, new.template) == (
        stand_in.pod,
        stand_in.stands_in_for,
        stand_in.template,
    )
    assert (type(failed), failed.args, failed.trace) == (PluginError, failure.args, "in its module")


@pytest.mark.usefixtures("_always")
@pytest.mark.parametrize("seed", range(5))
async def test_a_run_of_upstream_is_the_same_wherever_it_is_decided(
    seed: int, forked: list[ChildProcess]
) -> None:
    """Random answers; each reaches the fork before the next decision."""

    async def carried_out(forks: ForkedComputer | None) -> tuple[Any, ...]:
        rng = random.Random(seed)
        scene = upstream.a_scene(forks=forks, **{f"app{n}": rng.randrange(1, 5) for n in range(4)})
        scene.evictor.when_done = scene.gone if seed % 2 else scene.leaving
        scene.evictor.answers = [rng.choice(upstream.ANSWERS) for _ in range(100)]
        async with scene.running(upstream.exactly(limits={"total": 6})):
            await scene.run()
            return scene.evictor.evicted, scene.phases, scene.statuses.statuses[POLICY]

    assert await carried_out(ForkedComputer()) == await carried_out(None)
    assert len(forked) == 2, "one for the run, one for the review of the scope"


@pytest.mark.usefixtures("_always")
async def test_what_upstream_evicted_before_its_process_was_killed_stands() -> None:
    """It is on record, and the run has failed."""
    scene = a_scene(kills_after=1)

    async with together(scene, policy(POLICY, "Breaks", planner="Upstream")):
        await run(scene, POLICY)
        await settled()
        assert scene.evictor.evicted == ["web-1"]
        assert list(scene.rebalancers.troubles(POLICY)) == ["RunFailed"]
    assert results(scene) == [(POLICY, "crashed")]
    assert [phases[:3] for phases in scene.phases] == [["Planned", "Evicting", "Evicted"]]


@pytest.mark.usefixtures("_always")
async def test_a_plan_whose_process_is_killed_harms_only_itself() -> None:
    """The policy is Degraded, with a sentence; the other one goes on, and so does this one when it can."""
    scene = a_scene()

    async with together(scene, policy(POLICY, "Breaks"), policy()):
        await asyncio.gather(run(scene, POLICY), run(scene, OTHER))
        assert scene.evictor.evicted == ["web-1"]
        said = "the process that made the plan was killed by SIGKILL"
        said += ", as the kernel does when memory runs out"
        assert scene.rebalancers.troubles(POLICY) == {
            "RunFailed": f"the latest run broke off: {said}; the next one is tried as scheduled"
        }
        last = scene.statuses.statuses[POLICY]["lastRun"]
        assert (last["result"], last["message"]) == ("Crashed", f"the run broke off: {said}")
        scene.rebalancers.adopt(policy(POLICY, TAINTS))
        await run(scene, POLICY)
        assert scene.rebalancers.troubles(POLICY) == {}
    assert results(scene) == [(OTHER, "succeeded"), (POLICY, "crashed"), (POLICY, "succeeded")] or results(
        scene
    ) == [(POLICY, "crashed"), (OTHER, "succeeded"), (POLICY, "succeeded")]


@pytest.mark.usefixtures("_always")
async def test_a_plan_that_takes_too_long_is_ended(
    monkeypatch: pytest.MonkeyPatch, forked: list[ChildProcess]
) -> None:
    """Unlike a thread, its process can be: the policy may run again, and nothing hangs."""
    monkeypatch.setattr(plan_runner, "PLANNING_S", 0.2)
    scene = a_scene(hangs=True)

    async with together(scene, policy(POLICY, "Breaks")):
        await run(scene, POLICY)
        assert scene.wing.planning.obstacle(policy(POLICY, "Breaks")) == ""
    assert results(scene) == [(POLICY, "timed_out")]
    assert len(forked) == 1


@pytest.mark.usefixtures("_always")
@pytest.mark.parametrize("is_deleted", [False, True])
async def test_a_plan_that_is_not_wanted_any_more_is_called_off(
    forked: list[ChildProcess], *, is_deleted: bool
) -> None:
    """When the policy's spec changes or the policy goes: the run is skipped, its process has ended."""
    scene = a_scene(hangs=True)

    async with together(scene):
        scene.rebalancers.configure([policy(POLICY, "Breaks", schedule=NEVER)])
        begun = run(scene, POLICY)
        await settled()
        assert not begun.done()
        scene.rebalancers.configure([] if is_deleted else [policy(POLICY, TAINTS, schedule=NEVER)])
        await begun
        assert len(forked) == 1
        assert results(scene) == [(POLICY, "skipped")]


@pytest.mark.usefixtures("_always")
async def test_the_end_of_the_operator_ends_its_plans(forked: list[ChildProcess]) -> None:
    """A run that is cancelled leaves no process."""
    scene = a_scene(hangs=True)

    async with together(scene, policy(POLICY, "Breaks")):
        begun = run(scene, POLICY)
        await settled()
        begun.cancel()
        await asyncio.wait({begun})
    assert len(forked) == 1


class Noted(ForkedComputer):
    """Counts the forks; has no room for one when told so."""

    def __init__(self) -> None:
        self.forked, self.problem = 0, ""

    def obstacle(self) -> str:
        """What the test says."""
        return self.problem

    async def compute(self, function: Any) -> bytes:
        """Computed here."""
        self.forked += 1
        return function()  # type: ignore[no-any-return]


@pytest.mark.usefixtures("_always")
async def test_what_is_prepared_stays_in_the_operator() -> None:
    """The plan finds it, in whatever process; what it adds is lost with the fork."""
    plans = plan_runner.PlanRunner(InlineComputer(), FakeClock(), Signal(), ForkedComputer())
    kept: list[str] = []

    def compute() -> list[str]:
        kept.append("found by the plan")
        return kept

    parcel = PlanParcel("plan", a_drifted_cluster(1))

    def prepare() -> int:
        kept.append("prepared")
        return 1

    made = await plans.make_apart(policy(), compute, parcel, 60, prepare)

    assert made == ["prepared", "found by the plan"]
    assert kept == ["prepared"]


async def test_small_plans_are_made_in_a_thread() -> None:
    """By what those before took, or by the number of pods; and all where no process can be had."""
    clock, forks, cluster = FakeClock(), Noted(), a_drifted_cluster(1)
    plans = plan_runner.PlanRunner(InlineComputer(), clock, Signal(), forks, clock.monotonic)

    async def forked(took_s: float, changed: int = 0) -> bool:
        def compute() -> None:
            clock.time += took_s

        before = forks.forked
        await plans.make_apart(policy(), compute, PlanParcel("plan", cluster), 60, lambda: changed)
        return forks.forked > before

    small, long = plan_runner.SMALL_S / 2, plan_runner.SMALL_S * 2
    assert not await forked(long), "few pods"
    assert not await forked(long), "what it found the first time is kept"
    assert await forked(long), "and it took long nevertheless"
    assert await forked(small), "it is not tried again"
    assert not await forked(plan_runner.TRIAL_S * 2), "until one was small"
    assert await forked(plan_runner.TRIAL_S * 2)
    forks.problem = "no memory"
    assert not await forked(long)
    forks.problem = ""
    plans.forget(policy().metadata.name)
    assert not await forked(small), "nothing is known"
    assert not await forked(small)
    assert await forked(small, changed=round(plan_runner.SMALL_S / plan_runner.CHANGED_POD_S)), (
        "much has changed"
    )


@given(
    st.lists(
        st.tuples(st.integers(0, 39), st.sampled_from("ab"), st.sampled_from(("Busy", "Full", "Old"))),
        max_size=60,
    )
)
def test_an_abridged_plan_has_the_same_status(refused: list[tuple[int, str, str]]) -> None:
    """Counts of all, and the same examples in the same order."""
    pods = list(a_drifted_cluster(1).pods.values())
    plan = EvictionPlan(
        (),
        tuple(
            Refused(pods[number], strategy, "wanted", Refusal(reason, f"{reason} {turn}"))
            for turn, (number, strategy, reason) in enumerate(refused)
        ),
    )
    few = abridged(plan)

    assert run_status(RunTotals(a_policy(), 0.0, few, "1"), None) == run_status(
        RunTotals(a_policy(), 0.0, plan, "1"), None
    )
    assert few.counted() == plan.counted()
    assert list(few.refused_by_reason().items()) == list(plan.refused_by_reason().items())
    assert len(few.refused) <= 3 * 10
    assert abridged(few) == few


class Lengthy:
    """Proposes pods that may stay; the second one costs the process that decides its whole budget."""

    name: ClassVar = "Lengthy"
    kind: ClassVar = StrategyKind.DESCHEDULE
    args_model: ClassVar = NoArgs

    def __init__(self, args: Any = None) -> None:
        pass

    def candidates(self, context: Any) -> Iterator[Candidate]:
        """All pods of the node, one after the other."""
        for number, pod in enumerate(context.all_pods("bad")):
            began = time.thread_time()
            while number == 1 and time.thread_time() - began < 2 * BUDGET_S:
                pass
            yield Candidate(pod, "bad", "lengthy")


#: Seconds of processor time that a plan of the test may take.
BUDGET_S = 0.1


@pytest.mark.usefixtures("_always")
@pytest.mark.parametrize("planner", ["Proven", "Upstream"])
async def test_a_plan_that_takes_too_much_is_given_up_in_its_fork(
    planner: str, forked: list[ChildProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fork ends by itself with a sentence, and other policies run."""
    monkeypatch.setattr(strategy_run, "PLAN_BUDGET_S", BUDGET_S)
    scene = Scene(forks=ForkedComputer())
    scene.tell(*(PodAdded(web(number, "bad")) for number in range(2, 6)))
    scene.wing.configs.registries.strategies.add(Lengthy)  # type: ignore[arg-type] # has what is used

    async with together(scene, policy(POLICY, "Lengthy", planner=planner), policy()):
        await run(scene, POLICY)
        sentence = scene.rebalancers.troubles(POLICY)["StrategyFailed"]
        assert f"given up, as the plan took more than {BUDGET_S:g} s of processor time" in sentence
        assert forked
        await run(scene, OTHER)

    assert results(scene) == [(POLICY, "failed"), (OTHER, "succeeded")]
