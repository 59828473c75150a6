"""Complaints of strategies with their amounts, by which a planner judges a move.

A complaint is one thing that a strategy would have mended, named by a sentence without numbers, such as
``node n1 is above its target in cpu``. Its amount is in the strategy's own unit. A planner compares the
complaints around a move before and after it: a move that leaves its strategy's complaints as they were mends
nothing, and one that adds to any complaint of any strategy trades one trouble for another.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.model.kinds.pod_info import PodInfo

Complaints: TypeAlias = Mapping[str, float]
"""Amounts above 0 by what is complained of; a sentence is the same before and after a move."""


@dataclass(frozen=True, slots=True)
class Vicinity:
    """What a move touches; a strategy then looks at nothing else.

    Attributes:
        pods: The pods that move, as the cluster has them at this moment: before the move the pods
            themselves, after it their replacements.
        nodes: Names of the nodes that they leave and enter.
    """

    pods: tuple[PodInfo, ...]
    nodes: frozenset[str]


@runtime_checkable
class Complaining(Protocol):
    """A strategy that says what it complains of, without proposing how to mend it.

    Its moves need not raise the scheduler's score: they must lower its complaints. A strategy without this
    method is judged by the score, and by whether it would propose the replacement again.
    """

    def complaints(self, context: StrategyContext, near: Vicinity | None = None) -> Complaints:
        """What it would have mended in the present cluster; with ``near``, what a move there can change."""


@runtime_checkable
class ComplainsOfCrowding(Complaining, Protocol):
    """A strategy that complains of nodes by how much the pods there request, and of nothing else."""

    @property
    def complains_of_crowding(self) -> bool:
        """Whether, with its arguments, what it says of a node depends on the requests of its pods alone.

        More requests never lessen a complaint. Pods with equal requests are then refused alike.
        """


@runtime_checkable
class EmptiesByUse(Complaining, Protocol):
    """A strategy that takes pods off nodes for how little they are used, whichever pods they are.

    Its complaint of such a node does not grow with the pods there, so a pod that another strategy sends
    there would be moved again.
    """

    def to_be_emptied(self, context: StrategyContext, near: Vicinity) -> frozenset[str]:
        """Names of the nodes of the vicinity that it would empty, as far as the nodes themselves go."""


def pods_near(context: StrategyContext, near: Vicinity | None) -> Iterable[tuple[PodInfo, str]]:
    """The placed pods that count, each with the name of its node: those of the vicinity, or all."""
    if near is None:
        for name in context.nodes:
            for pod in context.pods(name):
                yield pod, name
        return
    for pod in near.pods:
        name = context.node_of(pod)
        if name and not pod.pod.is_terminal and name in context.considered:
            yield pod, name


def nodes_near(context: StrategyContext, near: Vicinity | None) -> tuple[str, ...]:
    """Names of the nodes that count: those of the vicinity that are under consideration, or all."""
    if near is None:
        return context.nodes
    return tuple(name for name in sorted(near.nodes) if name in context.considered)
