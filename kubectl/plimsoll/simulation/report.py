"""Reports the outcome of a replay, for one set of policies or for two side by side."""

import functools
import hashlib
from collections.abc import Callable, Iterator

import msgspec
from pydantic import Field

from plimsoll.answers.answer import Answer, AnswerPart
from plimsoll.inspection.picture import requested_percent
from plimsoll.inspection.state import ClusterState
from plimsoll.model.columns.cluster import Cluster
from plimsoll.simulation.figures import Figures, percentile
from plimsoll.simulation.replay import Replay, ReplayProgress, ReplaySettings

#: Maximum number of pods listed per group.
NAMED = 100


class StrategyOutcome(AnswerPart):
    """The outcome of one strategy of one policy."""

    policy: str = Field(description="Name of the policy.")
    strategy: str = Field(description="Name of the strategy.")
    evictions: int = Field(description="Pods that it evicted.")
    predicted: int = Field(description="Moves that a DryRun policy predicts, summed over its runs.")
    violations: int = Field(description="Pods that it complained about in the first run.")
    violations_at_end: int = Field(description="Pods that it complains about at the end.")


class UtilisationSample(AnswerPart):
    """The cluster at one moment."""

    at_seconds: int = Field(description="Seconds since the beginning.")
    cpu_percent: float = Field(description="Requested share of the nodes' cpu.")
    memory_percent: float = Field(description="Requested share of the nodes' memory.")
    nodes_in_use: int = Field(description="Nodes with at least one pod.")
    pending: int = Field(description="Pods without a node.")
    evicted: int = Field(description="Pods that policies have evicted so far.")


class PendingGroup(AnswerPart):
    """Pods without a node at the end, for one reason."""

    reason: str = Field(description="Why, in kube-scheduler's words.")
    count: int = Field(ge=1, description="How many pods.")
    pods: tuple[str, ...] = Field(description="The first hundred of them, as namespace/name.")


class RefusedMoves(AnswerPart):
    """Pods that strategies of one policy propose and that stay, for one reason."""

    policy: str = Field(description="Name of the policy.")
    reason: str = Field(description="Why, in one word.")
    message: str = Field(description="Why the first of them stays, in a sentence.")
    pods: int = Field(ge=1, description="How many different pods; a replacement is another pod.")
    refusals: int = Field(ge=0, description="Summed over the runs; a pod counts once a run.")
    runs: int = Field(ge=0, description="Runs that refuse at least one pod for this reason.")
    at_end: int = Field(ge=0, description="Pods that a run at the end would refuse.")


class ReplayedNode(AnswerPart):
    """Utilisation of a node at the start and at the end, in percent of allocatable by resource."""

    node: str = Field(description="Name of the node.")
    before_percent: dict[str, float] = Field(description="What pods request of it at the beginning.")
    after_percent: dict[str, float] = Field(description="What pods request of it at the end.")


class PolicySetOutcome(AnswerPart):
    """The outcome of one set of policies."""

    label: str = Field(description="Where the policies are from.")
    policies: tuple[str, ...] = Field(description="Names of the policies that schedule or rebalance.")
    runs: int = Field(description="Runs of rebalancing, of all policies.")
    arrived: int = Field(description="Pods that arrived, those pending at the beginning included.")
    placed: int = Field(description="Placements, replacements included.")
    ended: int = Field(description="Pods that ran to their end.")
    evicted: int = Field(description="Pods that policies evicted.")
    returned: int = Field(description="Evictions whose replacement came back to the same node.")
    late: int = Field(description="Evictions whose replacement had no node within five minutes.")
    blocked: int = Field(description="Evictions that a PodDisruptionBudget stopped.")
    preempted: int = Field(description="Pods that left for a pod of higher priority.")
    pending_at_end: int = Field(description="Pods without a node at the end.")
    pending_reasons: tuple[PendingGroup, ...] = Field(
        description="Why these have no node, the reason of the most pods first."
    )
    pending_p50_seconds: float = Field(description="Median of the waits of the pods that were placed.")
    pending_p95_seconds: float = Field(
        description="95th percentile of the waits of the pods that were placed."
    )
    pending_max_seconds: float = Field(description="Longest wait of a pod that was placed.")
    strategies: tuple[StrategyOutcome, ...] = Field(description="Outcome of each strategy of each policy.")
    refused: tuple[RefusedMoves, ...] = Field(
        description="Why pods stay that strategies want moved, the most frequent reason first."
    )
    utilisation: tuple[UtilisationSample, ...] = Field(
        description="Samples of the utilisation, from the beginning to the end."
    )
    nodes: tuple[ReplayedNode, ...] = Field(description="Every node, sorted by name.")
    placements_digest: str = Field(description="SHA-256 of all placements in order, to compare replays.")
    problems: tuple[str, ...] = Field(description="What could not be replayed as it would be.")


class ReplayReport(Answer):
    """The outcome of a replay."""

    source: str = Field(description="What was replayed.")
    seconds: int = Field(description="Seconds of virtual time.")
    seed: int = Field(description="Seed of the choice among equally good nodes.")
    outcomes: tuple[PolicySetOutcome, ...] = Field(description="One for each set of policies.")


def replayed(
    states: list[tuple[str, ClusterState]],
    setting: ReplaySettings,
    progress: Callable[[str, float], None] = lambda _label, _seconds: None,
) -> ReplayReport:
    """Replay one or two states of the same cluster, each under a label.

    ``progress`` is called with the label and the elapsed virtual seconds.
    """
    return ReplayReport(
        source=states[0][1].content.source,
        seconds=round(setting.seconds),
        seed=setting.seed,
        outcomes=tuple(
            _outcome(label, state, setting, functools.partial(progress, label)) for label, state in states
        ),
    )


def _outcome(
    label: str, state: ClusterState, setting: ReplaySettings, progress: ReplayProgress
) -> PolicySetOutcome:
    replay = Replay(state, setting)
    figures = replay.run(progress)
    served = {policy.policy.metadata.name for policy in state.policies.values() if policy.policy is not None}
    return PolicySetOutcome(
        label=label,
        policies=tuple(name for name in state.policies if name in served),
        runs=figures.runs.total(),
        arrived=figures.arrived,
        placed=len(figures.waits),
        ended=figures.ended,
        evicted=figures.moved.total(),
        returned=figures.returned,
        late=figures.late,
        blocked=figures.blocked,
        preempted=figures.preempted,
        pending_at_end=len(replay.world.waiting),
        pending_reasons=tuple(
            PendingGroup(reason=reason, count=len(pods), pods=tuple(pods[:NAMED]))
            for reason, pods in sorted(replay.reasons().items(), key=lambda each: (-len(each[1]), each[0]))
        ),
        pending_p50_seconds=round(percentile(figures.waits, 0.5), 3),
        pending_p95_seconds=round(percentile(figures.waits, 0.95), 3),
        pending_max_seconds=round(max(figures.waits, default=0.0), 3),
        strategies=_strategies(figures),
        refused=_refused(figures),
        utilisation=tuple(
            UtilisationSample(
                at_seconds=round(each.at),
                cpu_percent=round(100 * each.cpu, 1),
                memory_percent=round(100 * each.memory, 1),
                nodes_in_use=each.nodes_in_use,
                pending=each.waiting,
                evicted=each.evicted,
            )
            for each in figures.samples
        ),
        nodes=tuple(_nodes(state.cluster, replay.world.fork)),
        placements_digest=hashlib.sha256(msgspec.json.encode(figures.placements)).hexdigest(),
        problems=(
            *(f"{name}: {each.problem[1]}" for name, each in state.policies.items() if each.problem[0]),
            *figures.problems,
        ),
    )


def _nodes(before: Cluster, after: Cluster) -> Iterator[ReplayedNode]:
    was = requested_percent(before)
    for name, shares in sorted(requested_percent(after).items()):
        yield ReplayedNode(node=name, before_percent=was.get(name, {}), after_percent=shares)


def _strategies(figures: Figures) -> tuple[StrategyOutcome, ...]:
    named = {*figures.moved, *figures.predicted, *figures.violations, *figures.remaining}
    return tuple(
        StrategyOutcome(
            policy=policy,
            strategy=strategy,
            evictions=figures.moved[policy, strategy],
            predicted=figures.predicted[policy, strategy],
            violations=figures.violations.get((policy, strategy), 0),
            violations_at_end=figures.remaining.get((policy, strategy), 0),
        )
        for policy, strategy in sorted(named)
    )


def _refused(figures: Figures) -> tuple[RefusedMoves, ...]:
    ordered = sorted(figures.refused.items(), key=lambda each: (-each[1].refusals, -each[1].at_end, each[0]))
    return tuple(
        RefusedMoves(
            policy=policy,
            reason=reason,
            message=tally.message,
            pods=len(tally.pods),
            refusals=tally.refusals,
            runs=tally.runs,
            at_end=tally.at_end,
        )
        for (policy, reason), tally in ordered
    )
