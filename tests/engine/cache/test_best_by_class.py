"""The best rows by class of nodes are those that a scan of all nodes finds, with all ties."""

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from plimsoll.engine.attempt import schedule
from plimsoll.engine.cache import best_by_class
from plimsoll.engine.cache.filter_results import FEASIBLE
from plimsoll.engine.decision import Decision
from plimsoll.engine.kernel import classes
from plimsoll.engine.kernel.classes import CompiledClasses
from plimsoll.engine.kernel.library import KERNEL, address
from plimsoll.engine.plugin_calls import METER, PluginCalls
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.framework.columns import Cluster
from plimsoll.framework.node_classes import NodeAxis
from plimsoll.framework.selectors import ReplicaSet
from plimsoll.model.decoding import convert
from plimsoll.model.read_only_dict import sealed
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_node, a_pod, put
from plimsoll.testing.drawn_worlds import LAWFUL

pytestmark = pytest.mark.skipif(KERNEL is None, reason="the kernel is not compiled")

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
PROFILE = build_profile(
    ProfileConfig("default-scheduler"),
    Registry(IN_TREE),
    [Enabled(*each) for each in DEFAULT_PLUGINS.items()],
)
NODES, APPS = 9, ("a", "b")


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use classes in small clusters, and blocks of two rows."""
    monkeypatch.setattr(best_by_class, "FEWEST_NODES", 0)
    monkeypatch.setattr(classes, "SHIFT", 1)


ROW = st.tuples(st.booleans(), st.integers(0, 2), st.integers(-1, 1), st.integers(0, 2))


@settings(parent=LAWFUL, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(ROW, min_size=1, max_size=11),
    st.lists(st.lists(st.tuples(st.integers(0, 10), ROW), max_size=3), max_size=5),
    st.lists(st.integers(0, 3), min_size=9, max_size=9),
)
def test_summaries_are_those_of_the_rows(rows: Any, batches: Any, points: Any) -> None:
    """Whatever rows change between two questions: verdicts, totals, classes."""
    assert KERNEL is not None
    failed = np.array([FEASIBLE if each[0] else 0 for each in rows], dtype=np.int16)
    totals, zones, counts = (np.array([each[at] for each in rows], dtype=np.int64) for at in (1, 2, 3))
    compiled = CompiledClasses(KERNEL, len(rows), (3, 3), 9)
    assert not compiled.reads(failed, totals, (NodeAxis(zones, 3), NodeAxis(counts, None)))
    assert compiled.reads(failed, totals, (NodeAxis(zones, 3), NodeAxis(counts, None)))
    grid = np.array(points, dtype=np.int64).reshape(3, 3)
    for batch in (None, *batches):
        changed = np.array([at % len(rows) for at, _ in batch or ()], dtype=np.int64)
        for row, (_, (is_feasible, total, zone, count)) in zip(changed.tolist(), batch or (), strict=True):
            failed[row], totals[row] = FEASIBLE if is_feasible else 0, total
            zones[row], counts[row] = zone, count

        assert compiled.renew(None if batch is None else (address(changed), len(changed)))

        feasible = np.flatnonzero(failed == FEASIBLE)
        expected = np.zeros((3, 3), dtype=np.int64)
        np.add.at(expected, (zones[feasible], counts[feasible]), 1)
        assert compiled.feasible.tolist() == expected.tolist()
        if len(feasible):
            sums = totals[feasible] + grid[zones[feasible], counts[feasible]]
            found, highest = compiled.best(grid)
            assert highest == sums.max()
            assert list(found) == feasible[sums == sums.max()].tolist()
            assert found[:2] == feasible[sums == sums.max()].tolist()[:2]
    counts[0], failed[0] = 3, FEASIBLE
    assert not compiled.renew(None)


def soft(app: str, *pairs: tuple[str, int]) -> list[dict[str, Any]]:
    """Soft constraints by key and largest skew."""
    return [
        {
            "maxSkew": skew,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": app}},
        }
        for key, skew in pairs
    ]


def asked_pods() -> list[dict[str, Any]]:
    """Pods of each kind, without their names."""
    hard = soft("a", (ZONE, 1))
    hard[0]["whenUnsatisfiable"] = "DoNotSchedule"
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "a"}}}
    near = {
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": term}]
        }
    }
    away = {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 3, "podAffinityTerm": {**term, "topologyKey": HOST}}
            ]
        }
    }
    kinds: list[dict[str, Any]] = [
        {"owner": "ReplicaSet/a"},
        {"owner": "ReplicaSet/a", "node_selector": {"disk": "ssd"}},
        {"topologySpreadConstraints": soft("a", (HOST, 1))},
        {"topologySpreadConstraints": soft("b", (ZONE, 2), (HOST, 1))},
        {"topologySpreadConstraints": soft("a", (ZONE, 1))},
        {"topologySpreadConstraints": soft("a", (ZONE, 1), ("disk", 1))},
        {"topologySpreadConstraints": [*soft("a", (HOST, 1)), *soft("b", (HOST, 2))]},
        {"topologySpreadConstraints": [*hard, *soft("a", (HOST, 1))]},
        {"owner": "ReplicaSet/a", "affinity": near},
        {"owner": "ReplicaSet/a", "affinity": away},
        {"affinity": {**near, **away}},
    ]
    return [{"labels": {"app": "a"}, "cpu": "300m", "memory": "1Gi", **each} for each in kinds]


KINDS = asked_pods()
OWNER = convert(
    ReplicaSet,
    {"metadata": {"name": "a", "namespace": "default"}, "spec": {"selector": {"matchLabels": {"app": "a"}}}},
)


def some_node(place: int, zone: int, kind: int) -> Any:
    """A node in a zone, none (3), or one without a name (4); with a disk (1, 3), and without hostname (3)."""
    labels = {} if zone == 3 else {ZONE: "" if zone == 4 else f"z{zone}"}
    if kind % 2:
        labels["disk"] = "ssd"
    node = a_node(f"n{place}", cpu=("4", "2", "1", "4")[kind], memory="8Gi", labels=labels)
    return sealed(replace(node, metadata=replace(node.metadata, labels=labels))) if kind == 3 else node


class Twins(RuleBasedStateMachine):
    """Two schedulers of one cluster, one of which scans all nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.asked: Sequence[int] = (0,)
        self.count = 0
        self.found = 0

    @initialize(seed=st.integers(0, 9))
    def begin(self, seed: int) -> None:
        put(self.cluster, OWNER)
        for place in range(NODES):
            self.cluster.set_node(some_node(place, place % 3, 0))
        self.kept, self.plain = (
            ProfileScheduler(PROFILE, self.cluster, random.Random(seed).randrange, kernel=kernel)
            for kernel in (KERNEL, None)
        )

    @rule(
        place=st.integers(0, NODES),
        zone=st.sampled_from([0, 1, 2, 0, 1, 2, 3, 4]),
        kind=st.sampled_from([0, 1, 2, 0, 1, 2, 0, 3]),
    )
    def a_node_comes_or_changes(self, place: int, zone: int, kind: int) -> None:
        self.cluster.set_node(some_node(place, zone, kind))

    @rule(place=st.integers(0, NODES))
    def a_node_goes(self, place: int) -> None:
        self.cluster.remove_node(f"n{place}")

    @rule(place=st.integers(0, NODES), app=st.sampled_from(APPS), name=st.integers(0, 9), ends=st.booleans())
    def a_pod_is_placed(self, place: int, app: str, name: int, ends: bool) -> None:
        more = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if ends else {}
        pod = a_pod(
            f"p{name}", uid=f"p{name}", node=f"n{place}", labels={"app": app}, cpu="200m", metadata=more
        )
        self.cluster.place(self.cluster.templates.info(pod), f"n{place}")

    @rule(name=st.integers(0, 9))
    def a_pod_goes(self, name: int) -> None:
        self.cluster.displace(f"p{name}")

    @rule(kinds=st.lists(st.integers(0, len(KINDS) - 1), min_size=1, max_size=3))
    def others_ask(self, kinds: list[int]) -> None:
        self.asked = kinds

    @rule(times=st.integers(1, 12))
    def siblings_are_placed(self, times: int) -> None:
        for _ in range(times):
            for kind in self.asked:
                self.count += 1
                decision = self.decided(kind, f"new-{self.count}")
                if decision.node:
                    self.cluster.place(decision.pod, decision.node)

    @rule(is_timed=st.booleans())
    def attempts_are_metered(self, is_timed: bool) -> None:
        METER.set(PluginCalls(defaultdict(int), (lambda: 0.0) if is_timed else None, lambda *_: None))

    @invariant()
    def decisions_are_equal(self) -> None:
        for kind in self.asked:
            self.decided(kind, "asks")

    def decided(self, kind: int, name: str) -> Decision:
        info = self.cluster.templates.info(a_pod(name, uid=name, **KINDS[kind]))
        one, other = schedule(self.kept, info), schedule(self.plain, info)
        assert told(one) == told(other)
        return one

    def teardown(self) -> None:
        METER.set(None)


def told(decision: Decision) -> tuple[object, ...]:
    return decision.outcome, decision.node, decision.total, decision.feasible, decision.ties, decision.message


TestTwins = Twins.TestCase
TestTwins.settings = settings(
    max_examples=60, stateful_step_count=25, suppress_health_check=list(HealthCheck)
)


#: Kinds of pods for which classes serve, and how often of 150 decisions at least.
CLASSED = {0: 140, 1: 140, 2: 140, 3: 140, 4: 140, 7: 140, 8: 140, 9: 40, 10: 100}


@pytest.mark.parametrize("kind", CLASSED)
def test_a_long_run_decides_as_a_scan_does(kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods come and go between the decisions; classes serve nearly all of them."""
    cluster, rng, found = Cluster(), random.Random(kind), 0
    best = best_by_class.BestByClass.best

    def counting(*args: Any) -> Any:
        nonlocal found
        answer = best(*args)
        found += answer is not None
        return answer

    monkeypatch.setattr(best_by_class.BestByClass, "best", counting)
    put(cluster, OWNER)
    for place in range(30):
        cluster.set_node(some_node(place, place % 3, 0 if place % 3 == 2 else 1))
    kept, plain = (
        ProfileScheduler(PROFILE, cluster, random.Random(1).randrange, kernel=each) for each in (KERNEL, None)
    )
    for step in range(150):
        for number in rng.sample(range(20), rng.randrange(4)):
            cluster.displace(f"p{number}")
        name = f"p{step % 20}"
        other = a_pod(name, uid=name, labels={"app": rng.choice(APPS)}, cpu="10m", memory="1Gi")
        cluster.place(cluster.templates.info(other), f"n{rng.randrange(30)}")
        info = cluster.templates.info(
            a_pod(f"new-{step}", uid=f"new-{step}", **{**KINDS[kind], "cpu": "20m"})
        )
        one, other_one = schedule(kept, info), schedule(plain, info)
        assert told(one) == told(other_one)
        if one.node:
            cluster.place(info, one.node)
        cluster.displace(f"new-{step - 20 + rng.randrange(3)}")
    assert found >= CLASSED[kind]
