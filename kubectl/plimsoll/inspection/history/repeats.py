"""Finds pods that were moved again shortly after a move."""

from collections.abc import Iterable, Iterator

from plimsoll.inspection.history.answer import MovedAgain
from plimsoll.inspection.history.digest import has_left
from plimsoll.inspection.history.moves import planned_at, recorded_move, workload_name
from plimsoll.records.history import ended_at
from plimsoll.records.record import Record


def moved_again(records: Iterable[Record], within_s: float) -> tuple[MovedAgain, ...]:
    """Moves of a replacement that were planned soon after the earlier move had ended; the oldest first.

    Moves are linked by uid: another replica of the same owner is another pod, so it is not moved again.
    """
    left = [record for record in records if has_left(recorded_move(record))]
    ordered = sorted(left, key=lambda record: (planned_at(record), record.key))
    return tuple(_links(ordered, within_s))


def _links(ordered: Iterable[Record], within_s: float) -> Iterator[MovedAgain]:
    """Each move whose pod is the replacement of an earlier move, with that move."""
    by_replacement: dict[str, Record] = {}
    for record in ordered:
        earlier = by_replacement.get(record.spec.pod.uid)
        landed = record.status.replacement
        if landed is not None:
            by_replacement[landed.uid] = record
        if earlier is None:
            continue
        seconds = max(planned_at(record) - ended_at(earlier), 0.0)
        if seconds <= within_s:
            yield MovedAgain(
                pod=f"{record.spec.pod.namespace}/{record.spec.pod.name}",
                workload=workload_name(record),
                first=earlier.key,
                second=record.key,
                seconds=round(seconds, 1),
                back=landed is not None and landed.node == earlier.spec.from_node,
            )
