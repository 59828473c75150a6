"""RemovePodsHavingTooManyRestarts: evict pods whose containers have restarted too often.

Formula::

    candidate = sum of the containers' restarts >= podRestartThreshold
                and the phase or a container's waiting reason is one of states, if given

Units: restarts since the pod was created.
Edges: restarts count over the pod's life, not within a period; init containers count on request.
Source: descheduler v0.36, ``removepodshavingtoomanyrestarts``.
Differs: under the Proven planner the replacement may go to any node, the pod's own included; if no node has
room, the pod stays.
"""

from typing import ClassVar, Self

from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator

from plimsoll.framework import Pod, PodInfo
from plimsoll.framework.descheduling import Strategy, StrategyContext, StrategyKind
from plimsoll.framework.descheduling.proposals import Candidate, Candidates, until_closed
from plimsoll.toolkit.descheduling.container_states import statuses_of, waiting_reasons
from plimsoll.toolkit.descheduling.eviction_order import in_turn
from plimsoll.toolkit.descheduling.pod_scope import ScopedArgs

STATES = ("CrashLoopBackOff", "Running")


class RemovePodsHavingTooManyRestartsArgs(ScopedArgs):
    """Arguments, as in descheduler v1alpha2."""

    pod_restart_threshold: StrictInt = Field(
        default=0, ge=-(2**31), lt=2**31, description="Restarts, at least 1, from which a pod is a candidate."
    )
    including_init_containers: StrictBool = Field(
        default=False, description="Whether restarts and states of init containers count too."
    )
    states: tuple[StrictStr, ...] = Field(
        default=(), description=f"Only pods in one of these states: {', '.join(STATES)}; none means any."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.pod_restart_threshold < 1:
            raise ValueError("invalid PodsHavingTooManyRestarts threshold: podRestartThreshold is at least 1")
        if not set(self.states) <= set(STATES):
            raise ValueError(f"states must be one of {', '.join(STATES)}")
        return self


class RemovePodsHavingTooManyRestarts(Strategy):
    """Evict pods that crash repeatedly."""

    name: ClassVar = "RemovePodsHavingTooManyRestarts"
    kind: ClassVar = StrategyKind.DESCHEDULE
    args_model: ClassVar = RemovePodsHavingTooManyRestartsArgs
    renews: ClassVar = True

    def __init__(self, args: RemovePodsHavingTooManyRestartsArgs) -> None:
        self.args = args

    def candidates(self, context: StrategyContext) -> Candidates:
        """Pods by node, those with the most restarts first."""
        for name in context.nodes:
            found: list[tuple[int, PodInfo]] = []
            reasons: dict[str, str] = {}
            for pod in context.all_pods(name):
                restarts = self._restarts(pod.pod)
                if restarts < self.args.pod_restart_threshold or not self._in_state(pod.pod):
                    continue
                times = "once" if restarts == 1 else f"{restarts} times"
                reason = f"its containers were restarted {times}"
                if self.args.covers(pod) and context.may_go(pod, reason):
                    found.append((-restarts, pod))
                    reasons[pod.uid] = reason
            yield from until_closed(Candidate(pod, name, reasons[pod.uid]) for pod in in_turn(found, context))

    def _restarts(self, pod: Pod) -> int:
        return sum(each.restart_count for each in statuses_of(pod, init=self.args.including_init_containers))

    def _in_state(self, pod: Pod) -> bool:
        states = self.args.states
        return (
            not states
            or pod.status.phase in states
            or any(
                reason in states
                for reason in waiting_reasons(statuses_of(pod, init=self.args.including_init_containers))
            )
        )
