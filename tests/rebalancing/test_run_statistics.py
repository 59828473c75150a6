"""Metrics of runs: results, durations, due times, and findings of the latest run."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from plimsoll.cluster.watch_events import NodeAdded
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.planning.moves import EvictionPlan, Refused
from plimsoll.ports.observer import Observer
from plimsoll.rebalancing.runs import plan_runner
from plimsoll.rebalancing.runs.scope_review import ScopeReview
from plimsoll.rebalancing.runs.statistics import RunStatistics
from plimsoll.rebalancing.runs.status import RunResult
from plimsoll.telemetry.rebalancing import RebalancingMetrics
from plimsoll.testing.builders import a_node, a_pod, the_info
from rebalancing.scene import POLICY, Scene, a_policy

DUPLICATES = "RemoveDuplicates"
TAINTS = "RemovePodsViolatingNodeTaints"
FAILING = {"name": "RemovePodsViolatingNodeAffinity", "args": {"nodeAffinityType": ["sometimes"]}}


class Told(Observer):
    """Keeps the results and durations."""

    def __init__(self) -> None:
        self.runs: list[Any] = []
        self.plans: list[Any] = []
        self.strategies: list[Any] = []

    def run_finished(self, policy: str, result: str, seconds: float) -> None:
        self.runs.append((policy, result, seconds))

    def strategy_ended(self, policy: str, strategy: str, seconds: float) -> None:
        self.strategies.append((policy, strategy, seconds))

    def run_ended(self, policy: str, considered: int, planned: int, refused: Mapping[str, int]) -> None:
        self.plans.append((policy, considered, planned, dict(refused)))


def observed(scene: Scene) -> Told:
    """The scene with an observer that keeps what it receives."""
    told = Told()
    scene.wing.statistics.observer = told
    return told


def slow(scene: Scene, seconds: float = 0.0, problem: Any = None) -> None:
    """Let a plan take that long, and end in that way."""
    compute = scene.computer.compute

    left = [seconds]  # a run computes more than its plan

    async def computed(function: Callable[..., Any]) -> EvictionPlan | ScopeReview:
        scene.clock.time += left.pop() if left else 0
        if problem is not None:
            raise problem
        return await compute(function)

    scene.computer.compute = computed  # type: ignore[method-assign] # replaced for this test


async def due(scene: Scene) -> None:
    """The timetable starts a run."""
    await scene.runs.fall_due(POLICY)


def figures(scene: Scene) -> Any:
    return scene.wing.statistics.figures().get(POLICY)


def test_a_pod_that_two_strategies_propose_counts_once() -> None:
    """As the policy's status counts it: no more pods are refused than were considered."""
    scene = Scene()
    told = observed(scene)
    pods = [the_info(a_pod(name, uid=name)) for name in ("first", "second")]
    refused = [
        Refused(pod, strategy, "", Refusal("WorkloadLimit", "no more"))
        for pod in pods
        for strategy in (DUPLICATES, TAINTS)
    ]
    rebalancing: Any = SimpleNamespace(strategies=())

    scene.wing.statistics.planned(POLICY, rebalancing, EvictionPlan((), tuple(refused)))

    assert told.plans == [(POLICY, 2, 0, {"WorkloadLimit": 2})]


async def test_a_run_that_succeeds_is_counted_timed_and_remembered() -> None:
    """Its duration is the run's own; the strategy took no time by this clock."""
    scene = Scene()
    told = observed(scene)
    slow(scene, seconds=7.0)

    async with scene.running():
        scene.rebalancers.configure([a_policy("DryRun")])
        before = figures(scene)
        await due(scene)
        after = figures(scene)

    assert told.runs == [(POLICY, RunResult.SUCCEEDED, 7.0)]
    assert told.strategies == [(POLICY, TAINTS, 0.0)]
    assert (before.last_success, after.last_success) == (None, scene.clock.now())
    assert before.due == before.next_run
    assert after.due == after.next_run


@pytest.mark.parametrize(
    ("problem", "strategies", "result"),
    [
        pytest.param(None, [FAILING], RunResult.FAILED, id="a strategy fails"),
        pytest.param(ZeroDivisionError(), None, RunResult.CRASHED, id="it crashes"),
        pytest.param(TimeoutError(), None, RunResult.TIMED_OUT, id="it takes too long"),
    ],
)
async def test_a_run_that_does_not_succeed_is_counted_as_what_it_is(
    problem: Any, strategies: list[dict[str, Any]] | None, result: RunResult
) -> None:
    """One that does not come to its end stays due since it first was; a failed strategy ends with the run."""
    scene = Scene()
    told = observed(scene)
    slow(scene, problem=problem)
    policy = a_policy("DryRun", **({"strategies": strategies} if strategies else {}))  # type: ignore[arg-type] # fields as in the API

    async with scene.running():
        scene.rebalancers.configure([policy])
        fell_due = scene.clock.now()
        await due(scene)
        scene.clock.time += 60
        await due(scene)
        found = figures(scene)

    assert {each for _, each, _ in told.runs} - {RunResult.SKIPPED} == {result}
    assert found.last_success is None
    assert found.due == (found.next_run if result is RunResult.FAILED else fell_due)


async def test_a_policy_whose_plan_hung_skips_its_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is due for as long as it does not run."""
    monkeypatch.setattr(plan_runner, "PLANNING_S", 0.05)
    scene = Scene()
    told = observed(scene)

    async def hang(_: Callable[..., Any]) -> None:
        await asyncio.Event().wait()

    scene.computer.compute = hang  # type: ignore[method-assign] # replaced for this test
    async with scene.running():
        scene.rebalancers.configure([a_policy()])
        fell_due = scene.clock.now()
        await due(scene)
        await due(scene)
        found = figures(scene)

    assert [result for _, result, _ in told.runs] == [RunResult.TIMED_OUT, RunResult.SKIPPED]
    assert found.due == fell_due


async def test_a_run_that_waits_for_another_one_is_due() -> None:
    """Until it has run."""
    scene = Scene()

    async with scene.running():
        scene.rebalancers.configure([a_policy("DryRun")])
        fell_due = scene.clock.now()
        async with scene.runs._locks.setdefault(POLICY, asyncio.Lock()):
            waiting = asyncio.create_task(due(scene))
            await asyncio.sleep(0)
            scene.clock.time += 100
            assert figures(scene).due == fell_due
        await waiting
        assert figures(scene).due == figures(scene).next_run


async def test_what_the_latest_run_found_and_what_is_in_flight() -> None:
    """One pod is on a tainted node, and moves; each ready node has one pod, and the third does not count."""
    scene = Scene()
    scene.tell(NodeAdded(a_node("unready", status={"conditions": [{"type": "Ready", "status": "False"}]})))

    async with scene.running():
        scene.rebalancers.configure([a_policy(strategies=[{"name": TAINTS}, {"name": DUPLICATES}])])
        before = figures(scene)
        await due(scene)
        after = figures(scene)

    assert (before.in_flight, after.in_flight) == (0, 1)
    assert after.violations == {TAINTS: 1, DUPLICATES: 0}
    assert set(after.imbalance) == {(each, "requests") for each in ("cpu", "memory", "pods")}
    assert after.imbalance["pods", "requests"] == 0.0


async def test_figures_go_with_their_policy() -> None:
    """Neither a deleted policy nor one that comes back has a past."""
    scene = Scene()

    async with scene.running():
        scene.rebalancers.configure([a_policy("DryRun")])
        await due(scene)
        scene.rebalancers.configure([])
        gone = figures(scene)
        scene.rebalancers.configure([a_policy("DryRun")])
        back = figures(scene)

    assert gone is None
    assert (back.last_success, back.violations) == (None, {})


async def test_a_standby_has_no_figures() -> None:
    """Nothing runs there: its policies have no next run."""
    scene = Scene()
    scene.rebalancers.configure([a_policy()])

    assert figures(scene) is None


def test_the_observer_counts_and_times_by_policy() -> None:
    """All results have a series from the first run on; a skipped run has no duration."""
    registry = CollectorRegistry()
    metrics = RebalancingMetrics(registry)

    metrics.run_finished("p", "succeeded", 3.0)
    metrics.run_finished("p", "skipped", 0.0)
    metrics.strategy_ended("p", "Tidy", 0.2)

    def value(name: str, **labels: Any) -> Any:
        return registry.get_sample_value(f"plimsoll_rebalancer_{name}", {"policy": "p", **labels})

    assert {each: value("runs_total", result=each) for each in RunResult} == {
        "succeeded": 1, "failed": 0, "crashed": 0, "timed_out": 0, "skipped": 1,
    }  # fmt: skip
    assert value("run_duration_seconds_sum") == 3
    assert value("run_duration_seconds_count") == 1
    assert value("strategy_duration_seconds_sum", strategy="Tidy") == 0.2


def test_the_next_run_of_any_policy_counts_as_near() -> None:
    """What is kept for it is let go when it is far off, or when no policy runs."""
    clock = Scene().clock
    runs = {name: datetime.fromtimestamp(clock.now() + s, UTC) for name, s in (("near", 100), ("far", 500))}
    found = RunStatistics(["far", "near", "never"], runs.get, tuple, clock, Observer())

    assert found.runs_within(100.0)
    assert not found.runs_within(99.0)
    assert not RunStatistics(["never"], runs.get, tuple, clock, Observer()).runs_within(100.0)
