"""Explains a pod: why it is pending, or why it runs where it does."""

from pydantic import Field

from plimsoll.answers.answer import Answer
from plimsoll.answers.operator_memory import PodMemory
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PodInfo
from plimsoll.inspection.explanations.moved_pod import replaced_sentence
from plimsoll.inspection.explanations.past_moves import past_moves
from plimsoll.inspection.explanations.pending_pod import PendingExplanation, explain_pending
from plimsoll.inspection.explanations.placed_pod import UNWANTED, PlacedExplanation, explain_placed
from plimsoll.inspection.explanations.planned_room import planned_rooms
from plimsoll.inspection.explanations.pod_group import GroupExplanation, explain_group, group_sentence
from plimsoll.inspection.queue_shares import QueueExplanation, explain_queue, queue_sentences
from plimsoll.inspection.state import ClusterState
from plimsoll.inspection.unknown_objects import UnknownObjectError
from plimsoll.model.counted import agreeing, counted
from plimsoll.model.kinds.pod import DEFAULT_SCHEDULER
from plimsoll.planning.moves import workload_of
from plimsoll.toolkit.descheduling.disruption_signals import unreadable_cost

#: Facts that only the operator's memory has.
MEMORY_UNKNOWN = (
    "place in the queue, back-off, attempts, and pods assumed on nodes, which count as waiting here: only the"
    " operator that leads knows them; --operator asks it"
)


#: Maximum number of unreadable objects named.
SHOWN = 3


class PodExplanation(Answer):
    """Why a pod is pending, or why it runs where it does."""

    namespace: str = Field(description="Namespace of the pod.")
    name: str = Field(description="Name of the pod.")
    phase: str = Field(description="Phase of the pod, from status.phase.")
    node: str = Field(description="The node that it is on; empty without one.")
    nominated_node: str = Field(description="The node that is held for it; empty without one.")
    priority: int = Field(description="Priority of the pod, from spec.priority; 0 when unset.")
    scheduler: str = Field(description="Scheduler of the pod, from spec.schedulerName.")
    policy: str = Field(description="The SchedulingPolicy that serves that name; empty without one.")
    summary: list[str] = Field(description="The answer in a few sentences.")
    gates: list[str] = Field(description="Scheduling gates that hold it; empty without any.")
    group: GroupExplanation | None = Field(description="The pod's PodGroup; null without one.")
    queue: QueueExplanation | None = Field(description="The pod's queue of fairShare; null without one.")
    pending: PendingExplanation | None = Field(description="Null for a pod with a node.")
    placed: PlacedExplanation | None = Field(description="Null for a pod without a node.")
    operator: PodMemory | None = Field(
        default=None, description="What the operator remembers; null where it was not asked."
    )
    unknown: list[str] = Field(description="What this answer cannot know, and why.")

    def names(self) -> list[str]:
        """As ``-o name`` prints it."""
        return [f"pod/{self.name}"]


def explain_pod(state: ClusterState, namespace: str, name: str) -> PodExplanation:
    """Explain the pod with this name.

    Raises:
        UnknownObjectError: There is no such pod.
        UnknownHereError: Its policy has a plugin that is not installed here.
        PluginError: A plugin failed for the pod.
    """
    pod = state.find_pod(namespace, name)
    if pod is None:
        known = [each.key for each in (*state.cluster.pods.values(), *state.objects.pending.infos())]
        raise UnknownObjectError("pod", f"{namespace}/{name}", known)
    wanted = pod.pod.spec.scheduler_name
    served = state.scheduler(wanted)
    scheduler = state.deciding(wanted)
    queue = explain_queue(state, pod, scheduler) if served is not None and not pod.pod.is_terminal else None
    row = state.cluster.row_of_pod(pod.uid)
    node = pod.pod.node_name or ("" if row is None else state.cluster.nodes[row].name)
    pending = placed = group = None
    gates = [each.name for each in pod.pod.spec.scheduling_gates]
    unknown = _unknown(state, pod, scheduler, is_served=served is not None)
    if node and row is not None:
        past = past_moves(state.records.values(), state.now, pod.uid, workload_of(pod).key)
        placed = explain_placed(state, scheduler, pod, past)
        group = explain_group(state, pod, scheduler)
    elif not pod.pod.is_terminal and not node:
        pending = explain_pending(scheduler, pod)
        pending = pending.model_copy(update={"helps": [*pending.helps, *planned_rooms(state, pod)]})
        group = explain_group(state, pod, scheduler)
        if served is not None:
            unknown.insert(0, MEMORY_UNKNOWN)
    found = PodExplanation(
        namespace=pod.namespace,
        name=pod.name,
        phase=pod.pod.status.phase,
        node=node,
        nominated_node=state.book.nominator.node_of(pod.uid) or pod.pod.nominated_node_name,
        priority=pod.priority,
        scheduler=wanted,
        policy="" if served is None else served.profile.policy,
        summary=[],
        gates=gates,
        group=group,
        queue=queue,
        pending=pending,
        placed=placed,
        unknown=unknown,
    )
    summary = _summary(found, is_served=served is not None)
    if queue is not None:
        summary += queue_sentences(queue, pod if pending is not None else None)
    summary += [
        replaced_sentence(each, state.now)
        for each in state.records.values()
        if (new := each.status.replacement) is not None and new.uid == pod.uid
    ]
    cost = "" if placed is None else unreadable_cost(pod.pod.metadata.annotations)
    return found.model_copy(update={"summary": [*summary, *([cost] if cost else [])]})


def _unknown(state: ClusterState, pod: PodInfo, scheduler: ProfileScheduler, *, is_served: bool) -> list[str]:
    said = []
    if not is_served:
        name = pod.pod.spec.scheduler_name
        said.append(
            f'what scheduler "{name}" decides: no SchedulingPolicy serves that name; asked instead was'
            f" {state.forecasts.basis(name)}"
        )
    if scheduler.profile.extenders:
        urls = ", ".join(each.name for each in scheduler.profile.extenders)
        said.append(f"what the extenders say ({urls}): they are not asked")
    said += [f"{plural}: {why}" for plural, why in state.content.missing.items()]
    skipped = state.objects.skipped
    said += [f"{each.resource} {each.name}: {each.problem.splitlines()[0]}" for each in skipped[:SHOWN]]
    return (
        [*said, f"{counted(len(skipped) - SHOWN, 'more object')} that cannot be read"]
        if len(skipped) > SHOWN
        else said
    )


def _summary(found: PodExplanation, *, is_served: bool) -> list[str]:
    said: list[str] = []
    if found.gates:
        gates = agreeing(len(found.gates), "gate is", "gates are")
        names = ", ".join(found.gates)
        said.append(f"no scheduler tries it before its scheduling {gates} removed: {names}")
    if found.group is not None and found.group.present >= found.group.min_member > 1:
        said.append(group_sentence(found.group))
    if found.pending is not None:
        if not is_served and found.scheduler != DEFAULT_SCHEDULER:
            said.append(f'no SchedulingPolicy serves schedulerName "{found.scheduler}"')
        if found.group is not None and found.group.obstacle:
            said.append(found.group.obstacle)
        is_free = is_served and not found.gates and (found.group is None or not found.group.obstacle)
        said += _pending_summary(found.pending, is_free=is_free)
    elif found.placed is not None:
        said += _placed_summary(found.placed)
    elif found.phase in ("Succeeded", "Failed"):
        said.append(f"it has ended ({found.phase}) and takes nothing from a node")
    else:
        said.append(f"it is on node {found.node}, which the cluster does not have")
    return said


def _pending_summary(pending: PendingExplanation, *, is_free: bool) -> list[str]:
    if pending.feasible:
        count = len(pending.feasible)
        said = [f"{count} of {pending.nodes} {agreeing(count, 'node takes', 'nodes take')} it now"]
        return [*said, f"its next attempt puts it on node {pending.target_node}"] if is_free else said
    said = [f"none of {counted(pending.nodes, 'node')} takes it"]
    if pending.nearest:
        said.append(f"nearest miss: {pending.nearest[0].text}")
    elif pending.nodes:
        said.append(f"nothing that one node lacks would let it fit: {pending.message}")
    return said


def _placed_summary(placed: PlacedExplanation) -> list[str]:
    own = next((each for each in placed.scores if each.is_own), None)
    others = [each for each in placed.scores if not each.is_own]
    said = []
    if own is not None and own.total is None:
        said.append(f"its node {own.node} would not take it today: {', '.join(own.refusals)}")
    elif own is not None and others and (others[0].total or 0) > (own.total or 0):
        said.append(
            f"node {others[0].node} would suit it better: {counted(others[0].total or 0, 'point')}, its own"
            f" {own.total}"
        )
    elif own is not None and others:
        said.append(
            f"its node {own.node} is the best: {counted(own.total or 0, 'point')}, the next has"
            f" {others[0].total}"
        )
    elif own is not None:
        said.append(f"its node {own.node} is the only one that would take it")
    views = [(each.outcome, f"policy {each.policy} ({each.mode}): {each.text}") for each in placed.policies]
    causes = [text for outcome, text in views if outcome != UNWANTED]
    return [*causes, *said, *(text for outcome, text in views if outcome == UNWANTED)]
