"""Tries a drain of a node on a fork: the pods that leave, their targets, and the obstacles of the others.

The node is cordoned on a fork, and its pods leave one after the other: each needs a budget that allows it and
a node for its replacement, with the replacements before it in their places. Replacements are taken to become
ready, which gives their budgets' disruptions back, as ``kubectl drain`` waits for.
"""

from dataclasses import replace

from msgspec import structs
from pydantic import Field

from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PodInfo
from plimsoll.inspection.answer import AnswerPart
from plimsoll.inspection.explanations.suggestions import BOUND_OWNERS
from plimsoll.inspection.state import ClusterState
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.budgets import BudgetLedger
from plimsoll.planning.moves import replacement_of
from plimsoll.planning.scope import never_evict

_MIRROR = "kubernetes.io/config.mirror"


class LeavingPod(AnswerPart):
    """Whether a pod could leave its node."""

    pod: str = Field(description="As namespace/name.")
    outcome: str = Field(
        description="Leaves, Bound (belongs to the node, a drain leaves it), Blocked (may not be evicted) "
        "or NoPlace (no other node takes it)."
    )
    target: str = Field(description="The node that its replacement would go to; empty without one.")
    text: str = Field(description="Why it stays, or where it goes.")
    protection: str = Field(
        description="Why policies leave it alone although a drain would not; empty without a reason."
    )


def leaving_pods(state: ClusterState, node: str) -> list[LeavingPod]:
    """The node's pods, those that stop a drain first."""
    cluster = state.cluster
    fork = cluster.fork()
    row = fork.rows[node]
    closed = fork.nodes[row]
    fork.set_node(structs.replace(closed, spec=structs.replace(closed.spec, unschedulable=True)))
    ledger = BudgetLedger(cluster.objects.budgets.values())
    schedulers: dict[str, ProfileScheduler] = {}
    pods = [each for each in cluster.pods_on(row) if each.stands_in_for is None]
    pods.sort(key=lambda each: (-each.priority, -each.requests.get("cpu", 0), each.key))
    found = [_leaving(state, fork, schedulers, ledger, pod) for pod in pods]
    ranks = {"Blocked": 0, "NoPlace": 1, "Leaves": 2, "Bound": 3}
    return sorted(found, key=lambda each: (ranks[each.outcome], each.pod))


def _leaving(
    state: ClusterState,
    fork: Cluster,
    schedulers: dict[str, ProfileScheduler],
    ledger: BudgetLedger,
    pod: PodInfo,
) -> LeavingPod:
    protected = never_evict(pod, state.cluster.objects)
    protection = "" if protected is None else protected.message
    owner = pod.template.owner
    if (owner is not None and owner.kind in BOUND_OWNERS) or _MIRROR in pod.pod.metadata.annotations:
        return _outcome(pod, "Bound", "belongs to the node", protection=protection)
    if owner is None and not pod.is_terminating:
        text = "no controller makes it again; kubectl drain deletes it only with --force"
        return _outcome(pod, "Blocked", text, protection=protection)
    refusal = ledger.refusal(pod)
    if refusal is not None:
        return _outcome(pod, "Blocked", refusal.message, protection=protection)
    fork.displace(pod.uid)
    name = pod.pod.spec.scheduler_name
    if name not in schedulers:
        scheduler = state.schedulers.get(name, state.forecaster)
        schedulers[name] = scheduler.on(fork, replace(scheduler.profile, post_filter=()))
    replacement = replacement_of(pod, fork)
    decision = schedule(schedulers[name], replacement)
    if decision.outcome is not AttemptOutcome.SCHEDULED:
        return _outcome(pod, "NoPlace", decision.message, protection=protection)
    fork.place(replacement, decision.node)
    return _outcome(pod, "Leaves", f"goes to {decision.node}", decision.node, protection)


def _outcome(pod: PodInfo, outcome: str, text: str, target: str = "", protection: str = "") -> LeavingPod:
    return LeavingPod(pod=pod.key, outcome=outcome, target=target, text=text, protection=protection)
