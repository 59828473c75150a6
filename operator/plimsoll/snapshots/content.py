"""SnapshotContent is the state of a cluster at one moment, as the documents that an API server has."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from plimsoll.ports.usage import UsageReading

#: Collections besides those that the operator watches, by their plurals.
POLICIES, RECORDS, DEPLOYMENTS = "schedulingpolicies", "evictions", "deployments"


@dataclass(frozen=True, slots=True)
class UsageContent:
    """What nodes and pods used, as the metrics API said.

    Attributes:
        problem: Why nothing is known, in a sentence; "" when it is.
    """

    nodes: Sequence[UsageReading] = ()
    pods: Sequence[UsageReading] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SnapshotContent:
    """The state of a cluster.

    Attributes:
        taken: When, in seconds since the epoch.
        source: Where it is from, for people: the address of a server, or the path of a file.
        objects: JSON of each object, by plural as in ``cluster.watched_resources``, and those named above.
        usage: Measured usage.
        missing: Why a collection could not be read, by plural.
    """

    taken: float
    source: str
    objects: Mapping[str, Sequence[bytes]]
    usage: UsageContent = field(default_factory=UsageContent)
    missing: Mapping[str, str] = field(default_factory=dict)

    def limited_to(self, names: Collection[str]) -> "SnapshotContent":
        """The same without other collections than these, and without usage."""
        chosen = {name: documents for name, documents in self.objects.items() if name in names}
        missing = {name: why for name, why in self.missing.items() if name in names}
        return SnapshotContent(self.taken, self.source, chosen, UsageContent(), missing)
