"""Dry runs: a record for each move that the latest run predicts, and none for what it no longer does."""

from plimsoll.api.v1alpha1.limits import RecordRetention
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.control.keeping import RecordKeeper
from plimsoll.engine.moves import EvictionPlan
from plimsoll.framework.observer import Observer


class Predictions:
    """Writes predictions.

    Args:
        keeper: The records.
        observer: Told of predictions that are dropped, or for which there is no room.
    """

    def __init__(self, keeper: RecordKeeper, observer: Observer) -> None:
        self._keeper = keeper
        self._observer = observer

    async def write(self, made: EvictionPlan, policy: str, retention: RecordRetention, cycle: str) -> None:
        """Write down what a run predicts; the same prediction is one record, however often it is made.

        Where a strategy failed, nobody knows what it would still predict, and nothing is taken back.
        """
        keeper = self._keeper
        moves = {keeper.key_of(move, policy, Mode.DRY_RUN, cycle): move for move in made.moves}
        for record in keeper.of_policy(policy):
            if record.spec.mode is Mode.DRY_RUN and record.key not in moves and not made.failures:
                await keeper.drop(record, "outdated")
        for key, move in moves.items():
            if key in keeper.known:
                continue
            if keeper.has_room(policy, retention):
                await keeper.open(move, policy, Mode.DRY_RUN, cycle)
            else:
                self._observer.record_dropped(policy, "breaker")
