"""Decides whether a policy is valid, and which of several policies serves a scheduler name.

Used for the status of policies and by ``plimsoll validate``.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from msgspec import Struct, field
from pydantic import ValidationError

from plimsoll.api.v1alpha1.annotations import OPERATOR
from plimsoll.api.v1alpha1.scheduling import SchedulingSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.framework import ConfigurationError
from plimsoll.framework.errors import UnknownPartError
from plimsoll.framework.field_errors import field_errors, summary
from plimsoll.policies.operators import may_share_nodes, moves_pods, operator_of, titled


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
        read = judged_by_schema(document)
        policy = read.policy
        if policy is None:
            return read
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


def judged_by_schema(document: Mapping[str, Any]) -> PolicyVerdict:
    """Validate a policy without its plugins and strategies, which may be installed elsewhere."""
    document = {key: value for key, value in document.items() if key != "status"}
    try:
        return PolicyVerdict(SchedulingPolicy.model_validate(document))
    except ValidationError as exc:
        return PolicyVerdict(
            reason="InvalidSpec", sentence=summary(field_errors(exc, model=SchedulingPolicy))
        )


class PolicyDivision(Struct):
    """Which policy serves which scheduler name.

    Attributes:
        claimed: The policy that has a scheduler name, by that name.
        serving: The served specs, by scheduler name; suspended policies serve nothing.
        described: The specs by which other schedulers may work, by scheduler name: those of suspended
            policies, and of policies that other operators serve.
        others: The scheduler names that other operators serve.
        working: The policies that rebalance.
        lost: Why a policy serves nothing, as a word and a sentence, by policy.
    """

    claimed: dict[str, str] = field(default_factory=dict)
    serving: dict[str, SchedulingSpec] = field(default_factory=dict)
    described: dict[str, SchedulingSpec] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)
    working: list[SchedulingPolicy] = field(default_factory=list)
    lost: dict[str, tuple[str, str]] = field(default_factory=dict)


def divide(
    accepted: Iterable[tuple[SchedulingPolicy, tuple[str, object]]], operator: str = ""
) -> PolicyDivision:
    """Divide scheduler names and nodes among accepted policies, the oldest first; each with its queue sort.

    ``operator`` is the name of the one that serves: only its own policies.
    """
    found = PolicyDivision()
    orders: dict[str, tuple[str, object]] = {}  #: by operator
    placing: list[tuple[SchedulingPolicy, SchedulingSpec]] = []
    for policy, mine in accepted:
        name, scheduling, owner = (
            policy.metadata.name,
            policy.spec.scheduling,
            operator_of(policy.metadata.labels),
        )
        if owner and (moving := moves_pods(policy)):
            found.lost[name] = "OperatorPlacesOnly", _places_only(moving, owner)
            continue
        if scheduling is not None and scheduling.scheduler_name in found.claimed:
            found.lost[name] = "SchedulerNameTaken", _taken(found, scheduling.scheduler_name)
            continue
        places = None if policy.spec.suspend else scheduling
        if places is not None and mine != orders.get(owner, mine):
            found.lost[name] = (
                "QueueSortDiffers",
                (
                    f"spec.scheduling.plugins.queueSort: one queue serves all policies, sorted by the "
                    f"{orders[owner][0]} of an older one; use it with the same arguments, not {mine[0]}"
                ),
            )
            continue
        if places is not None:
            shared = (
                each
                for each, spec in placing
                if operator_of(each.metadata.labels) != owner and may_share_nodes(spec, places)
            )
            if (older := next(shared, None)) is not None:
                found.lost[name] = "NodesOverlap", _overlap(older)
                continue
            placing.append((policy, places))
            orders[owner] = mine
        if scheduling is not None:
            found.claimed[scheduling.scheduler_name] = name
            if places is not None and owner == operator:
                found.serving[scheduling.scheduler_name] = scheduling
            else:
                found.described[scheduling.scheduler_name] = scheduling
                found.others.update((scheduling.scheduler_name,) if places is not None else ())
        if policy.spec.rebalancing is not None and not policy.spec.suspend and owner == operator:
            found.working.append(policy)
    return found


def _places_only(moving: str, owner: str) -> str:
    return (
        f"{moving}: {titled(owner)} only places pods; move pods by a policy without the label {OPERATOR},"
        " whose scope.otherSchedulers names this policy's scheduler"
    )


def _overlap(older: SchedulingPolicy) -> str:
    """Why a policy may not place pods where one of another operator does."""
    whose = f"{older.metadata.name} of {titled(operator_of(older.metadata.labels))}"
    return (
        f"spec.scheduling.pluginConfig: a node may match this policy and the older policy {whose}, and two"
        " operators must not fill one node; give both an addedAffinity of NodeAffinity that requires"
        " different values of one label"
    )


def _taken(found: PolicyDivision, scheduler: str) -> str:
    """Why a policy does not get a scheduler name."""
    older, said = found.claimed[scheduler], f'spec.scheduling.schedulerName: "{scheduler}"'
    if scheduler in found.described and scheduler not in found.others:
        return (
            f"{said} belongs to the older policy {older}, which is suspended; delete that one, or choose"
            " another name"
        )
    return f"{said} is served by the older policy {older}; choose another name"
