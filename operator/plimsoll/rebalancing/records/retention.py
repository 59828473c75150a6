"""Decides which finished records are deleted: those too old or too many, the oldest first."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from plimsoll.api.v1alpha1.limits import RecordRetention
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.planning.history import UnreadyReplacement
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.rebalancing.moves.events import RecordDeleted
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.records.record import Record

#: Seconds between two checks for records that are too old.
TIDY_S = 60.0


@dataclass(eq=False)
class Retention:
    """Limits the number of finished records."""

    #: Policies that rebalance, at any moment; keys are their names.
    policies: Mapping[str, SchedulingPolicy]
    keeper: EvictionRecordStore
    post: Callable[[RecordDeleted], None]  #: receives the events of deleted records
    clock: Clock
    observer: Observer
    #: The replacements that are waited for: the records of their moves are kept.
    unready: Callable[[], Mapping[str, UnreadyReplacement]] = dict
    #: Whether something else still needs a record.
    is_kept: Callable[[Record], bool] = lambda _: False
    _retentions: dict[str, RecordRetention] = field(default_factory=dict, init=False)

    async def run(self) -> None:
        """Delete until cancelled; checks repeatedly, as no event reports a record's age."""
        while True:
            await self.clock.sleep(TIDY_S)
            try:
                await self.tidy()
            except Exception as exc:  # noqa: BLE001 - whatever one record holds, the next look comes
                self.observer.failed("deleting old records", repr(exc))

    async def tidy(self) -> None:
        """Delete old records; those of suspended and deleted policies by their policy's latest setting."""
        for name, policy in self.policies.items():
            if policy.spec.rebalancing is not None:
                self._retentions[name] = policy.spec.rebalancing.records
        for name in self.keeper.policies():
            await self.tidy_policy(name, self._retentions.get(name, RecordRetention()))
        self._retentions = {
            name: kept for name, kept in self._retentions.items() if name in self.keeper.policies()
        }

    async def tidy_policy(self, policy: str, retention: RecordRetention) -> None:
        """Delete the records of one policy that are too old or too many."""
        for record in self._superfluous(policy, retention):
            if await self.keeper.drop(record, "retention"):
                self.post(RecordDeleted(record.key))

    def _superfluous(self, policy: str, retention: RecordRetention) -> Iterable[Record]:
        mine = self.keeper.of_policy(policy)
        excess = len(mine) - retention.max_count
        oldest = self.clock.now() - retention.ttl_seconds
        superfluous = [each for each in mine if each.is_finished]
        if excess <= 0 and all(each.created >= oldest for each in superfluous):
            return
        kept = {each.record for each in self.unready().values()}
        for record in superfluous:
            is_recent = excess <= 0 and record.created >= oldest
            if record.key in kept or is_recent or self.is_kept(record):
                continue
            excess -= 1
            yield record
