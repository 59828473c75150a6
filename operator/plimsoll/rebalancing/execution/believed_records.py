"""Selects the records of earlier processes that are believed, and limits what they reserve.

A record may have been written by a user. One that the cluster contradicts is refused: it is left as it is,
with an event that says why. Of several records by which one pod leaves, the oldest counts. Targets are
reserved for at most as many moves as the policies allow in one run, in total, from one node, from one
namespace and of one workload; the further moves are followed without a reservation.
"""

from collections.abc import Awaitable, Callable, Iterable

from msgspec import Struct, field
from msgspec.structs import replace

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.cluster.pending_pods import PendingPods
from plimsoll.framework import ConfigurationError
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.names import PodUid
from plimsoll.model.selectors import EVERYTHING
from plimsoll.planning.limits import NO_CEILING, LimitLevel, Limits, Tally, Workload
from plimsoll.planning.moves import RebalancingConfig
from plimsoll.planning.populations import Populations
from plimsoll.ports.clock import Clock
from plimsoll.ports.events import EventNote, EventRecorder
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.moves.machine import MoveMachine
from plimsoll.rebalancing.moves.recovery import RECOVERING, REFUSED
from plimsoll.rebalancing.moves.sightings import facts_of
from plimsoll.rebalancing.moves.state import PodFacts
from plimsoll.rebalancing.records.contradictions import contradiction
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.records.history import is_victim
from plimsoll.records.record import MOVING, PREEMPTION, Record, recorded_workload
from plimsoll.timing.retry import RetryPolicy, retry

#: Maximum number of events about refused records in one pass; the log and a metric count all of them.
MOST_EVENTS = 100

#: Retries of reading a pod that a record says was evicted.
READING = RetryPolicy((0.2, 1.0), repeats=frozenset({WriteOutcome.BUSY}))


class BelievedRecords(Struct, frozen=True, kw_only=True):
    """Judges the records of earlier processes.

    Attributes:
        standing: As :meth:`plimsoll.ports.pod_writes.PodEviction.standing`.
        configured: A policy's configuration, None if no such policy is known.
        defaults: The limits of a policy that sets none.
    """

    keeper: EvictionRecordStore
    machine: MoveMachine
    pending: PendingPods
    standing: Callable[[Pod], Awaitable[WriteResult]]
    configured: Callable[[str], RebalancingConfig | None]
    defaults: Limits
    cluster: Cluster
    recorder: EventRecorder
    observer: Observer
    clock: Clock
    _refused: set[str] = field(default_factory=set)  #: uids of records
    _tallies: dict[str, Tally] = field(default_factory=dict)  #: by policy; "" for all that are not known

    def among(self, records: Iterable[Record]) -> list[Record]:
        """The believed ones; the store forgets the others."""
        believed: list[Record] = []
        refused: list[tuple[Record, str]] = []
        leaving = {
            (state.pod_uid, state.spec.strategy == PREEMPTION): key
            for key, state in self.machine.open.items()
            if state.phase in MOVING
        }
        for record in sorted(records, key=lambda each: (each.created, each.key)):
            why = contradiction(record, self.pending.find)
            subject = (PodUid(record.spec.pod.uid), is_victim(record))
            if not why and record.is_moving:
                first = leaving.setdefault(subject, record.key)
                why = f"record {first} says the same of its pod" if first != record.key else ""
            if why:
                refused.append((record, why))
            else:
                believed.append(record)
        for number, (record, why) in enumerate(refused):
            self.keeper.forget(record.namespace, record.name)
            if record.uid in self._refused:
                continue  # it was found by the list before
            self._refused.add(record.uid)
            self.observer.object_skipped("evictions", record.key, why)
            if number < MOST_EVENTS:
                text = f"the record is ignored: {why}"
                self.recorder.record(EventNote(record.reference, REFUSED, RECOVERING, text, is_warning=True))
        return believed

    async def pod_of(self, record: Record) -> PodFacts | None:
        """The facts about a record's pod, None if it is gone.

        The watch may lag behind a record that says *Evicted*, so the API server is asked whether its pod
        leaves.
        """
        info = self.pending.find(record.spec.pod.uid)
        if info is None:
            return None
        facts = facts_of(info.pod)
        if record.phase is not Phase.EVICTED or facts.terminating or facts.has_ended:
            return facts
        answer = await retry(lambda: self.standing(info.pod), READING, self.clock)
        return replace(facts, terminating=answer.verdict is WriteOutcome.GONE)

    def over_limit(self, record: Record, pod: PodFacts | None) -> str:
        """Why the record's target may not be reserved, in a sentence; "" if it may, and then it counts."""
        has_target = record.spec.target_node is not None and not record.is_forecast and not is_victim(record)
        if not (has_target and record.phase in (Phase.EVICTING, Phase.EVICTED)):
            return ""
        if pod is not None and not pod.terminating and record.phase is Phase.EVICTED:
            return ""  # it is not evicted, and reserves nothing
        spec = record.spec
        owner = spec.owner
        name = (
            f"pod {record.namespace}/{spec.pod.name}"
            if owner is None
            else f"{owner.kind} {record.namespace}/{owner.name}"
        )
        where = (spec.from_node, record.namespace, Workload(recorded_workload(spec), name))
        tally = self._tally(spec.policy)
        is_whole = spec.bundle is not None and spec.bundle.group is not None
        reached = tally.reached(*where, but=LimitLevel.WORKLOAD if is_whole else None)
        if reached is None:
            tally.count(*where)
            return ""
        return f"policy {spec.policy} allows {reached.refusal.message}"

    def _tally(self, policy: str) -> Tally:
        """The policy's ceilings; all policies that are not known yet share the default ones."""
        try:
            config = self.configured(policy)
        except ConfigurationError:
            config = None  # its runs report it
        key = "" if config is None else policy
        if key not in self._tallies:
            limits = self.defaults if config is None else config.limits
            limits = replace(limits, per_minute=NO_CEILING, budgets=())
            evictors, nodes = ((), EVERYTHING) if config is None else (config.evictors, config.nodes)
            self._tallies[key] = Tally(limits, Populations(self.cluster, evictors, nodes))
        return self._tallies[key]
