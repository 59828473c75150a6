"""VolumeZone: place pods only in the zones and regions of their bound volumes.

Formula: a node with any of the four zone and region labels is refused if, for one such label of a volume of
the pod, the node's value (under that key, or under the key's successor) is not among the volume's values,
which ``__`` separates.

Units: none.
Edges: nodes without any of the labels pass; claims that wait for their first consumer and ephemeral volumes
are skipped; a claim that can have no volume rejects the pod.
Source: kube-scheduler v1.36, ``volumezone/volume_zone.go``.
Differs: nothing known.
"""

from typing import ClassVar

import numpy as np
from msgspec import Struct

from plimsoll import framework as fwk
from plimsoll.framework.volumes import (
    WAIT_FOR_FIRST_CONSUMER,
    StorageClass,
    claim_class,
    claim_not_found,
    mounted_claims,
)

CONFLICT = fwk.unresolvable("node(s) had no available volume zone")
#: Old label keys and their successors.
SUCCESSOR = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
TOPOLOGY_LABELS = (*SUCCESSOR, *SUCCESSOR.values())


class VolumeTopology(Struct, frozen=True):
    """Label key and accepted values, one for each topology label of each volume."""

    wanted: tuple[tuple[str, frozenset[str]], ...]


class VolumeZone(fwk.PreFilterPlugin, fwk.FilterPlugin, fwk.EnqueueExtensions):
    """Refuse nodes outside the volumes' zones and regions."""

    name: ClassVar = "VolumeZone"
    declares: ClassVar = fwk.Declares(reads=fwk.Reads.NODE, only_constraints=True)

    def pre_filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.Status:
        """Collect the volumes' labels; SKIP without any."""
        names = mounted_claims(pod)
        if not names:
            return fwk.SKIP
        wanted: list[tuple[str, frozenset[str]]] = []
        for name in names:
            found = _topology(pod.namespace, name, snapshot.objects)
            if isinstance(found, fwk.Status):
                return found
            wanted += found
        if not wanted:
            return fwk.SKIP
        state.write(VolumeTopology(tuple(wanted)))
        return fwk.SUCCESS

    def filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """1 where the zone or region does not match, shape (N,)."""
        labelled = np.zeros(len(snapshot), dtype=np.bool_)
        for key in TOPOLOGY_LABELS:
            labelled |= snapshot.label_ids(key) != fwk.ABSENT
        codes = fwk.all_feasible(snapshot)
        for key, values in state.read(VolumeTopology).wanted:
            right = _has_value(snapshot, key, values)
            if key in SUCCESSOR:
                missing = snapshot.label_ids(key) == fwk.ABSENT
                right = np.where(missing, _has_value(snapshot, SUCCESSOR[key], values), right)
            codes[labelled & ~right] = 1
        return codes

    def refusal(self, code: int, state: fwk.CycleState, pod: fwk.PodInfo) -> fwk.Status:
        """The zone conflict."""
        return CONFLICT

    def events_to_register(self) -> tuple[fwk.EventWithHint, ...]:
        """Nodes and volumes with other labels, and the pod's own claims."""
        either = fwk.ActionType.ADD | fwk.ActionType.UPDATE
        claim, volume = fwk.EventResource.PERSISTENT_VOLUME_CLAIM, fwk.EventResource.PERSISTENT_VOLUME
        return (
            fwk.EventWithHint(fwk.EventResource.NODE, fwk.ActionType.ADD | fwk.ActionType.UPDATE_NODE_LABEL),
            fwk.EventWithHint(claim, either, _after_claim, by_template=True),
            fwk.EventWithHint(volume, either, _after_volume, by_template=True),
            fwk.EventWithHint(
                fwk.EventResource.STORAGE_CLASS, fwk.ActionType.ADD, _after_class, by_template=True
            ),
        )


def _after_claim(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """The claim belongs to the pod."""
    claim = change.new.metadata
    return fwk.QueueingHint.of(claim.namespace == pod.namespace and claim.name in mounted_claims(pod))


def _after_volume(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """The volume is new, or its zone has changed."""
    if change.old is None:
        return fwk.QueueingHint.QUEUE
    old, new = change.old.metadata.labels, change.new.metadata.labels
    return fwk.QueueingHint.of(any(old.get(key) != new.get(key) for key in TOPOLOGY_LABELS))


def _after_class(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """Claims of the class wait for their first consumer."""
    found: StorageClass = change.new
    return fwk.QueueingHint.of(found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER)


def _has_value(snapshot: fwk.Snapshot, key: str, values: frozenset[str]) -> fwk.BoolArray:
    accepted: fwk.BoolArray = np.array([*(value in values for value in snapshot.label(key).values), False])
    return accepted[snapshot.label_ids(key)]


def _topology(  # noqa: PLR0911 - upstream's checks in upstream's order
    namespace: str, name: str, objects: fwk.ClusterObjects
) -> list[tuple[str, frozenset[str]]] | fwk.Status:
    """The topology labels of a claim's volume, or why the pod cannot be scheduled."""
    if not name:
        return _hopeless("PersistentVolumeClaim had no name")
    claim = objects.claims.get(f"{namespace}/{name}")
    if claim is None:
        return _hopeless(claim_not_found(name))
    if not claim.spec.volume_name:
        class_name = claim_class(claim)
        if not class_name:
            return _hopeless("PersistentVolumeClaim had no pv name and storageClass name")
        storage_class = objects.storage_classes.get(class_name)
        if storage_class is None:
            return _hopeless(f'storageclass.storage.k8s.io "{class_name}" not found')
        if storage_class.volume_binding_mode is None:
            return _hopeless(f'VolumeBindingMode not set for StorageClass "{class_name}"')
        if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
            return []
        return _hopeless("PersistentVolume had no name")
    volume = objects.volumes.get(claim.spec.volume_name)
    if volume is None:
        return _hopeless(f'persistentvolume "{claim.spec.volume_name}" not found')
    labels = volume.metadata.labels
    found = []
    for key in TOPOLOGY_LABELS:
        if key in labels:
            values = frozenset(part.strip() for part in labels[key].split("__"))
            # A malformed list of zones is skipped.
            if "" not in values:
                found.append((key, values))
    return found


def _hopeless(reason: str) -> fwk.Status:
    """A refusal whatever nodes there are."""
    return fwk.unresolvable(reason, no_node_helps=True)
