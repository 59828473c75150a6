"""LiveViews collects the operator's state for an open live page, in the main loop's thread."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import numpy as np

from plimsoll.api.schema.conditions import Condition
from plimsoll.app.memory.live_view import (
    LiveCondition,
    LiveNode,
    LivePod,
    LivePolicy,
    LiveRecord,
    LiveView,
)
from plimsoll.cluster.cache import Cache
from plimsoll.model.columns.cluster import CPU, MEMORY, PODS
from plimsoll.model.names import RecordKey
from plimsoll.ports.clock import Clock
from plimsoll.records.record import Record
from plimsoll.scheduling.queue.queue import SchedulingQueue

#: Maximum number of waiting pods, of moves, and of ended moves in a view.
WAITING, MOVES, ENDED = 100, 100, 50

#: A node in a view: number of pods, percent of cpu and of memory, whether it is schedulable.
NodeRow = tuple[int, int, int, bool]


class ConditionSource(Protocol):
    """Provides the conditions of policies."""

    def described(self) -> Iterable[tuple[str, tuple[Condition, ...]]]:
        """For each policy: its name and its conditions."""


@dataclass(frozen=True)
class LiveViews:
    """Reads queue, cache, policies and records; writes nothing.

    Attributes:
        records: Eviction records by ``namespace/name``.
        standing: The state of the election, in words.
    """

    queue: SchedulingQueue
    cache: Cache
    policies: ConditionSource
    records: Mapping[RecordKey, Record]
    clock: Clock
    standing: Callable[[], str]

    def since(self, seen: Mapping[str, NodeRow]) -> tuple[LiveView, dict[str, NodeRow]]:
        """The current view, with the nodes that differ from ``seen``; and the rows of all nodes."""
        rows = self._rows()
        cluster = self.cache.cluster
        moves, ended = self._records()
        view = LiveView(
            standing=self.standing(),
            node_count=len(rows),
            pod_count=len(cluster.pods),
            nodes=tuple(
                LiveNode(node=name, pods=row[0], cpu_percent=row[1], memory_percent=row[2], is_open=row[3])
                for name, row in rows.items()
                if seen.get(name) != row
            ),
            gone=tuple(name for name in seen if name not in rows),
            depths=dict(self.queue.depths()),
            queue=tuple(self._waiting()),
            policies=tuple(
                LivePolicy(
                    policy=name,
                    conditions=tuple(
                        LiveCondition(
                            type=each.type, status=each.status, reason=each.reason, message=each.message
                        )
                        for each in conditions
                    ),
                )
                for name, conditions in self.policies.described()
            ),
            moves=moves,
            records=ended,
        )
        return view, rows

    def _rows(self) -> dict[str, NodeRow]:
        cluster = self.cache.cluster
        count = len(cluster)
        requested, allocatable = cluster.requested[:count], np.maximum(cluster.allocatable[:count], 1)
        shares = (100 * requested[:, [CPU, MEMORY]] / allocatable[:, [CPU, MEMORY]]).round().astype(int)
        pods = requested[:, PODS].tolist()
        return {
            node.name: (pods[row], cpu, memory, node.is_ready and not node.spec.unschedulable)
            for row, (node, (cpu, memory)) in enumerate(zip(cluster.nodes, shares.tolist(), strict=False))
            if row < count
        }

    def _waiting(self) -> Iterable[LivePod]:
        now = self.clock.monotonic()
        for place, each in islice(self.queue.listed(), WAITING):
            yield LivePod(
                pod=each.pod.key,
                queue=place,
                attempts=each.attempts,
                waited_seconds=max(0, round(now - each.first_seen)),
                rejected_by=tuple(sorted(each.rejected_by | each.pending_on)),
            )

    def _records(self) -> tuple[tuple[LiveRecord, ...], tuple[LiveRecord, ...]]:
        """Moves under way, and the latest ended moves."""
        under_way = [each for each in self.records.values() if not each.is_finished]
        ended = sorted(
            (each for each in self.records.values() if each.is_finished and each.status.transitions),
            key=lambda each: each.status.transitions[-1].time,
            reverse=True,
        )
        return tuple(map(_told, under_way[:MOVES])), tuple(map(_told, ended[:ENDED]))


def _told(record: Record) -> LiveRecord:
    spec, status = record.spec, record.status
    return LiveRecord(
        record=record.key,
        pod=f"{spec.pod.namespace}/{spec.pod.name}",
        source_node=spec.from_node,
        target_node=spec.target_node or "",
        policy=spec.policy,
        strategy=spec.strategy,
        phase=str(record.phase),
        message=status.message or "",
    )
