"""Chooses the volumes that a pod's claims use or would get on each node, for VolumeBinding.

Axis letters: N nodes.
Source: kube-scheduler v1.36, ``volumebinding/binder.go``.
"""

from collections.abc import Iterable

import numpy as np
from msgspec import Struct

from plimsoll.framework import BoolArray, ClusterObjects, IntArray, PluginError, Snapshot, all_feasible
from plimsoll.model.kinds.storage import (
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from plimsoll.model.kinds.volume_claims import (
    SELECTED_NODE,
    claim_class,
    in_tree_plugin,
    is_migrated,
    migrated_affinity,
    volume_class,
)
from plimsoll.model.quantity import nanos, units
from plimsoll.model.selectors import (
    NodeSelector,
    Requirement,
    Selector,
    SelectorError,
    compile_node_terms,
    compile_selector,
)
from plimsoll.toolkit.node_matching import requirement_nodes, term_nodes

#: The plugin that the error messages name.
NAME = "VolumeBinding"
#: Refusals as bits, in the order in which they are listed.
VOLUME_MISSING, AFFINITY, NOTHING_TO_BIND, NO_SPACE = 1, 2, 4, 8
NO_PROVISIONER = "kubernetes.io/no-provisioner"
#: A value of ``VolumeChoice.volumes``: no volume was found, so the claim is provisioned.
PROVISION = -1


class VolumeChoice(Struct, frozen=True):
    """The choice for a delayed claim on each node: the index of a candidate, or PROVISION; shape (N,)."""

    claim: PersistentVolumeClaim
    candidates: tuple[PersistentVolume, ...]
    volumes: IntArray


def _requested(claim: PersistentVolumeClaim) -> int:
    """The claim's size in nano-bytes, so that quantities compare exactly."""
    return nanos(claim.spec.resources.requests.get("storage", 0))


# -- existing volumes --------------------------------------------------------------------------------


def reached(bound: Iterable[PersistentVolumeClaim], snapshot: Snapshot) -> IntArray:
    """AFFINITY where a bound volume cannot be reached, VOLUME_MISSING everywhere if it does not exist."""
    codes = all_feasible(snapshot)
    for claim in bound:
        volume = snapshot.objects.volumes.get(claim.spec.volume_name)
        if volume is None:
            codes[codes == 0] = VOLUME_MISSING
        else:
            reachable = _reachable(volume, snapshot)
            plugin = in_tree_plugin(volume.spec.gce_persistent_disk, volume.spec.aws_elastic_block_store)
            if plugin is not None:
                reachable = np.where(
                    _migrated_nodes(plugin, snapshot),
                    _selected(migrated_affinity(volume), snapshot),
                    reachable,
                )
            codes[(codes == 0) & ~reachable] = AFFINITY
    return codes


def _migrated_nodes(plugin: str, snapshot: Snapshot) -> BoolArray:
    """Where an in-tree plugin's volumes are served by a CSI driver, shape (N,)."""
    csi_nodes = snapshot.objects.csi_nodes
    return np.array(
        [is_migrated(plugin, csi_nodes.get(node.name)) for node in snapshot.nodes], dtype=np.bool_
    )


def _reachable(volume: PersistentVolume, snapshot: Snapshot) -> BoolArray:
    """Where the volume's node affinity holds, shape (N,)."""
    affinity = volume.spec.node_affinity
    return _selected(None if affinity is None else affinity.required, snapshot)


def _selected(selector: NodeSelector | None, snapshot: Snapshot) -> BoolArray:
    """Where one of the terms holds, or everywhere without a selector."""
    if selector is None:
        return np.ones(len(snapshot), dtype=np.bool_)
    selected: BoolArray = np.zeros(len(snapshot), dtype=np.bool_)
    for term in compile_node_terms(selector):
        selected |= term_nodes(term, snapshot)
    return selected


# -- delayed claims ----------------------------------------------------------------------------------


def choose(
    delayed: tuple[PersistentVolumeClaim, ...], snapshot: Snapshot
) -> tuple[IntArray, list[VolumeChoice]]:
    """The choice for each claim on each node, and the refusals where a claim gets no volume."""
    objects = snapshot.objects
    refused: IntArray = np.zeros(len(snapshot), dtype=np.int64)
    assigned = [claim for claim in delayed if SELECTED_NODE in claim.metadata.annotations]
    for claim in assigned:
        refused[snapshot.rows != _row_of(claim, snapshot)] = NOTHING_TO_BIND
    choices: list[VolumeChoice] = []
    for claim in sorted((claim for claim in delayed if claim not in assigned), key=_requested):
        choices.append(_smallest(claim, choices, snapshot))
    to_provision = [
        VolumeChoice(claim, (), np.full(len(snapshot), PROVISION, dtype=np.int64)) for claim in assigned
    ]
    for choice in (*to_provision, *choices):
        wanted = (choice.volumes == PROVISION) & (refused == 0)
        if wanted.any():
            obstacle = _obstacles(choice.claim, objects, snapshot)
            refused[wanted] = obstacle[wanted]
    return refused, [*to_provision, *choices]


def _row_of(claim: PersistentVolumeClaim, snapshot: Snapshot) -> int:
    row = snapshot.row_of(claim.metadata.annotations[SELECTED_NODE])
    return -1 if row is None else row


def _smallest(claim: PersistentVolumeClaim, earlier: list[VolumeChoice], snapshot: Snapshot) -> VolumeChoice:
    """The volume that the claim would take on each node."""
    candidates = _candidates(claim, snapshot.objects)
    reserved = [at for at, volume in enumerate(candidates) if volume.spec.claim_ref is not None]
    volumes: IntArray = np.full(len(snapshot), PROVISION, dtype=np.int64)
    for at in reversed(reserved[:1] or range(len(candidates))):
        free = _reachable(candidates[at], snapshot)
        for other in earlier:
            if candidates[at] in other.candidates:
                free = free & (other.volumes != other.candidates.index(candidates[at]))
        volumes[free] = at
    return VolumeChoice(claim, candidates, volumes)


def _candidates(claim: PersistentVolumeClaim, objects: ClusterObjects) -> tuple[PersistentVolume, ...]:
    """Volumes that the claim may take on any node, the smallest first; a reserved one excludes others."""
    class_name = claim_class(claim)
    by_class = objects.derived("volumes by class", lambda: _by_class(objects))
    try:
        selector = None if claim.spec.selector is None else compile_selector(claim.spec.selector)
    except SelectorError as exc:
        raise PluginError(NAME, "filter", str(exc)) from exc
    fitting = [volume for volume in by_class.get(class_name, ()) if _fits(claim, volume)]
    reserved = [volume for volume in fitting if volume.spec.claim_ref is not None]
    if reserved:
        return tuple(reserved)
    return tuple(
        volume
        for volume in fitting
        if volume.status.phase == "Available"
        and (selector is None or selector.matches(volume.metadata.labels))
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )


def _fits(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Whether size and mode match, and no other claim has the volume."""
    reserved = volume.spec.claim_ref
    if reserved is not None and (
        (reserved.namespace, reserved.name) != (claim.metadata.namespace, claim.metadata.name)
        or (reserved.uid and reserved.uid != claim.metadata.uid)
    ):
        return False
    return (
        nanos(volume.spec.capacity.get("storage", 0)) >= _requested(claim)
        and volume.spec.volume_mode == claim.spec.volume_mode
        and (volume.spec.volume_attributes_class_name or "")
        == (claim.spec.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def _by_class(objects: ClusterObjects) -> dict[str, list[PersistentVolume]]:
    """Volumes by storage class, the smallest first, then sorted by name."""
    classes: dict[str, list[PersistentVolume]] = {}
    for volume in sorted(
        objects.volumes.values(), key=lambda each: (nanos(each.spec.capacity.get("storage", 0)), each.name)
    ):
        classes.setdefault(volume_class(volume), []).append(volume)
    return classes


# -- provisioning ------------------------------------------------------------------------------------


def _obstacles(claim: PersistentVolumeClaim, objects: ClusterObjects, snapshot: Snapshot) -> IntArray:
    """NOTHING_TO_BIND or NO_SPACE where no volume can be provisioned for the claim, shape (N,)."""
    storage_class = objects.storage_classes[claim_class(claim)]
    codes = all_feasible(snapshot)
    if storage_class.provisioner in ("", NO_PROVISIONER):
        codes[:] = NOTHING_TO_BIND
        return codes
    codes[~_allowed(storage_class, snapshot)] = NOTHING_TO_BIND
    if "storage" not in claim.spec.resources.requests:
        return codes
    driver = objects.csi_drivers.get(storage_class.provisioner)
    if driver is None or not driver.spec.storage_capacity:
        return codes
    size = units(claim.spec.resources.requests["storage"])
    roomy = np.zeros(len(snapshot), dtype=np.bool_)
    for capacity in objects.csi_capacities.values():
        if capacity.storage_class_name == storage_class.name and _room(capacity) >= size:
            roomy |= _having_access(capacity, snapshot)
    codes[(codes == 0) & ~roomy] = NO_SPACE
    return codes


def _room(capacity: CSIStorageCapacity) -> int:
    """Size in bytes of the largest volume that can be provisioned, -1 if unknown."""
    limit = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    return -1 if limit is None else units(limit)


def _having_access(capacity: CSIStorageCapacity, snapshot: Snapshot) -> BoolArray:
    if capacity.node_topology is None:
        return np.zeros(len(snapshot), dtype=np.bool_)
    try:
        return _labelled(compile_selector(capacity.node_topology), snapshot)
    except SelectorError:
        return np.zeros(len(snapshot), dtype=np.bool_)


def _labelled(selector: Selector, snapshot: Snapshot) -> BoolArray:
    """Where a label selector selects the node."""
    selected: BoolArray = np.full(len(snapshot), not selector.matches_nothing)
    for requirement in selector.requirements:
        selected &= requirement_nodes(requirement, snapshot)
    return selected


def _allowed(storage_class: StorageClass, snapshot: Snapshot) -> BoolArray:
    """Where the class may provision volumes: terms are ORed, the expressions of a term are ANDed."""
    if not storage_class.allowed_topologies:
        return np.ones(len(snapshot), dtype=np.bool_)
    allowed: BoolArray = np.zeros(len(snapshot), dtype=np.bool_)
    for term in storage_class.allowed_topologies:
        if term.match_label_expressions:
            allowed |= _labelled(
                Selector(
                    tuple(
                        Requirement(each.key, "In", frozenset(each.values))
                        for each in term.match_label_expressions
                    )
                ),
                snapshot,
            )
    return allowed
