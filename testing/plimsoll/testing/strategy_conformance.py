"""The laws of every strategy, as tests for its own test file to inherit.

class TestConformance(StrategyConformance):
    strategy = PodLifeTime(PodLifeTimeArgs(max_pod_life_time_seconds=3600))
"""

from datetime import UTC, datetime
from typing import Any, ClassVar

import hypothesis.strategies as st
from hypothesis import given

from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.framework import Registry
from plimsoll.framework.args import NoArgs
from plimsoll.framework.descheduling.context import Evictor, StrategyContext, considered_nodes
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.pod_indexes import UnplacedPods
from plimsoll.framework.descheduling.proposals import Bundle, Candidate, Proposal, Refusal, Verdict
from plimsoll.framework.descheduling.prospects import Nowhere
from plimsoll.framework.descheduling.registry import StrategyRegistry
from plimsoll.framework.descheduling.strategy import Strategy, planners_of
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.validation import validate
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.planning.fork_schedulers import ForkSchedulers
from plimsoll.planning.moves import RebalancingConfig
from plimsoll.planning.proven.prospects import ForkProspects
from plimsoll.planning.strategy_run import run_strategy
from plimsoll.plugins import DEFAULT_PLUGINS
from plimsoll.plugins import IN_TREE as PLUGINS
from plimsoll.testing.builders import a_cluster
from plimsoll.testing.conformance import LAWFUL, some_cluster

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


class _Protects(Evictor):
    """Protects the pods of one application always, and those of another right before the eviction."""

    name: ClassVar = "Protects"
    args_model: ClassVar = NoArgs

    def filter(self, pod: PodInfo, context: StrategyContext) -> Refusal | None:  # noqa: ARG002 - the port
        return Refusal("Protected", "as such") if pod.labels.get("app") == "db" else None

    def pre_eviction_filter(self, pod: PodInfo, context: StrategyContext) -> Refusal | None:  # noqa: ARG002 - the port
        return Refusal("Protected", "right before") if pod.labels.get("app") == "batch" else None


def _prospects(cluster: Cluster) -> ForkProspects:
    """The scheduler's prospects with its default plugins."""
    defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
    profile = build_profile(ProfileConfig("default-scheduler"), Registry(PLUGINS), defaults)
    rebalancing = RebalancingConfig((), (), {"default-scheduler": profile})
    return ForkProspects(cluster, rebalancing, ForkSchedulers(rebalancing.profiles, cluster))


class StrategyConformance:
    """The laws of every strategy; set ``strategy`` to an instance that has candidates."""

    strategy: ClassVar[Any]

    def _proposed(
        self, nodes: list[Node], pods: list[Pod], planner: Planner, verdict: Verdict = Verdict.ACCEPTED
    ) -> list[Candidate]:
        """The strategy's candidates if all get this verdict; accepted pods leave."""
        cluster = a_cluster(nodes, [pod for pod in pods if not pod.is_terminal])
        only = planners_of(self.strategy)
        planner = planner if only is None or planner in only else Planner(min(only))
        ended = [cluster.templates.info(pod) for pod in pods if pod.is_terminal]
        context = StrategyContext(
            cluster=cluster,
            nodes=considered_nodes(cluster),
            now=NOW,
            evictors=(_Protects(NoArgs()),),
            planner=planner,
            unplaced=UnplacedPods(ended),
            prospects=_prospects(cluster) if planner is Planner.PROVEN else Nowhere(),
        )
        proposed: list[Candidate] = []

        def judge(proposal: Proposal) -> Verdict:
            together = proposal.candidates if isinstance(proposal, Bundle) else (proposal,)
            proposed.extend(together)
            if verdict is Verdict.ACCEPTED:
                for candidate in together:
                    cluster.displace(candidate.pod.uid)
                    context.unplaced.discard(candidate.pod.uid)
            return verdict

        run_strategy(self.strategy, context, judge)
        validate(cluster)
        return proposed

    def test_enters_the_registry(self) -> None:
        """The class has a name, a kind, arguments and candidates."""
        strategy: Strategy = self.strategy

        assert type(strategy).name in StrategyRegistry([type(strategy)])

    @LAWFUL
    @given(some_cluster(), st.sampled_from(Planner))
    def test_candidates_are_pods_of_their_nodes_with_a_reason(
        self, drawn: tuple[list[Node], list[Pod]], planner: Planner
    ) -> None:
        """Each candidate names the node of its pod, and the reason."""
        for candidate in self._proposed(*drawn, planner):
            assert candidate.node == candidate.pod.pod.node_name
            assert candidate.reason

    @LAWFUL
    @given(some_cluster(), st.sampled_from(Planner))
    def test_protected_pods_are_not_proposed(
        self, drawn: tuple[list[Node], list[Pod]], planner: Planner
    ) -> None:
        """A pod that an evictor protects, at either stage, is no candidate."""
        assert {each.pod.labels["app"] for each in self._proposed(*drawn, planner)} <= {"web"}

    @LAWFUL
    @given(some_cluster(), st.sampled_from(Planner), st.randoms())
    def test_the_order_of_arrival_does_not_matter(
        self, drawn: tuple[list[Node], list[Pod]], planner: Planner, random: Any
    ) -> None:
        """Equal clusters give the same candidates in the same order, regardless of the order of insertion."""
        nodes, pods = drawn
        before = [(each.pod.key, each.node) for each in self._proposed(nodes, pods, planner)]
        random.shuffle(nodes)
        random.shuffle(pods)
        after = [(each.pod.key, each.node) for each in self._proposed(nodes, pods, planner)]

        assert before == after

    @LAWFUL
    @given(some_cluster(), st.sampled_from(Planner), st.sampled_from([Verdict.REFUSED, Verdict.NODE_CLOSED]))
    def test_refusals_end(
        self, drawn: tuple[list[Node], list[Pod]], planner: Planner, verdict: Verdict
    ) -> None:
        """A strategy whose candidates are always refused ends: it proposes a pod at most twice."""
        nodes, pods = drawn

        assert len(self._proposed(nodes, pods, planner, verdict)) <= 2 * len(pods)
