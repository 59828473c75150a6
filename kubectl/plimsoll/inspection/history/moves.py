"""Converts Eviction records to the moves of an answer."""

from collections.abc import Iterator
from datetime import UTC, datetime

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.inspection.history.answer import PastMoveOutcome, RecordedLoad, RecordedMove
from plimsoll.records.history import SENT, ended_at
from plimsoll.records.record import Record

_OUTCOMES = {
    Phase.SETTLED: PastMoveOutcome.SETTLED,
    Phase.RETURNED: PastMoveOutcome.RETURNED,
    Phase.FAILED: PastMoveOutcome.FAILED,
    Phase.BLOCKED: PastMoveOutcome.BLOCKED,
    Phase.CANCELLED: PastMoveOutcome.CANCELLED,
}


def planned_at(record: Record) -> float:
    """The time of the first phase of the record, in seconds since the epoch."""
    transitions = record.status.transitions
    return transitions[0].time.timestamp() if transitions else record.created


def begun_at(record: Record) -> float:
    """When the move began, in seconds since the epoch: when planned, or when carried out once approved."""
    if record.spec.mode is Mode.APPROVE:
        sent = [each.time.timestamp() for each in record.status.transitions if each.phase in SENT]
        return min(sent, default=ended_at(record))
    return planned_at(record)


def outcome_of(record: Record) -> PastMoveOutcome:
    """The outcome of a recorded move."""
    return PastMoveOutcome.OPEN if record.phase is None else _OUTCOMES.get(record.phase, PastMoveOutcome.OPEN)


def workload_name(record: Record) -> str:
    """The owner named in the record, or the pod itself: ``Kind namespace/name``."""
    spec = record.spec
    if spec.surge is not None:
        return f"{spec.surge.kind} {record.namespace}/{spec.surge.deployment}"
    if spec.owner is None:
        return f"pod {spec.pod.namespace}/{spec.pod.name}"
    return f"{spec.owner.kind} {spec.pod.namespace}/{spec.owner.name}"


def recorded_move(record: Record) -> RecordedMove:
    """A record in the form of an answer."""
    spec, status, outcome = record.spec, record.status, outcome_of(record)
    planned = planned_at(record)
    ended = None if outcome is PastMoveOutcome.OPEN else ended_at(record)
    return RecordedMove(
        record=record.key,
        planned=moment(planned),
        ended=None if ended is None else moment(ended),
        seconds=None if ended is None else round(max(ended - begun_at(record), 0.0), 1),
        pod=f"{spec.pod.namespace}/{spec.pod.name}",
        workload=workload_name(record),
        policy=spec.policy,
        strategy=spec.strategy,
        mode=spec.mode,
        purpose=spec.purpose,
        why=spec.reason,
        source_node=spec.from_node,
        target_node=spec.target_node,
        landed_node=status.replacement.node if status.replacement else None,
        gain=spec.gain,
        gain_maximum=spec.gain_maximum,
        phase=record.phase or "",
        outcome=outcome,
        reason=status.reason,
        message=status.message,
        load=tuple(_loads(record)),
    )


def _loads(record: Record) -> Iterator[RecordedLoad]:
    moved, used = record.spec.load, record.status.load
    if moved is None:
        return
    measured = {} if used is None else {each.resource: each for each in used.resources}
    for each in moved.resources:
        found = measured.get(each.resource)
        yield RecordedLoad(
            resource=each.resource,
            basis=moved.basis,
            expected=str(each.expected),
            source_percent=(each.source.before_percent, each.source.after_percent),
            target_percent=(each.target.before_percent, each.target.after_percent),
            used=None if found is None else str(found.used),
            error_percent=None if found is None else found.error_percent,
        )


def moment(seconds: float) -> datetime:
    """Seconds since the epoch as a time in UTC, in whole seconds."""
    return datetime.fromtimestamp(int(seconds), UTC)
