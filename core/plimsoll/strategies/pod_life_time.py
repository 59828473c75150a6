"""PodLifeTime: evict pods that are old, or that have been in some state for long enough.

Formula::

    candidate = age and states and owner kinds and conditions and exit codes, each if given
    category  = one of its values matches

Units: whole seconds, truncated.
Edges: the age must exceed ``maxPodLifeTimeSeconds``; the time in a condition must reach its minimum; both
must hold for the same condition; times in the future never match.
Source: descheduler v0.36, ``podlifetime``.
Differs: under the Proven planner the replacement may go to any node, the pod's own included; if no node has
room, the pod stays.
"""

from typing import Annotated, ClassVar, Self

from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator

from plimsoll.framework import PluginArgs, Pod, PodInfo
from plimsoll.framework.descheduling import PodCondition, Strategy, StrategyContext, StrategyKind
from plimsoll.framework.descheduling.proposals import Candidate, Candidates
from plimsoll.toolkit.descheduling.container_states import (
    age_s,
    exit_codes,
    statuses_of,
    terminated_reasons,
    waiting_reasons,
)
from plimsoll.toolkit.descheduling.eviction_order import in_turn
from plimsoll.toolkit.descheduling.pod_scope import ScopedArgs

PHASES = ("Running", "Pending", "Succeeded", "Failed", "Unknown")
POD_REASONS = ("NodeAffinity", "NodeLost", "Shutdown", "UnexpectedAdmissionError")
WAITING_REASONS = (
    "PodInitializing",
    "ContainerCreating",
    "ImagePullBackOff",
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "ErrImagePull",
    "CreateContainerError",
    "InvalidImageName",
)
TERMINATED_REASONS = (
    "OOMKilled",
    "Error",
    "Completed",
    "DeadlineExceeded",
    "Evicted",
    "ContainerCannotRun",
    "StartError",
)
STATES = frozenset((*PHASES, *POD_REASONS, *WAITING_REASONS, *TERMINATED_REASONS))

Seconds = Annotated[StrictInt, Field(ge=0)]
ExitCode = Annotated[StrictInt, Field(ge=-(2**31), lt=2**31)]


class ConditionArg(PluginArgs):
    """A condition of the pod; all given fields must match."""

    type: StrictStr = Field(default="", description="Type; empty means any.")
    status: StrictStr = Field(default="", description="Status; empty means any.")
    reason: StrictStr = Field(default="", description="Reason; empty means any.")
    min_time_since_last_transition_seconds: Seconds | None = Field(
        default=None, description="Seconds since it changed, at least."
    )

    @property
    def is_empty(self) -> bool:
        """Whether no field is given."""
        return not (self.type or self.status or self.reason) and (
            self.min_time_since_last_transition_seconds is None
        )


class OwnerKindsArg(PluginArgs):
    """Kinds of owners to include or to exclude."""

    include: tuple[StrictStr, ...] = Field(
        default=(), description="Kinds of owner whose pods alone are meant; none means all."
    )
    exclude: tuple[StrictStr, ...] = Field(default=(), description="Kinds of owner whose pods are left out.")


class PodLifeTimeArgs(ScopedArgs):
    """Arguments, as in descheduler v1alpha2."""

    max_pod_life_time_seconds: Seconds | None = Field(default=None, description="Seconds of age to exceed.")
    states: tuple[StrictStr, ...] = Field(
        default=(), description="Phases, reasons of the pod, waiting or terminated reasons of containers."
    )
    conditions: tuple[ConditionArg, ...] = Field(default=(), description="Conditions of the pod.")
    exit_codes: tuple[ExitCode, ...] = Field(default=(), description="Exit codes of ended containers.")
    owner_kinds: OwnerKindsArg | None = Field(default=None, description="Kinds of the pod's owners.")
    including_init_containers: StrictBool = Field(
        default=False, description="Whether states and exit codes of init containers count too."
    )
    including_ephemeral_containers: StrictBool = Field(
        default=False, description="Whether states of ephemeral containers count too."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (
            self.max_pod_life_time_seconds is None
            and not self.states
            and not self.conditions
            and not self.exit_codes
        ):
            raise ValueError(
                "at least one filtering criterion must be specified"
                " (maxPodLifeTimeSeconds, states, conditions, or exitCodes)"
            )
        if not set(self.states) <= STATES:
            raise ValueError(f"states must be one of {' '.join(sorted(STATES))}")
        for position, condition in enumerate(self.conditions):
            if condition.is_empty:
                raise ValueError(
                    f"conditions[{position}]: at least one of type, status, reason,"
                    " or minTimeSinceLastTransitionSeconds must be set"
                )
        if self.owner_kinds is not None and self.owner_kinds.include and self.owner_kinds.exclude:
            raise ValueError("only one of Include/Exclude ownerKinds can be set")
        return self


class PodLifeTime(Strategy):
    """Evict pods by age, state, condition or exit code."""

    name: ClassVar = "PodLifeTime"
    kind: ClassVar = StrategyKind.DESCHEDULE
    args_model: ClassVar = PodLifeTimeArgs
    renews: ClassVar = True

    def __init__(self, args: PodLifeTimeArgs) -> None:
        self.args = args

    def candidates(self, context: StrategyContext) -> Candidates:
        """Pods of all nodes together, the oldest first; a closed node does not end the run."""
        found: list[tuple[float, PodInfo]] = []
        reasons: dict[str, str] = {}
        for name in context.nodes:
            for pod in context.all_pods(name):
                age = age_s(pod.pod.metadata.creation_timestamp, context.now)
                if not self._matches(pod, age, context):
                    continue
                reason = self._reason(pod.pod, age)
                if context.may_go(pod, reason):
                    found.append((-age, pod))
                    reasons[pod.uid] = reason
        for pod in in_turn(found, context):
            yield Candidate(pod, pod.pod.node_name, reasons[pod.uid])

    def _matches(self, pod: PodInfo, age: float, context: StrategyContext) -> bool:
        args = self.args
        limit = args.max_pod_life_time_seconds
        if limit is not None and not age >= limit + 1:
            return False
        if not (args.covers(pod) and self._owned(pod.pod)):
            return False
        if args.states and set(args.states).isdisjoint(self._states(pod.pod)):
            return False
        if args.conditions and not any(
            _agrees(wanted, actual, context)
            for wanted in args.conditions
            for actual in pod.pod.status.conditions
        ):
            return False
        codes = exit_codes(statuses_of(pod.pod, init=args.including_init_containers))
        return not args.exit_codes or not set(args.exit_codes).isdisjoint(codes)

    def _owned(self, pod: Pod) -> bool:
        kinds = self.args.owner_kinds
        actual = {owner.kind for owner in pod.metadata.owner_references}
        if kinds is None:
            return True
        if kinds.include:
            return not actual.isdisjoint(kinds.include)
        return actual.isdisjoint(kinds.exclude)

    def _states(self, pod: Pod) -> set[str]:
        statuses = list(
            statuses_of(
                pod,
                init=self.args.including_init_containers,
                ephemeral=self.args.including_ephemeral_containers,
            )
        )
        return {
            pod.status.phase,
            pod.status.reason,
            *waiting_reasons(statuses),
            *terminated_reasons(statuses),
        }

    def _reason(self, pod: Pod, age: float) -> str:
        limit = self.args.max_pod_life_time_seconds
        states = sorted(self._states(pod) & set(self.args.states))
        parts = [
            f"it is {age:.0f} s old, the limit is {limit} s" if limit is not None else "",
            f"it is {' and '.join(states)}" if states else "",
            "a condition matches" if self.args.conditions else "",
            "an exit code matches" if self.args.exit_codes else "",
        ]
        return "; ".join(part for part in parts if part)


def _agrees(wanted: ConditionArg, actual: PodCondition, context: StrategyContext) -> bool:
    if wanted.type and wanted.type != actual.type:
        return False
    if wanted.status and wanted.status != actual.status:
        return False
    if wanted.reason and wanted.reason != actual.reason:
        return False
    least = wanted.min_time_since_last_transition_seconds
    if least is None:
        return True
    changed = actual.last_transition_time
    return changed is not None and age_s(changed, context.now) >= least
