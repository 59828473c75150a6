"""Proposals of strategies, and verdicts of planners on them."""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, Self, TypeAlias

from plimsoll.model.kinds.pod_info import PodInfo


@dataclass(frozen=True, slots=True)
class Destinations:
    """Where a candidate may go, as far as its strategy is concerned.

    Attributes:
        admits: Whether the node of this name serves the strategy's purpose.
        preference: A node's rank by the strategy's own order, the highest first; None leaves the order to
            the scheduler's score. Either way only nodes that the scheduler's filters accept are taken, the
            target is held, and the replacement is sent there.
        names: The nodes that ``admits`` admits, where they are known beforehand: planners then ask for none.
    """

    admits: Callable[[str], bool]
    preference: Callable[[str], float] | None = None
    names: frozenset[str] | None = None

    @classmethod
    def among(cls, names: frozenset[str], preference: Callable[[str], float] | None = None) -> Self:
        """These nodes and no others."""
        return cls(names.__contains__, preference, names)


class Verdict(Enum):
    """The planner's answer to a candidate. A planner that wants no more closes the generator."""

    ACCEPTED = "accepted"  #: the pod goes; from now on the context shows the cluster without it
    REFUSED = "refused"  #: this pod stays; others of the same node may still go
    NODE_CLOSED = "node closed"  #: this pod stays, and so do all others of its node in this cycle


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a pod stays where it is.

    Attributes:
        reason: One word for machines, to count by (``PodsWithLocalStorage``, ``NodeLimit``).
        message: One sentence for people, with the names that matter.
        yields_to_surge: Whether it speaks against an eviction only: a move that brings the replacement up
            first, and lets the pod go when that is ready, does no harm.
    """

    reason: str
    message: str
    yields_to_surge: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pod that a strategy would rather see elsewhere. Earlier candidates are preferred to later ones.

    Attributes:
        reason: Why it should go, in one sentence without its name; becomes the record's reason.
        target: The node that it should go to, for pods of our own schedulers only: the target is held, and
            the replacement is sent there if it is feasible, whatever its score. "" leaves the choice to
            the planner.
        destinations: Which nodes serve the strategy's purpose; None means any. A candidate with a target
            needs none.
    """

    pod: PodInfo
    node: str
    reason: str
    target: str = ""
    destinations: Destinations | None = None


@dataclass(frozen=True, slots=True)
class Beneficiary:
    """A pending pod that room is made for, or a gang of them.

    Attributes:
        pod: The pod.
        node: Where it must be feasible once the moves are made; the room is held for it.
        others: Further members of its PodGroup, which must be feasible together with it.
    """

    pod: PodInfo
    node: str
    others: "tuple[Beneficiary, ...]" = ()

    @property
    def all(self) -> "tuple[Beneficiary, ...]":
        """The pod, then the others."""
        return self, *self.others


@dataclass(frozen=True, slots=True)
class Bundle:
    """Candidates of which all go or none does, in this order; the limit for a node does not apply to them.

    Attributes:
        candidates: Who goes; none of a higher priority than the beneficiary.
        beneficiary: Whom it is for: unless it fits when all have gone, none goes.
        one_by_one: Whether candidates of one workload go one after the other, each when the replacement of
            the one before is ready; the limit for a workload then holds for the first of them.
    """

    candidates: tuple[Candidate, ...]
    beneficiary: Beneficiary | None = None
    one_by_one: bool = False


Proposal: TypeAlias = Candidate | Bundle
"""What a planner judges: one pod, or several that stand and fall together."""

Candidates: TypeAlias = Generator[Proposal, Verdict, None]
"""What a strategy returns: proposals out, verdicts in."""


def until_closed(candidates: Iterable[Candidate]) -> Candidates:
    """Propose candidates of one node, as long as the node is not closed."""
    for each in candidates:
        if (yield each) is Verdict.NODE_CLOSED:
            return


class SurgePermission(Protocol):
    """Lifts refusals that hold for evictions only."""

    def lift(self, pod: PodInfo, refusal: Refusal) -> Refusal | None:
        """Why the pod stays all the same; None when a surge may move it."""


class NoSurges:
    """Pods are evicted, or stay."""

    def lift(self, pod: PodInfo, refusal: Refusal) -> Refusal | None:
        """The refusal holds."""
        return refusal
