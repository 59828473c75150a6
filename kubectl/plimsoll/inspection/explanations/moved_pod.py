"""Explains a pod that is gone, or a move, from Eviction records."""

from collections.abc import Mapping
from datetime import UTC, datetime

from pydantic import Field

from plimsoll.answers.answer import Answer
from plimsoll.api.v1alpha1.eviction import Purpose
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.inspection.explanations.past_moves import PastMoveOfOwner, age_text, latest_first, past_moves_of
from plimsoll.model.names import RecordKey, record_key
from plimsoll.records.history import STAYED, STRANDED, ended_at, is_victim
from plimsoll.records.record import MOVING, Record

#: Phases in which nothing was sent for the pod yet.
_UNSENT = (None, Phase.PLANNED)


class MoveExplanation(Answer):
    """Why a pod that is gone was moved, or what became of a move."""

    subject: str = Field(
        description="What was asked about, as pod NAMESPACE/NAME or eviction NAMESPACE/NAME."
    )
    summary: list[str] = Field(description="The answer in a few sentences.")
    past: list[PastMoveOfOwner] = Field(description="The records about it, the latest first.")

    def names(self) -> list[str]:
        """As ``-o name`` prints the records."""
        return [f"eviction.plimsoll.dev/{each.record.rpartition('/')[2]}" for each in self.past]


def explain_gone_pod(
    known: Mapping[RecordKey, Record], now: float, namespace: str, name: str
) -> MoveExplanation | None:
    """What the records say of a pod that the cluster does not have; None if they do not know it.

    A record whose owner's name begins the pod's name says what happened to pods of its owner.

    Args:
        known: The records, by namespace/name.
        now: Seconds since the epoch.
        namespace: The namespace of the pod.
        name: Its name.
    """
    records = [each for each in known.values() if each.spec.pod.namespace == namespace]
    own = [each for each in records if each.spec.pod.name == name]
    later = [each for each in records if (new := each.status.replacement) is not None and new.name == name]
    latest = latest_first(own)
    if latest:
        moved = next((each for each in latest if _has_left(each)), None)
        said = [move_sentence(moved or latest[0], now)]
        if moved is None:
            said.append("no move ended it; it has gone for another reason")
        elif _replacement(moved):
            said.append(_replacement(moved))
        found = latest
    elif later:
        found = latest_first(later)
        said = [f"it is gone, and no record says that it was moved; {replaced_sentence(found[0], now)}"]
    else:
        found = latest_first(
            each for each in records if each.spec.owner and name.startswith(f"{each.spec.owner.name}-")
        )
        if not found:
            return None
        owner = found[0].spec.owner
        subject = "" if owner is None else f"{owner.kind} {owner.name}"
        said = [f"no record names it: it was not moved, or its record is gone; moves of {subject} are below"]
    return MoveExplanation(subject=f"pod {namespace}/{name}", summary=said, past=past_moves_of(found, now))


def explain_move(
    known: Mapping[RecordKey, Record], now: float, namespace: str, name: str
) -> MoveExplanation | None:
    """What a record says; None if it does not exist."""
    record = known.get(record_key(namespace, name))
    if record is None:
        return None
    said = [f"pod {record.spec.pod.namespace}/{record.spec.pod.name}: {move_sentence(record, now)}"]
    said += [each for each in (_replacement(record),) if each]
    return MoveExplanation(subject=f"eviction {record.key}", summary=said, past=past_moves_of([record], now))


def replaced_sentence(record: Record, now: float) -> str:
    """What a pod replaced, of the record that names it as the replacement."""
    pod = record.spec.pod
    return f"it replaced pod {pod.namespace}/{pod.name}: {move_sentence(record, now)}"


def move_sentence(record: Record, now: float) -> str:
    """How far the move of a record is: from, to, when, by what, and why."""
    spec, phase = record.spec, record.phase
    target = landed.node if (landed := record.status.replacement) is not None else None
    target = target or spec.target_node
    ways = f" → {target}" if target and spec.purpose is Purpose.MOVE else ""
    by = "preemption" if is_victim(record) else f"policy {spec.policy} ({spec.strategy})"
    when = f"{_stamp(ended_at(record))} ({age_text(round(now - ended_at(record)))} ago)"
    route, why = f"{spec.from_node}{ways}", spec.reason
    if phase is Phase.PREDICTED:
        return f"a dry run of {by} would have moved it, {route}, at {when}: {why}; nothing was evicted"
    if phase in _UNSENT:
        return f"{by} plans to move it, {route}, since {when}: {why}"
    if not _has_left(record) and phase not in MOVING:
        return f"{by} did not move it off {spec.from_node} at {when}: {record.status.message or phase}"
    if phase in (Phase.RETURNED, Phase.FAILED):
        return f"it was evicted from {spec.from_node} by {by}, {why}; the move {phase.lower()} at {when}"
    deed = "is being moved" if phase in MOVING else "was restarted" if not ways else "was moved"
    return f"it {deed}, {route}, at {when} by {by}: {why}"


def _has_left(record: Record) -> bool:
    """Whether the record says that the pod left its node because of it."""
    if record.phase is Phase.FAILED:
        return record.status.reason in STRANDED
    return record.phase not in (*_UNSENT, *STAYED, Phase.PREDICTED, Phase.EVICTING)


def _replacement(record: Record) -> str:
    landed = record.status.replacement
    if landed is None:
        return record.status.message or "" if record.phase is Phase.FAILED else ""
    where = f" on node {landed.node}" if landed.node else ", which has no node yet"
    ending = {
        Phase.SETTLED: ", and was ready there",
        Phase.RETURNED: ", the node that it was to leave",
        Phase.FAILED: f"; the move failed: {record.status.message}",
    }
    return f"its replacement is pod {record.spec.pod.namespace}/{landed.name}{where}" + (
        ending.get(record.phase, "") if record.phase else ""
    )


def _stamp(seconds: float) -> str:
    return f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%dT%H:%M:%SZ}"
