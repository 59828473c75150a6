"""Reads the records of earlier processes, and posts each of them to the move machine.

A leader that has lost its lease notices so seconds later, and may write records until then. The next leader
reads the records when it starts, and once more when no such write can arrive any more.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.cluster.pending_pods import PendingPods
from plimsoll.model.names import BundleKey, PolicyName, RecordKey
from plimsoll.ports.clock import Clock
from plimsoll.rebalancing.execution.believed_records import BelievedRecords
from plimsoll.rebalancing.execution.executor import MoveExecutor
from plimsoll.rebalancing.moves.bundles import bundle_of
from plimsoll.rebalancing.moves.events import BundlePlanned, ProcessRestarted, RolloutAnswered
from plimsoll.rebalancing.moves.recovery import rank
from plimsoll.rebalancing.moves.sightings import facts_of
from plimsoll.rebalancing.moves.state import BundleState
from plimsoll.rebalancing.records.drafts import move_of
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.records.record import Record

#: Seconds by which a deposed leader has noticed, and its last requests have arrived: those of a lease.
LATE_S = 20.0


class Restart(Struct, frozen=True, kw_only=True):
    """Continues the open records of earlier processes, each exactly once."""

    keeper: EvictionRecordStore
    executor: MoveExecutor
    answer: Callable[[RecordKey], bool | None]  #: people's answer to a proposal, by record; None for none
    pending: PendingPods
    believed: BelievedRecords
    inspect: Callable[
        [RecordKey, EvictionSpec], Awaitable[RolloutAnswered | None]
    ]  #: reads a surge's Deployment
    clock: Clock

    async def recover(self) -> None:
        """Read the records and continue each believed open one; returns when everything is recorded."""
        await self.keeper.load()
        await self._carry_on(list(self.keeper.known.values()))
        self.keeper.is_recovered = True

    async def recover_late(self) -> None:
        """Continue records that a deposed leader has written since; returns when everything is recorded."""
        await self.clock.sleep(LATE_S)
        await self._carry_on(await self.keeper.load_late())

    async def _carry_on(self, records: list[Record]) -> None:
        records = self.believed.among(records)
        found = [await self._event_of(record) for record in records]
        known = self.keeper.known.keys()  # some may have been deleted meanwhile
        found = sorted((self._with_present_pod(each) for each in found if each.key in known), key=rank)
        self.executor.post(*self._proposals([each for each in records if each.key in known]), *found)
        await self.executor.progress.until(lambda: self.executor.is_idle(*(record.key for record in records)))

    async def _event_of(self, record: Record) -> ProcessRestarted:
        pod, rollout = self.pending.find(record.spec.pod.uid), None
        facts = await self.believed.pod_of(record)
        if record.phase is Phase.SURGING:
            rollout = await self.inspect(record.key, record.spec)
        return ProcessRestarted(
            record.key,
            record.spec,
            record.status,
            self.keeper.sent_for_s(record),
            pod=facts,
            move=None if pod is None or record.is_finished else move_of(record.spec, pod),
            rollout=rollout,
            approved=self.answer(record.key) if record.spec.mode is Mode.APPROVE else None,
            created=datetime.fromtimestamp(record.created, UTC),
            announced=record.announced,
            reference=record.reference,
            over_limit=self.believed.over_limit(record, facts),
        )

    def _with_present_pod(self, event: ProcessRestarted) -> ProcessRestarted:
        """What has become of the pod while others were read: events of unknown moves are not kept."""
        if event.pod is None:
            return event
        info = self.pending.find(event.spec.pod.uid)
        if info is None:
            return replace(event, pod=None)
        facts = facts_of(info.pod)
        return replace(event, pod=replace(facts, terminating=event.pod.terminating or facts.terminating))

    def _proposals(self, records: list[Record]) -> list[BundlePlanned]:
        """Open proposals, grouped by bundle."""
        groups: defaultdict[BundleKey, list[Record]] = defaultdict(list)
        for record in records:
            if record.spec.mode is Mode.APPROVE and record.phase in (None, Phase.PLANNED):
                groups[bundle_of(record.spec, record.key)].append(record)
        return [
            BundlePlanned(
                BundleState(
                    bundle,
                    PolicyName(group[0].spec.policy),
                    tuple(record.key for record in sorted(group, key=_position)),
                    group[0].spec.bundle.moves if group[0].spec.bundle else 1,
                    due=False,
                )
            )
            for bundle, group in groups.items()
        ]


def _position(record: Record) -> int:
    return record.spec.bundle.position if record.spec.bundle else 0
