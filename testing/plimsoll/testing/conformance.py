"""The laws of every plugin, as tests for its own test file to inherit.

    class TestConformance(FilterPluginConformance):
        plugin = NodeName(NoArgs())

Hypothesis draws clusters and pods with everything that plugins read: labels, taints, requests,
tolerations, selectors, ports, affinities, spreading, images, several namespaces, placed pods. What a plugin
returns is judged by the same functions as in the operator, and what it reads is as read-only as there.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plimsoll.engine.plugin_calls import answered, called
from plimsoll.framework.capabilities import declares_of
from plimsoll.framework.cycle_state import CycleState
from plimsoll.framework.descheduling.plugin_answers import checked, pre_filter_answer
from plimsoll.framework.extension_points import (
    MAX_SCORE,
    FilterPlugin,
    NormalizingPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
    ScorePlugin,
)
from plimsoll.framework.registry import Registry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.columns.validation import validate
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.testing.builders import a_cluster, a_node, a_pod

ZONES = ("a", "b", "c")
MORE: tuple[dict[str, str | int], ...] = ({}, {"example.com/gpu": 2}, {"ephemeral-storage": "10Gi"})
APPS = ("web", "db", "batch")

T = TypeVar("T")

#: The loaded hypothesis profile determines the number of examples.
LAWFUL = settings(deadline=None, suppress_health_check=list(HealthCheck))


class _Picks:
    """Picks options by the digits of one number.

    Drawing one number per object instead of one per field takes a third of the time. The first option is the
    simplest one, because numbers shrink towards zero.
    """

    def __init__(self, number: int) -> None:
        self._rest = number

    def one(self, options: Sequence[T]) -> T:
        self._rest, digit = divmod(self._rest, len(options))
        return options[digit]


#: Exceeds the number of combinations of the options below.
NUMBERS = st.integers(0, 2**23 - 1)


def _node(name: str, pick: _Picks) -> Node:
    return a_node(
        name,
        cpu=pick.one(["4", "1", "1500m", "0", "64"]),
        memory=pick.one(["16Gi", "1Gi", "3Gi", "0"]),
        pods=pick.one([110, 3, 1]),
        allocatable=pick.one(MORE),
        labels=pick.one([{}] + [{"topology.kubernetes.io/zone": zone, "disk": "ssd"} for zone in ZONES]),
        taints=pick.one([(), ("dedicated=db:NoSchedule",), ("old:PreferNoSchedule",), ("gone:NoExecute",)]),
        unschedulable=pick.one([False, True]),
        status={"images": pick.one([[], [{"names": ["app:latest"], "sizeBytes": 300_000_000}]])},
    )


def _pod(name: str, node: str, pick: _Picks) -> Pod:
    app = pick.one(APPS)
    term = {
        "topologyKey": pick.one(["kubernetes.io/hostname", "topology.kubernetes.io/zone"]),
        "labelSelector": {"matchLabels": {"app": pick.one(APPS)}},
    }
    extra: dict[str, Any] = pick.one(
        [
            {},
            {"node_selector": {"disk": "ssd"}},
            {"tolerations": [{"operator": "Exists"}]},
            {"tolerations": [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]},
            {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}},
            {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}},
            {
                "affinity": {
                    "podAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {"weight": 30, "podAffinityTerm": term}
                        ]
                    },
                    "nodeAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "weight": 7,
                                "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]},
                            }
                        ]
                    },
                }
            },
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "whenUnsatisfiable": when, **term}
                    for when in ("DoNotSchedule", "ScheduleAnyway")
                ]
            },
            {
                "containers": [
                    {"name": "main", "image": "app", "ports": [{"containerPort": 80, "hostPort": 80}]}
                ]
            },
        ]
    )
    return a_pod(
        name,
        namespace=pick.one(["default", "other"]),
        labels={"app": app},
        node=node,
        owner=pick.one(["", f"ReplicaSet/{app}"]),
        cpu=pick.one([None, "0", "100m", "2"]),
        memory=pick.one([None, "64Mi", "2Gi"]),
        requests=pick.one([{}, {"example.com/gpu": 1}]),
        priority=pick.one([None, 0, 1000]),
        **extra,
    )


@st.composite
def some_nodes(draw: st.DrawFn) -> list[Node]:
    """Up to eight nodes of different sizes, zones and taints."""
    numbers = draw(st.lists(NUMBERS, min_size=1, max_size=8))
    return [_node(f"n{place}", _Picks(number)) for place, number in enumerate(numbers)]


@st.composite
def some_pod(draw: st.DrawFn, name: str = "incoming", node: str = "") -> Pod:
    """A pod that may request anything that the in-tree plugins evaluate."""
    return _pod(name, node, _Picks(draw(NUMBERS)))


@st.composite
def some_cluster(draw: st.DrawFn) -> tuple[list[Node], list[Pod]]:
    """Nodes, and up to ten pods on them."""
    nodes = draw(some_nodes())
    pods = []
    for place, number in enumerate(draw(st.lists(NUMBERS, max_size=10))):
        pick = _Picks(number)
        pods.append(_pod(f"p{place}", pick.one(nodes).name, pick))
    return nodes, pods


class _Laws:
    """The laws that filter and score plugins share."""

    plugin: ClassVar[Any]

    def test_enters_the_registry(self) -> None:
        """The class has a name, arguments and the members of its extension points."""
        assert type(self.plugin).name in Registry([type(self.plugin)])

    def _prepared(self, cluster: Cluster, pod: Pod) -> tuple[CycleState, PodInfo, Snapshot] | None:
        """State after PreFilter; None if the plugin skips or rejects the pod, or excludes all nodes."""
        state, info, snapshot = CycleState(), cluster.templates.info(pod), Snapshot(cluster)
        if isinstance(self.plugin, PreFilterPlugin):
            answer = called(self.plugin.name, "preFilter", self.plugin.pre_filter, state, info, snapshot)
            answer = pre_filter_answer(self.plugin.name, answer)
            if not isinstance(answer, PreFilterResult) and not answer.is_success:
                return None
        return state, info, snapshot

    def _answers(self, nodes: list[Node], pods: list[Pod], pod: Pod) -> Mapping[str, object] | None:
        """The plugin's result for each node, keyed by name; None without a result."""
        raise NotImplementedError

    @LAWFUL
    @given(some_cluster(), some_pod())
    def test_the_same_question_gets_the_same_answer(
        self, drawn: tuple[list[Node], list[Pod]], pod: Pod
    ) -> None:
        """Results are deterministic."""
        assert self._answers(*drawn, pod) == self._answers(*drawn, pod)

    @LAWFUL
    @given(some_cluster(), some_pod(), st.randoms())
    def test_the_order_of_nodes_does_not_matter(
        self, drawn: tuple[list[Node], list[Pod]], pod: Pod, random: Any
    ) -> None:
        """The result for a node does not depend on the order of nodes."""
        nodes, pods = drawn
        shuffled = random.sample(nodes, len(nodes))

        assert self._answers(nodes, pods, pod) == self._answers(shuffled, pods, pod)


class FilterPluginConformance(_Laws):
    """The laws of every filter plugin; set ``plugin`` to an instance."""

    def _answers(self, nodes: list[Node], pods: list[Pod], pod: Pod) -> dict[str, Any] | None:
        plugin: FilterPlugin = self.plugin
        prepared = self._prepared(a_cluster(nodes, pods), pod)
        if prepared is None:
            return None
        state, info, snapshot = prepared
        codes = called(plugin.name, "filter", plugin.filter, state, info, snapshot)
        codes = checked(codes, len(nodes), plugin.name, "filter")
        statuses = [
            answered(plugin.name, "filter", plugin.refusal, int(code), state, info) if code else None
            for code in codes
        ]
        return {node.name: status for node, status in zip(nodes, statuses, strict=True)}

    @LAWFUL
    @given(some_cluster(), some_pod())
    def test_refusals_are_statuses_with_reasons(self, drawn: tuple[list[Node], list[Pod]], pod: Pod) -> None:
        """There is one integer per node; each code is explained by a rejection with a reason."""
        for status in (self._answers(*drawn, pod) or {}).values():
            assert status is None or (status.is_rejected and status.reasons)

    @LAWFUL
    @given(some_cluster(), some_pod(), st.data())
    def test_some_nodes_are_judged_as_among_all(
        self, drawn: tuple[list[Node], list[Pod]], pod: Pod, data: st.DataObject
    ) -> None:
        """A snapshot of some rows yields those rows of the whole result: the engine's cache relies on it."""
        plugin: FilterPlugin = self.plugin
        prepared = self._prepared(a_cluster(*drawn), pod)
        if prepared is None or declares_of(plugin).reads is Reads.POD:
            return
        state, info, snapshot = prepared
        rows = np.array(
            data.draw(st.lists(st.sampled_from(range(len(snapshot))), unique=True)), dtype=np.intp
        )
        whole = plugin.filter(state, info, snapshot)

        part = plugin.filter(state, info, snapshot.at(rows))

        assert part.tolist() == whole[rows].tolist()

    @LAWFUL
    @given(some_cluster(), some_pod())
    def test_the_cluster_is_left_alone(self, drawn: tuple[list[Node], list[Pod]], pod: Pod) -> None:
        """Filtering changes no column."""
        cluster = a_cluster(*drawn)
        prepared = self._prepared(cluster, pod)
        if prepared is not None:
            self.plugin.filter(*prepared)
        validate(cluster)


class ScorePluginConformance(_Laws):
    """The laws of every score plugin; set ``plugin`` to an instance."""

    def _answers(self, nodes: list[Node], pods: list[Pod], pod: Pod) -> dict[str, int] | None:
        plugin: ScorePlugin = self.plugin
        prepared = self._prepared(a_cluster(nodes, pods), pod)
        state, info, snapshot = prepared or (
            CycleState(),
            (cluster := a_cluster(nodes, pods)).templates.info(pod),
            Snapshot(cluster),
        )
        name = plugin.name
        if isinstance(plugin, PreScorePlugin):
            status = answered(name, "preScore", plugin.pre_score, state, info, snapshot)
            if not status.is_success:
                return None
        raw = called(name, "score", plugin.score, state, info, snapshot)
        raw = checked(raw, len(nodes), name, "score")
        assert raw.dtype == np.int64
        final = raw
        if isinstance(plugin, NormalizingPlugin):
            final = checked(
                called(name, "score", plugin.normalize, state, info, raw), len(nodes), name, "score"
            )
        assert final.dtype == np.int64
        return {node.name: int(points) for node, points in zip(nodes, final, strict=True)}

    @LAWFUL
    @given(some_cluster(), some_pod())
    def test_scores_lie_in_range(self, drawn: tuple[list[Node], list[Pod]], pod: Pod) -> None:
        """There is one int64 per node, 0..100 after normalisation."""
        assert all(0 <= points <= MAX_SCORE for points in (self._answers(*drawn, pod) or {}).values())

    @LAWFUL
    @given(some_cluster(), some_pod(), st.data())
    def test_some_nodes_are_scored_as_among_all(
        self, drawn: tuple[list[Node], list[Pod]], pod: Pod, data: st.DataObject
    ) -> None:
        """Raw scores of some rows equal those rows of the whole: the engine's cache relies on it."""
        plugin: ScorePlugin = self.plugin
        cluster = a_cluster(*drawn)
        state, info, snapshot = CycleState(), cluster.templates.info(pod), Snapshot(cluster)
        if declares_of(plugin).reads > Reads.ROW or (
            isinstance(plugin, PreScorePlugin) and not plugin.pre_score(state, info, snapshot).is_success
        ):
            return
        rows = np.array(
            data.draw(st.lists(st.sampled_from(range(len(snapshot))), unique=True)), dtype=np.intp
        )
        whole = plugin.score(state, info, snapshot)

        part = plugin.score(state, info, snapshot.at(rows))

        assert part.tolist() == whole[rows].tolist()
