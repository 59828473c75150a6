"""Describes each policy in its status: conditions, warning events, and writes that are retried."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from plimsoll.access.rights import NOT_ALLOWED, Access
from plimsoll.api.schema.conditions import Condition
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.policies.conditions import PolicyState, described, stopped_parts
from plimsoll.policies.warnings import PolicyWarnings
from plimsoll.ports.clock import Clock
from plimsoll.ports.custom_resources import PolicyStatusWriter
from plimsoll.ports.events import EventRecorder
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.timing.retry import OPEN_OR_CONFLICT, RetryPolicy, retry

#: The next regular write of a status may be a day away.
STATUS_RETRIES = RetryPolicy((0.2, 0.5, 1.0, 2.0, 5.0, 10.0), repeats=OPEN_OR_CONFLICT)


class RetriedStatuses:
    """Writes through another writer; a newer status of the same fields ends the retries of an older one."""

    def __init__(self, statuses: PolicyStatusWriter, clock: Clock) -> None:
        self._statuses = statuses
        self._clock = clock
        self._latest: dict[tuple[str, frozenset[str]], Mapping[str, Any]] = {}

    async def write_status(self, name: str, status: Mapping[str, Any]) -> WriteResult:
        """Merge into a policy's status; returns the last answer."""
        key = (name, frozenset(status))
        self._latest[key] = status

        def is_latest() -> bool:
            return self._latest.get(key) is status

        answer = await retry(
            lambda: self._statuses.write_status(name, status), STATUS_RETRIES, self._clock, is_latest
        )
        if is_latest():
            del self._latest[key]
        return answer


class PolicyAdviser(Protocol):
    """Knows something about policies that their status says."""

    def advice(self, name: str) -> Mapping[str, tuple[str, str]]:
        """Further conditions of a policy that hold: reason and sentence by type."""


@dataclass(slots=True)
class KnownPolicy:
    """One policy: as last seen, as last accepted, and its status."""

    name: str
    created: str
    generation: int
    seen: Mapping[str, Any]
    accepted: SchedulingPolicy | None = None
    problem: tuple[str, str] = ("", "")  #: reason and sentence, when the latest spec is not accepted
    order: tuple[str, object] = ("", None)  #: the queue sort of what was last accepted, with its arguments
    lost: tuple[str, str] = ("", "")  #: likewise, when an older policy serves its scheduler name
    conditions: tuple[Condition, ...] = ()
    degraded: tuple[str, ...] = ()  #: every reason for which it is degraded
    written: Mapping[str, Any] | None = None
    warnings: PolicyWarnings = field(default_factory=PolicyWarnings)

    @property
    def age_order(self) -> tuple[str, str]:
        """Older first."""
        return (self.created, self.name)


class PolicyStatuses:
    """Keeps the status of policies.

    Args:
        recorder: Records the events of policies.
        access: What the API server allows.

    Attributes:
        notes: What degrades every policy, by reason.
    """

    def __init__(
        self,
        writer: PolicyStatusWriter,
        recorder: EventRecorder,
        access: Access,
        clock: Clock,
        observer: Observer,
        advisers: Sequence[PolicyAdviser],
    ) -> None:
        self._writer = writer
        self._recorder = recorder
        self._access = access
        self._clock = clock
        self._observer = observer
        self._advisers = advisers
        self.notes: dict[str, str] = {}

    def describe(self, known: KnownPolicy, troubles: Mapping[str, str]) -> None:
        """Derive a policy's conditions; ``troubles`` are sentences of its parts, by reason."""
        reason, sentence = known.problem if known.problem[0] else known.lost
        policy = known.accepted
        serves = policy is not None and not known.lost[0]
        if reason and serves:
            sentence += "; the policy's last accepted state goes on"
        working = policy if serves and policy is not None and not policy.spec.suspend else None
        missing = "" if working is None else self._access.trouble(working)
        notes = {
            **({reason: sentence} if reason else {}),
            **({NOT_ALLOWED: missing} if missing else {}),
            **self.notes,
            **troubles,
        }
        advice = {kind: said for each in self._advisers for kind, said in each.advice(known.name).items()}
        state = PolicyState(
            policy=policy,
            problem=(reason, sentence),
            serves=serves,
            stopped={} if working is None else stopped_parts(working, self._access),
            notes=notes,
            advice=advice,
        )
        known.degraded = tuple(notes)
        known.warnings.update({**notes, **dict(advice.values())}, known.conditions)
        now = datetime.fromtimestamp(self._clock.now(), UTC)
        known.conditions = described(known.conditions, state, known.generation, now)

    async def write(self, known: KnownPolicy) -> None:
        """Write the status when it has changed, once rights are known."""
        if self._access.is_pending:
            return
        status: dict[str, Any] = {
            "observedGeneration": known.generation,
            "conditions": [
                each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in known.conditions
            ],
        }
        policy = known.accepted
        if policy is None or policy.spec.suspend or policy.spec.rebalancing is None:
            status["nextRunTime"] = None  # taken away: nothing runs next
        if status == known.written:
            return
        answer = await self._writer.write_status(known.name, status)
        if answer.is_done:
            known.written = status
            for note in known.warnings.due(known.seen):
                self._recorder.record(note)
        elif answer.verdict is not WriteOutcome.FENCED:  # a standby writes nothing
            self._observer.failed(f"status of policy {known.name}", answer.message)
