"""Writes the status of PodGroups when it has changed: phase, counts, and why a group does not start.

A group of a thousand pods changes a thousand times while it starts, and its status is written a few times.
All state is in the API server: a new process continues from there.

A group of the core API gets kube-scheduler's condition and nothing else: whether it could be scheduled, after
each attempt; once it was, the condition stays.
"""

import asyncio
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from plimsoll.api.schema.conditions import Condition, ConditionStatus, condition, with_condition
from plimsoll.api.v1alpha1.pod_group import SCHEDULED, GroupPhase, PodGroupResourceStatus
from plimsoll.cluster.pod_groups import Composite, Group, Groups
from plimsoll.model.kinds.composite_pod_group import CompositePodGroup, is_composite
from plimsoll.model.kinds.owned_group import is_owned
from plimsoll.model.kinds.pod_group import PodGroup, is_core
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import LATE_EFFECT_S, WriteOutcome, WriteResult
from plimsoll.timing.retry import OPEN_OR_CONFLICT, RetryPolicy

#: Seconds between two rounds of writes.
ROUND_S = 0.2

#: The pause after rounds in which a write failed, by the number of such rounds in a row.
ROUND_RETRIES = RetryPolicy.doubling(2 * ROUND_S, 60.0, repeats=OPEN_OR_CONFLICT)

#: The condition of the core API's groups: in v1alpha2, and from v1alpha3 on.
ALPHA, INITIALLY = "PodGroupScheduled", "PodGroupInitiallyScheduled"

#: That of its composite groups.
COMPOSITE_INITIALLY = "CompositePodGroupInitiallyScheduled"

#: Maximum length of a condition's message, in characters.
LONGEST = 4096


class PodGroupStatusWriter(Protocol):
    """Writes the status of PodGroups."""

    async def write_status(self, namespace: str, name: str, status: Mapping[str, Any]) -> WriteResult:
        """Replace a group's status."""

    async def write_condition(
        self, version: str, group: PodGroup | CompositePodGroup, condition: Mapping[str, Any]
    ) -> WriteResult:
        """Set one condition of a group or composite group of the core API, in that version."""


class GroupReports:
    """Keeps the status of PodGroups up to date while ``run`` runs.

    Attributes:
        others: Scheduler names of other operators, which write the status of their pods' groups.
    """

    def __init__(
        self,
        groups: Groups,
        writer: PodGroupStatusWriter,
        clock: Clock,
        observer: Observer,
    ) -> None:
        self._groups = groups
        self._writer = writer
        self._clock = clock
        self._observer = observer
        self.others: Collection[str] = ()
        self._due: dict[str, None] = {}
        self._news = asyncio.Event()
        self._written: dict[str, tuple[str, Mapping[str, Any]]] = {}

    def touch(self, key: str) -> None:
        """Mark a group's status as possibly changed, and those above it; an owner gets no status of ours."""
        if is_owned(key):
            return
        self._due |= dict.fromkeys((key, *(each.key for each in self._groups.above(key))))
        self._news.set()

    async def run(self) -> None:
        """Write until cancelled."""
        lost_rounds = 0
        while True:
            await self._news.wait()
            self._news.clear()
            due, self._due = self._due, {}
            pauses_s = [ROUND_S]
            for key in due:
                try:
                    answer = await self._write(key)
                    pauses_s.append(ROUND_RETRIES.pause_after(lost_rounds + 1, answer) or 0.0)
                    if answer.verdict is WriteOutcome.UNKNOWN:
                        pauses_s.append(LATE_EFFECT_S)  # the next write must not be overtaken by this one
                except Exception as exc:  # noqa: BLE001 - what one group's status holds harms no other
                    self._observer.failed(f"status of PodGroup {key}", repr(exc))
            pause_s = max(pauses_s)
            lost_rounds = lost_rounds + 1 if pause_s > ROUND_S else 0
            await self._clock.sleep(pause_s)

    async def _write(self, key: str) -> WriteResult:
        """Write a group's status if it has changed; a failed write is in the next round already."""
        group = self._groups.composites.get(key) or self._groups.find(key)
        if group is None or group.object is None:
            self._written.pop(key, None)
            return WriteResult(WriteOutcome.DONE)
        if self.others and self._is_of_others(key):
            return WriteResult(WriteOutcome.DONE)
        metadata, now = group.object.metadata, datetime.fromtimestamp(self._clock.now(), UTC)
        if isinstance(group, Composite):
            document = composite_condition(group, self._groups, now)
        elif is_core(key):
            kind = ALPHA if self._groups.core_version == "v1alpha2" else INITIALLY
            reason = "Scheduled" if _is_scheduled(group) else "Unschedulable" if group.refusal else ""
            document = condition_of(group.object, kind, reason, group.refusal, now)
        else:
            document = status_of(group, group.object, now).to_wire()
        if not document or self._written.get(key) == (metadata.uid, document):
            return WriteResult(WriteOutcome.DONE)
        if is_core(key) or is_composite(key):
            version = self._groups.api_version_of(key).rpartition("/")[2]
            answer = await self._writer.write_condition(version, group.object, document)
        else:
            answer = await self._writer.write_status(metadata.namespace, metadata.name, document)
        if answer.is_done:
            self._written[key] = (metadata.uid, document)
        elif answer.verdict in ROUND_RETRIES.repeats:
            self._written.pop(key, None)  # it may have been carried out
            self.touch(key)
        elif answer.is_failure and answer.verdict is not WriteOutcome.GONE:
            self._observer.failed(f"status of PodGroup {key}", answer.message)
        return answer

    def _is_of_others(self, key: str) -> bool:
        members = (pod for part in self._groups.parts(key) for pod in part.members.values())
        return any(pod.spec.scheduler_name in self.others for pod in members)


def composite_condition(group: Composite, groups: Groups, now: datetime) -> Mapping[str, Any]:
    """The same for a composite group, which is scheduled once enough of its groups are."""
    parts = groups.parts(group.key)
    invalid = next((why for each in parts if (why := groups.invalid(each))), "")
    reason, message = "", invalid or group.refusal
    if invalid:
        reason = "Invalid"
    elif groups.is_met(group.key, _is_scheduled):
        reason = "Scheduled"
    elif message:
        reason = "Unschedulable"
    return condition_of(group.object, COMPOSITE_INITIALLY, reason, message, now)


def _is_scheduled(group: Group) -> bool:
    census = group.census()
    return group.object is not None and census.scheduled + census.succeeded >= group.min_member


def condition_of(
    standing: PodGroup | CompositePodGroup, kind: str, reason: str, refusal: str, now: datetime
) -> Mapping[str, Any]:
    """The condition that a group of the core API is to get; empty if it has it, or before an attempt.

    Source: kube-scheduler v1.36, ``schedule_one_podgroup.go`` (updatePodGroupCondition).
    """
    known = tuple(_conditions_of(standing))
    before = condition(known, kind)
    is_scheduled = reason == "Scheduled"
    if (before is not None and before.status is ConditionStatus.TRUE) or not reason:
        return {}
    after = with_condition(
        known,
        kind,
        ConditionStatus.TRUE if is_scheduled else ConditionStatus.FALSE,
        reason=reason,
        message="" if is_scheduled else refusal[:LONGEST],
        now=now,
        generation=standing.metadata.generation or None,
    )
    found = condition(after, kind)
    return {} if found is None or found == before else found.to_wire()


def status_of(group: Group, standing: PodGroup, now: datetime) -> PodGroupResourceStatus:
    """The present status of a group; keeps the times that the ``standing`` PodGroup has."""
    census, least = group.census(), group.min_member
    phase = GroupPhase(group.phase(census))
    has_started = phase not in (
        GroupPhase.PENDING,
        GroupPhase.PRE_SCHEDULING,
        GroupPhase.SCHEDULING,
        GroupPhase.UNKNOWN,
    )
    message = group.refusal
    if has_started:
        message = "as many members as minMember have, or had, a node"
    elif census.present < least:
        message = (
            f"cannot find enough sibling pods, current pods number: {census.present}, "
            f"minMember of group: {least}"
        )
    elif not message:
        message = f"{census.scheduled + census.succeeded} of {least} members have a node"
    conditions = with_condition(
        tuple(_conditions_of(standing)),
        SCHEDULED,
        ConditionStatus.TRUE if has_started else ConditionStatus.FALSE,
        reason="Scheduled" if has_started else "TimedOut" if group.overdue else "Unschedulable",
        message=message[:LONGEST],
        now=now,
        generation=standing.metadata.generation or None,
    )
    started = (
        datetime.fromtimestamp(int(group.started_at), UTC)
        if group.started_at is not None
        else _time_of(standing.status.schedule_start_time)
    )
    return PodGroupResourceStatus(
        phase=phase,
        occupied_by=_owner_of(group) or standing.status.occupied_by or None,
        scheduled=census.scheduled,
        running=census.running,
        succeeded=census.succeeded,
        failed=census.failed,
        schedule_start_time=started,
        conditions=conditions,
    )


def _owner_of(group: Group) -> str:
    """The owners of a group's oldest pod as in scheduler-plugins: namespace/name, separated by commas."""
    for pod in group.members.values():
        owners = pod.metadata.owner_references
        if owners:
            return ",".join(sorted(f"{pod.namespace}/{owner.name}" for owner in owners))
    return ""


def _time_of(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None


def _conditions_of(standing: PodGroup | CompositePodGroup) -> list[Condition]:
    """The conditions in the API server, so that transition times survive a restart."""
    found = []
    for each in standing.status.conditions:
        since = _time_of(each.last_transition_time)
        if since is not None and each.type and each.reason:
            found.append(
                Condition(
                    type=each.type,
                    status=ConditionStatus(each.status),
                    last_transition_time=since,
                    observed_generation=each.observed_generation,
                    reason=each.reason,
                    message=each.message,
                )
            )
    return found
