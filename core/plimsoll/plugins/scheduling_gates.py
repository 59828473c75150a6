"""SchedulingGates: hold a pod back until all its scheduling gates are removed.

Formula: gated while ``spec.schedulingGates`` is not empty.
Units: none.
Edges: the reason lists the gates in the order of the spec and is not shown to users.
Source: kube-scheduler v1.36, ``schedulinggates/scheduling_gates.go``; KEP 3521.
Differs: not at all.
"""

from typing import ClassVar

from plimsoll import framework as fwk


class SchedulingGates(fwk.PreEnqueuePlugin, fwk.EnqueueExtensions):
    """Hold back pods with scheduling gates."""

    name: ClassVar = "SchedulingGates"

    def pre_enqueue(self, pod: fwk.PodInfo) -> fwk.Status:
        """Success without gates; otherwise the status names them."""
        gates = pod.pod.spec.scheduling_gates
        if not gates:
            return fwk.SUCCESS
        return fwk.unresolvable(f"waiting for scheduling gates: [{' '.join(gate.name for gate in gates)}]")

    def events_to_register(self) -> tuple[fwk.EventWithHint, ...]:
        """Removal of the pod's last gate."""
        gone = fwk.ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        return (fwk.EventWithHint(fwk.EventResource.UNSCHEDULABLE_POD, gone),)
