"""The Upstream planner: one descheduling cycle with descheduler's own decisions, in its own order.

All Deschedule strategies of all profiles run before any Balance strategy; limits are common to all of
them and count accepted evictions only; the first candidates win. An accepted eviction changes what the
rest of the cycle sees at once: the pod is gone, or terminating.

Edges: with fewer than two nodes nothing runs; a strategy that fails ends itself only.
Source: descheduler v0.36, ``pkg/descheduler/descheduler.go`` and ``evictions/evictions.go``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

import msgspec

from plimsoll.engine.limits import NO_CEILING, LimitLevel, Limits, Tally
from plimsoll.engine.moves import workload_of
from plimsoll.engine.populations import Populations
from plimsoll.engine.strategy_run import run_strategy
from plimsoll.framework import Cluster, PluginError, PodInfo
from plimsoll.framework.strategy import Candidate, Evictor, Proposal, Refusal, Strategy, StrategyKind, Verdict
from plimsoll.framework.strategy_context import (
    Measurements,
    NodeClasses,
    Planner,
    StrategyContext,
    UnplacedPods,
    considered_nodes,
)
from plimsoll.model.selectors import EVERYTHING, Selector


class EvictionMode(StrEnum):
    """What an accepted eviction does to the cluster that the rest of the cycle sees."""

    DELETE = "delete"  #: the pod is gone, as in a dry run
    TERMINATE = "terminate"  #: the pod is being deleted and still there


@dataclass(frozen=True, slots=True)
class StrategyProfile:
    """A named set of strategies with the evictors that they ask.

    Attributes:
        name: Its name, which need not be unique.
        evictors: Who protects pods, in the order asked.
        strategies: Deschedule and Balance ones, each kind in its order.
    """

    name: str
    evictors: tuple[Evictor, ...]
    strategies: tuple[Strategy, ...]


@dataclass(frozen=True, slots=True)
class UpstreamPolicy:
    """A descheduler policy, in plain values.

    Attributes:
        profiles: In order.
        nodes: Nodes whose pods are looked at.
        limits: Ceilings of one cycle; descheduler's own policies have none for workloads.
    """

    profiles: tuple[StrategyProfile, ...]
    nodes: Selector = EVERYTHING
    limits: Limits = field(default_factory=lambda: Limits(per_workload=NO_CEILING))


@dataclass(frozen=True, slots=True)
class UpstreamEviction:
    """An accepted eviction."""

    pod: PodInfo
    node: str
    profile: str
    strategy: str
    reason: str


@dataclass(frozen=True, slots=True)
class UpstreamRefusal:
    """A pod that a strategy wanted to evict and that stays; descheduler only logs it."""

    pod: PodInfo
    strategy: str
    wanted: str
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class StrategyFailure:
    """A strategy that ended with an error."""

    profile: str
    kind: StrategyKind
    error: PluginError


@dataclass(slots=True)
class UpstreamOutcome:
    """What one cycle did.

    Attributes:
        evictions: In the order made.
        classes: What utilisation strategies found, one entry for each run, with the strategy's name.
        remarks: What strategies say of the run as a whole, with their names.
        failures: Strategies that ended with an error.
        refused: Pods that evictors protect or that limits keep.
    """

    evictions: list[UpstreamEviction] = field(default_factory=list)
    classes: list[tuple[str, NodeClasses]] = field(default_factory=list)
    remarks: list[tuple[str, str]] = field(default_factory=list)
    failures: list[StrategyFailure] = field(default_factory=list)
    refused: list[UpstreamRefusal] = field(default_factory=list)


def upstream_cycle(
    policy: UpstreamPolicy,
    cluster: Cluster,
    now: datetime,
    *,
    unplaced: Iterable[PodInfo] = (),
    measurements: Measurements | None = None,
    mode: EvictionMode = EvictionMode.DELETE,
    refusing: Mapping[str, int] | None = None,
    in_flight: Mapping[str, int] | None = None,
    recent: int = 0,
) -> UpstreamOutcome:
    """Run one cycle; the cluster is only read.

    Args:
        policy: What to do.
        cluster: The placed pods.
        now: The time, constant during the cycle.
        unplaced: Pods that hold no place, as pending and ended ones.
        measurements: Actual usage.
        mode: What becomes of evicted pods.
        refusing: HTTP status by pod key: evictions that the API refuses.
        in_flight: Evictions of earlier cycles whose replacements are not ready yet, by workload uid.
        recent: Evictions of earlier cycles within the last minute.
    """
    outcome = UpstreamOutcome()
    fork = cluster.fork()
    nodes = considered_nodes(fork, policy.nodes)
    if len(nodes) < 2:
        return outcome
    waiting = UnplacedPods(unplaced)
    evictors = [each for profile in policy.profiles for each in profile.evictors]
    populations = Populations(fork, evictors, policy.nodes)
    tally = Tally(policy.limits, populations, in_flight or {}, recent)
    for kind in StrategyKind:
        for profile in policy.profiles:
            context = StrategyContext(
                cluster=fork,
                nodes=nodes,
                now=now,
                evictors=profile.evictors,
                planner=Planner.UPSTREAM,
                unplaced=waiting,
                measurements=measurements or Measurements(),
            )
            run = _Run(profile.name, context, tally, mode, refusing or {}, outcome)
            for strategy in profile.strategies:
                if strategy.kind is kind:
                    run.of(strategy)
    return outcome


@dataclass(slots=True)
class _Run:
    """The strategies of one kind of one profile."""

    profile: str
    context: StrategyContext
    tally: Tally
    mode: EvictionMode
    refusing: Mapping[str, int]
    outcome: UpstreamOutcome

    def of(self, strategy: Strategy) -> None:
        """Run one strategy."""
        try:
            run_strategy(strategy, self.context, lambda candidate: self._judge(candidate, strategy.name))
        except PluginError as exc:
            self.outcome.failures.append(StrategyFailure(self.profile, strategy.kind, exc))
        self.outcome.classes += [(strategy.name, found) for found in self.context.classes]
        self.context.classes.clear()
        self.outcome.remarks += [(strategy.name, said) for said in self.context.remarks]
        self.context.remarks.clear()
        self.outcome.refused += [
            UpstreamRefusal(each.pod, strategy.name, each.wanted, each.refusal)
            for each in self.context.protected
        ]
        self.context.protected.clear()

    def _judge(self, candidate: Proposal, strategy: str) -> Verdict | None:
        if not isinstance(candidate, Candidate):
            return Verdict.REFUSED  # descheduler knows of no pods that stand and fall together
        pod, node = candidate.pod, candidate.node
        if not pod.uid:
            return Verdict.REFUSED
        workload = workload_of(pod)
        reached = self.tally.reached(node, pod.namespace, workload)
        if reached is not None:
            self.outcome.refused.append(UpstreamRefusal(pod, strategy, candidate.reason, reached.refusal))
            if reached.level.ends_cycle:
                return None
            return Verdict.NODE_CLOSED if reached.level is LimitLevel.NODE else Verdict.REFUSED
        if pod.key in self.refusing or not self._evict(pod):
            return Verdict.REFUSED
        self.tally.count(node, pod.namespace, workload)
        self.outcome.evictions.append(UpstreamEviction(pod, node, self.profile, strategy, candidate.reason))
        return Verdict.ACCEPTED

    def _evict(self, pod: PodInfo) -> bool:
        """Carry it out on the fork; False when there is no such pod any more."""
        fork, unplaced = self.context.cluster, self.context.unplaced
        standing = fork.pods.get(pod.uid)
        if standing is None and pod.uid not in unplaced:
            return False
        if self.mode is EvictionMode.DELETE:
            fork.displace(pod.uid)
            unplaced.discard(pod.uid)
            return True
        metadata = msgspec.structs.replace(pod.pod.metadata, deletion_timestamp=self.context.now)
        ending = fork.templates.info(msgspec.structs.replace(pod.pod, metadata=metadata))
        if standing is None:
            unplaced.set(ending)
        elif not standing.is_terminating:
            fork.place(ending, pod.pod.node_name)
        return True
