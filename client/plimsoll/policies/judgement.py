"""Decides whether a policy is valid, and which of several policies serves a scheduler name.

Used for the status of policies and by ``plimsoll validate``.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from msgspec import Struct, field
from pydantic import ValidationError

from plimsoll.api.v1alpha1.scheduling import SchedulingSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.framework import ConfigurationError
from plimsoll.framework.errors import UnknownPartError
from plimsoll.framework.field_errors import field_errors, summary


class SchedulingChecker(Protocol):
    """Validates ``spec.scheduling``."""

    def check(self, spec: SchedulingSpec) -> tuple[str, object]:
        """Return the plugin that sorts the queue, with its arguments; raise ConfigurationError."""


class RebalancingChecker(Protocol):
    """Validates ``spec.rebalancing``."""

    def check(self, policy: SchedulingPolicy) -> None:
        """Raise ConfigurationError if the policy's rebalancing cannot be carried out."""


class PolicyVerdict(Struct, frozen=True):
    """The result of validating one spec.

    Attributes:
        policy: The accepted policy, None if it is rejected.
        order: The plugin that sorts the queue, with its arguments; "" if the policy places no pods.
        reason: Why it is rejected, in one word; "" when it is accepted.
        sentence: The reason in a sentence that names the field.
        crash: The exception of a plugin, None without one.
        unknown: Whether it is rejected because a plugin or strategy is not installed here.
    """

    policy: SchedulingPolicy | None = None
    order: tuple[str, object] = ("", None)
    reason: str = ""
    sentence: str = ""
    crash: BaseException | None = None
    unknown: bool = False


class PolicyChecks(Struct, frozen=True):
    """Validates the parts of policies."""

    scheduling: SchedulingChecker
    rebalancing: RebalancingChecker

    def judge(self, document: Mapping[str, Any]) -> PolicyVerdict:
        """Validate the spec of a policy by itself; its status does not matter."""
        document = {key: value for key, value in document.items() if key != "status"}
        try:
            policy = SchedulingPolicy.model_validate(document)
        except ValidationError as exc:
            return PolicyVerdict(
                reason="InvalidSpec", sentence=summary(field_errors(exc, model=SchedulingPolicy))
            )
        order: tuple[str, object] = ("", None)
        try:
            if policy.spec.scheduling is not None:
                order = self.scheduling.check(policy.spec.scheduling)
            if policy.spec.rebalancing is not None:
                self.rebalancing.check(policy)
        except ConfigurationError as exc:
            return PolicyVerdict(
                reason=exc.reason, sentence=str(exc), unknown=isinstance(exc, UnknownPartError)
            )
        except BaseException as exc:  # noqa: BLE001 - a plugin that cannot be built affects its own policy only
            return PolicyVerdict(
                reason="PluginFailed",
                sentence=f"spec: a plugin cannot be built with it: {exc!r}",
                crash=exc,
            )
        return PolicyVerdict(policy, order)


class PolicyDivision(Struct):
    """Which policy serves which scheduler name.

    Attributes:
        claimed: The policy that has a scheduler name, by that name.
        serving: The served specs, by scheduler name; suspended policies serve nothing.
        described: The specs of suspended policies, by scheduler name: another scheduler may work by them.
        working: The policies that rebalance.
        lost: Why a policy serves nothing, as a word and a sentence, by policy.
    """

    claimed: dict[str, str] = field(default_factory=dict)
    serving: dict[str, SchedulingSpec] = field(default_factory=dict)
    described: dict[str, SchedulingSpec] = field(default_factory=dict)
    working: list[SchedulingPolicy] = field(default_factory=list)
    lost: dict[str, tuple[str, str]] = field(default_factory=dict)


def divide(accepted: Iterable[tuple[SchedulingPolicy, tuple[str, object]]]) -> PolicyDivision:
    """Divide scheduler names among accepted policies, the oldest first; each comes with its queue sort."""
    found = PolicyDivision()
    order: tuple[str, object] | None = None
    for policy, mine in accepted:
        name, scheduling = policy.metadata.name, policy.spec.scheduling
        if scheduling is not None and scheduling.scheduler_name in found.claimed:
            found.lost[name] = "SchedulerNameTaken", _taken(found, scheduling.scheduler_name)
            continue
        if scheduling is not None and not policy.spec.suspend and order and mine != order:
            found.lost[name] = (
                "QueueSortDiffers",
                (
                    f"spec.scheduling.plugins.queueSort: one queue serves all policies, sorted by the "
                    f"{order[0]} of an older one; use it with the same arguments, not {mine[0]}"
                ),
            )
            continue
        if scheduling is not None:
            found.claimed[scheduling.scheduler_name] = name
        if policy.spec.suspend:
            if scheduling is not None:
                found.described[scheduling.scheduler_name] = scheduling
            continue
        if scheduling is not None:
            found.serving[scheduling.scheduler_name] = scheduling
            order = mine
        if policy.spec.rebalancing is not None:
            found.working.append(policy)
    return found


def _taken(found: PolicyDivision, scheduler: str) -> str:
    """Why a policy does not get a scheduler name."""
    older, said = found.claimed[scheduler], f'spec.scheduling.schedulerName: "{scheduler}"'
    if scheduler in found.described:
        return (
            f"{said} belongs to the older policy {older}, which is suspended; delete that one, or choose"
            " another name"
        )
    return f"{said} is served by the older policy {older}; choose another name"
