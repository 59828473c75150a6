"""Defines proposals of strategies, and verdicts of planners."""

from collections.abc import Callable, Generator, Iterable
from enum import Enum
from typing import Protocol, Self, TypeAlias

from msgspec import Struct

from plimsoll.model.kinds.pod_info import PodInfo


class Destinations(Struct, frozen=True):
    """The nodes that suit a candidate's strategy.

    Attributes:
        admits: Whether the node with this name serves the strategy's purpose.
        preference: A node's rank in the strategy's own order, the highest first; None leaves the order to the
            scheduler's score. In both cases the target is feasible for the scheduler, it is reserved, and the
            replacement is sent there.
        names: The nodes that ``admits`` admits, if known in advance: then planners do not call it.
    """

    admits: Callable[[str], bool]
    preference: Callable[[str], float] | None = None
    names: frozenset[str] | None = None

    @classmethod
    def among(cls, names: frozenset[str], preference: Callable[[str], float] | None = None) -> Self:
        """Exactly these nodes."""
        return cls(names.__contains__, preference, names)


class Verdict(Enum):
    """The planner's verdict on a candidate. To end the strategy, the planner closes the generator."""

    ACCEPTED = "accepted"  #: the pod moves; from now on the context shows the cluster without it
    REFUSED = "refused"  #: this pod stays; others on the same node may still move
    NODE_CLOSED = "node closed"  #: this pod stays, and so do all others on its node in this cycle


class Refusal(Struct, frozen=True):
    """Why a pod stays where it is.

    Attributes:
        reason: A word for machines, to count by (``PodsWithLocalStorage``, ``NodeLimit``).
        message: A sentence for people, with the relevant names.
        yields_to_surge: Whether it forbids an eviction only: a move that starts the replacement first, and
            deletes the pod when that is ready, is allowed.
    """

    reason: str
    message: str
    yields_to_surge: bool = False


class Candidate(Struct, frozen=True):
    """A pod that a strategy wants to move. Earlier candidates are preferred to later ones.

    Attributes:
        reason: Why it should move, in one sentence without its name; becomes the record's reason.
        target: Its target, for pods of our own schedulers only: the target is reserved, and the replacement
            is sent there if it is feasible, whatever its score. "" leaves the choice to the planner.
        destinations: The nodes that serve the strategy's purpose; None means any. A candidate with a target
            needs none.
    """

    pod: PodInfo
    node: str
    reason: str
    target: str = ""
    destinations: Destinations | None = None


class Beneficiary(Struct, frozen=True):
    """A pending pod that moves make room for, or a gang.

    Attributes:
        pod: The pod.
        node: The node that must be feasible for it after the moves; its room is reserved.
        others: Further members of its PodGroup, which must be feasible together with it.
    """

    pod: PodInfo
    node: str
    others: "tuple[Beneficiary, ...]" = ()

    @property
    def all(self) -> "tuple[Beneficiary, ...]":
        """The pod, then the others."""
        return self, *self.others


class Bundle(Struct, frozen=True):
    """Candidates that all move or none, in this order; the limit for a node does not apply to them.

    Attributes:
        candidates: The pods to move; none of a higher priority than the beneficiary.
        beneficiary: The pod to make room for: unless it fits after all moves, none is made.
        one_by_one: Whether candidates of one workload move in turn, each when the earlier one's replacement
            is ready; the limit for a workload then applies only to the first of them.
        follows: Whether they also follow, in the same way, the earlier moves of the plan.
        group: The group whose members these are, all of them; "" for none. It leaves whole: no member is
            evicted before all places are reserved, and the limit for a workload does not apply.
    """

    candidates: tuple[Candidate, ...]
    beneficiary: Beneficiary | None = None
    one_by_one: bool = False
    follows: bool = False
    group: str = ""


Proposal: TypeAlias = Candidate | Bundle
"""What a planner judges: one pod, or several that stand and fall together."""

Candidates: TypeAlias = Generator[Proposal, Verdict, None]
"""What a strategy returns: proposals out, verdicts in."""


def until_closed(candidates: Iterable[Candidate]) -> Candidates:
    """Propose candidates of one node until the planner closes the node."""
    for each in candidates:
        if (yield each) is Verdict.NODE_CLOSED:
            return


class SurgePermission(Protocol):
    """Lifts refusals that apply to evictions only."""

    def lift(self, pod: PodInfo, refusal: Refusal) -> Refusal | None:
        """Why the pod stays anyway; None if a surge may move it."""


class NoSurges:
    """Lifts no refusals: pods are evicted, or stay."""

    def lift(self, pod: PodInfo, refusal: Refusal) -> Refusal | None:
        """The unchanged refusal."""
        return refusal
