"""Measured use of nodes and pods, and the classes of nodes that follow from it."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.model.kinds.pod_info import PodInfo


class Planner(StrEnum):
    """The planner that runs the strategies."""

    UPSTREAM = "Upstream"  #: descheduler's decisions, exactly
    PROVEN = "Proven"  #: only moves that the scheduler's own code proves
    OPTIMAL = "Optimal"  #: the cheapest such moves to the best placement


class Sample(Struct, frozen=True):
    """One element of the instant vector that a Prometheus query returned.

    Attributes:
        labels: The labels of the series.
        value: Any number, including infinities and NaN.
        taken: Its time in seconds since the epoch.
    """

    labels: Mapping[str, str]
    value: float
    taken: float = 0.0


class Measurements(Struct, frozen=True):
    """Actual usage, as far as it is measured; None if there is no such source.

    Attributes:
        nodes: From the metrics API: amounts by node and resource, in billionths.
        pods: The same by pod key (``namespace/name``), summed over its containers.
        samples: Results of strategies' own Prometheus queries, by query; failed queries are missing.
        queried: From the policy's Prometheus queries: amounts by node and resource, in billionths; for
            resources other than cpu and memory, percent.
        queried_pods: The same by pod key.
        problem: Why some of it is missing, or "".
    """

    nodes: Mapping[str, Mapping[str, int]] | None = None
    pods: Mapping[str, Mapping[str, int]] | None = None
    samples: Mapping[str, Sequence[Sample]] | None = None
    queried: Mapping[str, Mapping[str, int]] | None = None
    queried_pods: Mapping[str, Mapping[str, int]] | None = None
    problem: str = ""


class NodeClasses(Struct, frozen=True):
    """The node classes of a utilization strategy, keyed by name."""

    underutilized: tuple[str, ...]
    overutilized: tuple[str, ...]


class Protected(Struct, frozen=True):
    """A pod that a strategy wanted to move and an evictor protects."""

    pod: PodInfo
    wanted: str
    refusal: Refusal
