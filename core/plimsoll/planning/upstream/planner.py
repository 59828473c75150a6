"""The Upstream planner for a policy: descheduler's decisions, as moves of ours.

Each pod that descheduler would evict is evicted, in descheduler's order and without a proof, under the
policy's own limits. A run is decided while it is carried out: the response to each eviction comes before the
next decision. A plan is a run in which every eviction is accepted, as in descheduler's dry run.

The target of each move is a forecast: the node that our scheduler's code would choose for the replacement
after the earlier moves; "" if it finds none, which does not stop descheduler either.
"""

from functools import cached_property

from plimsoll.devices.fork_devices import follow_devices
from plimsoll.framework import PluginError
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.framework.descheduling.strategy import wants_restart
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.fork_schedulers import ForkSchedulers
from plimsoll.planning.moves import (
    EvictionPlan,
    Move,
    PlanningContext,
    RebalancingConfig,
    replacement_of,
    workload_of,
)
from plimsoll.planning.upstream.cycle import (
    DRY_RUN,
    EvictionAnswer,
    EvictionResult,
    StrategyProfile,
    UpstreamCycle,
    UpstreamEviction,
    UpstreamOutcome,
    UpstreamPolicy,
)


class UpstreamRun:
    """One run, move by move; the cluster is only read."""

    def __init__(
        self, policy: UpstreamPolicy, forecast: "Forecast", cluster: Cluster, context: PlanningContext
    ) -> None:
        self._cycle = UpstreamCycle(policy, cluster, context)
        self._evictions = self._cycle.evictions()
        self._forecast = forecast
        self._asked: Move | None = None
        self._made: list[Move] = []

    @property
    def outcome(self) -> UpstreamOutcome:
        """The results of the run so far, in descheduler's terms."""
        return self._cycle.outcome

    @property
    def plan(self) -> EvictionPlan:
        """The plan of the run so far: the accepted moves, and why there are no more."""
        outcome = self._cycle.outcome
        return EvictionPlan(
            tuple(self._made),
            tuple(outcome.refused),
            tuple(failure.error for failure in outcome.failures),
            tuple(outcome.classes),
            tuple(outcome.remarks),
        )

    def begin(self) -> Move | None:
        """The first move, if any."""
        return self._told(next(self._evictions, None))

    def answer(self, answer: EvictionAnswer) -> Move | None:
        """Pass the response to the latest move; returns the next move, if any."""
        is_accepted = answer.result not in (EvictionResult.REFUSED, EvictionResult.CLOSED)
        if self._asked is not None and is_accepted and not answer.is_repeat:
            self._forecast.made(self._asked)
            self._made.append(self._asked)
        try:
            return self._told(self._evictions.send(answer))
        except StopIteration:
            return None

    def rehearse(self) -> EvictionPlan:
        """Run to the end as descheduler's dry run does: every eviction is accepted, and the pod gone."""
        move = self.begin()
        while move is not None:
            move = self.answer(DRY_RUN)
        return self.plan

    def _told(self, eviction: UpstreamEviction | None) -> Move | None:
        self._asked = None if eviction is None else self._forecast.move(eviction)
        return self._asked


class Forecast:
    """Forecasts the node of each replacement, with all earlier moves made."""

    def __init__(self, rebalancing: RebalancingConfig, cluster: Cluster) -> None:
        self._rebalancing = rebalancing
        self._cluster = cluster
        self._renewing = {each.name for each in rebalancing.strategies if wants_restart(each)}

    @cached_property
    def _fork(self) -> Cluster:
        return follow_devices(self._cluster.fork())

    @cached_property
    def _schedulers(self) -> ForkSchedulers:
        return ForkSchedulers(self._rebalancing.profiles, self._fork)

    def move(self, eviction: UpstreamEviction) -> Move:
        """An eviction as a move."""
        pod = eviction.pod
        return Move(
            pod=pod,
            strategy=eviction.strategy,
            reason=eviction.reason,
            source=eviction.node,
            target=self._target(eviction),
            gain=None,
            ties=0,
            is_forecast=True,
            workload=workload_of(pod),
            planner=Planner.UPSTREAM,
            renews=eviction.strategy in self._renewing,
        )

    def made(self, move: Move) -> None:
        """Remove the pod, and place its replacement."""
        self._fork.displace(move.pod.uid)
        if move.target:
            self._fork.place(replacement_of(move.pod, self._fork, move.target, learns=False), move.target)

    def _target(self, eviction: UpstreamEviction) -> str:
        pod = eviction.pod
        profile = self._rebalancing.profile_of(pod)
        if profile is None or pod.pod.is_terminal:
            return ""
        try:
            best = self._schedulers.rank_without(pod, profile).best
        except PluginError:
            return ""
        return best[0] if best else ""


def upstream_run(rebalancing: RebalancingConfig, cluster: Cluster, context: PlanningContext) -> UpstreamRun:
    """Begin a run of a policy, with the policy's own limits.

    Each strategy is a profile of its own: it may have its own evictor, and may occur twice.
    """
    profiles = tuple(
        StrategyProfile("policy", rebalancing.evictors_of(position), (strategy,))
        for position, strategy in enumerate(rebalancing.strategies)
    )
    policy = UpstreamPolicy(profiles, rebalancing.nodes, rebalancing.limits)
    return UpstreamRun(policy, Forecast(rebalancing, cluster), cluster, context)


def still_stands(move: Move, cluster: Cluster) -> Move | Refusal:
    """The only check of descheduler right before an eviction: whether the pod still exists."""
    standing, row = cluster.pods.get(move.pod.uid), cluster.row_of_pod(move.pod.uid)
    if move.pod.pod.is_terminal:
        return move
    if standing is None or row is None or cluster.nodes[row].name != move.source:
        return Refusal("Gone", f"the pod is not on node {move.source} any more")
    return move
