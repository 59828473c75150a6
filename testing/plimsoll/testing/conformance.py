"""The laws of every plugin, as tests for its own test file to inherit.

    class TestConformance(FilterPluginConformance):
        plugin = SameRack(NoArgs())
        nodes = ({}, {"labels": {"rack": "a"}}, {"labels": {"rack": "b"}})

Clusters and pods are drawn (:mod:`plimsoll.testing.drawn_worlds`) with what the plugins in tree read;
``nodes``, ``pods`` and ``objects`` add what yours reads. What it returns is judged by the same functions as
in the operator, and what it reads is as read-only as there. A law fails where a plugin refuses nothing, or
gives all nodes the same points: then the others have tried nothing.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.changes import node_changes
from plimsoll.engine.plugin_calls import answered, called
from plimsoll.framework.capabilities import declares_of
from plimsoll.framework.cycle_state import CycleState
from plimsoll.framework.extension_points import (
    MAX_SCORE,
    NormalizingPlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
)
from plimsoll.framework.plugin_answers import checked, pre_filter_answer
from plimsoll.framework.queueing import (
    ActionType,
    ClusterEvent,
    EnqueueExtensions,
    EventResource,
    EventWithHint,
    QueueingHint,
)
from plimsoll.framework.registry import Registry
from plimsoll.framework.status import Status
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.testing.builders import put
from plimsoll.testing.columns import validate
from plimsoll.testing.drawn_worlds import LAWFUL, Drawing, World

#: The clusters on which something must be refused or scored: the least, and the most until it is.
FEWEST, MOST = 10, 200

#: What is needed where nothing happens.
HINT = "set nodes, pods or objects of the test class to what the plugin looks at"

Answers = dict[str, Any]
"""The plugin's result for each node, keyed by name."""


class _Laws(Drawing):
    """The laws that filter and score plugins share."""

    plugin: ClassVar[Any]

    def test_enters_the_registry(self) -> None:
        """The class has a name, arguments and the members of its extension points."""
        assert type(self.plugin).name in Registry([type(self.plugin)])

    def _draw(self, data: st.DataObject) -> World:
        return data.draw(self._worlds(self.plugin))

    def _prepared(self, cluster: Cluster, pod: Pod) -> tuple[CycleState, PodInfo, Snapshot] | Status:
        """State after PreFilter; a status if the plugin skips or rejects the pod, or excludes all nodes."""
        state, info, snapshot = CycleState(), cluster.templates.info(pod), Snapshot(cluster)
        if isinstance(self.plugin, PreFilterPlugin):
            answer = called(self.plugin.name, "preFilter", self.plugin.pre_filter, state, info, snapshot)
            answer = pre_filter_answer(self.plugin.name, answer)
            if not isinstance(answer, PreFilterResult) and not answer.is_success:
                return answer
        return state, info, snapshot

    def _answers(self, cluster: Cluster, pod: Pod) -> Answers | None:
        """The plugin's final results; None without any."""
        raise NotImplementedError

    def _own_answers(self, cluster: Cluster, pod: Pod) -> Answers | None:
        """The results that must depend on no more than what the plugin declares to read."""
        raise NotImplementedError

    @LAWFUL
    @given(st.data())
    def test_the_same_question_gets_the_same_answer(self, data: st.DataObject) -> None:
        """Results are deterministic."""
        world = self._draw(data)

        assert self._answers(world.cluster(), world.pod) == self._answers(world.cluster(), world.pod)

    @LAWFUL
    @given(st.data(), st.randoms())
    def test_the_order_of_nodes_does_not_matter(self, data: st.DataObject, random: Any) -> None:
        """The result for a node does not depend on the order of nodes."""
        world = self._draw(data)
        shuffled = replace(world, nodes=random.sample(world.nodes, len(world.nodes)))

        assert self._answers(world.cluster(), world.pod) == self._answers(shuffled.cluster(), world.pod)

    @LAWFUL
    @given(st.data())
    def test_no_more_is_read_than_is_declared(self, data: st.DataObject) -> None:
        """``Declares.reads``: another pod changes no result below CLUSTER, or only that of its node (ROW).

        Below POD, the name, uid and annotations of the pod itself change none.
        """
        world, reads = self._draw(data), declares_of(self.plugin).reads
        if reads is Reads.POD:
            return
        before = self._own_answers(world.cluster(), world.pod)
        renamed = msgspec.structs.replace(
            world.pod.metadata, name="renamed", uid="renamed", annotations={"renamed": "true"}
        )
        found = self._own_answers(world.cluster(), msgspec.structs.replace(world.pod, metadata=renamed))
        assert before == found, f"declares {reads!r}, and reads the pod's name, uid or annotations"
        if reads is Reads.CLUSTER:
            return
        more = replace(world, pods=[*world.pods, world.extra])
        after = self._own_answers(more.cluster(), world.pod)
        assert (before is None) == (after is None), (
            f"declares {reads!r}, and pods on nodes decide whether it skips"
        )
        differ = {name for name in before or {} if (before or {})[name] != (after or {})[name]}
        allowed = {world.extra.spec.node_name} if reads is Reads.ROW else set()
        assert differ <= allowed, (
            f"declares {reads!r}, and a pod on {world.extra.spec.node_name} changes {differ}"
        )


class FilterPluginConformance(_Laws):
    """The laws of every filter plugin; set ``plugin`` to an instance."""

    def _answers(self, cluster: Cluster, pod: Pod) -> Answers | None:
        prepared = self._prepared(cluster, pod)
        return None if isinstance(prepared, Status) else self._filtered(*prepared)

    def _own_answers(self, cluster: Cluster, pod: Pod) -> Answers | None:
        return self._answers(cluster, pod)

    def _filtered(self, state: CycleState, info: PodInfo, snapshot: Snapshot) -> Answers:
        plugin = self.plugin
        codes = called(plugin.name, "filter", plugin.filter, state, info, snapshot)
        codes = checked(codes, len(snapshot), plugin.name, "filter")
        statuses = [
            answered(plugin.name, "filter", plugin.refusal, int(code), state, info) if code else None
            for code in codes
        ]
        return {node.name: status for node, status in zip(snapshot.nodes, statuses, strict=True)}

    def _feasible(self, cluster: Cluster, pod: Pod) -> set[str]:
        """The nodes that the plugin does not refuse."""
        prepared = self._prepared(cluster, pod)
        if isinstance(prepared, Status):
            return set() if prepared.is_rejected else {node.name for node in cluster.nodes}
        return {name for name, status in self._filtered(*prepared).items() if status is None}

    def test_some_nodes_are_refused_and_some_are_not(self) -> None:
        """In the drawn clusters: else the other laws have tried nothing."""
        refused = asked = clusters = 0
        for world in self._some_worlds(self.plugin, MOST):
            cluster = world.cluster()
            feasible = self._feasible(cluster, world.pod)
            asked, refused, clusters = (
                asked + len(cluster),
                refused + len(cluster) - len(feasible),
                clusters + 1,
            )
            if clusters >= FEWEST and 0 < refused < asked:
                break
        print(f"{type(self.plugin).name} refused {refused} of {asked} nodes in {clusters} clusters")  # noqa: T201 - pytest shows it with -rP
        assert 0 < refused < asked, f"{refused} of {asked} nodes were refused in {clusters} clusters: {HINT}"

    @LAWFUL
    @given(st.data())
    def test_refusals_are_statuses_with_reasons(self, data: st.DataObject) -> None:
        """There is one integer per node; each code is explained by a rejection with a reason."""
        world = self._draw(data)

        for status in (self._answers(world.cluster(), world.pod) or {}).values():
            assert status is None or (status.is_rejected and status.reasons)

    @LAWFUL
    @given(st.data())
    def test_some_nodes_are_judged_as_among_all(self, data: st.DataObject) -> None:
        """A snapshot of some rows yields those rows of the whole result: the engine's cache relies on it."""
        plugin, world = self.plugin, self._draw(data)
        prepared = self._prepared(world.cluster(), world.pod)
        if isinstance(prepared, Status) or declares_of(plugin).reads is Reads.POD:
            return
        state, info, snapshot = prepared
        rows = _rows(data, snapshot)
        whole = plugin.filter(state, info, snapshot)

        part = plugin.filter(state, info, snapshot.at(rows))

        assert part.tolist() == whole[rows].tolist()

    @LAWFUL
    @given(st.data())
    def test_the_cluster_is_left_alone(self, data: st.DataObject) -> None:
        """Filtering changes no column."""
        world = self._draw(data)
        cluster = world.cluster()
        prepared = self._prepared(cluster, world.pod)
        if not isinstance(prepared, Status):
            self.plugin.filter(*prepared)
        validate(cluster)

    @LAWFUL
    @given(st.data())
    def test_pods_added_and_removed_in_a_simulation_count_as_if_recounted(self, data: st.DataObject) -> None:
        """``add_pod`` and ``remove_pod``, or a state that needs neither: preemption relies on it."""
        world = self._draw(data)
        cluster = world.cluster()
        prepared = self._prepared(cluster, world.pod)
        if isinstance(prepared, Status):
            return
        state, info, _ = prepared
        added = cluster.templates.info(world.extra)
        row = cluster.rows[world.extra.spec.node_name]
        cluster.place(added, world.extra.spec.node_name)
        self._simulated("add_pod", state, info, added, row, cluster)
        self._counts_as_recounted(state.clone(), info, cluster, world.pod)
        cluster.displace(added.uid)
        self._simulated("remove_pod", state, info, added, row, cluster)
        for placed in list(cluster.pods.values())[:2]:
            row = cluster.rows[placed.pod.spec.node_name]
            cluster.displace(placed.uid)
            self._simulated("remove_pod", state, info, placed, row, cluster)
        self._counts_as_recounted(state, info, cluster, world.pod)

    def _simulated(self, change: str, state: CycleState, *args: Any) -> None:
        """Tell the plugin of a change that the cluster, the last argument, has already."""
        *rest, cluster = args
        if isinstance(self.plugin, PreFilterExtensions):
            status = answered(
                self.plugin.name, "preFilter", getattr(self.plugin, change), state, *rest, Snapshot(cluster)
            )
            assert status.is_success, f"{change} failed: {status.message}"

    def _counts_as_recounted(self, state: CycleState, info: PodInfo, cluster: Cluster, pod: Pod) -> None:
        recounted = self._answers(cluster, pod)
        if recounted is not None:
            assert self._filtered(state, info, Snapshot(cluster)) == recounted

    @LAWFUL
    @given(st.data())
    def test_what_helps_a_rejected_pod_requeues_it(self, data: st.DataObject) -> None:
        """Where a change makes a node feasible, a registered event covers it, and its hint says so."""
        world, plugin = self._draw(data), self.plugin
        if not isinstance(plugin, EnqueueExtensions):
            return
        cluster = world.cluster()
        info, refused = cluster.templates.info(world.pod), world.pod
        before, asked = self._feasible(cluster, refused), len(cluster)
        events = list(self._changed(cluster, world, data))
        helped = self._feasible(cluster, refused) - before
        if len(before) == asked or not helped:
            return
        registered = plugin.events_to_register()
        told = ", ".join(event.label for event in events)
        assert any(_queues(each, info, event) for each in registered for event in events), (
            f"{told} makes {helped} feasible, and does not requeue the pod"
        )

    def _changed(self, cluster: Cluster, world: World, data: st.DataObject) -> Iterator[ClusterEvent]:
        """Change the cluster in one way, and yield its events."""
        objects = cluster.objects.read_only
        match data.draw(st.sampled_from(["node", "new node", "pod", "gone", "object"])):
            case "node":
                old = cluster.nodes[cluster.rows["n0"]]
                cluster.set_node(world.node)
                for bit in node_changes(old, world.node):
                    yield ClusterEvent(EventResource.NODE, bit, old, world.node, objects)
            case "new node":
                meta = msgspec.structs.replace(world.node.metadata, name="new")
                new = msgspec.structs.replace(world.node, metadata=meta)
                cluster.set_node(new)
                yield ClusterEvent(EventResource.NODE, ActionType.ADD, None, new, objects)
            case "pod":
                info = cluster.templates.info(world.extra)
                cluster.place(info, world.extra.spec.node_name)
                yield ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD, None, info, objects)
            case "gone" if world.pods:
                gone = cluster.pods[world.pods[0].uid]
                cluster.displace(gone.uid)
                yield ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, gone, None, objects)
            case "object" if self.objects:
                changed = data.draw(st.sampled_from(self.objects))
                is_there = changed in world.objects
                put(cluster, changed, gone=is_there)
                kind = type(changed).__name__
                if is_there:
                    yield ClusterEvent(kind, ActionType.DELETE, changed, None, objects)
                else:
                    yield ClusterEvent(kind, ActionType.ADD, None, changed, objects)


def _rows(data: st.DataObject, snapshot: Snapshot) -> Any:
    """Some rows, in any order."""
    return np.array(data.draw(st.lists(st.sampled_from(range(len(snapshot))), unique=True)), dtype=np.intp)


def _queues(registered: EventWithHint, info: PodInfo, event: ClusterEvent) -> bool:
    covers = registered.covers(event.resource, event.action)
    return covers and (registered.hint is None or registered.hint(info, event) is QueueingHint.QUEUE)


class ScorePluginConformance(_Laws):
    """The laws of every score plugin; set ``plugin`` to an instance."""

    def _answers(self, cluster: Cluster, pod: Pod) -> Answers | None:
        asked = self._raw(cluster, pod)
        if asked is None:
            return None
        raw, state, info = asked
        final, name = raw, self.plugin.name
        if isinstance(self.plugin, NormalizingPlugin):
            final = called(name, "score", self.plugin.normalize, state, info, raw)
            final = checked(final, len(raw), name, "score")
        assert final.dtype == np.int64
        return {node.name: int(points) for node, points in zip(cluster.nodes, final, strict=True)}

    def _own_answers(self, cluster: Cluster, pod: Pod) -> Answers | None:
        asked = self._raw(cluster, pod)
        if asked is None:
            return None
        return {node.name: int(points) for node, points in zip(cluster.nodes, asked[0], strict=True)}

    def _raw(self, cluster: Cluster, pod: Pod) -> tuple[Any, CycleState, PodInfo] | None:
        """Points before they are normalized; None if the plugin skips."""
        plugin, name = self.plugin, self.plugin.name
        prepared = self._prepared(cluster, pod)
        if isinstance(prepared, Status):
            prepared = CycleState(), cluster.templates.info(pod), Snapshot(cluster)
        state, info, snapshot = prepared
        if isinstance(plugin, PreScorePlugin):
            status = answered(name, "preScore", plugin.pre_score, state, info, snapshot)
            if not status.is_success:
                return None
        raw = called(name, "score", plugin.score, state, info, snapshot)
        raw = checked(raw, len(snapshot), name, "score")
        assert raw.dtype == np.int64
        return raw, state, info

    def test_some_nodes_get_other_points_than_others(self) -> None:
        """In the drawn clusters: else the other laws have tried nothing."""
        differing = clusters = 0
        for world in self._some_worlds(self.plugin, MOST):
            points = self._answers(world.cluster(), world.pod) or {}
            differing, clusters = differing + (len(set(points.values())) > 1), clusters + 1
            if clusters >= FEWEST and differing:
                break
        print(f"{type(self.plugin).name} preferred some nodes in {differing} of {clusters} clusters")  # noqa: T201 - pytest shows it with -rP
        assert differing, f"all nodes had equal points in each of {clusters} clusters: {HINT}"

    @LAWFUL
    @given(st.data())
    def test_scores_lie_in_range(self, data: st.DataObject) -> None:
        """There is one int64 per node, 0..100 after normalisation."""
        world = self._draw(data)
        points = self._answers(world.cluster(), world.pod) or {}

        assert all(0 <= each <= MAX_SCORE for each in points.values())

    @LAWFUL
    @given(st.data())
    def test_some_nodes_are_scored_as_among_all(self, data: st.DataObject) -> None:
        """Raw scores of some rows equal those rows of the whole: the engine's cache relies on it."""
        plugin, world = self.plugin, self._draw(data)
        cluster = world.cluster()
        state, info, snapshot = CycleState(), cluster.templates.info(world.pod), Snapshot(cluster)
        if declares_of(plugin).reads > Reads.ROW or (
            isinstance(plugin, PreScorePlugin) and not plugin.pre_score(state, info, snapshot).is_success
        ):
            return
        rows = _rows(data, snapshot)
        whole = plugin.score(state, info, snapshot)

        part = plugin.score(state, info, snapshot.at(rows))

        assert part.tolist() == whole[rows].tolist()
