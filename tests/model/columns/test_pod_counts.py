"""Kept counts equal counted ones, after any sequence of events and on both sides of a fork."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.pod_counts import CLASS_BYTES, ClassCounts, PodClass, PodCounts
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.columns.term_counts import REMEMBERED, TermCounts
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.selector_lookup import LabelLookup, SelectorLookup
from plimsoll.model.selectors import LabelSelector, LabelSelectorRequirement, Selector, compile_selector
from plimsoll.testing.builders import a_cluster, a_node, a_pod

ZONE = "zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
APPS = ("web", "db")
SELECTORS = (
    compile_selector(LabelSelector(match_labels={"app": "web"})),
    compile_selector(
        LabelSelector(match_expressions=(LabelSelectorRequirement(key="app", operator="Exists"),))
    ),
    compile_selector(
        LabelSelector(
            match_expressions=(LabelSelectorRequirement(key="app", operator="In", values=("web", "db")),)
        )
    ),
    compile_selector(LabelSelector()),
    compile_selector(None),
)
CLASSES = tuple(
    PodClass(((namespaces, selector),), living=living)
    for namespaces in (None, frozenset(("default",)))
    for selector in SELECTORS
    for living in (True, False)
)


class EvenNodes:
    """A node set, equal to any other of its kind."""

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EvenNodes)

    def among(self, snapshot: Any) -> np.ndarray[Any, Any]:
        return np.array([int(node.name[1:]) % 2 == 0 for node in snapshot.nodes], dtype=np.bool_)


def check(cluster: Cluster) -> None:
    """Compare every class on every node and in every zone with what the pods say."""
    snapshot = Snapshot(cluster)
    counts = snapshot.index(PodCounts)
    zones = snapshot.label(ZONE)
    for pods in CLASSES:
        members = [
            (pod, row)
            for pod, row in cluster.placed()
            if pods.matches(pod.namespace, pod.labels) and not (pods.living and pod.is_terminating)
        ]
        expected = Counter(row for _, row in members)
        kept = counts.of(pods)
        assert kept.column[: len(cluster)].tolist() == [expected[row] for row in range(len(cluster))]
        assert kept.total == len(members)
        for nodes in (None, EvenNodes()):
            sums = kept.sums(ZONE, snapshot, nodes)
            among = np.ones(len(cluster), dtype=np.bool_) if nodes is None else nodes.among(snapshot)
            of_zone = Counter(
                cluster.nodes[row].labels.get(ZONE) for row in range(len(cluster)) if among[row]
            )
            pods_of_zone = Counter(cluster.nodes[row].labels.get(ZONE) for _, row in members if among[row])
            assert sums.sums.tolist() == [*(pods_of_zone[zone] for zone in zones.values), 0]
            assert sums.exists.tolist() == [*(of_zone[zone] > 0 for zone in zones.values), False]
            assert sums.size == sums.exists.sum()


class Counting(RuleBasedStateMachine):
    """Nodes and pods come and go; a fork is taken, changed, and compared as well."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster(capacity=2)
        self.twin = None

    @rule(number=st.integers(0, 5), zone=st.sampled_from(["a", "b", None]))
    def a_node_comes_or_changes(self, number: int, zone: Any) -> None:
        self.cluster.set_node(a_node(f"n{number}", labels={ZONE: zone} if zone else {}))

    @rule(number=st.integers(0, 5))
    def a_node_goes(self, number: int) -> None:
        self.cluster.remove_node(f"n{number}")

    @rule(
        name=st.sampled_from("pqrst"),
        number=st.integers(0, 5),
        app=st.sampled_from((*APPS, None)),
        namespace=st.sampled_from(["default", "other"]),
        terminating=st.booleans(),
        on_twin=st.booleans(),
    )
    def a_pod_comes_or_changes(
        self, *, name: str, number: int, app: Any, namespace: str, terminating: bool, on_twin: bool
    ) -> None:
        cluster = self.twin if on_twin and self.twin is not None else self.cluster  # type: ignore[redundant-expr] # mypy does not see the change
        leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if terminating else {}
        pod = a_pod(name, namespace=namespace, uid=name, labels={"app": app} if app else {}, metadata=leaving)
        cluster.place(cluster.templates.info(pod), f"n{number}")

    @rule(name=st.sampled_from("pqrst"), on_twin=st.booleans())
    def a_pod_goes(self, name: str, on_twin: bool) -> None:
        cluster = self.twin if on_twin and self.twin is not None else self.cluster  # type: ignore[redundant-expr] # mypy does not see the change
        cluster.displace(name)

    @rule()
    def fork(self) -> None:
        self.twin = self.cluster.fork()  # type: ignore[assignment] # a fake differs on purpose

    @invariant()
    def kept_counts_are_right(self) -> None:
        check(self.cluster)
        if self.twin is not None:
            check(self.twin)


TestCounting = Counting.TestCase
TestCounting.settings = settings(stateful_step_count=15, suppress_health_check=list(HealthCheck))


def test_classes_unused_for_long_are_dropped_and_counted_again() -> None:
    """Memory stays bounded however many selectors there are, and no count is lost."""
    cluster = Cluster(capacity=CLASS_BYTES // 128)
    cluster.set_node(a_node("n1"))
    cluster.place(cluster.templates.info(a_pod("p", labels={"app": "web"})), "n1")
    counts = cluster.index(PodCounts)
    most = 16
    counts.of(CLASSES[0])

    for number in range(most + 1):
        one = compile_selector(LabelSelector(match_labels={"app": f"x{number}"}))
        counts.of(PodClass(((None, one),)))

    assert len(counts._counted) <= most
    cluster.place(cluster.templates.info(a_pod("q", labels={"app": "web"})), "n1")
    assert counts.of(CLASSES[0]).total == 2


@pytest.mark.parametrize("selector", SELECTORS, ids=["equal", "exists", "one-of", "all", "none"])
@pytest.mark.parametrize("labels", [{}, {"app": "web"}, {"app": "db", "x": "y"}, {"x": "y"}])
def test_lookups_miss_no_pod(selector: Selector, labels: dict[str, Any]) -> None:
    """Whatever matches is among the candidates, found from either side."""
    selectors: SelectorLookup[str] = SelectorLookup()
    selectors.add(selector, "selector")
    objects: LabelLookup[str] = LabelLookup()
    objects.add(labels, "object")

    if selector.matches(labels):
        assert list(selectors.candidates(labels)) == ["selector"]
        assert list(objects.candidates(selector)) == ["object"]
    objects.discard(labels, "object")
    assert not list(objects.candidates(selector))


def hermit(name: str, app: str, node: str = "") -> Pod:
    return a_pod(
        name,
        node=node,
        affinity={
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": app}}}
                ]
            }
        },
    )


def test_terms_are_found_by_the_labels_they_mean_and_swept_when_unused() -> None:
    """Pods with many different terms come and go; what remains is what placed pods have."""
    cluster = a_cluster([a_node("n1", labels={ZONE: "a"})], [hermit("stays", "web", "n1")])
    terms = cluster.index(TermCounts)
    web = cluster.templates.info(a_pod(labels={"app": "web"})).template

    for number in range(REMEMBERED + 200):
        info = cluster.templates.info(hermit("passes", f"x{min(number, 100)}"))
        cluster.place(info, "n1")
        cluster.displace(info.uid)

    assert len(terms._counted) == 2
    ((term, counts),) = terms.concerning(web, {}).anti_affinity
    assert term.topology_key == ZONE
    assert counts.total == 1


STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["add"]), st.integers(0, 63), st.integers(1, 3)),
        st.tuples(st.sampled_from(["take", "move"]), st.integers(0, 63), st.integers(0, 63)),
        st.tuples(st.sampled_from(["fork", "ask", "grow"]), st.just(0), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=50)
@given(STEPS)
def test_counts_are_the_same_with_and_without_a_column(steps: list[tuple[str, int, int]]) -> None:
    """Before somebody asks for all rows and afterwards, when there are many, and on both sides of a fork."""
    capacity = 64
    counts, expected = ClassCounts(capacity), Counter[int]()
    left: list[tuple[ClassCounts, Counter[int]]] = []
    for step, row, other in steps:
        if step == "add":
            counts.add(row, other)
            expected[row] += other
        elif step == "take" and expected[row]:
            counts.add(row, -1)
            expected[row] -= 1
        elif step == "move" and row != other:
            counts.move_row(row, other)
            expected[other] = expected.pop(row, 0)
        elif step == "fork":
            left.append((counts, expected.copy()))
            counts = counts.fork()
        elif step == "ask":
            assert counts.column.sum() == expected.total()
        elif step == "grow":
            capacity += 8
            counts.grow(capacity)

    for kept, truth in [*left, (counts, expected)]:
        assert kept.total == truth.total()
        assert {row: count for row, count in enumerate(kept.column.tolist()) if count} == +truth


def test_the_terms_of_a_large_pod_go_with_it() -> None:
    """A term that other pods have as well stays, and is counted on."""
    shared = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}
    large = {**shared, "namespaces": [f"namespace-{number}" for number in range(5_000)]}
    pods = [
        a_pod(name, node="n0", affinity={"podAntiAffinity": {REQUIRED: terms}})
        for name, terms in (("small", [shared]), ("large", [shared, large]))
    ]
    cluster = a_cluster([a_node("n0", labels={ZONE: "a"})])
    terms = cluster.index(TermCounts)
    infos = [cluster.templates.info(pod) for pod in pods]
    for info in infos:
        terms.add(info, 0)
    assert [count.total for count in terms._counted.values()] == [2, 1]

    terms.remove(infos[1], 0)

    assert [count.total for count in terms._counted.values()] == [1]
    assert list(terms._lookup.candidates({"app": "web"})) == list(terms._counted)
    terms.remove(infos[0], 0)
    terms.add(infos[1], 0)
    assert [count.total for count in terms._counted.values()] == [1, 1]
