"""Closes nodes to new pods by a taint before they are emptied, and opens them afterwards.

A node that is to be emptied later gets the same taint with the effect PreferNoSchedule: new pods go elsewhere
where there is room, and need not be moved then; none waits for it.

A node stays closed while moves off it are under way, and for a quarter of an hour after the last one has
settled, so that an autoscaler can remove the empty node. It is opened immediately when a move of the bundle
fails. All state is in the records and in the node, so a new process opens nodes that an earlier one has left
closed.
"""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.cluster.cache import Cache
from plimsoll.cluster.watch_events import NodeAdded, NodeUpdated, WatchEvent
from plimsoll.framework import Node
from plimsoll.model.taints import CONSOLIDATING, is_avoided, is_closed
from plimsoll.planning.history import REMOVED_WITHIN_S
from plimsoll.ports.clock import Clock
from plimsoll.ports.objects import NodeCloser
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.records.history import ended_at
from plimsoll.records.record import Record
from plimsoll.strategies.drain_nodes import DrainNodes
from plimsoll.timing.signal import Signal
from plimsoll.timing.task_sets import first_of
from plimsoll.toolkit.descheduling.leaving_pods import may_leave

#: Seconds that an emptied node stays closed.
KEPT_S = REMOVED_WITHIN_S

#: Seconds between two checks of the closed nodes.
LOOK_AFTER_S = 5.0

#: Seconds after a failed write until pods are asked again to avoid the node.
AGAIN_S = 60.0

#: A time before all others, in seconds since the epoch.
NEVER = float("-inf")

#: Seconds that the watch has to show the taint before anything is evicted.
SEEN_S = 10.0


@dataclass(eq=False)
class ClosedNodes:
    """Closes nodes before they are emptied, and opens them afterwards."""

    cache: Cache
    keeper: EvictionRecordStore
    closer: NodeCloser
    strategies: Collection[str]  #: names of strategies that empty nodes
    clock: Clock
    observer: Observer
    kept: frozenset[str] = frozenset()  #: nodes of NodeMaintenances, closed for as long as these exist
    _seen: Signal = field(default_factory=Signal, init=False)
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _working: set[str] = field(default_factory=set, init=False)  #: nodes whose bundle is being carried out
    #: nodes that are to be emptied later, by who says so
    _avoided: dict[str, frozenset[str]] = field(default_factory=dict, init=False)
    _failed: dict[str, float] = field(default_factory=dict, init=False)  #: when avoiding failed, by node

    async def close(self, node: str) -> bool:
        """Close a node before its pods leave; returns whether the scheduler sees it closed."""
        self._working.add(node)
        async with self._writing:  # else a removal that is under way could end after it
            answer = await self.closer.close(node)
        if answer.is_done:
            shown = self.cache.nodes_changed.until(lambda: self._is_closed(node))
            await first_of(shown, self.clock.sleep(SEEN_S))
            if self._is_closed(node):
                return True
            answer = WriteResult(WriteOutcome.UNKNOWN, f"the watch did not show it within {SEEN_S:.0f} s")
        if answer.is_failure:
            self.observer.failed(f"closing node {node}", answer.message)
        await self.reopen(node)
        return False

    def done(self, nodes: Collection[str]) -> None:
        """Record that the nodes' bundles are finished; from now on the records decide."""
        self._working.difference_update(nodes)

    def avoid(self, who: str, nodes: frozenset[str]) -> None:
        """Have new pods prefer other nodes than these; what the same one has said before is over."""
        if nodes != self._avoided.get(who, frozenset()):
            self._avoided[who] = nodes
            self._seen.notify()

    async def reopen(self, node: str) -> None:
        """Open a node to new pods."""
        answer = await self.closer.reopen(node)
        if answer.is_failure and answer.verdict is not WriteOutcome.GONE:
            self.observer.failed(f"opening node {node}", answer.message)  # the next check tries again

    def observe(self, event: WatchEvent) -> None:
        """Check a closed node, including nodes that an earlier process has closed."""
        match event:
            case NodeAdded(node) | NodeUpdated(_, node) if is_closed(node) or is_avoided(node):
                self._seen.notify()
            case _:
                return

    async def run(self) -> None:
        """Open nodes until cancelled; checks only while a node is closed or to be avoided."""
        while True:
            await self._seen.until(self._has_work)
            await self.clock.sleep(LOOK_AFTER_S)
            try:
                await self.look_after()
            except Exception as exc:  # noqa: BLE001 - whatever one node holds, the next look comes
                self.observer.failed("looking after closed nodes", repr(exc))

    def _has_work(self) -> bool:
        nodes = self.cache.cluster.nodes
        return any(self._avoided.values()) or any(is_closed(each) or is_avoided(each) for each in nodes)

    async def look_after(self) -> None:
        """Open the nodes that may be opened, including those that an earlier process closed.

        Those that are to be emptied later are marked as such, and no others.
        """
        for node in self.cache.cluster.nodes:
            if node.name in self._working:
                continue
            if is_closed(node):
                is_over = not self._is_wanted(node)
            elif any(node.name in names for names in self._avoided.values()):
                is_over = False
                if not is_avoided(node):
                    await self._have_avoided(node.name)
            else:
                is_over = is_avoided(node)
            if is_over:
                async with self._writing:
                    if node.name not in self._working:
                        await self.reopen(node.name)

    async def _have_avoided(self, node: str) -> None:
        now = self.clock.monotonic()
        if now - self._failed.get(node, NEVER) < AGAIN_S:
            return
        answer = await self.closer.avoid(node)
        self._failed.pop(node, None)
        if answer.is_failure and answer.verdict is not WriteOutcome.GONE:
            self._failed[node] = now
            self.observer.failed(f"having pods avoid node {node}", answer.message)

    def _is_closed(self, name: str) -> bool:
        row = self.cache.cluster.rows.get(name)
        return row is not None and is_closed(self.cache.cluster.nodes[row])

    def _is_wanted(self, node: Node) -> bool:
        """Whether the node must stay closed."""
        since = next(
            (
                taint.time_added.timestamp()
                for taint in node.spec.taints
                if taint.key == CONSOLIDATING and taint.time_added is not None
            ),
            0.0,
        )
        records = self._records(node.name, since)
        if any(record.is_finished and record.phase is not Phase.SETTLED for record in records):
            return False
        if any(not record.is_finished for record in records):
            return True
        is_kept = node.name in self.kept
        records = [record for record in records if record.spec.strategy != DrainNodes.name]
        if not records and not is_kept:
            return False
        row = self.cache.cluster.rows[node.name]
        if any(map(may_leave, self.cache.cluster.pods_on(row))):
            return False  # an earlier process ended before it had finished
        return is_kept or self.clock.now() - max(map(ended_at, records)) < KEPT_S

    def _records(self, node: str, since: float) -> Sequence[Record]:
        """The records of moves that emptied the node since it was closed."""
        return [
            record
            for record in self.keeper.known.values()
            if record.spec.from_node == node
            and record.spec.strategy in self.strategies
            and _began(record) >= since
        ]


def _began(record: Record) -> float:
    """When its move began, in seconds since the epoch by the clock that also dates the taint.

    A proposal begins when its eviction is sent; before that, and in a dry run, it has not begun.
    """
    transitions = record.status.transitions
    if record.spec.mode is not Mode.ENFORCE:
        sent = (each.time.timestamp() for each in transitions if each.phase is Phase.EVICTING)
        return next(sent, NEVER)
    return transitions[0].time.timestamp() if transitions else record.created
