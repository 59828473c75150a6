"""LiveViews collects the operator's state for an open live page, in the main loop's thread."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Protocol

import numpy as np

from plimsoll.api.schema.conditions import Condition
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.node_maintenance import NodeMaintenance, NodeMaintenanceStatus
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.app.memory.live_view import (
    LiveChange,
    LiveCondition,
    LiveMaintenance,
    LiveNode,
    LivePod,
    LivePolicy,
    LiveRack,
    LiveRackGroup,
    LiveRecord,
    LiveRefusal,
    LiveSlot,
    LiveView,
)
from plimsoll.cluster.cache import Cache
from plimsoll.engine.gangs.domain_uses import DomainUse, domain_uses, label_of_groups
from plimsoll.model.columns.cluster import CPU, MEMORY, PODS
from plimsoll.model.gang_members import GangMembers
from plimsoll.model.kinds.node import Node
from plimsoll.model.names import RecordKey
from plimsoll.ports.clock import Clock
from plimsoll.records.record import Record
from plimsoll.scheduling.queue.queue import SchedulingQueue
from plimsoll.toolkit.scheduling.topology_levels import GroupRules

#: Maximum number of waiting pods, of moves, and of ended moves in a view.
WAITING, MOVES, ENDED = 100, 100, 50

#: Maximum number of racks in a view.
RACKS = 100

#: Seconds of a slot of the timeline, the number of slots, and the maximum number of changes in a view.
SLOT_S, SLOTS, CHANGES = 900, 24, 50

#: Seconds within which a new policy is judged.
FIRST_S = 60.0

#: Maximum number of waiting pods whose reasons are counted, and of reasons in a view.
COUNTED, REASONS = 5_000, 12

#: Phases of moves for which a pod has left its node.
_WENT = (Phase.SETTLED, Phase.RETURNED, Phase.FAILED)

#: Conditions that hold when all is well; others hold when something is not.
_GOOD = frozenset({"Accepted", "Ready"})

ZONE = "topology.kubernetes.io/zone"

#: A node in a view: pods, percent of cpu and of memory, whether it is schedulable, its zone, its taints.
NodeRow = tuple[int, int, int, bool, str, tuple[str, ...]]


class ConditionSource(Protocol):
    """Provides policies and their conditions."""

    def described(self) -> Iterable[tuple[Mapping[str, Any], tuple[Condition, ...]]]:
        """For each policy: its document and its conditions."""


@dataclass(frozen=True)
class LiveViews:
    """Reads queue, cache, policies and records; writes nothing.

    Attributes:
        records: Eviction records by ``namespace/name``.
        maintenances: All NodeMaintenances, with their statuses.
        standing: The state of the election, in words.
    """

    queue: SchedulingQueue
    cache: Cache
    policies: ConditionSource
    records: Mapping[RecordKey, Record]
    maintenances: Callable[[], Iterable[NodeMaintenance]]
    clock: Clock
    standing: Callable[[], str]
    rules: Callable[[], Iterable[GroupRules]]
    _racks: dict[tuple[str, int, int, int], list[DomainUse]] = field(default_factory=dict, init=False)

    def since(self, seen: Mapping[str, NodeRow] | None) -> tuple[LiveView, dict[str, NodeRow]]:
        """The current view, with the nodes that differ from ``seen``; and the rows of all nodes.

        None asks for a view without nodes, which takes as long in a large cluster as in a small one.
        """
        is_whole = seen is not None and not seen
        seen, rows = ({}, {}) if seen is None else (seen, self._rows())
        cluster = self.cache.cluster
        moves, ended = self._records()
        label = label_of_groups(cluster, self.rules())
        racks = self._used(label) if label else []
        described = tuple(self.policies.described())
        view = LiveView(
            standing=self.standing(),
            time=_stamp(datetime.fromtimestamp(self.clock.now(), UTC)),
            node_count=len(cluster),
            pod_count=len(cluster.pods),
            is_whole=is_whole,
            nodes=tuple(
                LiveNode(
                    node=name,
                    pods=row[0],
                    cpu_percent=row[1],
                    memory_percent=row[2],
                    is_open=row[3],
                    zone=row[4],
                    taints=row[5],
                )
                for name, row in rows.items()
                if seen.get(name) != row
            ),
            gone=tuple(name for name in seen if name not in rows),
            depths=dict(self.queue.depths()),
            queue=tuple(self._waiting()),
            reasons=self._reasons(),
            policies=tuple(_policy(*each) for each in described),
            maintenances=tuple(map(_maintenance, self.maintenances())),
            rack_label=label,
            racks=tuple(_rack(each) for each in racks if each.groups)[:RACKS],
            rack_count=len(racks),
            moves=moves,
            records=ended,
            slots=self._slots(),
            changes=self._changes(described),
        )
        return view, rows

    def _used(self, label: str) -> list[DomainUse]:
        """The domains of a label; the same as long as nodes, members of groups and other objects are."""
        cluster = self.cache.cluster
        key = label, cluster.node_tick, cluster.index(GangMembers).version, cluster.objects.version
        if key not in self._racks:
            self._racks.clear()
            self._racks[key] = domain_uses(cluster, label)
        return self._racks[key]

    def _rows(self) -> dict[str, NodeRow]:
        cluster = self.cache.cluster
        count = len(cluster)
        requested, allocatable = cluster.requested[:count], np.maximum(cluster.allocatable[:count], 1)
        shares = (100 * requested[:, [CPU, MEMORY]] / allocatable[:, [CPU, MEMORY]]).round().astype(int)
        pods = requested[:, PODS].tolist()
        return {
            node.name: (
                pods[row],
                cpu,
                memory,
                node.is_ready and not node.spec.unschedulable,
                node.metadata.labels.get(ZONE, ""),
                _taints(node) if node.spec.taints else (),
            )
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

    def _reasons(self) -> dict[str, int]:
        counts = Counter(
            ", ".join(sorted(each.rejected_by | each.pending_on)) or place
            for place, each in islice(self.queue.listed(), COUNTED)
        )
        return dict(counts.most_common(REASONS))

    def _records(self) -> tuple[tuple[LiveRecord, ...], tuple[LiveRecord, ...]]:
        """Moves under way, and the latest ended moves."""
        under_way = [each for each in self.records.values() if not each.is_finished]
        ended = sorted(
            (each for each in self.records.values() if each.is_finished and each.status.transitions),
            key=lambda each: each.status.transitions[-1].time,
            reverse=True,
        )
        return tuple(map(_told, under_way[:MOVES])), tuple(map(_told, ended[:ENDED]))

    def _slots(self) -> tuple[LiveSlot, ...]:
        """Moves that ended, by quarter of an hour."""
        current = int(self.clock.now()) // SLOT_S
        ended = Counter(
            (int(each.status.transitions[-1].time.timestamp()) // SLOT_S, each.phase is Phase.SETTLED)
            for each in self.records.values()
            if each.phase in _WENT and each.status.transitions
        )
        return tuple(
            LiveSlot(
                start=_stamp(datetime.fromtimestamp(slot * SLOT_S, UTC)),
                settled=ended[slot, True],
                failed=ended[slot, False],
            )
            for slot in range(current - SLOTS + 1, current + 1)
        )

    def _changes(
        self, policies: Iterable[tuple[Mapping[str, Any], tuple[Condition, ...]]]
    ) -> tuple[LiveChange, ...]:
        """What has become of policies: new ones, and conditions that began or ended to hold."""
        since = _stamp(datetime.fromtimestamp(self.clock.now() - SLOT_S * SLOTS, UTC))
        found = []
        for document, conditions in policies:
            name, created = (
                str(document["metadata"].get(each, "")) for each in ("name", "creationTimestamp")
            )
            found.append(LiveChange(time=created, policy=name, what="Created", message=""))
            for each in conditions:
                is_true, time = each.status == "True", _stamp(each.last_transition_time)
                # What is well from the beginning is no news.
                if is_true is not (each.type in _GOOD) or _is_later(each.last_transition_time, created):
                    what = each.type if is_true else f"Not {each.type}"
                    found.append(LiveChange(time=time, policy=name, what=what, message=each.message))
        latest = sorted((each for each in found if each.time >= since), key=lambda each: each.time)
        return tuple(latest[: -CHANGES - 1 : -1])


def _is_later(time: datetime, created: str) -> bool:
    """Whether a condition changed after the first judgement of a policy."""
    return not created or (time - datetime.fromisoformat(created)).total_seconds() > FIRST_S


def _stamp(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def _taints(node: Node) -> tuple[str, ...]:
    """The taints that keep pods out."""
    return tuple(
        f"{each.key}{f'={each.value}' if each.value else ''}:{each.effect}"
        for each in node.spec.taints
        if each.effect != "PreferNoSchedule"
    )


def _policy(document: Mapping[str, Any], conditions: tuple[Condition, ...]) -> LivePolicy:
    spec, status = document.get("spec") or {}, document.get("status") or {}
    rebalancing = spec.get("rebalancing")
    last, counts, totals = (status.get(name) or {} for name in ("lastRun", "counts", "totals"))
    return LivePolicy(
        policy=str(document["metadata"]["name"]),
        mode="" if rebalancing is None else str(rebalancing.get("mode") or Mode.DRY_RUN),
        scheduler=str((spec.get("scheduling") or {}).get("schedulerName") or ""),
        is_suspended=spec.get("suspend") is True,
        last_run=str(last.get("startTime") or ""),
        last_result=str(last.get("message") or last.get("result") or ""),
        next_run=str(status.get("nextRunTime") or ""),
        moved=int(totals.get("moved") or 0),
        failed=int(totals.get("returned") or 0) + int(totals.get("failed") or 0),
        refused=tuple(
            LiveRefusal(reason=each["reason"], count=each["count"], message=each.get("message") or "")
            for each in counts.get("refused") or ()
        ),
        conditions=tuple(
            LiveCondition(type=each.type, status=each.status, reason=each.reason, message=each.message)
            for each in conditions
        ),
    )


def _maintenance(given: NodeMaintenance) -> LiveMaintenance:
    status = given.status or NodeMaintenanceStatus()
    return LiveMaintenance(
        maintenance=given.metadata.name,
        phase=status.phase or "",
        drained=status.drained,
        total=status.total,
        expected_end=_stamp(status.expected_end) if status.expected_end else "",
        message=next((each.message for each in status.conditions), ""),
    )


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
        why=spec.reason or "",
        landed_node=(status.replacement.node or "") if status.replacement is not None else "",
        time=_stamp(status.transitions[-1].time) if status.transitions else "",
    )


def _rack(use: DomainUse) -> LiveRack:
    return LiveRack(
        domain=use.domain,
        nodes=len(use.rows),
        without=use.without,
        groups=tuple(
            LiveRackGroup(group=each.group, members=each.members, nodes=each.nodes) for each in use.groups
        ),
    )
