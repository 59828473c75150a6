"""Turns policies into profiles and rebalancers; a change takes effect immediately and for this policy only.

Each policy is judged by itself: what the API server could not refuse (unknown plugins, bad arguments, two
policies claiming one scheduler name) becomes ``Accepted=False`` with the exact field, and the policy's
last accepted state goes on serving until it is corrected.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from pydantic import ValidationError

from plimsoll.access.rights import NOT_ALLOWED, Access
from plimsoll.api.schema.conditions import (
    Condition,
    ConditionStatus,
)
from plimsoll.api.v1alpha1.scheduling import SchedulingSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import ConfigurationError
from plimsoll.framework.field_errors import field_errors, summary
from plimsoll.policies.conditions import (
    PolicyState,
    described,
    may_predict,
    scheduler_name_of,
    stopped_parts,
    written_conditions,
)
from plimsoll.policies.profiles import ProfileSchedulers
from plimsoll.policies.warnings import PolicyWarnings
from plimsoll.ports.clock import Clock
from plimsoll.ports.events import EventRecorder
from plimsoll.ports.observer import Observer
from plimsoll.ports.policies import PolicyStatusWriter
from plimsoll.ports.writes import WriteOutcome

#: The annotation that requests a run outside the schedule.
RUN = "plimsoll.dev/run"


class PolicyConsumer(Protocol):
    """What this module needs of the rebalancers."""

    def check(self, policy: SchedulingPolicy) -> None:
        """Raise ConfigurationError when the policy's rebalancing cannot be carried out."""

    def configure(self, policies: Sequence[SchedulingPolicy]) -> None:
        """Run these policies' rebalancing, and no other's."""

    def retain_predictions(self, policies: Collection[str]) -> None:
        """These policies may have predictions; those of other policies are deleted."""

    def run_now(self, name: str) -> None:
        """A run outside the schedule was requested."""

    def troubles(self, name: str) -> Mapping[str, str]:
        """What keeps a policy from moving pods, in sentences by reason."""

    def advice(self, name: str) -> Mapping[str, tuple[str, str]]:
        """Further conditions of a policy that hold: reason and sentence by type."""


@dataclass(slots=True)
class _Known:
    """One policy: as last seen, as last accepted, and its status."""

    name: str
    created: str
    generation: int
    seen: Mapping[str, Any]
    accepted: SchedulingPolicy | None = None
    problem: tuple[str, str] = ("", "")  #: reason and sentence, when the latest spec is not accepted
    order: tuple[str, object] = ("", None)  #: the queue sort of what was last accepted, with its arguments
    lost: tuple[str, str] = ("", "")  #: likewise, when an older policy serves its scheduler name
    conditions: tuple[Condition, ...] = field(default_factory=tuple)
    degraded: tuple[str, ...] = ()  #: every reason for which it is degraded
    written: Mapping[str, Any] | None = None
    warnings: PolicyWarnings = field(default_factory=PolicyWarnings)

    @property
    def age_order(self) -> tuple[str, str]:
        """Older first."""
        return (self.created, self.name)


class Policies:
    """All policies, judged and served.

    Args:
        profiles: Builds and keeps the schedulers of policies.
        rebalancing: Carries out the rebalancing part.
        statuses: Writes status.
        clock: Time.
        observer: Receives failures.
        access: What the API server allows.
        recorder: Records the events of policies.
        serve: Receives the schedulers, keyed by name, whenever they change.
    """

    def __init__(
        self,
        *,
        profiles: ProfileSchedulers,
        rebalancing: PolicyConsumer,
        statuses: PolicyStatusWriter,
        clock: Clock,
        observer: Observer,
        access: Access,
        recorder: EventRecorder,
        serve: Callable[[Mapping[str, ProfileScheduler]], None],
    ) -> None:
        self._profiles = profiles
        self._rebalancing = rebalancing
        self._statuses = statuses
        self._clock = clock
        self._observer = observer
        self._access = access
        self._recorder = recorder
        self._serve = serve
        self._known: dict[str, _Known] = {}
        self.notes: dict[str, str] = {}  #: what degrades every policy, by reason
        #: further conditions of a policy that hold, reason and sentence by type
        self.advice: Callable[[str], Mapping[str, tuple[str, str]]] = lambda _: {}

    def set(self, document: Mapping[str, Any]) -> "Awaitable[None]":
        """A policy was added or changed; await the result to have its status written."""
        meta = document["metadata"]
        name, generation = str(meta["name"]), int(meta.get("generation", 0))
        known = self._known.get(name)
        if known is not None and _asked_run(document) not in ("", _asked_run(known.seen)):
            self._rebalancing.run_now(name)
        if known is not None and known.seen.get("spec") == document.get("spec"):
            known.seen, known.generation = document, generation
            return self._write(known)
        if known is None:
            known = self._known[name] = _Known(
                name, str(meta.get("creationTimestamp", "")), generation, document
            )
            known.conditions = written_conditions(document)
        known.seen, known.generation = document, generation
        self._judge(known)
        self._access.look_again()
        return self._apply()

    def remove(self, name: str) -> "Awaitable[None]":
        """A policy is gone; another one may now have its scheduler name."""
        self._known.pop(name, None)
        return self._apply()

    def uids(self) -> Mapping[str, str]:
        """The uid of every known policy, keyed by name."""
        return {name: str(known.seen["metadata"].get("uid", "")) for name, known in self._known.items()}

    def conditions(self) -> Iterator[tuple[str, str, bool]]:
        """Of each policy: its name, the type of a condition, whether it is true."""
        for known in self._known.values():
            for each in known.conditions:
                yield known.name, each.type, each.status == ConditionStatus.TRUE

    def degradations(self) -> Iterator[tuple[str, str]]:
        """Of each degraded policy: its name and a reason, once for each reason."""
        for known in self._known.values():
            for reason in known.degraded:
                yield known.name, reason

    async def refresh(self) -> None:
        """Write the status of every policy again; ``notes`` have changed."""
        for known in list(self._known.values()):
            self._describe(known, known.lost)
            await self._write(known)

    # ------------------------------------------------------------------------------------------------

    def _judge(self, known: _Known) -> None:
        """Accept the latest spec, or keep the reasons why not."""
        document = {key: value for key, value in known.seen.items() if key != "status"}
        try:
            policy = SchedulingPolicy.model_validate(document)
        except ValidationError as exc:
            known.problem = ("InvalidSpec", summary(field_errors(exc, model=SchedulingPolicy)))
            return
        try:
            order: tuple[str, object] = ("", None)
            if policy.spec.scheduling is not None:
                order = self._profiles.check(policy.spec.scheduling)
            if policy.spec.rebalancing is not None:
                self._rebalancing.check(policy)
        except ConfigurationError as exc:
            known.problem = (exc.reason, str(exc))
            return
        except Exception as exc:  # noqa: BLE001 - a plugin that breaks at birth harms its own policy only
            known.problem = ("PluginFailed", f"spec: a plugin cannot be built with it: {exc!r}")
            self._observer.failed(f"policy {known.name}", repr(exc))
            return
        known.problem = ("", "")
        known.accepted, known.order = policy, order

    async def _apply(self) -> None:
        """Serve what is accepted, the oldest policy first where two claim one scheduler name."""
        claimed: dict[str, str] = {}
        order: tuple[str, object] | None = None
        serving: dict[str, SchedulingSpec] = {}
        working: list[SchedulingPolicy] = []
        lost: dict[str, tuple[str, str]] = {}
        for known in sorted(self._known.values(), key=lambda each: each.age_order):
            policy = known.accepted
            if policy is None:
                continue
            scheduling = policy.spec.scheduling
            if scheduling is not None and scheduling.scheduler_name in claimed:
                lost[known.name] = (
                    "SchedulerNameTaken",
                    (
                        f'spec.scheduling.schedulerName: "{scheduling.scheduler_name}" is served by the '
                        f"older policy {claimed[scheduling.scheduler_name]}; choose another name"
                    ),
                )
                continue
            if scheduling is not None and order and known.order != order:
                lost[known.name] = (
                    "QueueSortDiffers",
                    (
                        f"spec.scheduling.plugins.queueSort: one queue serves all policies, sorted by the "
                        f"{order[0]} of an older one; use it with the same arguments, not {known.order[0]}"
                    ),
                )
                continue
            if scheduling is not None:
                claimed[scheduling.scheduler_name] = known.name
                order = known.order
            if policy.spec.suspend:
                continue
            if scheduling is not None:
                serving[scheduling.scheduler_name] = scheduling
            if policy.spec.rebalancing is not None:
                working.append(policy)
        self._access.places_pods = bool(serving)
        self._profiles.serve(serving, claimed)
        self._serve(self._profiles.schedulers)
        await self._profiles.retain_extenders()
        self._rebalancing.configure(working)
        self._rebalancing.retain_predictions(
            {known.name for known in self._known.values() if may_predict(known.accepted)}
        )
        for known in list(self._known.values()):
            known.lost = lost.get(known.name, ("", ""))
            self._describe(known, known.lost)
        await asyncio.gather(*(self._write(known) for known in list(self._known.values())))

    def claimed(self) -> Mapping[str, tuple[str, str]]:
        """By scheduler name: the policy that has it, and why that does not serve it, "" when it does."""
        found: dict[str, tuple[str, str]] = {}
        for known in sorted(self._known.values(), key=lambda each: each.age_order):
            name = scheduler_name_of(known.accepted, known.seen)
            if name and name not in found:
                problem = "" if self._profiles.find(name) else known.problem[1] or known.lost[1]
                suspended = known.accepted is not None and known.accepted.spec.suspend
                found[name] = known.name, "spec.suspend is true" if suspended else problem
        return found

    # -- status --------------------------------------------------------------------------------------

    def _describe(self, known: _Known, lost: tuple[str, str]) -> None:
        reason, sentence = known.problem if known.problem[0] else lost
        policy = known.accepted
        serves = policy is not None and not lost[0]
        if reason and serves:
            sentence += "; the policy's last accepted state goes on"
        works = policy is not None and serves and not policy.spec.suspend
        trouble = self._access.trouble(policy) if policy is not None and works else ""
        spec = policy.spec.scheduling if policy is not None else None
        notes = {
            **({reason: sentence} if reason else {}),
            **({NOT_ALLOWED: trouble} if trouble else {}),
            **self.notes,
            **(self._profiles.failing(spec.scheduler_name) if spec is not None else {}),
            **self._rebalancing.troubles(known.name),
        }
        advice = {**self._rebalancing.advice(known.name), **self.advice(known.name)}
        state = PolicyState(
            policy=policy,
            problem=(reason, sentence),
            serves=serves,
            stopped=stopped_parts(policy, self._access) if policy is not None and works else {},
            notes=notes,
            advice=advice,
        )
        known.degraded = tuple(notes)
        known.warnings.update({**notes, **dict(advice.values())}, known.conditions)
        now = datetime.fromtimestamp(self._clock.now(), UTC)
        known.conditions = described(known.conditions, state, known.generation, now)

    async def _write(self, known: _Known) -> None:
        """Write the status when it has changed, once rights are known."""
        if self._access.is_pending:
            return  # ``refresh`` follows
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
        answer = await self._statuses.write_status(known.name, status)
        if answer.is_done:
            known.written = status
            for note in known.warnings.due(known.seen):
                self._recorder.record(note)
        elif (
            answer.verdict is not WriteOutcome.FENCED
        ):  # a standby writes nothing; ``refresh`` does when it leads
            self._observer.failed(f"status of policy {known.name}", answer.message)


def _asked_run(document: Mapping[str, Any]) -> str:
    """The value of the annotation that requests a run; each new value requests one."""
    annotations = document["metadata"].get("annotations")
    return str(annotations.get(RUN, "")) if isinstance(annotations, Mapping) else ""
