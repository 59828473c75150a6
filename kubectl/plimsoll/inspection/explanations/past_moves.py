"""Collects past moves of an owner's pods from their Eviction records."""

from collections.abc import Iterable, Sequence

from pydantic import Field

from plimsoll.answers.answer import AnswerPart
from plimsoll.planning.limits import workload_key
from plimsoll.records.history import ended_at
from plimsoll.records.record import Record

#: Maximum number of records shown.
SHOWN = 10


class PastMoveOfOwner(AnswerPart):
    """One Eviction record of the pod's owner."""

    record: str = Field(description="The record, as namespace/name.")
    pod: str = Field(description="The pod that was moved.")
    strategy: str = Field(description="Who wanted it moved.")
    source_node: str = Field(description="The node that it left.")
    target_node: str = Field(description="The node that its replacement was expected on; empty without one.")
    landed_node: str = Field(description="The node that its replacement landed on; empty without one.")
    phase: str = Field(description="How it ended, or how far it is.")
    age_seconds: int = Field(description="Seconds since it reached this phase.")
    reason: str = Field(description="Why it was to be moved.")


def past_moves(records: Iterable[Record], now: float, uid: str, workload: str) -> list[PastMoveOfOwner]:
    """The records of the pod and of its owner's pods, the latest first.

    Args:
        records: All that there are.
        now: Seconds since the epoch.
        uid: Of the pod.
        workload: The key of its workload.
    """
    found = (
        record
        for record in records
        if record.spec.pod.uid == uid
        or (
            record.spec.owner is not None
            and workload_key(record.namespace, record.spec.owner.uid) == workload
        )
        or (record.status.replacement is not None and record.status.replacement.uid == uid)
    )
    return past_moves_of(latest_first(found), now)


def latest_first(records: Iterable[Record]) -> list[Record]:
    """Records by the time at which they ended or reached their phase; equal ones by key."""
    return sorted(records, key=lambda record: (-ended_at(record), record.key))


def past_moves_of(records: Sequence[Record], now: float) -> list[PastMoveOfOwner]:
    """The first of these records."""
    return [
        PastMoveOfOwner(
            record=record.key,
            pod=f"{record.spec.pod.namespace}/{record.spec.pod.name}",
            strategy=record.spec.strategy,
            source_node=record.spec.from_node,
            target_node=record.spec.target_node or "",
            landed_node=landed.node or "" if (landed := record.status.replacement) else "",
            phase="" if record.phase is None else record.phase.value,
            age_seconds=round(now - ended_at(record)),
            reason=record.spec.reason,
        )
        for record in records[:SHOWN]
    ]


def age_text(seconds: int) -> str:
    """An age in one unit, as kubectl prints it."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{max(seconds, 0)}s"
