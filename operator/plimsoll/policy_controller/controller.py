"""Turns policies into profiles and rebalancers, and starts the runs that their annotation asks for.

A change takes effect immediately, for its policy only: each is validated by itself. Errors that the API
server could not reject (unknown plugins, bad arguments, two policies with one scheduler name) become
``Accepted=False`` with the exact field. Until they are corrected, the policy's last accepted state stays in
effect.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

from plimsoll.access.rights import Access, Part
from plimsoll.adoption.admission_objects import adopt_of
from plimsoll.api.schema.conditions import READY, Condition, ConditionStatus, condition
from plimsoll.api.v1alpha1.annotations import RUN
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.planning.forecasts import Forecasts
from plimsoll.policies.conditions import (
    WITHDRAWN,
    may_predict,
    names_in,
    scheduler_name_of,
    written_conditions,
)
from plimsoll.policies.judgement import PolicyChecks, divide, judged_by_schema
from plimsoll.policies.operators import operator_of
from plimsoll.policies.profiles import ProfileSchedulers
from plimsoll.policy_controller.status import KnownPolicy, PolicyStatuses
from plimsoll.ports.custom_resources import PolicySource
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import WriteOutcome
from plimsoll.timing.signal import Signal
from plimsoll.timing.task_sets import first_of

#: The reason of a policy that names a plugin or strategy of an installed package that cannot be used.
LEFT_OUT = "ExtensionLeftOut"

NO_PROBLEMS: Mapping[str, str] = {}


class PolicyConsumer(Protocol):
    """The rebalancers, as this module uses them."""

    def check(self, policy: SchedulingPolicy) -> None:
        """Raise ConfigurationError if the policy's rebalancing cannot be carried out."""

    def configure(self, policies: Sequence[SchedulingPolicy]) -> None:
        """Run the rebalancing of these policies, and no others."""

    def retain_predictions(self, policies: Collection[str]) -> None:
        """Keep the predictions of these policies; delete those of other policies."""

    def all_known(self) -> None:
        """Note that every existing policy has been configured, as far as possible."""

    def run_now(self, name: str) -> None:
        """Start a run outside the schedule."""

    def troubles(self, name: str) -> Mapping[str, str]:
        """What prevents a policy from moving pods, in sentences by reason."""


class PolicyController:
    """Validates all policies and puts the accepted ones into effect.

    Args:
        profiles: Builds and keeps the schedulers of policies.
        rebalancing: Carries out the rebalancing part.
        statuses: Describes policies and writes their status.
        access: The rights that the API server grants.
        serve: Receives the schedulers, keyed by name, and what is assumed for others, at each change.
        conditions: Notified when sentences in the status of policies have changed.
        left_out: Why parts of installed packages cannot be used, keyed by their names.

    Attributes:
        others: The scheduler names that other operators serve.
    """

    def __init__(
        self,
        *,
        profiles: ProfileSchedulers,
        rebalancing: PolicyConsumer,
        statuses: PolicyStatuses,
        observer: Observer,
        access: Access,
        serve: Callable[[Mapping[str, ProfileScheduler], Forecasts], None],
        conditions: Signal,
        left_out: Mapping[str, str] = NO_PROBLEMS,
    ) -> None:
        self.others: Collection[str] = ()
        self._left_out = left_out
        self._profiles = profiles
        self._rebalancing = rebalancing
        self._statuses = statuses
        self._observer = observer
        self._access = access
        self._serve = serve
        self._conditions = conditions
        self._checks = PolicyChecks(profiles, rebalancing)
        self._known: dict[str, KnownPolicy] = {}
        self._had_status = False  #: whether any policy has been seen with a status

    def set(self, document: Mapping[str, Any]) -> "Awaitable[None]":
        """Process an added or changed policy; await the result to have its status written."""
        meta = document["metadata"]
        name, generation = str(meta["name"]), int(meta.get("generation", 0))
        self._had_status = self._had_status or bool(document.get("status"))
        known = self._known.get(name)
        if known is not None and str(known.seen["metadata"].get("uid", "")) != str(meta.get("uid", "")):
            known = None  # a new policy of the same name; the watch missed the deletion of the old one
        if known is not None and _asked_run(document) not in ("", _asked_run(known.seen)):
            self._rebalancing.run_now(name)
        if known is not None and _decisive(known.seen) == _decisive(document):
            known.seen, known.generation = document, generation
            if _is_withdrawn(document) and not _is_withdrawn(known.written):
                known.written = None  # the watchdog has withdrawn the policy, and we lead
            return self._write(known)
        if known is None:
            known = self._known[name] = KnownPolicy(
                name, str(meta.get("creationTimestamp", "")), generation, document
            )
            known.conditions = written_conditions(document)
        known.seen, known.generation = document, generation
        self._judge(known)
        self._access.look_again()
        return self._apply()

    def remove(self, name: str) -> "Awaitable[None]":
        """Process a deletion; another policy may now get the scheduler name."""
        self._known.pop(name, None)
        return self._apply()

    async def were_served(self, source: PolicySource) -> bool:
        """Whether an operator served policies before this process leads; true if that is unknown.

        A leader writes a status into each policy. A leader may have existed while this process listed the
        cluster, and its lease may have been deleted since. The watch may lag behind, so the source is
        queried.
        """
        if self._had_status:
            return True
        answer, documents = await source.list()
        if not answer.is_done:
            return answer.verdict is not WriteOutcome.GONE
        return any(document.get("status") for document in documents)

    def compared(self) -> None:
        """Note that all existing policies are known."""
        self._rebalancing.all_known()

    def uids(self) -> Mapping[str, str]:
        """The uid of every known policy, keyed by name."""
        return {name: str(known.seen["metadata"].get("uid", "")) for name, known in self._known.items()}

    def generations(self) -> Mapping[str, int]:
        """The generation of every known policy, keyed by name."""
        return {name: known.generation for name, known in self._known.items()}

    def conditions(self) -> Iterator[tuple[str, str, bool]]:
        """For each policy and condition: the policy's name, the condition's type, whether it is true."""
        for known in self._own():
            for each in known.conditions:
                yield known.name, each.type, each.status == ConditionStatus.TRUE

    def described(self) -> Iterator[tuple[Mapping[str, Any], tuple[Condition, ...]]]:
        """For each policy: its document as last seen, and its conditions."""
        for known in self._own():
            yield known.seen, known.conditions

    def degradations(self) -> Iterator[tuple[str, str]]:
        """For each degraded policy and reason: the policy's name and the reason."""
        for known in self._own():
            for reason in known.degraded:
                yield known.name, reason

    def degrade(self, reason: str, sentence: str) -> None:
        """Degrade every policy from now on."""
        self._statuses.notes[reason] = sentence
        self._conditions.notify()

    async def refresh(self) -> None:
        """Write the status of every policy of this operator again."""
        for name in [each.name for each in self._own()]:
            known = self._known.get(name)  # it may have been deleted or recreated meanwhile
            if known is not None:
                self._describe(known)
                await self._write(known)

    async def run(self) -> None:
        """Rewrite statuses whenever their sentences or rights change, until cancelled."""
        rights = self._access.changed
        while True:
            seen, seen_rights = self._conditions.count, rights.count
            try:
                self._retain_predictions()
                await self.refresh()
            except Exception as exc:  # noqa: BLE001 - a failed write must not prevent the next one
                self._observer.failed("writing the status of policies", repr(exc))
            await first_of(self._conditions.wait(seen), rights.wait(seen_rights))

    # ------------------------------------------------------------------------------------------------

    def _judge(self, known: KnownPolicy) -> None:
        """Accept the latest spec, or record why it is rejected."""
        is_own = self._statuses.is_own(known)
        verdict = self._checks.judge(known.seen) if is_own else judged_by_schema(known.seen)
        if verdict.crash is not None:
            self._observer.failed(f"policy {known.name}", repr(verdict.crash))
        known.problem = (verdict.reason, verdict.sentence)
        if verdict.policy is not None:
            known.accepted, known.order = verdict.policy, verdict.order

    async def _apply(self) -> None:
        """Put accepted policies into effect; the oldest goes first if several have one scheduler name.

        Nothing is awaited before all is in effect: of two simultaneous changes the later one decides.
        """
        ordered = sorted(self._known.values(), key=lambda each: each.age_order)
        accepted = ((each.accepted, each.order) for each in ordered if each.accepted is not None)
        found = divide(accepted, self._statuses.operator)
        self.others = found.others
        self._access.places_pods = bool(found.serving)
        self._profiles.serve(found.serving, found.claimed)
        self._profiles.describe(found.described, found.claimed)
        self._serve(self._profiles.schedulers, self._profiles.forecasts)
        self._rebalancing.configure(found.working)
        self._retain_predictions()
        for known in list(self._known.values()):
            known.lost = found.lost.get(known.name, ("", ""))
            if self._statuses.is_own(known):
                self._describe(known)
        await self._profiles.retain_extenders()
        await asyncio.gather(*(self._write(known) for known in self._own()))

    def _own(self) -> list[KnownPolicy]:
        """The policies that this operator serves; the others have another one, which writes their status."""
        return [known for known in self._known.values() if self._statuses.is_own(known)]

    def _retain_predictions(self) -> None:
        """Keep predictions of policies that predict, and of those that lack the rights to move pods."""
        self._rebalancing.retain_predictions(
            {
                known.name
                for known in self._known.values()
                if may_predict(known.accepted)
                or (known.accepted is not None and self._access.obstacle(known.accepted, Part.REBALANCING))
            }
        )

    async def _write(self, known: KnownPolicy) -> None:
        """Write a policy's status; if the policy was recreated meanwhile, write that of the new one."""
        await self._statuses.write(known)
        now = self._known.get(known.name)
        if now is not None and now is not known:
            now.written = None  # the API server may have accepted its predecessor's status
            await self._write(now)

    def _describe(self, known: KnownPolicy) -> None:
        spec = known.accepted.spec.scheduling if known.accepted is not None else None
        failing = self._profiles.failing(spec.scheduler_name) if spec is not None else {}
        lacking = [self._left_out[name] for name in sorted(names_in(known.seen) & self._left_out.keys())]
        left_out = {LEFT_OUT: "; ".join(lacking)} if lacking else {}
        self._statuses.describe(known, {**left_out, **failing, **self._rebalancing.troubles(known.name)})

    def adopting(self) -> list[SchedulingPolicy]:
        """The policies that adopt pods."""
        accepted = (known.accepted for known in sorted(self._own(), key=lambda each: each.name))
        return [each for each in accepted if each is not None and adopt_of(each) is not None]

    def claimed(self) -> Mapping[str, tuple[str, str]]:
        """For each scheduler name: the policy that has it, and why that does not serve it, or ""."""
        found: dict[str, tuple[str, str]] = {}
        for known in sorted(self._known.values(), key=lambda each: each.age_order):
            name = scheduler_name_of(known.accepted, known.seen)
            if name and name not in found:
                problem = "" if self._profiles.find(name) else known.problem[1] or known.lost[1]
                suspended = known.accepted is not None and known.accepted.spec.suspend
                found[name] = known.name, "spec.suspend is true" if suspended else problem
        return found


def _asked_run(document: Mapping[str, Any]) -> str:
    """The value of the annotation that requests a run; each new value requests one."""
    annotations = document["metadata"].get("annotations")
    return str(annotations.get(RUN, "")) if isinstance(annotations, Mapping) else ""


def _decisive(document: Mapping[str, Any]) -> tuple[object, str]:
    """What decides about a policy: its spec, and who serves it."""
    return document.get("spec"), operator_of(document["metadata"].get("labels"))


def _is_withdrawn(document: Mapping[str, Any] | None) -> bool:
    """Whether the watchdog has written the condition Ready of a policy."""
    found = condition(written_conditions(document or {}), READY)
    return found is not None and found.reason == WITHDRAWN
