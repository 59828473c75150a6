"""The Upstream planner: one descheduling cycle with descheduler's own decisions, in its own order.

All Deschedule strategies of all profiles run before any Balance strategy. Limits apply to all of them
together and count accepted evictions only; the first candidates win. Each eviction has its response before
the next one is decided. An accepted eviction changes what the rest of the cycle sees: the pod is gone, or
terminating. Everything else stays as at the start of the cycle (docs/adr/0022).

Edges: with fewer than two nodes nothing runs; a failing strategy ends only itself.
Differs: a pod that other members of its group need is not evicted, as if the API server had refused it.
Source: descheduler v0.36, ``pkg/descheduler/descheduler.go`` and ``evictions/evictions.go``.
"""

from collections.abc import Generator
from enum import Enum
from functools import cached_property

import msgspec
from msgspec import Struct, field

from plimsoll.framework import PluginError, PodInfo
from plimsoll.framework.descheduling.context import Evictor, StrategyContext, considered_nodes
from plimsoll.framework.descheduling.measurements import NodeClasses, Planner
from plimsoll.framework.descheduling.pod_indexes import UnplacedPods
from plimsoll.framework.descheduling.proposals import Candidate, Proposal, Refusal, Verdict
from plimsoll.framework.descheduling.strategy import Strategy, StrategyKind
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.selectors import EVERYTHING, Selector
from plimsoll.planning.limits import NO_CEILING, LimitLevel, Limits, Tally
from plimsoll.planning.moves import PlanningContext, Refused, workload_of
from plimsoll.planning.populations import Populations
from plimsoll.planning.strategy_run import proposals


class EvictionResult(Enum):
    """The result of an eviction, which determines how the rest of the cycle sees the pod."""

    GONE = "gone"  #: accepted, and the pod no longer exists; every eviction of a dry run
    TERMINATING = "terminating"  #: accepted, and the pod exists until its grace period ends
    REFUSED = "refused"  #: the pod stays: a budget, another error, no such pod
    CLOSED = "closed"  #: the pod stays, and no other one may be evicted in this cycle


class EvictionAnswer(Struct, frozen=True):
    """The response to an eviction.

    Attributes:
        refusal: Why the pod stays, for people; None if it does not.
        is_repeat: Whether the pod had been evicted before, so that nothing was sent now.
    """

    result: EvictionResult
    refusal: Refusal | None = None
    is_repeat: bool = False


DRY_RUN = EvictionAnswer(EvictionResult.GONE)
"""The answer to every eviction of a dry run; budgets and errors are unknown there."""


class StrategyProfile(Struct, frozen=True):
    """A named set of strategies with the evictors that they call."""

    name: str
    evictors: tuple[Evictor, ...]
    strategies: tuple[Strategy, ...]


class UpstreamPolicy(Struct, frozen=True):
    """A descheduler policy, in plain values.

    Attributes:
        limits: Ceilings of one cycle; descheduler's own policies have none for workloads.
    """

    profiles: tuple[StrategyProfile, ...]
    nodes: Selector = EVERYTHING
    limits: Limits = field(default_factory=lambda: Limits(per_workload=NO_CEILING))


class UpstreamEviction(Struct, frozen=True):
    """An accepted eviction."""

    pod: PodInfo
    node: str
    profile: str
    strategy: str
    reason: str


class UpstreamStrategyFailure(Struct, frozen=True):
    """A strategy that ended with an error."""

    profile: str
    kind: StrategyKind
    error: PluginError


class UpstreamOutcome(Struct):
    """The results of one cycle.

    Attributes:
        classes: The findings of utilization strategies, one entry per run, with the strategy's name.
        refused: Pods that evictors protect, that limits keep, or whose eviction was refused.
    """

    evictions: list[UpstreamEviction] = field(default_factory=list)
    classes: list[tuple[str, NodeClasses]] = field(default_factory=list)
    remarks: list[tuple[str, str]] = field(default_factory=list)
    failures: list[UpstreamStrategyFailure] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)


class UpstreamCycle:
    """One cycle, decided eviction by eviction on a fork; the cluster is only read.

    The planning context's memory and its ``over_for`` are ignored here.

    Attributes:
        outcome: The results of the cycle so far.
    """

    def __init__(self, policy: UpstreamPolicy, cluster: Cluster, planning_context: PlanningContext) -> None:
        self.outcome = UpstreamOutcome()
        self._policy = policy
        self._cluster = cluster
        self._context = planning_context
        self._unplaced = UnplacedPods(planning_context.unplaced)
        self._closed: Refusal | None = None

    @cached_property
    def _fork(self) -> Cluster:
        return self._cluster.fork()

    def evictions(self) -> Generator[UpstreamEviction, EvictionAnswer, None]:
        """Yield the evictions in order; the caller sends back each response."""
        policy, fork, now = self._policy, self._fork, self._context.now
        nodes = considered_nodes(fork, policy.nodes)
        if len(nodes) < 2:
            return
        evictors = [each for profile in policy.profiles for each in profile.evictors]
        populations = Populations(fork, evictors, policy.nodes)
        given = self._context
        tally = Tally(policy.limits, populations, given.in_flight, given.recent, given.hourly)
        for kind in StrategyKind:
            for profile in policy.profiles:
                context = StrategyContext(
                    cluster=fork,
                    nodes=nodes,
                    now=now,
                    evictors=profile.evictors,
                    planner=Planner.UPSTREAM,
                    unplaced=self._unplaced,
                    measurements=self._context.measurements,
                )
                for strategy in profile.strategies:
                    if strategy.kind is kind:
                        yield from self._run(strategy, profile.name, context, tally)

    def _run(
        self, strategy: Strategy, profile: str, context: StrategyContext, tally: Tally
    ) -> Generator[UpstreamEviction, EvictionAnswer, None]:
        """Run one strategy, and collect its results."""
        asking = proposals(strategy, context)
        try:
            proposal = next(asking, None)
            while proposal is not None:
                verdict = yield from self._verdict(proposal, strategy.name, profile, context, tally)
                proposal = asking.send(verdict)
        except StopIteration:
            pass
        except PluginError as exc:
            self.outcome.failures.append(UpstreamStrategyFailure(profile, strategy.kind, exc))
        self.outcome.classes += [(strategy.name, found) for found in context.classes]
        context.classes.clear()
        self.outcome.remarks += [(strategy.name, said) for said in context.remarks]
        context.remarks.clear()
        self.outcome.failures += [
            UpstreamStrategyFailure(profile, strategy.kind, each) for each in context.failures
        ]
        context.failures.clear()
        self.outcome.refused += [
            Refused(each.pod, strategy.name, each.wanted, each.refusal) for each in context.protected
        ]
        context.protected.clear()

    def _verdict(  # noqa: PLR0911 - upstream's checks in upstream's order
        self, proposal: Proposal, strategy: str, profile: str, context: StrategyContext, tally: Tally
    ) -> Generator[UpstreamEviction, EvictionAnswer, Verdict | None]:
        """Judge a proposal; None when the strategy has to end."""
        if not isinstance(proposal, Candidate):
            return Verdict.REFUSED  # descheduler has no bundles
        pod, node = proposal.pod, proposal.node
        if not pod.uid:
            return Verdict.REFUSED
        workload = workload_of(pod)
        reached = tally.reached(node, pod.namespace, workload)
        if reached is not None:
            self._refuse(proposal, strategy, reached.refusal)
            if reached.level.ends_cycle:
                return None
            return Verdict.NODE_CLOSED if reached.level is LimitLevel.NODE else Verdict.REFUSED
        if self._closed is not None:
            self._refuse(proposal, strategy, self._closed)
            return None
        if pod.uid not in self._fork.pods and pod.uid not in self._unplaced:
            return Verdict.REFUSED  # not found: evicted earlier in this cycle
        bound = context.bound_to_gang(pod)
        if bound is not None:
            self._refuse(proposal, strategy, bound)
            return Verdict.REFUSED
        eviction = UpstreamEviction(pod, node, profile, strategy, proposal.reason)
        answer = yield eviction
        if answer.refusal is not None:
            self._refuse(proposal, strategy, answer.refusal)
        if answer.result is EvictionResult.CLOSED:
            self._closed = answer.refusal or Refusal("Closed", "nothing more is evicted in this run")
            return None
        if answer.result is EvictionResult.REFUSED:
            return Verdict.REFUSED
        self._apply(pod, answer.result)
        tally.count(node, pod.namespace, workload)
        self.outcome.evictions.append(eviction)
        return Verdict.ACCEPTED

    def _refuse(self, candidate: Candidate, strategy: str, refusal: Refusal) -> None:
        self.outcome.refused.append(Refused(candidate.pod, strategy, candidate.reason, refusal))

    def _apply(self, pod: PodInfo, result: EvictionResult) -> None:
        """Apply the eviction's result to the pod on the fork."""
        fork, unplaced = self._fork, self._unplaced
        standing = fork.pods.get(pod.uid)
        if result is EvictionResult.GONE:
            fork.displace(pod.uid)
            unplaced.discard(pod.uid)
        elif standing is None or not standing.is_terminating:
            now = self._context.now
            metadata = msgspec.structs.replace(pod.pod.metadata, deletion_timestamp=now)
            ending = fork.templates.info(msgspec.structs.replace(pod.pod, metadata=metadata))
            if standing is None:
                unplaced.set(ending)
            else:
                fork.place(ending, pod.pod.node_name)
