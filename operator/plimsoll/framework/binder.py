"""How a bind plugin reaches the API server: through a port that the shell puts into the cycle state.

Plugins do no I/O of their own. Before Bind the control layer writes ``BinderPort(binder)``; a test writes
a fake.
"""

from dataclasses import dataclass
from typing import Protocol

from plimsoll.framework.status import Status
from plimsoll.model.kinds.pod_info import PodInfo


class Binder(Protocol):
    """Writes bindings."""

    async def bind(self, pod: PodInfo, node: str) -> Status:
        """Assign the pod to the node; success, or an error with the API's sentence."""


@dataclass(frozen=True, slots=True)
class BinderPort:
    """The binder of this attempt, as kept in the cycle state."""

    binder: Binder
