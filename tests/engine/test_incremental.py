"""Cached results of a scheduler equal those that a new one computes from scratch."""

from collections.abc import Mapping
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from engine.toys import Pinned, Pool, Room
from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.profile import Enabled, Profile, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.framework.status import Status
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.read_only_dict import sealed
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_cluster
from plimsoll.testing.drawn_worlds import some_nodes, some_pod

TOYS: Any = (Room, Pinned, Pool)
REGISTRY = Registry([*IN_TREE, *TOYS])
ENABLED = {name: weight for name, weight in DEFAULT_PLUGINS.items() if name in REGISTRY}


def a_profile(plugins: Mapping[str, int]) -> Profile:
    config = ProfileConfig("default-scheduler")
    return build_profile(config, REGISTRY, [Enabled(name, weight) for name, weight in plugins.items()])


SCORING = ("TaintToleration", "NodeAffinity", "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity")
MORE_SCORING = ("DynamicResources", "NodeResourcesBalancedAllocation", "ImageLocality", "VolumeBinding")
#: Filters of all kinds, of which none scores.
WITHOUT_POINTS = {name: 0 for name in ENABLED if name not in (*SCORING, *MORE_SCORING)}
PROFILE = a_profile(ENABLED)
#: The default, and those whose points are summed in other ways or not at all.
PROFILES = {
    "default": PROFILE,
    "without points": a_profile(WITHOUT_POINTS),
    "points of rows": a_profile({**WITHOUT_POINTS, "Room": 3, "NodeResourcesBalancedAllocation": 5}),
    "points that are normalized": a_profile({**WITHOUT_POINTS, "NodeAffinity": 2, "InterPodAffinity": 7}),
    "toys": a_profile({**ENABLED, "Room": 2, "Pinned": 0, "Pool": 0}),
}


def judged(scheduler: ProfileScheduler, pod: Pod) -> tuple[Status, dict[str, Any], dict[str, int]]:
    """Verdicts and points by node name, without the order of rows."""
    evaluation = scheduler.evaluate(scheduler.cluster.templates.info(pod))
    table = evaluation.scores
    points = {} if table is None else dict(zip(evaluation.feasible, table.totals.tolist(), strict=True))
    return evaluation.pre_filter, dict(evaluation.statuses), points


class Incremental(RuleBasedStateMachine):
    """Nodes and pods come and go; the same few pods are asked about again and again."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes: dict[Any, Any] = {}
        self.pods: dict[Any, Any] = {}
        self.asked: list[Any] = []

    @initialize(profile=st.sampled_from(sorted(PROFILES)))
    def begin(self, profile: str) -> None:
        self.profile = PROFILES[profile]
        self.scheduler = ProfileScheduler(self.profile, a_cluster())

    def fresh(self) -> ProfileScheduler:
        return ProfileScheduler(self.profile, a_cluster(self.nodes.values(), self.pods.values()))

    @rule(nodes=some_nodes())
    def nodes_come_or_change(self, nodes: Any) -> None:
        for node in nodes:
            self.nodes[node.name] = node
            self.scheduler.cluster.set_node(node)

    @rule(data=st.data())
    def a_node_goes(self, data: Any) -> None:
        if self.nodes:
            name = data.draw(st.sampled_from(sorted(self.nodes)))
            del self.nodes[name]
            self.scheduler.cluster.remove_node(name)

    @rule(data=st.data(), name=st.sampled_from(["p0", "p1", "p2", "p3", "p4"]))
    def a_pod_is_placed(self, data: Any, name: str) -> None:
        node = data.draw(st.sampled_from(["n0", "n1", "n2", "n3"]))
        pod = data.draw(some_pod(name, node))
        cluster = self.scheduler.cluster
        former = self.pods.get(name)
        if former is not None:
            cluster.displace(former.uid)
        self.pods[name] = pod
        cluster.place(cluster.templates.info(pod), node)

    @rule(name=st.sampled_from(["p0", "p1", "p2", "p3", "p4"]))
    def a_pod_goes(self, name: str) -> None:
        pod = self.pods.pop(name, None)
        if pod is not None:
            self.scheduler.cluster.displace(pod.uid)

    @rule(pod=some_pod(), pin=st.sampled_from(["", "", "n0", "gone"]))
    def another_pod_asks(self, pod: Any, pin: str) -> None:
        if pin:
            metadata = replace(pod.metadata, labels={**pod.metadata.labels, "pin": pin})
            pod = sealed(replace(pod, metadata=metadata))
        self.asked = [*self.asked[-2:], pod]

    @invariant()
    def answers_equal_those_of_a_new_scheduler(self) -> None:
        for pod in self.asked:
            assert judged(self.scheduler, pod) == judged(self.fresh(), pod)

    @invariant()
    def decisions_equal_those_of_a_new_scheduler(self) -> None:
        for pod in self.asked:
            kept = schedule(self.scheduler, self.scheduler.cluster.templates.info(pod))
            fresh = self.fresh()
            new = schedule(fresh, fresh.cluster.templates.info(pod))

            assert (kept.outcome, kept.message, kept.total) == (new.outcome, new.message, new.total)
            assert (kept.feasible, kept.ties) == (new.feasible, new.ties)
            assert (kept.no_node_helps, kept.diagnosis) == (new.no_node_helps, new.diagnosis)
            if kept.outcome is AttemptOutcome.SCHEDULED and kept.total is not None:
                assert judged(fresh, pod)[2][kept.node] == kept.total


TestIncremental = Incremental.TestCase
TestIncremental.settings = settings(
    max_examples=40, stateful_step_count=20, suppress_health_check=list(HealthCheck)
)
