"""Marks by which pods name the group that they run with: one table for all systems that form groups.

A group whose members start together needs them together: without one of them the others wait, fail or start
over. Whatever makes pods leave reads this table. Scheduling reads only the core API's PodGroup and ours
(:func:`plimsoll.model.kinds.pod_group.group_key`).

Sources: scheduler-plugins v0.33, Volcano v1.13 (``scheduling/v1beta1/labels.go``), KAI v0.9
(``constants.go``), Kueue v0.14, LeaderWorkerSet v0.7, JobSet v0.10, Koordinator v1.7, Kubernetes v1.36 and
KEP-4671 (``spec.schedulingGroup``; v1.35 ``spec.workloadRef``).
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from plimsoll.model.kinds.owned_group import TRAINERS, owned_key, title_of
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import CORE, core_key, label_key


class Gang(NamedTuple):
    """A group that a pod names.

    Attributes:
        kind: What forms it, as users call it.
        key: ``namespace/name``; that of a PodGroup whose object we know, as :func:`group_key` has it.
        least: Number of members that it needs, as the pod states it; None if the pod states none.
    """

    kind: str
    key: str
    least: int | None = None

    def __str__(self) -> str:
        return (
            title_of(self.key) if self.kind == OWNED else f"{self.kind} {self.key.removeprefix(f'{CORE}/')}"
        )


OURS = "PodGroup"
"""The kind of our own groups."""

CORES = "PodGroup of scheduling.k8s.io"
"""The kind of the core API's groups."""

OWNED = "pods of one owner"
"""The kind of groups that are read from an owner and have no mark of their own."""


class GangMark(NamedTuple):
    """Where one system writes the name of a pod's group.

    Attributes:
        kind: What forms the group.
        keys: Label or annotation keys whose values together are the name; the first one must be present.
        size: Annotation with the number of members that the group needs, "" for none.
    """

    kind: str
    keys: tuple[str, ...]
    size: str = ""


LABELS = (
    GangMark("PodGroup of scheduler-plugins", ("pod-group.scheduling.sigs.k8s.io",)),
    GangMark("pod group of scheduler-plugins", ("pod-group.scheduling.sigs.k8s.io/name",)),
    GangMark(
        "pod group of Kueue", ("kueue.x-k8s.io/pod-group-name",), "kueue.x-k8s.io/pod-group-total-count"
    ),
    GangMark(
        "group of LeaderWorkerSet",
        ("leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/group-index"),
        "leaderworkerset.sigs.k8s.io/size",
    ),
    GangMark("JobSet", ("jobset.sigs.k8s.io/jobset-name",)),
)
"""Marks that are labels; our own label is read by ``group_key``."""

ANNOTATIONS = (
    GangMark("PodGroup of Volcano", ("scheduling.k8s.io/group-name",)),
    GangMark("PodGroup of Volcano", ("scheduling.volcano.sh/group-name",)),
    GangMark("PodGroup of KAI", ("pod-group-name",)),
    GangMark(
        "gang of Koordinator",
        ("gang.scheduling.koordinator.sh/name",),
        "gang.scheduling.koordinator.sh/min-available",
    ),
)
"""Marks that are annotations."""

_LABEL_KEYS = frozenset(mark.keys[0] for mark in LABELS)
ANNOTATION_KEYS = frozenset(mark.keys[0] for mark in ANNOTATIONS)


def gangs_of(pod: Pod) -> tuple[Gang, ...]:
    """The groups that a pod names; few pods name any, and one system may build on another."""
    found: tuple[Gang, ...] = ()
    for kind, key in ((CORES, core_key(pod)), (OURS, label_key(pod))):
        if key:
            found += (Gang(kind, key),)
    metadata = pod.metadata
    if not _LABEL_KEYS.isdisjoint(metadata.labels):
        found += tuple(_named(LABELS, metadata.labels, pod))
    if not ANNOTATION_KEYS.isdisjoint(metadata.annotations):
        found += tuple(_named(ANNOTATIONS, metadata.annotations, pod))
    if metadata.owner_references:
        key = owned_key(pod)
        if key.startswith(TRAINERS):
            found += (Gang(OWNED, key),)
    spec = pod.spec
    if spec.workload_ref is not None and spec.workload_ref.name:
        parts = spec.workload_ref.name, spec.workload_ref.pod_group, spec.workload_ref.pod_group_replica_key
        found += (Gang("pod group of Workload", f"{pod.namespace}/{'/'.join(filter(None, parts))}"),)
    return found


def _named(marks: tuple[GangMark, ...], stated: Mapping[str, str], pod: Pod) -> Iterator[Gang]:
    for mark in marks:
        if stated.get(mark.keys[0]):
            name = "/".join(stated.get(key, "") for key in mark.keys)
            yield Gang(mark.kind, f"{pod.namespace}/{name}", _size(pod.metadata.annotations.get(mark.size)))


def _size(text: str | None) -> int | None:
    """The number of an annotation; None if it is absent or no number above 0."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and int(text) > 0 else None
