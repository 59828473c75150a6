"""Repeats: owners whose pods were moved again shortly after a move."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise

from plimsoll.inspection.history.answer import MovedAgain
from plimsoll.inspection.history.digest import has_left
from plimsoll.inspection.history.moves import planned_at, recorded_move, workload_name
from plimsoll.rebalancing.records.history import ended_at
from plimsoll.rebalancing.records.record import Record


def moved_again(records: Iterable[Record], within_s: float) -> tuple[MovedAgain, ...]:
    """Moves that were planned soon after the owner's move before had ended; the oldest first.

    The replicas of an owner may be moved one after the other: ``same_pod`` distinguishes a pod that was moved
    twice from two pods that were moved once.
    """
    by_owner: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        if has_left(recorded_move(record)):
            by_owner[workload_name(record)].append(record)
    found = [pair for owned in by_owner.values() for pair in _pairs(owned, within_s)]
    return tuple(again for _, again in sorted(found, key=lambda one: one[0]))


def _pairs(owned: list[Record], within_s: float) -> Iterator[tuple[float, MovedAgain]]:
    """The moves of one owner that followed the move before within the time, by when they were planned."""
    ordered = sorted(owned, key=lambda record: (planned_at(record), record.key))
    by_replacement = {
        record.status.replacement.uid: record for record in ordered if record.status.replacement is not None
    }
    for before, after in pairwise(ordered):
        earlier = by_replacement.get(after.spec.pod.uid, before)
        seconds = max(planned_at(after) - ended_at(earlier), 0.0)
        if seconds > within_s:
            continue
        landed = after.status.replacement
        yield (
            planned_at(after),
            MovedAgain(
                workload=workload_name(after),
                first=earlier.key,
                second=after.key,
                seconds=round(seconds, 1),
                same_pod=after.spec.pod.uid in by_replacement,
                back=landed is not None and landed.node == earlier.spec.from_node,
            ),
        )
