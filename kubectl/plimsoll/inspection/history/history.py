"""Builds the history of a cluster from its Eviction records."""

from collections.abc import Iterable

from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.inspection.history.answer import History
from plimsoll.inspection.history.digest import digest_of, owners_of
from plimsoll.inspection.history.moves import moment, planned_at, recorded_move
from plimsoll.inspection.history.repeats import moved_again
from plimsoll.inspection.history.selection import RecordSelection
from plimsoll.inspection.history.totals import totals_of
from plimsoll.records.record import Record

#: Default time in seconds within which a further move of the replacement counts as moved again.
AGAIN_S = 3600.0


def history_of(
    records: Iterable[Record], selection: RecordSelection, source: str, again_within_s: float = AGAIN_S
) -> History:
    """The history of the selected records; ``source`` is where they were read.

    A move also counts as moved again if the preceding move began before the selection does.
    """
    everything = list(records)
    chosen = [record for record in everything if selection.covers(record)]
    real = sorted(
        (record for record in chosen if record.spec.mode is not Mode.DRY_RUN),
        key=lambda record: (planned_at(record), record.key),
    )
    moves = tuple(map(recorded_move, real))
    keys = {record.key for record in real}
    forecasts = [record.came_true for record in real if record.came_true is not None]
    done = (record for record in everything if record.spec.mode is not Mode.DRY_RUN)
    return History(
        source=source,
        namespace=selection.namespace,
        subject=selection.subject.text if selection.subject else "",
        since=None if selection.since is None else moment(selection.since),
        until=moment(selection.until),
        again_within_seconds=again_within_s,
        moves=moves,
        digest=digest_of(moves),
        owners=owners_of(moves),
        moved_again=tuple(each for each in moved_again(done, again_within_s) if each.second in keys),
        totals=totals_of(real, selection.until),
        predictions=len(chosen) - len(real),
        forecasts=len(forecasts),
        forecasts_hit=sum(forecasts),
    )
