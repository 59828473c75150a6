"""SchedulingGates: a pod waits until everybody who put a gate on it has taken it away.

Formula: gated while ``spec.schedulingGates`` is not empty.
Units: none.
Edges: the reason lists the gates in the order of the spec and is not shown to users.
Source: kube-scheduler v1.36, ``schedulinggates/scheduling_gates.go``; KEP 3521.
Differs: not at all.
"""

from typing import ClassVar

from plimsoll.framework import (
    SUCCESS,
    ActionType,
    EnqueueExtensions,
    EventResource,
    EventWithHint,
    NoArgs,
    PodInfo,
    PreEnqueuePlugin,
    Status,
    unresolvable,
)


class SchedulingGates(PreEnqueuePlugin, EnqueueExtensions):
    """Hold back pods with scheduling gates."""

    name: ClassVar = "SchedulingGates"
    args_model: ClassVar = NoArgs

    def __init__(self, args: NoArgs) -> None:
        """Take no arguments."""

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Success without gates; otherwise they are named."""
        gates = pod.pod.spec.scheduling_gates
        if not gates:
            return SUCCESS
        return unresolvable(f"waiting for scheduling gates: [{' '.join(gate.name for gate in gates)}]")

    def events_to_register(self) -> tuple[EventWithHint, ...]:
        """The last gate of the pod is gone."""
        gone = ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        return (EventWithHint(EventResource.UNSCHEDULABLE_POD, gone),)
