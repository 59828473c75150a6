"""Selects records by namespace, labels, policy and time."""

from msgspec import Struct

from plimsoll.api.v1alpha1.eviction_naming import record_labels
from plimsoll.inspection.history.answer import PastMoveOutcome
from plimsoll.inspection.history.moves import outcome_of, planned_at
from plimsoll.model.selectors import EVERYTHING, Selector
from plimsoll.records.history import ended_at
from plimsoll.records.record import Record


class RecordSelection(Struct, frozen=True):
    """A filter of records.

    Attributes:
        namespace: "" for all.
        labels: Labels of the records: ``plimsoll.dev/policy``, ``plimsoll.dev/strategy`` and others.
        policy: "" for all.
        since: Excludes moves that ended before this time, in seconds since the epoch; None for all.
        until: Excludes moves that were planned after this time.
    """

    until: float
    namespace: str = ""
    labels: Selector = EVERYTHING
    policy: str = ""
    since: float | None = None

    def covers(self, record: Record) -> bool:
        """Whether a record is selected; an open move has not ended, regardless of when it was planned."""
        is_open = outcome_of(record) is PastMoveOutcome.OPEN
        return (
            (not self.namespace or record.namespace == self.namespace)
            and (not self.policy or record.spec.policy == self.policy)
            and planned_at(record) <= self.until
            and (self.since is None or is_open or ended_at(record) >= self.since)
            and (self.labels.is_empty or self.labels.matches(labels_of(record)))
        )


def labels_of(record: Record) -> dict[str, str]:
    """The labels that the operator sets on a record."""
    spec = record.spec
    return record_labels(
        policy=spec.policy,
        strategy=spec.strategy,
        from_node=spec.from_node,
        owner_kind=spec.owner.kind if spec.owner else "",
        owner_name=spec.owner.name if spec.owner else "",
        bundle=spec.bundle.name if spec.bundle else "",
    )
