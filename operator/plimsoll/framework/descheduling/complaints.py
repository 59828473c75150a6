"""Defines complaints of strategies with their amounts, by which a planner judges a move.

A complaint is one problem that a strategy wants to repair, identified by a sentence without numbers, such as
``node n1 is above its target in cpu``. Its amount is in the strategy's own unit. A planner compares the
complaints around a move before it and after it: a move that leaves its strategy's complaints unchanged
repairs nothing, and a move that increases any complaint of any strategy only replaces one problem by another.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.structural import Structural

Complaints: TypeAlias = Mapping[str, float]
"""Amounts above 0 by what is complained of; a sentence is the same before and after a move."""


@dataclass(frozen=True, slots=True)
class Vicinity:
    """The pods and nodes of a move, to which a strategy then restricts its complaints.

    Attributes:
        pods: The moved pods, as the cluster has them at present: before the move the pods themselves, after
            it their replacements.
        nodes: Names of the nodes that they leave and enter.
    """

    pods: tuple[PodInfo, ...]
    nodes: frozenset[str]


@runtime_checkable
class Complaining(Protocol, metaclass=Structural):
    """A strategy that reports its complaints, without proposing repairs.

    Its moves need not raise the scheduler's score, but must decrease its complaints. A strategy without this
    method is judged by the score, and by whether it would propose the replacement again.
    """

    def complaints(self, context: StrategyContext, near: Vicinity | None = None) -> Complaints:
        """The complaints in the present cluster; with ``near``, those that a move there can change."""


@runtime_checkable
class ComplainsOfCrowding(Complaining, Protocol):
    """A strategy that complains about nodes because of the requests of their pods, and about nothing else."""

    @property
    def complains_of_crowding(self) -> bool:
        """Whether, given its arguments, its complaint about a node depends only on the requests of its pods.

        Higher requests never decrease a complaint. Pods with equal requests are then refused alike.
        """


@runtime_checkable
class EmptiesByUse(Complaining, Protocol):
    """A strategy that takes pods off under-used nodes, whichever pods they are.

    Its complaint about such a node does not increase with the pods there, so a pod that another strategy
    sends there would be moved again.
    """

    def to_be_emptied(self, context: StrategyContext, near: Vicinity) -> frozenset[str]:
        """Names of the nodes of the vicinity that it would empty, judged by the nodes alone."""


def pods_near(context: StrategyContext, near: Vicinity | None) -> Iterable[tuple[PodInfo, str]]:
    """The placed pods that count, each with its node's name: those of the vicinity, or all."""
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
