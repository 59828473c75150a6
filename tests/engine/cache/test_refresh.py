"""Kept results equal those of a fresh scheduler after any changes, also after a refresh that failed."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.toys import Binds, Fifo
from plimsoll.engine.profile import Enabled, PluginSet, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import (
    SKIP,
    SUCCESS,
    Declares,
    FilterPlugin,
    NoArgs,
    PluginError,
    PreFilterPlugin,
    Reads,
    Registry,
    ResultVersion,
    ScorePlugin,
    Status,
    unschedulable,
)
from plimsoll.plugins import IN_TREE
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.drawn_worlds import LAWFUL


class Avoids(FilterPlugin):
    """Rejects the node ``avoided``, which changes although no node does."""

    name = "Avoids"
    args_model = NoArgs
    declares = Declares(reads=Reads.ROW)
    avoided = ""

    def __init__(self, args: Any) -> None:
        pass

    def result_version(self, template: Any, snapshot: Any) -> ResultVersion:
        return ResultVersion(self.avoided)

    def filter(self, state: Any, pod: Any, snapshot: Any) -> np.ndarray[Any, Any]:
        return np.array([node.name == self.avoided for node in snapshot.nodes], dtype=np.int64)

    def refusal(self, code: int, state: Any, pod: Any) -> Status:
        return unschedulable("avoided")


class Fails(FilterPlugin):
    """Raises while ``is_broken``; otherwise accepts every node."""

    name = "Fails"
    args_model = NoArgs
    declares = Declares(reads=Reads.CLUSTER)
    is_broken = False

    def __init__(self, args: Any) -> None:
        pass

    def filter(self, state: Any, pod: Any, snapshot: Any) -> np.ndarray[Any, Any]:
        if self.is_broken:
            raise ValueError("broken")
        return np.zeros(len(snapshot), dtype=np.int64)

    def refusal(self, code: int, state: Any, pod: Any) -> Status:
        return unschedulable("never")


def test_results_after_a_failed_refresh_are_those_of_a_fresh_scheduler() -> None:
    names = ("Fifo", "Avoids", "Fails", "Binds")
    profile = build_profile(
        ProfileConfig("s"),
        Registry([Fifo, Binds, Avoids, Fails]),  # type: ignore[list-item] # a fake has only what is used
        [Enabled(each) for each in names],
    )
    avoids: Any = profile.filter[0]
    fails: Any = profile.filter[1]
    scheduler = ProfileScheduler(profile, a_cluster([a_node("n1"), a_node("n2")]))
    pod = scheduler.cluster.templates.info(a_pod())
    assert scheduler.evaluate(pod).feasible == ("n1", "n2")

    avoids.avoided, fails.is_broken = "n1", True
    with pytest.raises(PluginError):
        scheduler.evaluate(pod)
    fails.is_broken = False

    assert scheduler.evaluate(pod).feasible == ("n2",)


class Counts(PreFilterPlugin, FilterPlugin, ScorePlugin):
    """Rejects nodes with three pods or more; fewer pods score more. Reads a node's own pods."""

    name = "Counts"
    args_model = NoArgs
    declares = Declares(reads=Reads.ROW)

    def __init__(self, args: Any) -> None:
        pass

    def pre_filter(self, state: Any, pod: Any, snapshot: Any) -> Status:
        return SUCCESS

    def filter(self, state: Any, pod: Any, snapshot: Any) -> np.ndarray[Any, Any]:
        return np.array(self.score(state, pod, snapshot) <= 97, dtype=np.int64)

    def score(self, state: Any, pod: Any, snapshot: Any) -> np.ndarray[Any, Any]:
        return np.array([100 - len(snapshot.pods(at)) for at in range(len(snapshot))], dtype=np.int64)

    def refusal(self, code: int, state: Any, pod: Any) -> Status:
        return unschedulable("full")


class Crowds(Counts):
    """Rejects nodes with two pods, and says that only changed rows may differ."""

    name = "Crowds"
    declares = Declares(reads=Reads.CLUSTER)

    def result_version(self, template: Any, snapshot: Any) -> ResultVersion:
        return ResultVersion("", by_row=True)

    def filter(self, state: Any, pod: Any, snapshot: Any) -> np.ndarray[Any, Any]:
        return np.array(self.score(state, pod, snapshot) == 98, dtype=np.int64)


class AvoidsAnywhere(PreFilterPlugin, Avoids):
    """The same as a global plugin, which skips while it avoids no node."""

    name = "AvoidsAnywhere"
    declares = Declares(reads=Reads.CLUSTER)

    def pre_filter(self, state: Any, pod: Any, snapshot: Any) -> Status:
        return SUCCESS if self.avoided else SKIP


NODES = ("n1", "n2", "n3")
STEPS = st.one_of(
    st.tuples(st.just("place"), st.sampled_from(NODES)),
    st.tuples(st.just("remove"), st.sampled_from(NODES)),
    st.tuples(st.just("label"), st.sampled_from(NODES)),
    st.tuples(st.sampled_from(["Avoids", "AvoidsAnywhere"]), st.sampled_from(["", *NODES])),
    st.tuples(st.just("refresh"), st.just("")),
)


@settings(LAWFUL, max_examples=150)
@given(st.lists(STEPS, max_size=12))
def test_kept_results_are_those_of_a_fresh_scheduler(steps: Any) -> None:
    """Without the kernel; with results that are refreshed several times before they are scored."""
    names = ("Fifo", "Avoids", "Counts", "AvoidsAnywhere", "Crowds", "Binds")
    profile = build_profile(
        ProfileConfig("s", {"score": PluginSet(disabled=frozenset(["Crowds"]))}),
        Registry([Fifo, Binds, Avoids, Counts, AvoidsAnywhere, Crowds]),  # type: ignore[list-item] # as above
        [Enabled(each) for each in names],
    )
    cluster = a_cluster([a_node(each) for each in NODES])
    plugins: Any = {plugin.name: plugin for plugin in profile.filter}
    scheduler = ProfileScheduler(profile, cluster, kernel=None)
    pod = cluster.templates.info(a_pod())
    for number, (step, node) in enumerate(steps):
        if step == "place":
            cluster.place(cluster.templates.info(a_pod(f"p{number}")), node)
        elif step == "remove":
            for each in list(cluster.pods_on(cluster.rows[node]))[:1]:
                cluster.displace(each.uid)
        elif step == "label":
            cluster.set_node(a_node(node, labels={"step": str(number)}))
        elif step == "refresh":
            scheduler.refreshed(pod)
            continue
        else:
            plugins[step].avoided = node
            if step == "AvoidsAnywhere":  # a global version changes only with the cluster
                cluster.place(cluster.templates.info(a_pod(f"p{number}")), "n3")
        if number % 2:
            scheduler.refreshed(pod)
            continue
        kept, fresh = scheduler.evaluate(pod), ProfileScheduler(profile, cluster, kernel=None).evaluate(pod)
        assert dict(kept.statuses) == dict(fresh.statuses)
        assert kept.feasible == fresh.feasible
        if len(kept.feasible) > 1:
            ranked = scheduler.rank(pod), ProfileScheduler(profile, cluster, kernel=None).rank(pod)
            assert ranked[0].totals.tolist() == ranked[1].totals.tolist()


def test_a_node_that_has_filled_up_is_not_feasible_when_a_rule_on_other_pods_is_met_again() -> None:
    """All had room before, as the kernel is not asked again about nodes that have not changed."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "rival"}}}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    names = ("PrioritySort", "NodeResourcesFit", "InterPodAffinity", "DefaultBinder")
    profile = build_profile(ProfileConfig("s"), Registry(IN_TREE), [Enabled(each) for each in names])
    nodes = [a_node(name, cpu="2", labels={"kubernetes.io/hostname": name}) for name in NODES]
    rival = a_pod("rival", node="n1", cpu="1", labels={"app": "rival"})
    cluster = a_cluster(nodes, [rival])
    scheduler, pod = ProfileScheduler(profile, cluster), cluster.templates.info(a_pod(cpu="1", affinity=rule))
    found = [scheduler.evaluate(pod).feasible]
    cluster.place(cluster.templates.info(a_pod("filler", cpu="2")), "n2")
    found.append(scheduler.evaluate(pod).feasible)
    cluster.displace(rival.uid)
    found.append(scheduler.evaluate(pod).feasible)

    assert found == [("n2", "n3"), ("n3",), ("n1", "n3")]
