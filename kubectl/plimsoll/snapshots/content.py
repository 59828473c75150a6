"""SnapshotContent is the state of a cluster at one moment, as documents of an API server."""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct, field

from plimsoll.ports.usage import UsageReading

#: Collections in addition to those that the operator watches, by their plurals.
POLICIES, RECORDS, DEPLOYMENTS = "schedulingpolicies", "evictions", "deployments"
RULES, SCALERS = "rebalancingrules", "horizontalpodautoscalers"
MAINTENANCES = "nodemaintenances"


class UsageContent(Struct, frozen=True):
    """The usage of nodes and pods according to the metrics API.

    Attributes:
        problem: A sentence why the usage is unknown; "" if it is known.
    """

    nodes: Sequence[UsageReading] = ()
    pods: Sequence[UsageReading] = ()
    problem: str = ""


class SnapshotContent(Struct, frozen=True):
    """The state of a cluster.

    Attributes:
        taken: Time of the snapshot, in seconds since the epoch.
        source: Its origin, for people: the address of a server, or the path of a file.
        objects: JSON of each object, by plural as in ``cluster.watched_resources`` and above.
        usage: Measured usage.
        missing: Why a collection could not be read, by plural.
    """

    taken: float
    source: str
    objects: Mapping[str, Sequence[bytes]]
    usage: UsageContent = field(default_factory=UsageContent)
    missing: Mapping[str, str] = field(default_factory=dict)

    def limited_to(self, names: Collection[str]) -> "SnapshotContent":
        """A copy with only these collections, and without usage."""
        chosen = {name: documents for name, documents in self.objects.items() if name in names}
        missing = {name: why for name, why in self.missing.items() if name in names}
        return SnapshotContent(self.taken, self.source, chosen, UsageContent(), missing)
