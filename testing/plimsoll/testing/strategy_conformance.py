"""The laws of every strategy, as tests for its own test file to inherit.

    class TestConformance(StrategyConformance):
        strategy = RemoveOldImages(RemoveOldImagesArgs())
        pods = ({}, {"labels": {"release": "old"}})

``nodes``, ``pods`` and ``objects`` say what the drawn clusters have in addition
(:mod:`plimsoll.testing.drawn_worlds`). A law fails where a strategy never proposes a pod.
"""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import cycle
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
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.planning.fork_schedulers import ForkSchedulers
from plimsoll.planning.moves import RebalancingConfig
from plimsoll.planning.proven.prospects import ForkProspects
from plimsoll.planning.strategy_run import run_strategy
from plimsoll.plugins import DEFAULT_PLUGINS
from plimsoll.plugins import IN_TREE as PLUGINS
from plimsoll.testing.columns import validate
from plimsoll.testing.conformance import FEWEST, HINT, MOST
from plimsoll.testing.drawn_worlds import LAWFUL, Drawing, World

TWICE = 2
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


class _Protects(Evictor):
    """Protects a third of the pods always, and another third right before the eviction."""

    name: ClassVar = "Protects"
    args_model: ClassVar = NoArgs

    def filter(self, pod: PodInfo, context: StrategyContext) -> Refusal | None:  # noqa: ARG002 - the port
        return Refusal("Protected", "as such") if third(pod) == 1 else None

    def pre_eviction_filter(self, pod: PodInfo, context: StrategyContext) -> Refusal | None:  # noqa: ARG002 - the port
        return Refusal("Protected", "right before") if third(pod) == 2 else None


def third(pod: PodInfo) -> int:
    """The third of the pods to which a pod belongs, by its name."""
    return sum(map(ord, pod.name)) % 3


@cache
def _rebalancing() -> RebalancingConfig:
    """One with the scheduler's default plugins."""
    defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
    profile = build_profile(ProfileConfig("default-scheduler"), Registry(PLUGINS), defaults)
    return RebalancingConfig((), (), {"default-scheduler": profile})


def _prospects(cluster: Cluster) -> ForkProspects:
    """The scheduler's prospects."""
    rebalancing = _rebalancing()
    return ForkProspects(cluster, rebalancing, ForkSchedulers(rebalancing.profiles, cluster))


class StrategyConformance(Drawing):
    """The laws of every strategy; set ``strategy`` to an instance that has candidates."""

    strategy: ClassVar[Any]

    def _draw(self, data: st.DataObject) -> World:
        return data.draw(self._worlds(self.strategy))

    def _proposed(
        self, world: World, planner: Planner, verdict: Verdict = Verdict.ACCEPTED
    ) -> list[Candidate]:
        """The strategy's candidates if all get this verdict; accepted pods leave."""
        placed = replace(world, pods=[pod for pod in world.pods if not pod.is_terminal])
        cluster = placed.cluster()
        only = planners_of(self.strategy)
        planner = planner if only is None or planner in only else Planner(min(only))
        others = [pod for pod in world.pods if pod.is_terminal] + [world.pod]
        context = StrategyContext(
            cluster=cluster,
            nodes=considered_nodes(cluster),
            now=NOW,
            evictors=(_Protects(NoArgs()),),
            planner=planner,
            unplaced=UnplacedPods(map(cluster.templates.info, others)),
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

    def test_some_pods_are_proposed(self) -> None:
        """In the drawn clusters: else the other laws have tried nothing."""
        proposed = pods = clusters = 0
        for world, planner in zip(self._some_worlds(self.strategy, MOST), cycle(Planner), strict=False):
            proposed += len(self._proposed(world, planner))
            pods, clusters = pods + len(world.pods), clusters + 1
            if clusters >= FEWEST and proposed:
                break
        print(f"{type(self.strategy).name} proposed {proposed} of {pods} pods in {clusters} clusters")  # noqa: T201 - pytest shows it with -rP
        assert proposed, f"none of {pods} pods was proposed in {clusters} clusters: {HINT}"

    @LAWFUL
    @given(st.data(), st.sampled_from(Planner))
    def test_candidates_are_pods_of_their_nodes_with_a_reason(
        self, data: st.DataObject, planner: Planner
    ) -> None:
        """Each candidate names the node of its pod, and the reason."""
        for candidate in self._proposed(self._draw(data), planner):
            assert candidate.node == candidate.pod.pod.node_name
            assert candidate.reason

    @LAWFUL
    @given(st.data(), st.sampled_from(Planner))
    def test_protected_pods_are_not_proposed(self, data: st.DataObject, planner: Planner) -> None:
        """A pod that an evictor protects, at either stage, is no candidate."""
        protected = [each.pod.key for each in self._proposed(self._draw(data), planner) if third(each.pod)]

        assert not protected, "ask context.is_evictable and is_movable before each candidate"

    @LAWFUL
    @given(st.data(), st.sampled_from(Planner), st.randoms())
    def test_the_order_of_arrival_does_not_matter(
        self, data: st.DataObject, planner: Planner, random: Any
    ) -> None:
        """Equal clusters give the same candidates in the same order, regardless of the order of insertion."""
        world = self._draw(data)
        before = [(each.pod.key, each.node) for each in self._proposed(world, planner)]
        random.shuffle(world.nodes)
        random.shuffle(world.pods)
        after = [(each.pod.key, each.node) for each in self._proposed(world, planner)]

        assert before == after

    @LAWFUL
    @given(st.data(), st.sampled_from(Planner), st.sampled_from([Verdict.REFUSED, Verdict.NODE_CLOSED]))
    def test_refusals_end(self, data: st.DataObject, planner: Planner, verdict: Verdict) -> None:
        """A strategy whose candidates are always refused ends: it proposes a pod at most twice."""
        proposed = self._proposed(self._draw(data), planner, verdict)

        assert max(Counter(each.pod.uid for each in proposed).values(), default=0) <= TWICE
