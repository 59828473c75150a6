"""Adds up what past moves came to: restarts, time below replicas, nodes freed, and money.

Formula::

    below replicas = sum over evicted pods of (readiness of the replacement, or the end - eviction)
    freed          = a bundle of a strategy that empties nodes, all of whose moves have settled
    saved at most  = sum over freed nodes of price per hour * hours since the last of its pods had settled

Units: seconds, hours; currencies as nodes state them, never converted.
Edges: a bundle of which a move is missing among the records counts as not freed. Whether a freed node was
removed is not in the records, so the saving is a bound from above.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.inspection.history.answer import HistoryTotals, PastMoveOutcome
from plimsoll.inspection.history.digest import has_left
from plimsoll.inspection.history.moves import outcome_of, recorded_move
from plimsoll.records.history import ended_at
from plimsoll.records.record import Record

#: Outcomes that were not intended.
BAD = (PastMoveOutcome.FAILED, PastMoveOutcome.RETURNED)

#: Strategies that empty nodes, and the one that does it on request.
ON_REQUEST = "DrainNodes"
EMPTYING = frozenset(("ConsolidateNodes", ON_REQUEST))


def totals_of(records: Iterable[Record], until: float) -> HistoryTotals:
    """What these records of moves came to; ``until`` is the present, in seconds since the epoch."""
    found = list(records)
    left = [record for record in found if has_left(recorded_move(record))]
    emptied = [moves for moves in _bundles(found) if _is_emptied(moves)]
    freed = [moves for moves in emptied if moves[0].spec.strategy != ON_REQUEST]
    by_hour, saved = defaultdict[str, float](float), defaultdict[str, float](float)
    for moves in freed:
        bundle = moves[0].spec.bundle
        if bundle is None or bundle.price_per_hour is None:
            continue
        amount, currency = bundle.price_per_hour.split()
        by_hour[currency] += float(amount)
        saved[currency] += float(amount) * max(until - max(map(ended_at, moves)), 0.0) / 3600
    return HistoryTotals(
        restarts=len(left),
        failures=sum(outcome_of(record) in BAD for record in found),
        seconds_below_replicas=round(sum(map(_missing_s, left)), 1),
        nodes_freed=len(freed),
        nodes_drained=len(emptied) - len(freed),
        freed_per_hour={name: round(by_hour[name], 4) for name in sorted(by_hour)},
        saved_at_most={name: round(saved[name], 2) for name in sorted(saved)},
    )


def _bundles(records: Iterable[Record]) -> Iterable[Sequence[Record]]:
    """The moves that empty a node together."""
    found: defaultdict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for record in records:
        bundle = record.spec.bundle
        if bundle is not None and (record.spec.strategy in EMPTYING or bundle.price_per_hour is not None):
            found[record.spec.policy, record.spec.from_node, bundle.name].append(record)
    return found.values()


def _is_emptied(moves: Sequence[Record]) -> bool:
    bundle = moves[0].spec.bundle
    settled = sum(record.phase is Phase.SETTLED for record in moves)
    return bundle is not None and settled >= bundle.moves


def _missing_s(record: Record) -> float:
    """Seconds for which the pod's owner had one pod fewer."""
    if record.spec.surge is not None:
        return 0.0
    times = {each.phase: each.time.timestamp() for each in record.status.transitions}
    gone = times.get(Phase.EVICTED, times.get(Phase.EVICTING))
    return 0.0 if gone is None else max(ended_at(record) - gone, 0.0)
