"""Policies → profiles and rebalancers, live: a change takes effect at once and disturbs no other policy.

Each policy is judged by itself: what the API server could not refuse (unknown plugins, bad arguments, two
policies claiming one scheduler name) becomes ``Accepted=False`` with the exact field, and the policy's
last accepted state goes on serving until it is mended.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from pydantic import ValidationError

from plimsoll.access.rights import NOT_ALLOWED, Access
from plimsoll.api.schema.conditions import (
    ACCEPTED,
    DEGRADED,
    READY,
    Condition,
    ConditionStatus,
    with_condition,
)
from plimsoll.api.v1alpha1.scheduling import SchedulingSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.engine.nominator import Nominator
from plimsoll.engine.profile import MULTI_POINT, Enabled, PluginSet, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import ConfigurationError, Registry
from plimsoll.framework.field_errors import field_errors, summary
from plimsoll.model.columns.cluster import Cluster
from plimsoll.policies.plugin_failures import PluginFailures
from plimsoll.policies.policy_work import may_predict, scheduler_name_of, stopped_parts, work_of
from plimsoll.policies.warnings import PolicyWarnings
from plimsoll.ports.clock import Clock, Randomness
from plimsoll.ports.events import EventRecorder
from plimsoll.ports.observer import Observer
from plimsoll.ports.policies import PolicyStatusWriter
from plimsoll.ports.writes import WriteOutcome
from plimsoll.scheduling.extenders.client import Extending

#: The annotation that asks for a run out of turn.
RUN = "plimsoll.dev/run"

#: The plugin that counts resources, unless an extender does.
FIT = "NodeResourcesFit"

#: The plugin that ``spec.scheduling.fairShare`` enables.
FAIR_SHARE = "FairShare"

#: Characters of a condition's message, as the API server allows.
LONGEST_MESSAGE = 32_768


class Rebalancing(Protocol):
    """What this module needs of the rebalancers."""

    def check(self, policy: SchedulingPolicy) -> None:
        """Raise ConfigurationError when the policy's rebalancing cannot be carried out."""

    def configure(self, policies: Sequence[SchedulingPolicy]) -> None:
        """Run these policies' rebalancing, and no other's."""

    def retain_predictions(self, policies: Collection[str]) -> None:
        """These policies may have predictions; those of others are deleted."""

    def run_now(self, name: str) -> None:
        """Somebody asks for a run out of turn."""

    def troubles(self, name: str) -> Mapping[str, str]:
        """What keeps a policy from moving pods, in sentences by reason."""

    def advice(self, name: str) -> Mapping[str, tuple[str, str]]:
        """Further conditions of a policy that hold: reason and sentence by type."""


@dataclass(slots=True)
class _Known:
    """One policy: as last seen, as last accepted, and what its status says."""

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
        registry: The scheduling plugins that exist.
        defaults: The default multiPoint list.
        cluster: What schedulers decide on.
        rebalancing: Carries out the rebalancing part.
        statuses: Writes status.
        nominator: Shared by all schedulers; read by them alone.
        clock: Time.
        randomness: Breaks ties of schedulers.
        observer: Told of failures.
        failures: Plugins that have failed.
        extending: Speaks to the extenders of the policies.
        access: What the API server allows.
        recorder: Records the events of policies.
        serve: Told the schedulers by name whenever they change.
    """

    def __init__(
        self,
        *,
        registry: Registry,
        defaults: Sequence[Enabled],
        cluster: Cluster,
        rebalancing: Rebalancing,
        statuses: PolicyStatusWriter,
        nominator: Nominator,
        clock: Clock,
        randomness: Randomness,
        observer: Observer,
        failures: PluginFailures,
        extending: Extending,
        access: Access,
        recorder: EventRecorder,
        serve: Callable[[Mapping[str, ProfileScheduler]], None],
    ) -> None:
        self._registry = registry
        self._defaults = defaults
        self._cluster = cluster
        self._rebalancing = rebalancing
        self._statuses = statuses
        self._nominator = nominator
        self._clock = clock
        self._randomness = randomness
        self._observer = observer
        self._failures = failures
        self._extending = extending
        self._access = access
        self._recorder = recorder
        self._serve = serve
        self._known: dict[str, _Known] = {}
        self._schedulers: dict[str, tuple[SchedulingSpec, ProfileScheduler]] = {}
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
            known.conditions = _conditions_of(document)
        known.seen, known.generation = document, generation
        self._judge(known)
        self._access.look_again()
        return self._apply()

    def remove(self, name: str) -> "Awaitable[None]":
        """A policy is gone; another one may now have its scheduler name."""
        self._known.pop(name, None)
        return self._apply()

    def uids(self) -> Mapping[str, str]:
        """Uid by name, of every policy that was told."""
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
        """Say again how every policy is; ``notes`` have changed."""
        for known in list(self._known.values()):
            self._describe(known, known.lost)
            await self._write(known)

    # ------------------------------------------------------------------------------------------------

    def _judge(self, known: _Known) -> None:
        """Accept the latest spec, or say why not."""
        document = {key: value for key, value in known.seen.items() if key != "status"}
        try:
            policy = SchedulingPolicy.model_validate(document)
        except ValidationError as exc:
            known.problem = ("InvalidSpec", summary(field_errors(exc, model=SchedulingPolicy)))
            return
        try:
            order: tuple[str, object] = ("", None)
            if policy.spec.scheduling is not None:
                self._extending.check(policy.spec.scheduling)
                config = profile_config(policy.spec.scheduling)
                sort = build_profile(config, self._registry, self._defaults).queue_sort.name
                order = (sort, config.args.get(sort) or {})
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
        self._serve_profiles(serving, claimed)
        await self._extending.retain(self._schedulers)
        self._rebalancing.configure(working)
        self._rebalancing.retain_predictions(
            {known.name for known in self._known.values() if may_predict(known.accepted)}
        )
        for known in list(self._known.values()):
            known.lost = lost.get(known.name, ("", ""))
            self._describe(known, known.lost)
        await asyncio.gather(*(self._write(known) for known in list(self._known.values())))

    def _serve_profiles(self, serving: Mapping[str, SchedulingSpec], policies: Mapping[str, str]) -> None:
        """Make schedulers for new or changed profiles; the others keep what they have learnt."""
        for name in [name for name in self._schedulers if name not in serving]:
            del self._schedulers[name]
        for name, spec in serving.items():
            known = self._schedulers.get(name)
            if known is not None and known[0] == spec and known[1].profile.policy == policies[name]:
                continue
            try:
                profile = build_profile(profile_config(spec, policies[name]), self._registry, self._defaults)
                profile = self._extending.equip(profile, spec)
            except Exception as exc:  # noqa: BLE001 - a plugin that breaks at its second birth harms no other policy
                self._observer.failed(f"profile {name}", repr(exc))
                continue
            self._failures.forgive(profile.plugin_names)
            self._schedulers[name] = (
                spec,
                ProfileScheduler(profile, self._cluster, self._randomness.below, self._nominator),
            )
        self._serve({name: scheduler for name, (_, scheduler) in self._schedulers.items()})

    def claimed(self) -> Mapping[str, tuple[str, str]]:
        """By scheduler name: the policy that has it, and why that does not serve it, "" when it does."""
        found: dict[str, tuple[str, str]] = {}
        for known in sorted(self._known.values(), key=lambda each: each.age_order):
            name = scheduler_name_of(known.accepted, known.seen)
            if name and name not in found:
                problem = "" if name in self._schedulers else known.problem[1] or known.lost[1]
                suspended = known.accepted is not None and known.accepted.spec.suspend
                found[name] = known.name, "spec.suspend is true" if suspended else problem
        return found

    def scheduler_for(self, name: str) -> ProfileScheduler | None:
        """The scheduler of a name, None when no policy serves it."""
        found = self._schedulers.get(name)
        return found[1] if found else None

    # -- status --------------------------------------------------------------------------------------

    def _describe(self, known: _Known, lost: tuple[str, str]) -> None:
        reason, sentence = known.problem if known.problem[0] else lost
        now = datetime.fromtimestamp(self._clock.now(), UTC)
        suspended = known.accepted is not None and known.accepted.spec.suspend
        serving = known.accepted is not None and not lost[0]
        if reason and serving:
            sentence += "; the policy's last accepted state goes on"

        def said(kind: str, holds: bool, why: str, text: str) -> None:
            known.conditions = with_condition(
                known.conditions,
                kind,
                ConditionStatus.TRUE if holds else ConditionStatus.FALSE,
                reason=why,
                message=text,
                now=now,
                generation=known.generation,
            )

        if reason:
            said(ACCEPTED, holds=False, why=reason, text=sentence)
        else:
            said(ACCEPTED, holds=True, why="Valid", text="every part of the spec can be used")
        if suspended:
            said(READY, holds=False, why="Suspended", text="spec.suspend is true; nothing is decided")
        elif known.accepted is None or not serving:
            said(READY, holds=False, why=reason or "NotAccepted", text=sentence)
        else:
            stopped = stopped_parts(known.accepted, self._access)
            why = NOT_ALLOWED if stopped else "Serving"
            said(READY, holds=not stopped, why=why, text=work_of(known.accepted, stopped))
        notes = {
            **({reason: sentence} if reason else {}),
            **self._lacking(known, serves=serving and not suspended),
            **self.notes,
            **self._failing(known),
            **self._rebalancing.troubles(known.name),
        }
        advice = self._rebalancing.advice(known.name), self.advice(known.name)
        held = {kind: said_of for each in advice for kind, said_of in each.items()}
        known.degraded = tuple(notes)
        known.warnings.update({**notes, **dict(held.values())}, known.conditions)
        for kind in [each.type for each in known.conditions if each.type not in (ACCEPTED, READY, DEGRADED)]:
            if kind not in held:
                said(kind, holds=False, why="AsExpected", text="nothing of the kind is known any more")
        for kind, (why, text) in held.items():
            said(kind, holds=True, why=why, text=text[:LONGEST_MESSAGE])
        if notes:
            said(
                DEGRADED, holds=True, why=next(iter(notes)), text="; ".join(notes.values())[:LONGEST_MESSAGE]
            )
        else:
            said(DEGRADED, holds=False, why="AsExpected", text="nothing is missing")

    def _lacking(self, known: _Known, *, serves: bool) -> dict[str, str]:
        """The rights that a policy needs and the operator does not have."""
        policy = known.accepted
        sentence = "" if policy is None or not serves else self._access.trouble(policy)
        return {NOT_ALLOWED: sentence} if sentence else {}

    def _failing(self, known: _Known) -> dict[str, str]:
        """What the plugins and extenders of a policy have done wrong, by reason."""
        if known.accepted is None or known.accepted.spec.scheduling is None:
            return {}
        served = self.scheduler_for(known.accepted.spec.scheduling.scheduler_name)
        if served is None:
            return {}
        found = {
            "PluginFailed": self._failures.of(served.profile.plugin_names),
            "ExtenderFailed": self._extending.health.of(served.profile.scheduler_name),
        }
        return {reason: "; ".join(sentences) for reason, sentences in found.items() if sentences}

    async def _write(self, known: _Known) -> None:
        """Write the status, when it says something new, and once rights are known."""
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
        ):  # a standby says nothing; ``refresh`` does when it leads
            self._observer.failed(f"status of policy {known.name}", answer.message)


def _asked_run(document: Mapping[str, Any]) -> str:
    """What the annotation says that asks for a run; each new value asks for one."""
    annotations = document["metadata"].get("annotations")
    return str(annotations.get(RUN, "")) if isinstance(annotations, Mapping) else ""


def _conditions_of(document: Mapping[str, Any]) -> tuple[Condition, ...]:
    """The conditions that an earlier process wrote, so that transition times survive a restart."""
    found = []
    status = document.get("status")
    written = status.get("conditions") if isinstance(status, Mapping) else None
    for each in written if isinstance(written, list) else ():
        try:
            found.append(Condition.model_validate(each))
        except ValidationError:
            continue
    return tuple(found)


def profile_config(spec: SchedulingSpec, policy: str = "") -> ProfileConfig:
    """The plain values of ``spec.scheduling`` of a policy."""
    plugins: dict[str, PluginSet] = {}
    if spec.plugins is not None:
        for attribute, model_field in type(spec.plugins).model_fields.items():
            chosen = getattr(spec.plugins, attribute)
            if chosen is not None:
                plugins[model_field.alias or attribute] = PluginSet(
                    enabled=tuple(Enabled(each.name, each.weight or 0) for each in chosen.enabled),
                    disabled=frozenset(each.name for each in chosen.disabled),
                )
    args: dict[str, Mapping[str, Any]] = {each.name: each.args for each in spec.plugin_config}
    ignored = [
        each.name for one in spec.extenders for each in one.managed_resources if each.ignored_by_scheduler
    ]
    if ignored:
        args[FIT] = {**args.get(FIT, {}), "ignoredResources": ignored}
    paths = {
        each.name: f"spec.scheduling.pluginConfig[{position}].args"
        for position, each in enumerate(spec.plugin_config)
    }
    if spec.fair_share is not None:
        multi = plugins.get(MULTI_POINT, PluginSet())
        plugins[MULTI_POINT] = replace(multi, enabled=(*multi.enabled, Enabled(FAIR_SHARE)))
        args[FAIR_SHARE], paths[FAIR_SHARE] = spec.fair_share.to_wire(), "spec.scheduling.fairShare"
    return ProfileConfig(
        scheduler_name=spec.scheduler_name,
        plugins=plugins,
        args=args,
        arg_paths=paths,
        policy=policy,
        via_eviction=spec.preemption.via_eviction,
    )
