"""Eviction records: what they say, when they move on, how many are kept.

The records are our memory: written before an eviction is attempted, carried to an end exactly once, also
by the next process. This module is their one writer, so what it remembers is what the cluster holds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from plimsoll.api.v1alpha1.eviction import (
    BundleReference,
    Eviction,
    EvictionSpec,
    EvictionStatus,
    GangMember,
    OwnerReference,
    PodReference,
    Purpose,
    Replacement,
    SurgeReference,
)
from plimsoll.api.v1alpha1.eviction_naming import BUNDLE_LABEL, label_value, record_labels, record_name
from plimsoll.api.v1alpha1.eviction_phases import FINISHED, Phase
from plimsoll.api.v1alpha1.limits import RecordRetention
from plimsoll.api.v1alpha1.rebalancing import Mode, PlannerName
from plimsoll.framework import PodInfo
from plimsoll.framework.descheduling.context import Planner
from plimsoll.planning.moves import Move
from plimsoll.planning.surges import Surge
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.ports.records import Records
from plimsoll.ports.writes import WriteOutcome, WriteResult

#: Longest sentence in a record.
REASON_LENGTH, MESSAGE_LENGTH = 1024, 4096

#: Seconds until the records are asked for again, when the server does not tell.
RETRY_S = 2.0

#: Why a new record is in its first phase.
_FIRST_REASON = {Mode.DRY_RUN: "DryRun", Mode.APPROVE: "AwaitsApproval"}

_WHAT_TO_DO = (
    "; annotate this record with plimsoll.dev/approved=true to carry the move out, =false to reject it"
)

#: Answers to a write that no further attempt would change.
_FINAL = (WriteOutcome.DONE, WriteOutcome.GONE, WriteOutcome.REFUSED)


@dataclass(frozen=True, slots=True)
class Record:
    """One record as last written.

    Attributes:
        namespace: Of the pod and the record.
        name: Of the record.
        spec: What was decided.
        status: How far it has come.
        created: Seconds since the epoch.
    """

    namespace: str
    name: str
    spec: EvictionSpec
    status: EvictionStatus
    created: float

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def phase(self) -> Phase | None:
        """How far it has come."""
        return self.status.phase

    @property
    def is_forecast(self) -> bool:
        """Whether nothing vouches for the target; records of earlier versions only name the planner."""
        return self.spec.forecast or self.spec.planner is PlannerName.UPSTREAM

    @property
    def is_finished(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.phase in FINISHED


class RecordKeeper:
    """Writes records and remembers them."""

    def __init__(self, records: Records, clock: Clock, observer: Observer) -> None:
        self._records = records
        self._clock = clock
        self._observer = observer
        self.known: dict[str, Record] = {}
        self._unwritten: set[str] = set()
        self.is_recovered = False  #: whether what earlier processes left has been seen to

    async def load(self) -> None:
        """Read what earlier processes left; waits until the server tells."""
        while True:
            answer, documents = await self._records.list()
            if answer.is_done:
                break
            problem = f"the records cannot be listed yet: {answer.message}"
            if answer.verdict is WriteOutcome.GONE:
                problem = "the custom resources are not installed yet; apply crds/"
            self._observer.watch_failed("evictions", problem, answer.status)
            await self._clock.sleep(RETRY_S)
        self._observer.watch_recovered("evictions")
        for document in documents:
            self.notice(document)

    def notice(self, document: Mapping[str, Any]) -> None:
        """Take over a record as the server has it; one that cannot be read is left alone."""
        meta = document["metadata"]
        plain = {key: value for key, value in document.items() if key != "metadata"}
        plain["metadata"] = {"name": meta["name"], "namespace": meta["namespace"]}
        try:
            eviction = Eviction.model_validate(plain)
        except ValidationError as exc:
            self._observer.object_skipped("evictions", f"{meta['namespace']}/{meta['name']}", str(exc))
            return
        created = datetime.fromisoformat(meta["creationTimestamp"]).timestamp()
        record = Record(
            meta["namespace"], meta["name"], eviction.spec, eviction.status or EvictionStatus(), created
        )
        self.known[record.key] = record

    def forget(self, namespace: str, name: str) -> None:
        """Somebody deleted a record."""
        self.known.pop(f"{namespace}/{name}", None)

    def of_policy(self, policy: str) -> list[Record]:
        """A policy's records, the oldest first."""
        mine = [record for record in self.known.values() if record.spec.policy == policy]
        return sorted(mine, key=lambda record: (record.created, record.key))

    def policies(self) -> set[str]:
        """The policies that have records, also those that exist no more."""
        return {record.spec.policy for record in self.known.values()}

    def unfinished(self) -> list[Record]:
        """Records that wait for something."""
        return [record for record in self.known.values() if not record.is_finished]

    # -- writing -------------------------------------------------------------------------------------

    async def open(self, move: Move, policy: str, mode: Mode, cycle: str, planned: str = "") -> Record | None:
        """Write a record for a move, ahead of anything that it announces.

        Args:
            move: What is going to be done.
            policy: Whose decision it is.
            mode: A dry run's record announces nothing.
            cycle: Tells this decision from others about the same pod.
            planned: The status's message; by default where the replacement is expected.

        Returns:
            The record, or None when it could not be written (the move must then not be made) or was
            written before.
        """
        record = self._drafted(move, policy, mode, cycle, planned)
        if record.key in self.known:
            return None
        document = {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "Eviction",
            "metadata": {
                "name": record.name,
                "namespace": record.namespace,
                "labels": record_labels(
                    policy=policy,
                    strategy=move.strategy,
                    from_node=move.source,
                    owner_kind=record.spec.owner.kind if record.spec.owner else "",
                    owner_name=record.spec.owner.name if record.spec.owner else "",
                    bundle=move.bundle,
                ),
            },
            "spec": record.spec.model_dump(mode="json", by_alias=True, exclude_none=True),
            "status": record.status.model_dump(mode="json", by_alias=True, exclude_none=True),
        }
        answer = await self._records.create(document)
        if not answer.is_done:
            if answer.verdict is not WriteOutcome.CONFLICT:
                self._observer.record_dropped(policy, answer.verdict.value)
                # It may be there without its status, and would stay open for ever.
                await self._records.delete(record.namespace, record.name)
            return None
        self.known[record.key] = record
        self._told(record)
        return record

    def key_of(self, move: Move, policy: str, mode: Mode, cycle: str) -> str:
        """The key of the record that ``open`` writes for a move."""
        return self._drafted(move, policy, mode, cycle, "").key

    async def advance(
        self,
        record: Record,
        phase: Phase,
        *,
        reason: str,
        message: str = "",
        blocked_by: str | None = None,
        replacement: Replacement | None = None,
    ) -> Record:
        """Carry a record to a phase; one that is finished stays as it is, and a deleted one stays deleted."""
        known = self.known.get(record.key)
        if known is None:
            return record
        record = known
        if record.is_finished:
            return record
        status = record.status.entering(
            phase,
            datetime.fromtimestamp(self._clock.now(), UTC),
            reason=reason,
            message=message[:MESSAGE_LENGTH] or None,
            blocked_by=blocked_by,
            replacement=replacement,
        )
        changed = self.known[record.key] = replace(record, status=status)
        answer = await self._write(changed)
        if answer.verdict is WriteOutcome.GONE:
            self.forget(changed.namespace, changed.name)
        elif not answer.is_done:
            self._unwritten.add(changed.key)
        self._told(changed)
        return changed

    async def explain(self, record: Record, reason: str, message: str) -> Record:
        """Say anew why a record is in its phase; nothing is written when it says so already."""
        known = self.known.get(record.key)
        if known is None or known.is_finished:
            return record
        message = message[:MESSAGE_LENGTH]
        if (known.status.reason, known.status.message) == (reason, message):
            return known
        status = known.status.model_copy(update={"reason": reason, "message": message})
        changed = self.known[known.key] = replace(known, status=status)
        if not (await self._write(changed, tries=1)).is_done:
            self._unwritten.add(changed.key)
        return changed

    async def cancel(self, record: Record, reason: str, message: str) -> Record:
        """Call a record off: what it announced does not happen."""
        return await self.advance(record, Phase.CANCELLED, reason=reason, message=message)

    async def begin(self, record: Record, phase: Phase, *, reason: str, message: str = "") -> Record | None:
        """Put on record that something is about to be done; None when it could not be, and is called off.

        What is not on record is not done: the next process would not know of it.
        """
        record = await self.advance(record, phase, reason=reason, message=message)
        if record.key in self.known and record.key not in self._unwritten:
            return record
        await self.cancel(record, "NotRecorded", "the record could not be written, so nothing was sent")
        return None

    async def catch_up(self) -> None:
        """Write again what could not be written."""
        for key in list(self._unwritten):
            record = self.known.get(key)
            if record is None or (await self._write(record, tries=1)).verdict in _FINAL:
                self._unwritten.discard(key)

    async def _write(self, record: Record, tries: int = 5) -> WriteResult:
        """Write a record's status; the server's last word."""
        document = record.status.model_dump(mode="json", by_alias=True, exclude_none=True)
        for left in reversed(range(tries)):
            answer = await self._records.write_status(record.namespace, record.name, document)
            if answer.is_done:
                self._unwritten.discard(record.key)
            elif answer.verdict is not WriteOutcome.GONE:
                self._report(record, answer)
            if answer.verdict in _FINAL:
                break
            if left:
                await self._clock.sleep(0.2 * 2 ** (tries - 1 - left))
        return answer

    def _told(self, record: Record) -> None:
        """Tell how far a record has come."""
        spec, latest = record.spec, record.status.transitions[-1]
        phase = str(latest.phase)
        self._observer.record_changed(spec.policy, spec.strategy, phase)
        facts: dict[str, object] = {
            "pod": f"{spec.pod.namespace}/{spec.pod.name}",
            "uid": spec.pod.uid,
            "node": spec.from_node,
            "target": spec.target_node or "",
            "policy": spec.policy,
            "strategy": spec.strategy,
            "reason": record.status.reason or "",
            "message": record.status.message or "",
        }
        self._observer.move_told(record.key, phase, facts)

    def _report(self, record: Record, answer: WriteResult) -> None:
        self._observer.failed(f"record {record.key}", answer.message)

    def _drafted(self, move: Move, policy: str, mode: Mode, cycle: str, planned: str) -> Record:
        pod = move.pod
        controller = pod.pod.metadata.controller
        now = self._clock.now()
        # A prediction is the same in each cycle: it is written once, not once a run.
        distinction = (
            f"{policy}/{move.strategy}/{move.source}/{move.target}" if mode is Mode.DRY_RUN else cycle
        )
        spec = EvictionSpec(
            pod=PodReference(namespace=pod.namespace, name=pod.name, uid=pod.uid),
            owner=None
            if controller is None
            else OwnerReference(
                api_version=controller.api_version or "v1",
                kind=controller.kind,
                name=controller.name,
                uid=controller.uid,
            ),
            policy=policy,
            strategy=move.strategy,
            mode=mode,
            planner=PlannerName(move.planner),
            reason=move.reason[:REASON_LENGTH],
            from_node=move.source,
            target_node=move.target or None,
            directed=move.is_directed,
            gain_maximum=move.maximum if move.gain is not None else None,
            purpose=Purpose.RESTART if move.renews else Purpose.MOVE,
            forecast=move.is_forecast,
            bundle=_bundle_of(move),
            gain=move.gain,
            surge=surge_reference(move.surge),
        )
        phase = Phase.PREDICTED if mode is Mode.DRY_RUN else Phase.PLANNED
        message = _expectation(move)
        status = EvictionStatus().entering(
            phase,
            datetime.fromtimestamp(now, UTC),
            reason=_first_reason(mode, move),
            message=planned or (message + _what_to_do(move) if mode is Mode.APPROVE else message),
        )
        return Record(pod.namespace, record_name(pod.name, pod.uid, distinction), spec, status, now)

    # -- retention -----------------------------------------------------------------------------------

    async def tidy(self, policy: str, retention: RecordRetention) -> None:
        """Delete finished records that are too old or too many, the oldest first."""
        for record in self._superfluous(policy, retention):
            await self.drop(record, "retention")

    async def drop(self, record: Record, why: str) -> None:
        """Delete a finished record."""
        answer = await self._records.delete(record.namespace, record.name)
        if answer.verdict in (WriteOutcome.DONE, WriteOutcome.GONE):
            self.known.pop(record.key, None)
            self._observer.record_dropped(record.spec.policy, why)

    def has_room(self, policy: str, retention: RecordRetention, more: int = 1) -> bool:
        """Whether so many more dry-run records may be written; a record of a real move always may."""
        return len(self.of_policy(policy)) + more <= retention.max_count

    def _superfluous(self, policy: str, retention: RecordRetention) -> Iterable[Record]:
        mine = self.of_policy(policy)
        excess = len(mine) - retention.max_count
        oldest = self._clock.now() - retention.ttl_seconds
        for record in [each for each in mine if each.is_finished]:
            if excess <= 0 and record.created >= oldest:
                continue
            excess -= 1
            yield record


def _first_reason(mode: Mode, move: Move) -> str:
    """Why a new record is in its first phase, in one word; a move of planner Upstream is not proved."""
    return _FIRST_REASON.get(mode, "Selected" if move.planner is Planner.UPSTREAM else "Proved")


def _bundle_of(move: Move) -> BundleReference | None:
    if not move.bundle:
        return None
    position, moves = move.part
    for_whom = move.beneficiary
    return BundleReference(
        name=move.bundle,
        position=position,
        moves=moves,
        beneficiary=None if for_whom is None else _reference(for_whom.pod),
        node=None if for_whom is None else for_whom.node,
        members=tuple(
            GangMember(pod=_reference(each.pod), node=each.node)
            for each in (for_whom.others if for_whom is not None else ())
        ),
    )


def _reference(pod: PodInfo) -> PodReference:
    return PodReference(namespace=pod.namespace, name=pod.name, uid=pod.uid)


def _what_to_do(move: Move) -> str:
    """How a proposal is answered."""
    position, moves = move.part
    if moves == 1:
        return _WHAT_TO_DO
    return (
        f"{_WHAT_TO_DO}; it is move {position} of {moves} that are made all or none: each of them is to be"
        f" approved, see label {BUNDLE_LABEL}={label_value(move.bundle)}"
    )


def surge_reference(surge: Surge | None) -> SurgeReference | None:
    """A surge as a record has it."""
    if surge is None:
        return None
    return SurgeReference(
        deployment=surge.deployment, uid=surge.uid, template=surge.template, before=surge.before
    )


def _expectation(move: Move) -> str:
    """Where the replacement is expected, and who says so."""
    if move.pod.pod.is_terminal:
        return "the pod has ended and needs no new place"
    if not move.target:
        return "no feasible node is known for a replacement; nobody proved the move, as in descheduler"
    if move.planner is Planner.UPSTREAM:
        return f"expected on {move.target}; a forecast, nobody proved the move"
    if move.surge is not None:
        return (
            f"expected on {move.target} before the pod goes: a surge, by a rollout of Deployment"
            f" {move.surge.deployment}"
        )
    return f"expected on {move.target}" + (
        "; a forecast, another scheduler places it" if move.is_forecast else ""
    )
