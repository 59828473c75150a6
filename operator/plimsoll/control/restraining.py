"""What keeps policies from moving pods: the stop button, and rest after moves that came to nothing.

Both are ceilings on the evictions of a run, beside the budgets that the policy has itself: what they
forbid is refused with their name, in a plan and right before each eviction.
"""

from dataclasses import replace

from plimsoll.engine.limits import Ceiling
from plimsoll.engine.memory import Memory
from plimsoll.engine.moves import Rebalancing
from plimsoll.model.objects import ClusterObjects

#: The annotation of the operator's own namespace that stops all moves while its value is "true".
STOP = "plimsoll.dev/stop"


class StopButton:
    """Stops the moves of all policies, at once.

    Args:
        objects: Where the namespace is looked up; it is watched.
        namespace: The operator's own; "" has no button.
    """

    def __init__(self, objects: ClusterObjects, namespace: str) -> None:
        self._objects = objects
        self._namespace = namespace

    @property
    def is_pressed(self) -> bool:
        """Whether nothing may be moved."""
        namespace = self._objects.namespaces.get(self._namespace)
        return namespace is not None and namespace.metadata.annotations.get(STOP) == "true"

    @property
    def sentence(self) -> str:
        """Why nothing is moved."""
        return f'namespace {self._namespace} is annotated {STOP}="true"; until it is removed no pod is moved'

    def heeded(self, rebalancing: Rebalancing) -> Rebalancing:
        """The same, without any eviction while the button is pressed."""
        return _bounded(rebalancing, STOP, 0) if self.is_pressed else rebalancing


def rested(rebalancing: Rebalancing, memory: Memory, name: str) -> Rebalancing:
    """The same for a policy whose moves keep coming to nothing: it moves none for a while, then one."""
    resting, may_try = memory.rest(name)
    return _bounded(rebalancing, "rest after fruitless moves", int(may_try)) if resting else rebalancing


def _bounded(rebalancing: Rebalancing, name: str, most: int) -> Rebalancing:
    budgets = (*rebalancing.limits.budgets, (name, Ceiling(count=most)))
    return replace(rebalancing, limits=replace(rebalancing.limits, budgets=budgets))
