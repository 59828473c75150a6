"""Explains a placed pod: the score of its node, the plan of each policy for it, and its protections."""

from collections.abc import Iterator

from msgspec.structs import replace
from pydantic import Field

from plimsoll.answers.answer import AnswerPart
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PluginError, PodInfo
from plimsoll.framework.descheduling.context import StrategyContext, answers_of
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.inspection.explanations.past_moves import PastMoveOfOwner
from plimsoll.inspection.load import load_sentences
from plimsoll.inspection.refusal_reasons import remedy_of
from plimsoll.inspection.state import ClusterState
from plimsoll.load.load_book import LoadBook
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.counted import counted
from plimsoll.planning.budgets import BudgetLedger
from plimsoll.planning.context import SETTLING_S
from plimsoll.planning.moves import (
    HoldReason,
    PlanningContext,
    RebalancingConfig,
    replacement_of,
    workload_of,
)
from plimsoll.planning.planners import make_plan
from plimsoll.planning.proven.checks import REPLACED
from plimsoll.planning.proven.plan_builder import PlanBuilder
from plimsoll.planning.rebalancing_rules import RebalancingRules
from plimsoll.planning.scope import PolicyScope
from plimsoll.records.history import ended_at

#: Outcome for a pod that the policy's scope excludes; the reason of its refusal, too.
OUT_OF_SCOPE = "OutOfScope"

#: Outcome for a pod that no strategy of the policy proposes.
UNWANTED = "Unwanted"

#: Number of other nodes whose scores are shown.
OTHERS = 3


class PluginScore(AnswerPart):
    """Points of one score plugin."""

    plugin: str = Field(description="The score plugin.")
    weight: int = Field(description="Weight of the plugin in the profile.")
    points: int = Field(description="Normalized points, 0..100, times the weight.")


class ScoredNode(AnswerPart):
    """A node's score for the pod's replacement."""

    node: str = Field(description="Name of the node.")
    is_own: bool = Field(description="Whether the pod runs there.")
    total: int | None = Field(description="The weighted sum; null where the node is not feasible.")
    plugins: list[PluginScore] = Field(description="Scores of single plugins that make up the sum.")
    refusals: list[str] = Field(description="Why the node is not feasible; empty when it is.")
    load: str = Field(
        description="What the node uses, what the pod adds, and the age of the reading, where the profile"
        " scores by load; empty where it does not."
    )


class Hold(AnswerPart):
    """An obstacle to moves of the pod by a policy."""

    reason: str = Field(description="One word, as in the status of the policy.")
    message: str = Field(description="Why the pod stays, in a sentence.")
    remedy: str = Field(default="", description="What to do about it; empty if nothing is to be done.")


class PolicyView(AnswerPart):
    """The effect of a policy's run on the pod now."""

    policy: str = Field(description="Name of the SchedulingPolicy.")
    mode: str = Field(description="DryRun, Approve or Enforce.")
    outcome: str = Field(
        description="Moves, Refused, Unwanted (no strategy wants it moved), OutOfScope (the policy does not "
        "look at it) or Failed."
    )
    strategy: str = Field(description="The strategy that wants it moved; empty without one.")
    target_node: str = Field(description="The node that it would move to; empty without one.")
    text: str = Field(description="What the policy would do with the pod, in a sentence.")
    holds: list[Hold] = Field(description="All that would keep it where it is if a strategy wanted it moved.")


class BudgetView(AnswerPart):
    """A PodDisruptionBudget that covers the pod."""

    name: str = Field(description="The PodDisruptionBudget, as namespace/name.")
    disruptions_allowed: int = Field(description="What it has left.")
    current_healthy: int = Field(description="Number of healthy pods that the budget covers.")
    desired_healthy: int = Field(description="Healthy pods that there must be.")


class PlacedExplanation(AnswerPart):
    """How well the pod is placed, what would move it, and what keeps it."""

    scores: list[ScoredNode] = Field(
        description="Scores of the pod's own node first, then of the best others."
    )
    feasible: int = Field(description="Nodes that would take its replacement.")
    policies: list[PolicyView] = Field(description="Every policy that rebalances.")
    budgets: list[BudgetView] = Field(description="PodDisruptionBudgets that cover it.")
    past: list[PastMoveOfOwner] = Field(description="Moves of its owner's pods, the latest first.")


def explain_placed(
    state: ClusterState, scheduler: ProfileScheduler, pod: PodInfo, past: list[PastMoveOfOwner]
) -> PlacedExplanation:
    """Explain a pod that has a node.

    Raises:
        PluginError: A plugin of the pod's profile failed.
    """
    if state.working:
        state.count()
    scores, feasible = _scores(scheduler, pod, state.now)
    return PlacedExplanation(
        scores=scores,
        feasible=feasible,
        policies=[_view(state, name, pod) for name in state.working],
        budgets=[
            BudgetView(
                name=each.key,
                disruptions_allowed=each.status.disruptions_allowed,
                current_healthy=each.status.current_healthy,
                desired_healthy=each.status.desired_healthy,
            )
            for each in BudgetLedger(state.cluster.objects.budgets.values()).over(pod)
        ],
        past=past,
    )


def _scores(scheduler: ProfileScheduler, pod: PodInfo, now: float) -> tuple[list[ScoredNode], int]:
    """Scores for the pod's replacement, after the pod has left: its own node and the best others."""
    row = scheduler.cluster.row_of_pod(pod.uid)
    own = "" if row is None else scheduler.cluster.nodes[row].name
    fork = scheduler.cluster.fork()
    fork.displace(pod.uid)
    found = scheduler.on(fork, scheduler.profile).evaluate(replacement_of(pod, fork))
    scores: dict[str, ScoredNode] = {}
    if found.scores is not None:
        table = found.scores
        for position, node in enumerate(found.feasible):
            parts = zip(table.plugins, table.weights, table.normalized, strict=True)
            if node == own or int((table.totals > table.totals[position]).sum()) <= OTHERS:
                scores[node] = ScoredNode(
                    node=node,
                    is_own=node == own,
                    total=int(table.totals[position]),
                    plugins=[
                        PluginScore(plugin=name, weight=weight, points=int(points[position]) * weight)
                        for name, weight, points in parts
                    ],
                    refusals=[],
                    load="",
                )
    if own and own not in scores:
        status = found.statuses.get(own, found.pre_filter)
        reasons = list(status.reasons) or ["left out by PreFilter"]
        scores[own] = ScoredNode(node=own, is_own=True, total=None, plugins=[], refusals=reasons, load="")
    others = sorted(
        (each for each in scores.values() if not each.is_own),
        key=lambda each: (-(each.total or 0), each.node),
    )
    shown = [*(each for each in scores.values() if each.is_own), *others[:OTHERS]]
    if scheduler.profile.scores_load and scheduler.cluster.has_index(LoadBook):
        expected = scheduler.cluster.index(LoadBook).of(pod)
        loads = load_sentences(fork, expected, [each.node for each in shown], now)
        shown = [each.model_copy(update={"load": loads.get(each.node, "")}) for each in shown]
    return shown, len(found.feasible)


def _view(state: ClusterState, name: str, pod: PodInfo) -> PolicyView:
    """The effect of the policy's next run on the pod, from the plan that it would make."""
    spec = state.working[name].spec.rebalancing
    mode = "" if spec is None else spec.mode.value
    config, cluster, context = state.run_input(name)
    holds = holds_of(config, cluster, context, pod) + _settling(state, context, pod)
    rest, _ = context.memory.rest(name)
    if rest and config.hold is None:
        holds.append(_hold(HoldReason.RESTING, rest))
    try:
        plan = make_plan(config, cluster, context)
    except PluginError as exc:
        return _said(name, mode, "Failed", str(exc), holds=holds)
    for move in plan.moves:
        if move.pod.uid == pod.uid:
            where = f" to {move.target}" if move.target else ""
            if move.target == move.source:
                where = ", though its replacement is expected on the same node"
            text = f"{move.strategy} moves it{where}: {move.reason}"
            return _said(name, mode, "Moves", text, move.strategy, move.target, holds)
    for refused in plan.refused:
        if refused.pod.uid == pod.uid:
            text = f"{refused.strategy} wants it moved ({refused.wanted}), but {refused.refusal.message}"
            return _said(name, mode, "Refused", text, refused.strategy, holds=holds)
    outside = next((each for each in holds if each.reason == OUT_OF_SCOPE), None)
    if outside is not None:
        return _said(name, mode, OUT_OF_SCOPE, f"leaves it alone: {outside.message}", holds=holds)
    anyway = f"; it would stay anyway: {holds[0].message}" if holds else ""
    return _said(name, mode, UNWANTED, f"no strategy wants it moved{anyway}", holds=holds)


def _hold(reason: str, message: str) -> Hold:
    return Hold(reason=reason, message=message, remedy=remedy_of(reason))


def _said(
    policy: str,
    mode: str,
    outcome: str,
    text: str,
    strategy: str = "",
    target: str = "",
    holds: list[Hold] | None = None,
) -> PolicyView:
    return PolicyView(
        policy=policy,
        mode=mode,
        outcome=outcome,
        strategy=strategy,
        target_node=target,
        text=text,
        holds=holds or [],
    )


def holds_of(
    config: RebalancingConfig, cluster: Cluster, context: PlanningContext, pod: PodInfo
) -> list[Hold]:
    """Protections, limits, budgets and earlier results that would keep a policy from moving the pod."""
    builder = PlanBuilder(config, cluster, context)
    refusals: list[Refusal | None] = [config.hold, *_protections(config, builder.context, pod)]
    workload, node = workload_of(pod), builder.context.node_of(pod)
    reached = builder.tally.reached(node, pod.namespace, workload)
    refusals.append(reached.refusal if reached is not None else None)
    refusals.append(builder.ledger.refusal(pod))
    waited_for = context.unready.get(workload.key)
    refusals.append(None if waited_for is None else waited_for.refusal)
    refusals += [context.memory.held_back(workload.key, each.name) for each in config.strategies]
    refusals += [context.memory.budget(each.key) for each in builder.ledger.over(pod)]
    holds: list[Hold] = []
    for refusal in refusals:
        hold = None if refusal is None else _hold(refusal.reason, refusal.message)
        if hold is not None and hold not in holds:
            holds.append(hold)
    return holds


def _protections(config: RebalancingConfig, context: StrategyContext, pod: PodInfo) -> Iterator[Refusal]:
    """Why evictors or its group protect the pod; names the strategies that have their own evictor."""
    asked = [("", each) for each in config.evictors]
    if config.own_evictors:
        asked = [
            ("" if isinstance(each, PolicyScope | RebalancingRules) else f"{strategy.name}: ", each)
            for position, strategy in enumerate(config.strategies)
            for each in config.evictors_of(position)
        ]
    for prefix, evictor in asked:
        for refusal in answers_of(evictor, pod, context):
            if refusal is not None:
                yield replace(refusal, message=f"{prefix}{refusal.message}")
    bound = context.bound_to_gang(pod)
    if bound is not None:
        yield bound


def _settling(state: ClusterState, context: PlanningContext, pod: PodInfo) -> list[Hold]:
    if pod.uid not in context.moved:
        return []
    ended = max(
        (
            ended_at(record)
            for record in state.records.values()
            if record.status.replacement is not None and record.status.replacement.uid == pod.uid
        ),
        default=state.now,
    )
    left = max(1, round((ended + SETTLING_S - state.now) / 60))
    text = f"{REPLACED}; it stays for {counted(left, 'more minute')}"
    return [_hold("MovedRecently", text)]
