"""Selects records by namespace, labels, policy and time."""

from msgspec import Struct

from plimsoll.api.v1alpha1.eviction_naming import record_labels
from plimsoll.inspection.history.answer import PastMoveOutcome
from plimsoll.inspection.history.moves import outcome_of, planned_at
from plimsoll.model.selectors import EVERYTHING, Selector
from plimsoll.records.history import ended_at
from plimsoll.records.record import Record

#: Kinds of owners and pods, by their names in kubectl.
_KINDS = {
    **dict.fromkeys(("pod", "pods", "po"), "Pod"),
    **dict.fromkeys(("deployment", "deployments", "deploy"), "Deployment"),
    **dict.fromkeys(("replicaset", "replicasets", "rs"), "ReplicaSet"),
    **dict.fromkeys(("statefulset", "statefulsets", "sts"), "StatefulSet"),
    **dict.fromkeys(("job", "jobs"), "Job"),
}


class MoveSubject(Struct, frozen=True):
    """A pod or an owner whose moves are asked about.

    Attributes:
        namespace: "" where it is not said.
        kind: Of the owner; Pod for a pod.
    """

    namespace: str
    kind: str
    name: str

    @classmethod
    def parsed(cls, text: str) -> "MoveSubject | None":
        """Read ``[NAMESPACE/]POD`` or ``[NAMESPACE/]KIND/NAME``; None if it is neither."""
        *before, name = text.split("/")
        kind = _KINDS.get(before[-1].lower(), "") if before else "Pod"
        namespace = before[:-1] if kind and before else before
        if not name or len(namespace) > 1 or not all(before):
            return None
        return cls(namespace[0] if namespace else "", kind or "Pod", name)

    @property
    def text(self) -> str:
        """``Kind name``."""
        return f"{self.kind} {self.name}"

    def is_of(self, record: Record) -> bool:
        """Whether a record is of a move of the pod, to it, or of a pod of the owner."""
        spec, landed = record.spec, record.status.replacement
        if self.kind == "Pod":
            return self.name in (spec.pod.name, "" if landed is None else landed.name)
        if spec.surge is not None and spec.surge.kind == self.kind:
            return spec.surge.deployment == self.name
        if self.kind == "Deployment":
            owner = spec.owner
            return (
                owner is not None
                and owner.kind == "ReplicaSet"
                and owner.name.rpartition("-")[0] == self.name
            )
        return spec.owner is not None and (spec.owner.kind, spec.owner.name) == (self.kind, self.name)


class RecordSelection(Struct, frozen=True):
    """A filter of records.

    Attributes:
        namespace: "" for all.
        labels: Labels of the records: ``plimsoll.dev/policy``, ``plimsoll.dev/strategy`` and others.
        policy: "" for all.
        since: Excludes moves that ended before this time, in seconds since the epoch; None for all.
        until: Excludes moves that were planned after this time.
        subject: Whose moves; None for all.
    """

    until: float
    namespace: str = ""
    labels: Selector = EVERYTHING
    policy: str = ""
    since: float | None = None
    subject: MoveSubject | None = None

    def covers(self, record: Record) -> bool:
        """Whether a record is selected; an open move has not ended, regardless of when it was planned."""
        is_open = outcome_of(record) is PastMoveOutcome.OPEN
        return (
            (not self.namespace or record.namespace == self.namespace)
            and (not self.policy or record.spec.policy == self.policy)
            and planned_at(record) <= self.until
            and (self.since is None or is_open or ended_at(record) >= self.since)
            and (self.labels.is_empty or self.labels.matches(labels_of(record)))
            and (self.subject is None or self.subject.is_of(record))
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
