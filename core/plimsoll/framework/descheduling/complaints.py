"""Defines complaints of strategies with their amounts, by which a planner judges a move.

A complaint is one problem that a strategy wants to repair, identified by a sentence without numbers, such as
``node n1 is above its target in cpu``. Its amount is in the strategy's own unit. A planner compares the
complaints around a move before it and after it: a move that leaves its strategy's complaints unchanged
repairs nothing, and a move that increases a complaint as severe as those that it repairs only replaces one
problem by another.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.structural import Structural


class Gravity(IntEnum):
    """What kind of problem a complaint is about; the more severe goes first."""

    BALANCE = 1  #: nodes are used unevenly or too little
    PREFERENCE = 2  #: what the scheduler prefers, or replicas on one node
    RULE = 3  #: the scheduler would not place the pod there


class Complaint(NamedTuple):
    """One problem.

    Attributes:
        sentence: What is wrong, without numbers: the same before and after a move.
        gravity: A move that repairs something more severe may cause it.
    """

    sentence: str
    gravity: Gravity = Gravity.BALANCE


Complaints: TypeAlias = Mapping[Complaint, float]
"""Amounts above 0 by what is complained of; a plain sentence counts as one about balance."""


class Vicinity(Struct, frozen=True):
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
