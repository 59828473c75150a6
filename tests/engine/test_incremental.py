"""Cached results of a scheduler equal those that a new one computes from scratch."""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.framework.status import Status
from plimsoll.model.kinds.pod import Pod
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_cluster
from plimsoll.testing.drawn_worlds import some_nodes, some_pod

REGISTRY = Registry(IN_TREE)
PROFILE = build_profile(
    ProfileConfig("default-scheduler"),
    REGISTRY,
    [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items() if name in REGISTRY],
)


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
        self.scheduler = ProfileScheduler(PROFILE, a_cluster())

    def fresh(self) -> ProfileScheduler:
        return ProfileScheduler(PROFILE, a_cluster(self.nodes.values(), self.pods.values()))

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

    @rule(pod=some_pod())
    def another_pod_asks(self, pod: Any) -> None:
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
            if kept.outcome is AttemptOutcome.SCHEDULED and kept.total is not None:
                assert judged(fresh, pod)[2][kept.node] == kept.total


TestIncremental = Incremental.TestCase
TestIncremental.settings = settings(stateful_step_count=20, suppress_health_check=list(HealthCheck))
