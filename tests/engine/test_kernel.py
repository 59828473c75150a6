"""The compiled kernel computes what numpy computes, to the bit."""

import random
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kernel_build import compile_kernel, compiler
from plimsoll.engine.attempt import schedule
from plimsoll.engine.cache.filter_results import FEASIBLE
from plimsoll.engine.decision import Decision
from plimsoll.engine.kernel import library
from plimsoll.engine.kernel.library import ColumnAddresses, Kernel, load
from plimsoll.engine.kernel.points import CompiledPoints
from plimsoll.engine.kernel.room import OTHER_VERDICTS, SOME_REFUSED, CompiledRoom
from plimsoll.engine.plugin_calls import METER, PluginCalls
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import CycleState, Registry, Snapshot
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
)
from plimsoll.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.drawn_worlds import LAWFUL, some_nodes, some_pod

PROFILE = build_profile(
    ProfileConfig("default-scheduler"),
    Registry(IN_TREE),
    [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()],
)


@pytest.fixture(scope="module", autouse=True)
def kernel(tmp_path_factory: Any) -> Kernel:
    """The kernel of the source as it is now, whatever was built before."""
    if compiler() is None:
        pytest.skip("no C compiler: numpy computes")
    path = tmp_path_factory.mktemp("kernel") / "_kernel.so"
    assert compile_kernel(Path(library.__file__).with_name("kernel.c"), path) == ""
    Twins.kernel = load(path, "")
    assert Twins.kernel is not None
    return Twins.kernel


#: Amounts near what a node has, and far from it: fractions of all sizes.
AMOUNTS = st.integers(0, 4) | st.integers(0, 3_000) | st.integers(0, 2**45)
RULES = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["LeastAllocated", "MostAllocated"]),
        "resources": st.sampled_from(
            [
                [{"name": "cpu"}, {"name": "memory"}],
                [{"name": "memory", "weight": 7}],
                [{"name": "cpu", "weight": 3}, {"name": "example.com/gpu", "weight": 5}, {"name": "memory"}],
            ]
        ),
    }
)


@settings(parent=LAWFUL)
@given(
    nodes=st.lists(
        st.tuples(*[st.integers(1, 8) | st.integers(1, 4_000) | st.integers(1, 2**46 - 1)] * 3),
        min_size=1,
        max_size=9,
    ),
    taken=st.lists(st.tuples(*[AMOUNTS] * 3), max_size=9),
    wanted=st.tuples(*[AMOUNTS] * 3),
    strategy=RULES,
    weights=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    base=st.integers(0, 900) | st.none(),
)
def test_columns_equal_those_of_the_plugins(
    kernel: Kernel, nodes: Any, taken: Any, wanted: Any, strategy: Mapping[str, Any], weights: Any, base: Any
) -> None:
    """Codes, totals and best rows of a template: of all rows together, and of each row again."""
    cluster = a_cluster(
        [a_node(f"n{at}", **_amounts("cpu", "memory", each), pods=2) for at, each in enumerate(nodes)],
        [
            a_pod(
                f"p{at}", node=f"n{at % len(nodes)}", **_requests(each), requests={"example.com/gpu": each[2]}
            )
            for at, each in enumerate(taken)
        ],
    )
    pod = cluster.templates.info(a_pod(**_requests(wanted), requests={"example.com/gpu": wanted[2]}))
    fit = NodeResourcesFit(NodeResourcesFitArgs.model_validate({"scoringStrategy": strategy}))
    balance = NodeResourcesBalancedAllocation(NodeResourcesBalancedAllocationArgs())
    state, snapshot, count = CycleState(), Snapshot(cluster), len(nodes)
    fit.pre_filter(state, pod, snapshot)
    room, allocation, even = (
        fit.filter_rule(state, pod, snapshot),
        fit.score_rule(state, pod, snapshot),
        balance.score_rule(state, pod, snapshot),
    )
    assert room is not None
    assert allocation is not None
    addresses = ColumnAddresses(cluster, kernel)
    codes = fit.filter(state, pod, snapshot)
    ground = np.arange(count) * 3 if base is None else base
    totals = ground + fit.score(state, pod, snapshot) * weights[0]
    if even is not None:
        totals = totals + balance.score(state, pod, snapshot) * weights[1]

    filtered = CompiledRoom(addresses, count, room, 4)
    assert filtered.look_at_all() == bool(codes.any())
    assert filtered.codes.tolist() == codes.tolist()
    scored = CompiledPoints(
        addresses, ground, count, (allocation, weights[0]), None if even is None else (even, weights[1])
    )
    scored.score_all()
    assert scored.totals.tolist() == totals.tolist()

    rows = np.arange(count)[::-1].copy()
    span = library.address(rows), count
    filtered.codes[:], scored.totals[:] = 77, 77
    before = np.arange(count, dtype=np.int16) % 8
    failed = np.full(count, FEASIBLE, dtype=np.int16)
    told = filtered.renew(span, before, failed)
    scored.score(span)
    expected = np.where((codes != 0) & (before > 4), 4, before)
    assert filtered.codes.tolist() == codes.tolist()
    assert failed.tolist() == expected.tolist()
    assert told == SOME_REFUSED * bool(codes.any()) + OTHER_VERDICTS
    assert filtered.renew(span, before, failed) == SOME_REFUSED * bool(codes.any())
    assert scored.totals.tolist() == totals.tolist()


EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
#: Pods of nodes that no pod may enter: node, milli-cores, priority, start.
FULL = [(2, 3_000, 9, None), (3, 3_000, 9, None)]
VICTIMS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from([500, 1_000, 2_000, 3_000]),
        st.sampled_from([-(2**31), -5, 0, 4, 5, 9]),
        st.sampled_from([None, EARLY, LATE]),
    ),
    max_size=14,
)


@settings(parent=LAWFUL)
@given(VICTIMS, st.sampled_from([500, 1_500, 3_000, 5_000]), st.sampled_from([0, 5]), st.sampled_from("01"))
@example([(0, 2_000, 0, EARLY), (0, 2_000, 0, LATE), (1, 3_000, 4, None), *FULL], 4_000, 5, "0")
@example([(0, 2_000, 4, None), (1, 3_000, 4, EARLY), *FULL], 3_000, 5, "1")
def test_victims_are_those_that_numpy_finds(
    kernel: Kernel, placed: Any, cpu: int, priority: int, nominated: str
) -> None:
    """Their places and costs, and refusals; a node with a nominated pod is left to numpy."""
    nodes = [a_node(f"n{at}", cpu="4", pods=4) for at in range(4)]
    pods = [
        a_pod(
            f"p{number}",
            node=f"n{at}",
            cpu=f"{amount}m",
            priority=one,
            status={"startTime": started} if started else {},
        )
        for number, (at, amount, one, started) in enumerate(placed)
    ]
    cluster = a_cluster(nodes, pods)
    told = []
    for each in (kernel, None):
        scheduler = ProfileScheduler(PROFILE, cluster, lambda _: 0, kernel=each)
        if nominated == "1":
            scheduler.nominator.add(cluster.templates.info(a_pod("first", cpu="2", priority=9)), "n1")
        new = cluster.templates.info(a_pod("new", cpu=f"{cpu}m", priority=priority))
        decision = schedule(scheduler, new)
        told.append((_told(decision), _kept(decision)))
    assert told[0] == told[1]


def _kept(decision: Decision) -> Any:
    """What the search keeps of each node: its kind, and of candidates the victims' places and their costs."""
    search: Any = None if decision.nomination is None else decision.nomination.search
    if search is None:
        return None
    kept = search.kept
    costs = [
        (kept.victims[:, row].nonzero()[0].tolist(), *(each[row] for each in kept.costs))
        for row in np.flatnonzero(kept.kinds == 0).tolist()
    ]
    return kept.kinds.tolist(), costs


def _amounts(cpu: str, memory: str, amounts: Any) -> dict[str, Any]:
    return {cpu: f"{amounts[0]}m", memory: amounts[1], "allocatable": {"example.com/gpu": amounts[2]}}


def _requests(amounts: Any) -> dict[str, Any]:
    return {"cpu": f"{amounts[0]}m", "memory": amounts[1]}


@pytest.mark.parametrize("is_timed", [False, True])
def test_attempts_are_computed_alike_whether_timed_or_not(kernel: Kernel, is_timed: bool) -> None:
    """What the metrics time is what pods take."""
    cluster, told = a_cluster([a_node("n1"), a_node("n2")]), []
    scheduler = ProfileScheduler(PROFILE, cluster, kernel=kernel)
    METER.set(
        PluginCalls(defaultdict(int), (lambda: 0.0) if is_timed else None, lambda *call: told.append(call))
    )
    try:
        with pytest.MonkeyPatch.context() as patch:
            for plugin, point in ((NodeResourcesFit, "filter"), (NodeResourcesFit, "score")):
                patch.setattr(plugin, point, None)
            for name in ("p1", "p2"):
                decision = schedule(scheduler, cluster.templates.info(a_pod(name, cpu="1")))
                cluster.place(decision.pod, decision.node)
    finally:
        METER.set(None)

    assert {name for name, point, *_ in told if point == "filter"} >= (
        {"NodeResourcesFit"} if is_timed else set()
    )
    assert len([call for call in told if call[:2] == ("NodeResourcesFit", "score")]) == 2 * is_timed


NODES = 12
CHANGE = st.tuples(st.integers(0, NODES - 1), st.booleans(), st.integers(0, 1))


@settings(parent=LAWFUL)
@given(st.lists(st.lists(CHANGE, max_size=4), max_size=8))
def test_best_rows_are_those_of_all_rows(kernel: Kernel, batches: Any) -> None:
    """Whatever changes between two questions: ties, a new best, refusals, none of the best left."""
    best = CompiledPoints(ColumnAddresses(a_cluster(), kernel), 0, NODES, None, None)
    best.score_all()
    failed = np.full(NODES, FEASIBLE, dtype=np.int16)
    best.best_of_all(failed)
    for batch in batches:
        changed = np.array([row for row, _, _ in batch], dtype=np.intp)
        for row, is_refused, total in batch:
            failed[row], best.totals[row] = (0 if is_refused and row else FEASIBLE), total
        feasible = np.flatnonzero(failed == FEASIBLE)

        rows, highest = best.best_again((library.address(changed), len(changed)), failed)

        assert highest == best.totals[feasible].max()
        assert rows.tolist() == feasible[best.totals[feasible] == highest].tolist()


def _told(decision: Decision) -> tuple[object, ...]:
    counts = decision.total, decision.feasible, decision.ties
    made = decision.nomination
    search = made.search if made is not None else None
    victims = (made.node, made.victims, made.status) if made is not None else ()
    searched = (search.candidates(), search.selected(), search.statuses()) if search is not None else ()
    return decision.outcome, decision.node, *counts, decision.message, decision.diagnosis, victims, searched


def _named(pod: Any, name: int) -> Any:
    metadata = msgspec.structs.replace(pod.metadata, name=f"p{name}", uid=f"p{name}")
    return msgspec.structs.replace(pod, metadata=metadata)


class Twins(RuleBasedStateMachine):
    """Two schedulers of one cluster: what the kernel decides is what numpy decides, random numbers too."""

    kernel: Kernel | None = None

    def __init__(self) -> None:
        super().__init__()
        self.cluster = a_cluster()
        self.asked: list[Any] = []

    @initialize(seed=st.integers(0, 99))
    def begin(self, seed: int) -> None:
        self.compiled, self.plain = (
            ProfileScheduler(PROFILE, self.cluster, random.Random(seed).randrange, kernel=kernel)
            for kernel in (self.kernel, None)
        )

    @rule(nodes=some_nodes())
    def nodes_come_or_change(self, nodes: Any) -> None:
        for node in nodes:
            self.cluster.set_node(node)

    @rule(place=st.integers(0, 7))
    def a_node_goes(self, place: int) -> None:
        self.cluster.remove_node(f"n{place}")

    @rule(pod=some_pod("p"), place=st.integers(0, 7), name=st.integers(0, 9))
    def a_pod_is_placed(self, pod: Any, place: int, name: int) -> None:
        self.cluster.displace(f"p{name}")
        self.cluster.place(self.cluster.templates.info(_named(pod, name)), f"n{place}")

    @rule(name=st.integers(0, 9))
    def a_pod_goes(self, name: int) -> None:
        self.cluster.displace(f"p{name}")

    @rule(amount=st.sampled_from(["3Pi", "1"]))
    def a_pod_is_huge(self, amount: str) -> None:
        self.cluster.displace("p0")
        self.cluster.place(self.cluster.templates.info(a_pod("p0", uid="p0", memory=amount)), "n0")

    @rule(pod=some_pod())
    def another_pod_asks(self, pod: Any) -> None:
        self.asked = [*self.asked[-2:], pod]

    @rule(is_timed=st.booleans())
    def attempts_are_metered(self, is_timed: bool) -> None:
        METER.set(PluginCalls(defaultdict(int), (lambda: 0.0) if is_timed else None, lambda *_: None))

    @rule()
    def attempts_are_not_metered(self) -> None:
        METER.set(None)

    @rule(times=st.integers(1, 4))
    def siblings_are_placed(self, times: int) -> None:
        for pod in self.asked:
            for name in range(times):
                decision = self.decided(_named(pod, name))
                self.cluster.displace(decision.pod.uid)
                if decision.node:
                    self.cluster.place(decision.pod, decision.node)

    @invariant()
    def decisions_are_equal(self) -> None:
        for pod in self.asked:
            self.decided(pod)

    def decided(self, pod: Any) -> Decision:
        info = self.cluster.templates.info(pod)
        one, other = schedule(self.compiled, info), schedule(self.plain, info)
        assert _told(one) == _told(other)
        return one

    def teardown(self) -> None:
        METER.set(None)


TestTwins = Twins.TestCase
TestTwins.settings = settings(stateful_step_count=25, suppress_health_check=list(HealthCheck))
