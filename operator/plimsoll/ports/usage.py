"""Port for measured usage of nodes and pods."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from plimsoll.framework.descheduling.measurements import Sample
from plimsoll.ports.writes import WriteResult


@dataclass(frozen=True, slots=True)
class UsageReading:
    """What a node or a pod used.

    Attributes:
        name: Of the node, or ``namespace/name`` of the pod.
        usage: Billionths by resource: cpu and memory.
        taken: When, in seconds since the epoch.
    """

    name: str
    usage: Mapping[str, int]
    taken: float


class UsageReader(Protocol):
    """Reads actual usage."""

    async def nodes(self) -> tuple[WriteResult, Sequence[UsageReading]]:
        """Of every node that is measured."""

    async def pods(self) -> tuple[WriteResult, Sequence[UsageReading]]:
        """Of every pod that is measured."""

    async def query(self, url: str, promql: str) -> tuple[WriteResult, Sequence[Sample]]:
        """The instant vector that a Prometheus query returns."""
