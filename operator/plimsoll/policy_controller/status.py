"""Derives the conditions of a policy (Accepted, Ready, Degraded) from what its parts report; writes them."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol
from weakref import WeakValueDictionary

from msgspec import Struct, field

from plimsoll.access.rights import NOT_ALLOWED, Access
from plimsoll.api.schema.conditions import (
    ACCEPTED,
    DEGRADED,
    READY,
    Condition,
    ConditionStatus,
    with_condition,
)
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.policies.conditions import stopped_parts, work_of, written_conditions
from plimsoll.policies.operators import operator_of
from plimsoll.policy_controller.warnings import PolicyWarnings
from plimsoll.ports.clock import Clock
from plimsoll.ports.custom_resources import PolicyStatusWriter
from plimsoll.ports.events import EventRecorder
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.timing.retry import OPEN_OR_CONFLICT, RetryPolicy, retry, until_certain

#: Maximum length of a condition's message in characters, as in the API server.
LONGEST_MESSAGE = 32_768

#: Retries of status writes: the next regular write may be a day away.
STATUS_RETRIES = RetryPolicy((0.2, 0.5, 1.0, 2.0, 5.0, 10.0), repeats=OPEN_OR_CONFLICT)


class RetriedStatuses:
    """Writes with retries through another writer; a field is retried until a newer status has it.

    The writes of a policy are sent one after the other, so that none overtakes another.
    """

    def __init__(self, statuses: PolicyStatusWriter, clock: Clock) -> None:
        self._statuses = statuses
        self._clock = clock
        self._newest: dict[tuple[str, str], Mapping[str, Any]] = {}  #: by policy and field
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def write_status(self, name: str, status: Mapping[str, Any]) -> WriteResult:
        """Merge into a policy's status; returns the last result, FENCED if newer ones are written instead."""
        self._newest |= {(name, field): status for field in status}
        turn = self._turns.setdefault(name, asyncio.Lock())

        def wanted() -> dict[str, Any]:
            return {
                field: value for field, value in status.items() if self._newest.get((name, field)) is status
            }

        async def send() -> WriteResult:
            async with turn:
                left = wanted()
                if status and not left:
                    return WriteResult(WriteOutcome.FENCED, "not sent: newer statuses replace it")
                return await until_certain(lambda: self._statuses.write_status(name, left), self._clock)

        try:
            return await retry(send, STATUS_RETRIES, self._clock)
        finally:
            for field in wanted():
                del self._newest[name, field]


class PolicyAdviser(Protocol):
    """Provides further conditions of policies."""

    def advice(self, name: str) -> Mapping[str, tuple[str, str]]:
        """Further conditions of a policy that are true: reason and sentence by type."""


class KnownPolicy(Struct):
    """One policy: its last seen document, its last accepted spec, and its status."""

    name: str
    created: str
    generation: int
    seen: Mapping[str, Any]
    accepted: SchedulingPolicy | None = None
    problem: tuple[str, str] = ("", "")  #: reason and sentence, when the latest spec is rejected
    order: tuple[str, object] = ("", None)  #: the queue sort of the last accepted spec, with its arguments
    lost: tuple[str, str] = ("", "")  #: reason and sentence, when an older policy serves its name
    conditions: tuple[Condition, ...] = ()
    degraded: tuple[str, ...] = ()  #: all reasons for which it is degraded
    written: Mapping[str, Any] | None = None
    warnings: PolicyWarnings = field(default_factory=PolicyWarnings)

    @property
    def age_order(self) -> tuple[str, str]:
        """A sort key: older policies first."""
        return (self.created, self.name)


class PolicyStatuses:
    """Derives and writes the status of policies.

    Args:
        recorder: Records the events of policies.
        access: The rights that the API server grants.
        operator: The name of the operator, which writes the status of its own policies; "" has no name.
        adoption: Why a policy does not adopt pods as it says, in sentences by reason.

    Attributes:
        notes: Sentences that degrade every policy, by reason.
    """

    def __init__(
        self,
        writer: PolicyStatusWriter,
        recorder: EventRecorder,
        access: Access,
        clock: Clock,
        observer: Observer,
        advisers: Sequence[PolicyAdviser],
        adoption: Callable[[str], Mapping[str, str]] = lambda _: {},
        operator: str = "",
    ) -> None:
        self.operator = operator
        self._writer = writer
        self._recorder = recorder
        self._access = access
        self._clock = clock
        self._observer = observer
        self._advisers = advisers
        self._adoption = adoption
        self.notes: dict[str, str] = {}

    def describe(self, known: KnownPolicy, troubles: Mapping[str, str]) -> None:
        """Derive a policy's conditions; ``troubles`` are sentences of its parts, by reason."""
        reason, sentence = known.problem if known.problem[0] else known.lost
        serves = known.accepted is not None and not known.lost[0]
        if reason and serves:
            sentence += "; the policy's last accepted state goes on"
        working = known.accepted
        if working is not None and (known.lost[0] or working.spec.suspend):
            working = None
        missing = "" if working is None else self._access.trouble(working)
        notes = {
            **({reason: sentence} if reason else {}),
            **({NOT_ALLOWED: missing} if missing else {}),
            **self.notes,
            **self._adoption(known.name),
            **troubles,
        }
        advice = {kind: said for each in self._advisers for kind, said in each.advice(known.name).items()}
        known.degraded = tuple(notes)
        known.warnings.update({**notes, **dict(advice.values())}, known.conditions)
        now = datetime.fromtimestamp(self._clock.now(), UTC)

        def said(kind: str, holds: bool, why: str, text: str) -> None:
            known.conditions = with_condition(
                known.conditions,
                kind,
                ConditionStatus.TRUE if holds else ConditionStatus.FALSE,
                reason=why,
                message=text[:LONGEST_MESSAGE],
                now=now,
                generation=known.generation,
            )

        if reason:
            said(ACCEPTED, holds=False, why=reason, text=sentence)
        else:
            said(ACCEPTED, holds=True, why="Valid", text="every part of the spec can be used")
        if working is not None:
            stopped = stopped_parts(working, self._access)
            why = NOT_ALLOWED if stopped else "Serving"
            said(READY, holds=not stopped, why=why, text=work_of(working, stopped))
        elif known.accepted is not None and known.accepted.spec.suspend:
            said(READY, holds=False, why="Suspended", text="spec.suspend is true; nothing is decided")
        else:
            said(READY, holds=False, why=reason or "NotAccepted", text=sentence)
        for kind in sorted({each.type for each in known.conditions} - {ACCEPTED, READY, DEGRADED, *advice}):
            said(kind, holds=False, why="AsExpected", text="nothing of the kind is known any more")
        for kind, (why, text) in advice.items():
            said(kind, holds=True, why=why, text=text)
        if notes:
            said(DEGRADED, holds=True, why=next(iter(notes)), text="; ".join(notes.values()))
        else:
            said(DEGRADED, holds=False, why="AsExpected", text="nothing is missing")

    def is_own(self, known: KnownPolicy) -> bool:
        """Whether this operator serves a policy."""
        return operator_of(known.seen["metadata"].get("labels")) == self.operator

    def _tell(self, known: KnownPolicy, before: object) -> None:
        """Report further conditions that have begun or ended; the others have events."""
        written = written_conditions({"status": before})
        held = {each.type for each in written if each.status == ConditionStatus.TRUE}
        for each in known.conditions:
            is_held = each.status == ConditionStatus.TRUE
            if each.type in (ACCEPTED, READY, DEGRADED) or is_held == (each.type in held):
                continue
            reason = each.type if is_held else f"Not{each.type}"
            self._observer.object_noted(
                "SchedulingPolicy", known.name, reason, each.message, is_warning=is_held
            )

    async def write(self, known: KnownPolicy) -> None:
        """Write the status if it has changed, once rights are known."""
        if self._access.is_pending or not self.is_own(known):
            return
        status: dict[str, Any] = {
            "observedGeneration": known.generation,
            "conditions": [
                each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in known.conditions
            ],
        }
        policy = known.accepted
        if policy is None or policy.spec.suspend or policy.spec.rebalancing is None:
            status["nextRunTime"] = None  # removed: no next run
        if status == known.written:
            return
        before = known.written or known.seen.get("status") or {}
        known.written = None  # until this one is certain, a return to the one before is written, too
        answer = await self._writer.write_status(known.name, status)
        if answer.is_done:
            known.written = status
            self._tell(known, before)
            for note in known.warnings.due(known.seen):
                self._recorder.record(note)
        elif answer.verdict is not WriteOutcome.FENCED:  # a standby writes nothing
            self._observer.failed(f"status of policy {known.name}", answer.message)
