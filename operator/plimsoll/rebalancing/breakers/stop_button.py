"""The stop button: while an annotation of the operator's namespace is set, no policy moves pods.

A breaker is a ceiling on the evictions of a run, in addition to the policy's own budgets: what it forbids is
refused with its name, in a plan and right before each eviction.
"""

from dataclasses import replace

from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.planning.limits import Ceiling
from plimsoll.planning.moves import RebalancingConfig

#: The annotation of the operator's own namespace that stops all moves while its value is "true".
STOP = "plimsoll.dev/stop"


class StopButton:
    """Stops the moves of all policies immediately.

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


def bounded(rebalancing: RebalancingConfig, breaker: str, most: int = 0) -> RebalancingConfig:
    """The same with at most so many evictions; refusals name the breaker."""
    budgets = (*rebalancing.limits.budgets, (breaker, Ceiling(count=most)))
    return replace(rebalancing, limits=replace(rebalancing.limits, budgets=budgets))
