"""Port for measured usage of nodes and pods."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from plimsoll.api.v1alpha1.prometheus import PrometheusProviderSpec
from plimsoll.framework.descheduling.measurements import Sample
from plimsoll.load.readings import CPU, MEMORY, is_possible
from plimsoll.model.quantity import BILLION
from plimsoll.ports.writes import WriteOutcome, WriteResult

#: The measured resources, each with its index in the load book and billionths in one of its units.
MEASURED = {"cpu": (CPU, 1), "memory": (MEMORY, BILLION)}


class UsageReading(Struct, frozen=True):
    """The measured usage of a node or a pod.

    Attributes:
        name: The name of the node, or ``namespace/name`` of the pod.
        usage: Billionths by resource: cpu and memory.
        taken: The end of the window, in seconds since the epoch.
        window_s: Seconds over which it is averaged; 0 if the source does not say.
    """

    name: str
    usage: Mapping[str, int]
    taken: float
    window_s: float = 0.0

    @property
    def is_sound(self) -> bool:
        """Whether the amounts are possible on some machine."""
        return all(is_possible_amount(name, amount) for name, amount in self.usage.items())


def is_possible_amount(resource: str, billionths: float) -> bool:
    """Whether an amount is possible on some machine; False for a resource that is not measured."""
    if resource not in MEASURED:
        return billionths == 0
    place, per_unit = MEASURED[resource]
    return is_possible(place, billionths // per_unit)


def result_of(answer: WriteResult) -> str:
    """The label under which a result is counted."""
    if answer.is_done:
        return "answered"
    return "unanswered" if answer.verdict is WriteOutcome.UNKNOWN else "refused"


class UsageReader(Protocol):
    """Reads the metrics API."""

    async def nodes(self) -> tuple[WriteResult, Sequence[UsageReading]]:
        """The usage of every measured node."""

    async def pods(self) -> tuple[WriteResult, Sequence[UsageReading]]:
        """The usage of every measured pod."""


class PrometheusReader(Protocol):
    """Queries Prometheus servers."""

    async def query(
        self, server: PrometheusProviderSpec, queries: Sequence[str]
    ) -> Sequence[tuple[WriteResult, Sequence[Sample]]]:
        """The instant vectors that the queries return, in their order."""
