"""Scenario is one day: the load of the cluster, the events in it, the faults of the readings."""

from dataclasses import dataclass, field
from enum import StrEnum

HOUR_S = 3_600.0


class Happening(StrEnum):
    """What happens besides pods coming and going."""

    BURST = "burst"  #: a hundred pods simultaneously, a moment after a new node
    NODE_LOSS = "node loss"  #: three nodes vanish; three new ones come eight hours later
    TOO_LARGE = "too large"  #: one pod that alone is over any line


class Fault(StrEnum):
    """What is wrong with the readings, besides being a minute old."""

    SILENT_NODES = "silent nodes"  #: 2 % of the nodes are never read
    SILENT_SOURCE = "silent source"  #: for ten minutes every three hours nothing is read
    SOURCE_GONE = "source gone"  #: nothing is read from the fourth hour on
    FROZEN_NODE = "frozen node"  #: from the fourth hour on one node says what it said then


@dataclass(frozen=True, slots=True)
class Scenario:
    """One day.

    Attributes:
        mean: The mean use of the nodes' cpu that the day is made for, 0 to 1.
        requested: The share of the nodes' cpu that pods request on average.
        correlation: Between the replicas of a workload.
        wave: Amplitude of a daily wave, in antiphase for half of the workloads.
        hours: How long, with the ``warm_up`` that is not counted.
        grain_s: Seconds between two moments; below 60 there are noise, bursts and start-ups.
        reading_s: Seconds between two readings.
        late_s: How old a reading is when it arrives.
        deciding_s: Seconds between two runs of a rebalancer.
        begins: When happenings and lasting faults begin, in hours.
    """

    name: str
    mean: float = 0.61
    requested: float = 0.8
    correlation: float = 0.5
    wave: float = 0.0
    nodes: int = 40
    hours: float = 24.0
    warm_up: float = 2.0
    grain_s: float = 60.0
    reading_s: float = 60.0
    late_s: float = 60.0
    deciding_s: float = 120.0
    begins: float = 4.0
    happenings: frozenset[Happening] = field(default_factory=frozenset)
    faults: frozenset[Fault] = field(default_factory=frozenset)

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return self.hours * HOUR_S


def _with(*happenings: Happening) -> frozenset[Happening]:
    return frozenset(happenings)


#: All scenarios, keyed by name. The undisturbed ones have nothing but churn.
SCENARIOS = {
    each.name: each
    for each in (
        Scenario("churn44", 0.44),
        Scenario("churn55", 0.55),
        Scenario("churn61", 0.61),
        Scenario("churn67", 0.67),
        Scenario("saturation78", 0.78),
        Scenario("fine61", 0.61, grain_s=15.0, reading_s=30.0),
        Scenario("burst55", 0.55, happenings=_with(Happening.BURST)),
        Scenario("nodeloss55", 0.55, happenings=_with(Happening.NODE_LOSS)),
        Scenario("wave55", 0.55, wave=0.3),
        Scenario("toolarge55", 0.55, happenings=_with(Happening.TOO_LARGE)),
        Scenario("silent61", 0.61, faults=frozenset({Fault.SILENT_NODES})),
        Scenario("pauses61", 0.61, faults=frozenset({Fault.SILENT_SOURCE})),
        Scenario("gone61", 0.61, faults=frozenset({Fault.SOURCE_GONE})),
        Scenario("frozen61", 0.61, faults=frozenset({Fault.FROZEN_NODE})),
    )
}
