"""DefaultBinder: write the binding.

Formula: none; ``POST pods/<name>/binding`` with the node as target and the pod's uid, through the port in the
cycle state.
Units: none.
Edges: the API server's response becomes the status; nothing is retried here.
Source: kube-scheduler v1.36, ``defaultbinder/default_binder.go``.
Differs: an adapter sends the write, so that the same plugin binds in a simulation.
"""

from typing import ClassVar

from plimsoll import framework as fwk
from plimsoll.framework.binding_ports import BinderPort


class DefaultBinder(fwk.BindPlugin):
    """Bind every pod."""

    name: ClassVar = "DefaultBinder"
    declares: ClassVar = fwk.Declares(binds_by_port=True)

    async def bind(self, state: fwk.CycleState, pod: fwk.PodInfo, node: str) -> fwk.Status:
        """Write the binding."""
        return await state.read(BinderPort).binder.bind(pod, node)
