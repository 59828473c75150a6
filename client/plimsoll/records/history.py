"""Converts records of past moves into the memory of planners (:mod:`plimsoll.planning.history`).

Records of preemption's victims name the policy whose profile decided, but they are not moves of its
rebalancing: they do not count against its limits, and neither begin nor end a rest.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable

from plimsoll.api.v1alpha1.eviction import Purpose
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import Mode, PlannerName
from plimsoll.framework import Pod
from plimsoll.planning.context import SETTLING_S, SentMove
from plimsoll.planning.history import MoveHistory, MoveOutcome, PastMove, UnreadyReplacement
from plimsoll.planning.limits import workload_key
from plimsoll.records.record import MOVING, PREEMPTION, STILL_THERE, Record, recorded_workload
from plimsoll.toolkit.descheduling.container_states import statuses_of, waiting_reasons

#: Reasons of a Failed record whose pod was evicted; any other reason means that nothing was evicted.
STRANDED = ("NoReplacement", "ReplacementNotRunning", "ReplacementNotReady")

#: Reasons of a Failed record whose eviction or surge the API server refused, such as for a missing right.
REFUSED = ("EvictionRefused", "EvictionAbandoned", "SurgeRefused")

#: The reason of a Blocked record that a PodDisruptionBudget stopped; the policy's own budgets have another.
DISRUPTION_BUDGET = "PodDisruptionBudget"

#: Phases in which the pod has been asked to leave.
SENT = (Phase.EVICTING, Phase.SURGING)

#: Final phases of moves whose pod was asked to leave and certainly stays; a Failed one may have been evicted.
STAYED = (Phase.BLOCKED, Phase.CANCELLED)


def memory_of(records: Iterable[Record], now: float, granted: float = 0.0) -> MoveHistory:
    """The memory from the finished records."""
    past = (move for move in map(past_move, records) if move is not None)
    return MoveHistory(
        (move for move in past if move.fate is not MoveOutcome.REFUSED or move.ended >= granted), now
    )


def past_move(record: Record) -> PastMove | None:
    """A record as a past move; None if planners need not know it."""
    owner, fate = record.spec.owner, _fate(record)
    if fate is None or owner is None or record.spec.mode is Mode.DRY_RUN or is_victim(record):
        return None
    namespace, surge = record.spec.pod.namespace, record.spec.surge
    if surge is not None and surge.replicas is not None:
        surge = None  # the owner stays
    return PastMove(
        policy=record.spec.policy,
        strategy=record.spec.strategy,
        owner=recorded_workload(record.spec),
        name=f"{owner.kind} {namespace}/{owner.name}"
        if surge is None
        else f"{surge.kind} {namespace}/{surge.deployment}",
        source=record.spec.from_node,
        fate=fate,
        ended=ended_at(record),
        budget=f"{namespace}/{record.status.blocked_by}" if record.status.blocked_by else "",
        target=(landed.node or "") if (landed := record.status.replacement) is not None else "",
        came_true=record.came_true,
        controller="" if surge is None else workload_key(namespace, owner.uid),
    )


def is_victim(record: Record) -> bool:
    """Whether the record is of a victim of preemption, evicted through the Eviction API."""
    return record.spec.strategy == PREEMPTION


def ended_at(record: Record) -> float:
    """When the record's latest phase was reached, in seconds since the epoch."""
    transitions = record.status.transitions
    return transitions[-1].time.timestamp() if transitions else record.created


def sent_since(records: Iterable[Record], policy: str, moment: float) -> int:
    """The number of a policy's evictions and surges sent after a moment, without refused ones.

    By the clocks of the sending machines.
    """
    return sum(latest_sent(record) > moment for record in records if counts_as_sent(record, policy))


def sent_since_by_namespace(records: Iterable[Record], moment: float) -> Counter[str]:
    """The same of all policies, by namespace."""
    return Counter(each.namespace for each in records if was_sent(each) and latest_sent(each) > moment)


def counts_as_sent(record: Record, policy: str) -> bool:
    """Whether a record is of an eviction or a surge that the policy sent and that was not refused."""
    return record.spec.policy == policy and was_sent(record)


def was_sent(record: Record) -> bool:
    """The same, whatever the policy."""
    return (
        record.phase not in STAYED
        and record.status.reason != STILL_THERE
        and not is_victim(record)
        and latest_sent(record) > 0.0
    )


def latest_sent(record: Record) -> float:
    """When it was sent, in seconds since the epoch by its sender's clock; 0 if it was not."""
    return max(
        (each.time.timestamp() for each in record.status.transitions if each.phase in SENT), default=0.0
    )


def sent_moves(records: Iterable[Record]) -> list[SentMove]:
    """The moves that are under way or have a replacement; victims of preemption are of no workload."""
    found = []
    for record in records:
        landed, phase, spec = record.status.replacement, record.phase, record.spec
        if phase not in MOVING and landed is None:
            continue
        nodes = (spec.from_node, spec.target_node, landed.node if landed is not None else None)
        found.append(
            SentMove(
                "" if is_victim(record) else recorded_workload(spec),
                tuple(node for node in nodes if node is not None),
                None if phase in MOVING else ended_at(record),
                landed.uid if landed is not None and phase is not Phase.RETURNED else "",
            )
        )
    return found


def about_to_leave(records: Iterable[Record]) -> frozenset[str]:
    """Uids of the pods that moves under way will take off their nodes; a proposal waits for a person."""
    return frozenset(
        each.spec.pod.uid
        for each in records
        if each.phase in SENT or (each.phase is Phase.PLANNED and each.spec.mode is Mode.ENFORCE)
    )


def unready_replacements(
    records: Iterable[Record], pods_of: Callable[[str], Iterable[Pod]], followed: Container[str] = ()
) -> dict[str, UnreadyReplacement]:
    """By workload key, the oldest pod that was made after a finished move of its owner and is not ready.

    However long ago that was. ``pods_of`` returns the pods of an owner by its uid. Pods whose uid is in
    ``followed`` are those of moves under way, which the limits count.
    """
    first: dict[str, Record] = {}
    for record in records:
        if _was_replaced(record):
            key = recorded_workload(record.spec)
            if key not in first or _moved_at(record) < _moved_at(first[key]):
                first[key] = record
    found = {}
    for key, record in first.items():
        owner, since = record.spec.owner, _moved_at(record)
        waiting = [
            (created, pod)
            for pod in (pods_of(owner.uid) if owner is not None else ())
            if pod.namespace == record.namespace
            and pod.uid not in followed
            and not (pod.is_ready or pod.is_terminal or pod.is_terminating)
            and (created := pod.metadata.creation_timestamp) is not None
            and created.timestamp() >= since
        ]
        if waiting:
            _, pod = min(waiting, key=lambda each: (each[0], each[1].key))
            found[key] = UnreadyReplacement(pod.uid, pod.key, _not_ready(pod), record.key)
    return found


def _was_replaced(record: Record) -> bool:
    """Whether a pod was evicted by the finished move of a record; a surge makes another owner's pod."""
    if record.spec.owner is None or record.spec.surge is not None or is_victim(record):
        return False
    has_failed = record.phase is Phase.FAILED and record.status.reason in STRANDED
    return record.phase in (Phase.SETTLED, Phase.RETURNED) or has_failed


def _moved_at(record: Record) -> float:
    """When the pod was asked to leave; by the API server's clock, as pods' times, where it is known."""
    return record.announced.timestamp() if record.announced is not None else int(latest_sent(record))


def _not_ready(pod: Pod) -> str:
    """Why a pod is not ready."""
    waiting = next(filter(None, waiting_reasons(statuses_of(pod, init=True))), "")
    told = pod.condition("PodScheduled")
    if not pod.node_name:
        return told.message[:256] if told is not None and told.message else "it has no node"
    return waiting or f"its phase is {pod.status.phase or 'Pending'}"


def is_reversal(record: Record, records: Iterable[Record]) -> bool:
    """Whether a move brought a pod to a node that a move took one of its owner off within the hour before.

    A replacement that returned to the node that it was moved off does not count: its move is ``Returned``.
    """
    landed, owner, sent = record.status.replacement, _owner(record), latest_sent(record)
    if record.phase is not Phase.SETTLED or landed is None or not owner:
        return False
    return landed.node != record.spec.from_node and any(
        other.phase is Phase.SETTLED
        and other.key != record.key
        and _owner(other) == owner
        and other.spec.from_node == landed.node
        and 0.0 <= sent - latest_sent(other) < SETTLING_S
        for other in records
    )


def _owner(record: Record) -> str:
    """The key of the moved pod's workload; "" for a victim, a restart, and a pod without an owner."""
    spec = record.spec
    if is_victim(record) or spec.purpose is Purpose.RESTART or spec.owner is None:
        return ""
    return recorded_workload(spec)


def _is_astray(record: Record) -> bool:
    """Whether a replacement is on a node other than Optimal has chosen; schedulers need not follow that.

    The other planners' targets are the scheduler's own best nodes.
    """
    landed, spec = record.status.replacement, record.spec
    return (
        spec.planner is PlannerName.OPTIMAL
        and landed is not None
        and spec.target_node is not None
        and landed.node != spec.target_node
    )


def _fate(record: Record) -> MoveOutcome | None:
    match record.phase:
        case Phase.SETTLED if _is_astray(record):
            return MoveOutcome.ASTRAY
        case Phase.SETTLED:
            return MoveOutcome.SETTLED
        case Phase.RETURNED:
            return MoveOutcome.RETURNED
        case Phase.FAILED if record.status.reason in STRANDED:
            return MoveOutcome.STRANDED
        case Phase.FAILED if record.status.reason in REFUSED:
            return MoveOutcome.REFUSED
        case Phase.BLOCKED if record.status.reason == DISRUPTION_BUDGET:
            return MoveOutcome.BLOCKED
        case _:
            return None
