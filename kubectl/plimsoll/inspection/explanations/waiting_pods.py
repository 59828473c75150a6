"""Explains in a line each why the pods of a namespace, or of all, are pending."""

from collections import Counter
from enum import StrEnum

from pydantic import Field

from plimsoll.answers.answer import Answer, AnswerPart
from plimsoll.engine.attempt import schedule
from plimsoll.framework import PodInfo
from plimsoll.inspection.placement.fit import pending_pods
from plimsoll.inspection.state import ClusterState
from plimsoll.model.counted import agreeing, counted

#: Kinds of pods that are tried; others are answered by their condition PodScheduled.
TRIED = 200


class WaitsFor(StrEnum):
    """What a pending pod waits for."""

    ROOM = "Room"
    GATE = "Gate"
    GROUP = "Group"
    SCHEDULER = "Scheduler"
    TURN = "Turn"


#: How the pods that wait for a thing are counted in a sentence, singular and plural.
_SAID = {
    WaitsFor.ROOM: ("fits no node", "fit no node"),
    WaitsFor.GATE: ("is held by a scheduling gate", "are held by scheduling gates"),
    WaitsFor.GROUP: ("waits for the rest of its group", "wait for the rest of their groups"),
    WaitsFor.SCHEDULER: ("names a scheduler that no policy serves", "name schedulers that no policy serves"),
    WaitsFor.TURN: ("fits and waits for its turn", "fit and wait for their turn"),
}


class WaitingKind(AnswerPart):
    """Pending pods of one owner that wait for the same thing."""

    workload: str = Field(description="Owner of the pods, as Kind namespace/name; the pod without one.")
    pods: int = Field(ge=1, description="How many of its pods wait for this.")
    example: str = Field(description="The pod that has waited longest, as namespace/name.")
    waited_seconds: int | None = Field(description="How long; null where its creation time is not known.")
    waits_for: WaitsFor = Field(
        description="Room, Gate, Group, Scheduler (no policy serves it) or Turn (it fits)."
    )
    message: str = Field(description="Why, in a sentence.")


class PendingOverview(Answer):
    """The pods without a node, and why they have none."""

    namespace: str = Field(description="The namespace; empty for all.")
    summary: str = Field(description="The answer in a sentence.")
    kinds: list[WaitingKind] = Field(description="The pods by owner and reason, the longest waiting first.")

    def names(self) -> list[str]:
        """As ``-o name`` prints an example of each."""
        return [f"pod/{each.example.partition('/')[2]}" for each in self.kinds]


def explain_waiting(state: ClusterState, namespace: str = "") -> PendingOverview:
    """Why the pods of a namespace are pending, "" for all namespaces.

    Raises:
        UnknownHereError: A policy that serves one has a plugin that is not installed here.
    """
    pods = [pod for pod in pending_pods(state) if namespace in ("", pod.namespace)]
    grouped: dict[tuple[str, WaitsFor, str], list[PodInfo]] = {}
    judged: dict[object, tuple[WaitsFor, str]] = {}
    for pod in pods:
        owner = pod.pod.metadata.owner
        kind = (pod.namespace, owner.uid if owner else pod.uid, pod.template)
        if kind not in judged:
            judged[kind] = _why(state, pod, is_tried=len(judged) < TRIED)
        workload = f"{owner.kind} {pod.namespace}/{owner.name}" if owner else f"Pod {pod.key}"
        grouped.setdefault((workload, *judged[kind]), []).append(pod)
    kinds = [
        _kind(state, workload, found, waits_for, message)
        for (workload, waits_for, message), found in grouped.items()
    ]
    kinds.sort(key=lambda each: (-((each.waited_seconds or 0) // 60), each.workload))  # in whole minutes
    return PendingOverview(namespace=namespace, summary=_summary(kinds, namespace), kinds=kinds)


def _kind(
    state: ClusterState, workload: str, pods: list[PodInfo], waits_for: WaitsFor, message: str
) -> WaitingKind:
    created = {pod.key: pod.pod.metadata.creation_timestamp for pod in pods}
    known = {key: moment.timestamp() for key, moment in created.items() if moment is not None}
    oldest = min(known, key=known.__getitem__, default=pods[0].key)
    return WaitingKind(
        workload=workload,
        pods=len(pods),
        example=oldest,
        waited_seconds=max(round(state.now - known[oldest]), 0) if known else None,
        waits_for=waits_for,
        message=message,
    )


def _why(state: ClusterState, pod: PodInfo, *, is_tried: bool) -> tuple[WaitsFor, str]:
    name = pod.pod.spec.scheduler_name
    if gates := [each.name for each in pod.pod.spec.scheduling_gates]:
        return WaitsFor.GATE, f"scheduling gates: {', '.join(gates)}"
    if name in state.unserved:
        return WaitsFor.SCHEDULER, state.unserved[name]
    group = state.groups.of(pod.pod)
    if group is not None and (obstacle := group.obstacle()):
        return WaitsFor.GROUP, obstacle
    if not is_tried:
        told = [each.message for each in pod.pod.status.conditions if each.type == "PodScheduled"]
        return WaitsFor.ROOM, (told or [""])[0] or "not tried here: too many kinds of pods are pending"
    decision = schedule(state.deciding(name), pod)
    if decision.node:
        return WaitsFor.TURN, f"node {decision.node} takes it now"
    if decision.error is not None:
        return WaitsFor.ROOM, str(decision.error)
    filters, dot, _ = decision.message.partition(". ")  # what preemption says comes behind it
    return WaitsFor.ROOM, f"{filters}{dot.strip()}"


def _summary(kinds: list[WaitingKind], namespace: str) -> str:
    where = f" in namespace {namespace}" if namespace else ""
    counts: Counter[WaitsFor] = Counter()
    for each in kinds:
        counts[each.waits_for] += each.pods
    if not counts:
        return f"no pod is pending{where}"
    total = counts.total()
    parts = [f"{count} {agreeing(count, *_SAID[what])}" for what, count in counts.most_common()]
    return f"{counted(total, 'pod')} {agreeing(total, 'is', 'are')} pending{where}: {', '.join(parts)}"
