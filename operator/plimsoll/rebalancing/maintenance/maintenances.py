"""Carries NodeMaintenances out: has their policies run when nodes may be begun, and writes their status.

It evicts nothing: the moves are those of runs of the policy that
:mod:`plimsoll.policies.node_maintenance` makes. A maintenance begins with a dry run of all its nodes. After
that a run begins as many nodes as may be under way at the same time, and the next one follows when none of
its moves waits for its turn. All state is in the object's status, in records and in nodes.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec
from pydantic import ValidationError

from plimsoll.access.rights import SURGE, Access
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.node_maintenance import MaintenancePhase, NodeMaintenance
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.cluster.watch_events import ObjectAdded, ObjectDeleted, ObjectUpdated, WatchEvent
from plimsoll.framework.field_errors import field_errors
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.node import Node
from plimsoll.model.taints import is_closed
from plimsoll.policies.node_maintenance import (
    OVER,
    chosen,
    is_open,
    is_over,
    next_opening,
    policy_name,
    policy_of,
)
from plimsoll.ports.clock import Clock
from plimsoll.ports.custom_resources import PolicyStatusWriter, WatchedMaintenance
from plimsoll.ports.events import EventNote, EventRecorder
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import WriteOutcome
from plimsoll.rebalancing.closed_nodes import ClosedNodes
from plimsoll.rebalancing.controller import RebalancingController
from plimsoll.rebalancing.maintenance.plans import MaintenancePlans
from plimsoll.rebalancing.maintenance.progress import (
    Batch,
    MaintenanceFacts,
    NodeFacts,
    next_batch,
    status_of,
)
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.rebalancing.timetable import Timetable
from plimsoll.timing.signal import Signal
from plimsoll.toolkit.descheduling.leaving_pods import may_leave
from plimsoll.toolkit.scheduling.topology_levels import ZONE

#: Seconds between two looks at the maintenances, while there are any.
LOOK_S = 1.0

#: Seconds until a run that was asked for has certainly begun.
BEGINS_S = 3.0

#: Seconds between two runs of which the earlier one has begun no node.
AGAIN_S = 5.0

#: Seconds until a status is written again that could not be.
UNWRITTEN_S = 30.0

#: Seconds between two dry runs while the window is closed.
FORESEE_S = 300.0

#: Phases whose events are warnings.
BAD = frozenset((MaintenancePhase.STOPPED, MaintenancePhase.EXPIRED, MaintenancePhase.INVALID))


class Known(msgspec.Struct):
    """A maintenance.

    Attributes:
        given: The object as last seen, with the status as last written.
        nodes: The names of its nodes.
        invalid: Why it cannot be carried out, "" if it can be.
        foreseen: Monotonic time of the latest dry run, None before the first.
        asked: Monotonic time at which the latest run was asked for.
        unwritten: Monotonic time at which a status that could not be written is written again.
    """

    given: NodeMaintenance
    nodes: tuple[str, ...] = ()
    invalid: str = ""
    foreseen: float | None = None
    asked: float = float("-inf")
    unwritten: float = float("inf")

    @property
    def policy(self) -> str:
        """The name of its policy."""
        return policy_name(self.given.metadata.name)


@dataclass(eq=False)
class Maintenances:
    """All NodeMaintenances."""

    cluster: Cluster
    keeper: EvictionRecordStore
    rebalancers: RebalancingController
    timetable: Timetable
    plans: MaintenancePlans
    closed: ClosedNodes
    access: Access
    statuses: PolicyStatusWriter
    recorder: EventRecorder
    clock: Clock
    observer: Observer
    _known: dict[str, Known] = field(default_factory=dict, init=False)
    _policies: set[str] = field(default_factory=set, init=False)  #: names of those that were looked at
    _news: Signal = field(default_factory=Signal, init=False)

    def given(self) -> list[NodeMaintenance]:
        """The objects that can be read, with their latest statuses, sorted by name."""
        return [self._known[name].given for name in sorted(self._known)]

    # -- the objects ---------------------------------------------------------------------------------

    def take(self, events: Iterable[WatchEvent]) -> None:
        """Take over changes of the objects."""
        for event in events:
            match event:
                case ObjectAdded(WatchedMaintenance() as given) | ObjectUpdated(
                    _, WatchedMaintenance() as given
                ):
                    self._see(given)
                case ObjectDeleted(WatchedMaintenance() as gone):
                    self._known.pop(gone.name, None)
                case _:
                    continue
        self.closed.kept = self._kept()
        self._name_nodes()
        self._news.notify()

    def _see(self, given: WatchedMaintenance) -> None:
        try:
            read = NodeMaintenance.from_wire(given.document)
        except ValidationError as exc:  # an object from before its definition was narrowed
            sentences = "; ".join(map(str, field_errors(exc, model=NodeMaintenance)))
            self.observer.failed(f"NodeMaintenance {given.name}", sentences)
            self._known.pop(given.name, None)
            return
        before = self._known.get(given.name)
        if before is not None and before.given.metadata.uid == read.metadata.uid:
            is_same = before.given.metadata.generation == read.metadata.generation
            read = read.model_copy(update={"status": before.given.status})
            if is_same:
                before.given = read
                return
        nodes, invalid = self._chosen(read)
        self._known[given.name] = Known(read, nodes, invalid)
        self.plans.forget(policy_name(given.name))

    def _chosen(self, given: NodeMaintenance) -> tuple[tuple[str, ...], str]:
        """The names of its nodes, and why it cannot be carried out."""
        try:
            is_open(given, self._now())
        except ValueError as exc:
            return given.spec.nodes, f"spec.window: {exc}"
        try:
            return chosen(given, self.cluster.nodes), ""
        except ValueError as exc:
            return (), str(exc)

    def _kept(self) -> frozenset[str]:
        """Nodes that stay closed once they are empty."""
        present = (each for each in self._known.values() if not each.given.spec.suspend)
        return frozenset(name for each in present for name in each.nodes)

    def _name_nodes(self) -> None:
        """Say which nodes are about to be emptied: those of maintenances that go on."""
        live = (each for each in self._known.values() if not is_over(each.given))
        nodes = frozenset(name for each in live for name in each.nodes)
        self.rebalancers.configs.maintained = nodes
        self.closed.avoid("maintenances", nodes)

    # -- the work ------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Carry out until cancelled; looks repeatedly only while there is a maintenance."""
        while True:
            await self._news.until(lambda: bool(self._known or self._policies))
            wanted = {each.policy for each in self._known.values()}
            for policy in self._policies - wanted:
                self.rebalancers.release(policy)
                self.plans.forget(policy)
            self._policies = wanted
            for known in list(self._known.values()):
                try:
                    await self._look(known)
                except Exception as exc:  # noqa: BLE001 - whatever one of them holds, the others go on
                    self.observer.failed(f"NodeMaintenance {known.given.metadata.name}", repr(exc))
            self._name_nodes()
            await self.clock.sleep(LOOK_S)

    async def _look(self, known: Known) -> None:
        """Begin what may begin, and write the status."""
        facts = self._facts(known)
        status = status_of(known.given, facts)
        if status.phase in OVER or status.phase is MaintenancePhase.DRAINED:
            self.rebalancers.release(known.policy)
        elif not self._is_busy(known):
            await self._begin(known, facts)
        before = known.given.status
        if status == before and self.clock.monotonic() < known.unwritten:
            return
        known.given = known.given.model_copy(update={"status": status})
        document = status.model_dump(mode="json", by_alias=True, exclude_none=True)
        answer = await self.statuses.write_status(known.given.metadata.name, document)
        known.unwritten = math.inf if answer.is_done else self.clock.monotonic() + UNWRITTEN_S
        if answer.is_failure and answer.verdict not in (WriteOutcome.FENCED, WriteOutcome.GONE):
            self.observer.failed(f"status of NodeMaintenance {known.given.metadata.name}", answer.message)
        if before is None or before.phase is not status.phase:
            self._tell(known.given)

    def _is_busy(self, known: Known) -> bool:
        """Whether a run is due or under way, or a move of one waits for its turn."""
        name, left = known.policy, self.rebalancers.executor.machine.left(known.policy)
        recently = self.clock.monotonic() - known.asked < BEGINS_S
        return recently or self.timetable.is_running(name) or bool(left)

    async def _begin(self, known: Known, facts: MaintenanceFacts) -> None:
        now, given = self.clock.monotonic(), known.given
        everything = [each.name for each in facts.nodes if each.exists and each.leaving]
        if known.foreseen is None or (not facts.is_open and now - known.foreseen >= FORESEE_S):
            known.foreseen = now
            if everything:
                self._run(known, Mode.DRY_RUN, Batch(tuple(everything)), most=None)
                return
        if not facts.is_open:
            return
        batch = next_batch(given, facts)
        for name in batch.empty:
            await self.closed.close(name)
            self.closed.done([name])
        if batch.nodes and batch.most and now - known.asked >= AGAIN_S:
            self._run(known, Mode.ENFORCE, batch, most=batch.most)

    def _run(self, known: Known, mode: Mode, batch: Batch, most: int | None) -> None:
        known.asked = self.clock.monotonic()
        policy = policy_of(
            known.given,
            batch.nodes,
            mode,
            avoided=set(known.nodes) - set(batch.nodes),
            most=most,
            busy_zones=batch.busy_zones,
            may_surge=self.access.allows(SURGE),
        )
        self.rebalancers.maintain(policy)

    def _facts(self, known: Known) -> MaintenanceFacts:
        given, now = known.given, self._now()
        records = [each for each in self.keeper.of_policy(known.policy) if each.spec.mode is Mode.ENFORCE]
        since = given.status.start_time.timestamp() if given.status and given.status.start_time else 0.0
        moving = Counter(each.spec.from_node for each in records if not each.is_finished)
        failed = [each for each in records if each.phase is Phase.FAILED and each.created >= since]
        damage = ""
        if failed:
            first = min(failed, key=lambda each: each.created)
            damage = f"the move of record {first.key} failed: {first.status.message or first.status.reason}"
        opening = None if known.invalid else next_opening(given, now)
        return MaintenanceFacts(
            now=now,
            nodes=[self._node_facts(name, moving[name]) for name in known.nodes],
            plans=self.plans.of(known.policy),
            is_open=not known.invalid and is_open(given, now),
            opens=f"; it opens at {opening:%Y-%m-%d %H:%M} UTC" if opening else "",
            damage=damage,
            invalid=known.invalid,
        )

    def _node_facts(self, name: str, moving: int) -> NodeFacts:
        row = self.cluster.rows.get(name)
        if row is None:
            return NodeFacts(name, exists=False)
        node: Node = self.cluster.nodes[row]
        leaving = sum(map(may_leave, self.cluster.pods_on(row)))
        return NodeFacts(
            name, zone=node.labels.get(ZONE, ""), leaving=leaving, is_closed=is_closed(node), moving=moving
        )

    def _tell(self, given: NodeMaintenance) -> None:
        """Record an event about the phase that it has reached."""
        status, meta = given.status, given.metadata
        if status is None or status.phase is None:
            return
        regarding: Mapping[str, str] = {
            "apiVersion": given.api_version,
            "kind": given.definition.kind,
            "name": meta.name,
            "uid": meta.uid or "",
        }
        text = status.conditions[-1].message
        is_bad = status.phase in BAD
        self.recorder.record(EventNote(regarding, status.phase.value, "Draining", text, is_warning=is_bad))

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.clock.now(), UTC)
