"""Counts the reasons for which proposed pods stay, over the runs of a replay."""

from collections.abc import Iterable

from msgspec import Struct, field

from plimsoll.planning.moves import EvictionPlan, Refused


class RefusalTally(Struct):
    """The refusals of one policy for one reason.

    Attributes:
        refusals: Summed over the runs; a pod counts once per run, regardless of the number of strategies.
        runs: Number of runs with at least one refusal.
        at_end: Number of pods that a run at the end would refuse.
        message: Why the first of them stays.
        pods: Uids, in the runs and at the end; a replacement is another pod.
    """

    message: str
    refusals: int = 0
    runs: int = 0
    at_end: int = 0
    pods: set[str] = field(default_factory=set)


#: Refusals keyed by policy and reason.
RefusalTallies = dict[tuple[str, str], RefusalTally]


def count_run(policy: str, plan: EvictionPlan, into: RefusalTallies) -> None:
    """Add the refusals of a run."""
    _name(policy, plan.refused, into)
    for reason, pods in plan.refused_pods().items():
        tally = into[policy, reason]
        tally.refusals += pods
        tally.runs += 1


def count_end(policy: str, plan: EvictionPlan, into: RefusalTallies) -> None:
    """Add the refusals of a hypothetical run at the end."""
    _name(policy, plan.refused, into)
    for reason, pods in plan.refused_pods().items():
        into[policy, reason].at_end = pods


def _name(policy: str, refused: Iterable[Refused], into: RefusalTallies) -> None:
    for each in refused:
        tally = into.setdefault((policy, each.refusal.reason), RefusalTally(each.refusal.message))
        tally.pods.add(each.pod.uid)
