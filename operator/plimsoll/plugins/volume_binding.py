"""VolumeBinding: a pod goes where its bound volumes can be reached and its other claims can get a volume.

Formula: per node, bound claims ask for the volume's node affinity. Each claim that waits for its first
consumer takes, smallest request first, the smallest available volume of its class that is large enough,
has the mode, the access modes and the labels, reaches the node and was not taken by another claim of the
pod; a claim that finds none is provisioned, if its class has a provisioner, allows the node's topology
and, where the driver publishes capacity, has room for it.

Reserve books what was found on the chosen node; PreBind writes it (the volume's ``claimRef``, the claim's
selected node) and waits until all claims are bound, at most ``bindTimeoutSeconds``.

Units: bytes, exact; seconds.
Edges: a volume reserved for a claim is taken whatever its size beyond the request, or else nothing is; a
claim that names a node already is provisioned there or nowhere; capacity is checked a claim, not summed.
All refusals are final for the node: removing pods frees no volume.
Source: kube-scheduler v1.36, ``volumebinding/volume_binding.go`` and ``binder.go``.
Differs: of equally small volumes the first by name is taken, upstream's choice is random. Scoring by
capacity (gate StorageCapacityScoring, off) is left out.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from pydantic import Field, NonNegativeInt

from plimsoll.framework import (
    SELECTED_NODE,
    SKIP,
    SUCCESS,
    WAIT_FOR_FIRST_CONSUMER,
    BoolArray,
    ClusterObjects,
    CSIStorageCapacity,
    CycleState,
    EnqueueExtensions,
    EventWithHint,
    FilterPlugin,
    IntArray,
    NodeSelector,
    PersistentVolume,
    PersistentVolumeClaim,
    PluginArgs,
    PluginError,
    PodInfo,
    PreBindPlugin,
    PreFilterPlugin,
    Reads,
    Requirement,
    ReservePlugin,
    Selector,
    SelectorError,
    Snapshot,
    Status,
    StorageClass,
    VolumeChoices,
    VolumesPort,
    all_feasible,
    claim_class,
    claim_name,
    claim_not_found,
    compile_node_terms,
    compile_selector,
    error,
    has_volumes,
    in_tree_plugin,
    is_bound,
    is_migrated,
    migrated_affinity,
    nanos,
    not_owned,
    requirement_nodes,
    term_nodes,
    units,
    unresolvable,
    volume_class,
)
from plimsoll.plugins.hints import volume_binding as hints

UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
#: Refusals by bit, in the order in which they are listed.
VOLUME_MISSING, AFFINITY, NOTHING_TO_BIND, NO_SPACE = 1, 2, 4, 8
REASONS = {
    VOLUME_MISSING: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
    AFFINITY: "node(s) didn't match PersistentVolume's node affinity",
    NOTHING_TO_BIND: "node(s) didn't find available persistent volumes to bind",
    NO_SPACE: "node(s) did not have enough free storage",
}
NO_PROVISIONER = "kubernetes.io/no-provisioner"
#: In ``Choice.volumes``: nothing was found, so the claim is provisioned.
PROVISION = -1


class VolumeBindingArgs(PluginArgs):
    """Arguments, as written under ``pluginConfig`` in a SchedulingPolicy."""

    bind_timeout_seconds: NonNegativeInt = Field(
        default=600, description="How long binding waits for the volumes."
    )


@dataclass(frozen=True, slots=True)
class PodClaims:
    """The claims of one pod: with their volume, and waiting for the pod to have a node."""

    bound: tuple[PersistentVolumeClaim, ...]
    delayed: tuple[PersistentVolumeClaim, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """What a delayed claim would get, on each node.

    Attributes:
        claim: The claim.
        candidates: Volumes that it may take.
        volumes: Shape (N,): index of the volume in ``candidates``, or PROVISION.
    """

    claim: PersistentVolumeClaim
    candidates: tuple[PersistentVolume, ...]
    volumes: IntArray


@dataclass(frozen=True, slots=True)
class Booked:
    """What Reserve booked, for PreBind."""

    choices: VolumeChoices


class VolumeBinding(PreFilterPlugin, FilterPlugin, ReservePlugin, PreBindPlugin, EnqueueExtensions):
    """Find volumes for the pod's claims, book them, and bind them before the pod."""

    name: ClassVar = "VolumeBinding"
    args_model: ClassVar = VolumeBindingArgs
    reads: ClassVar = Reads.NODE
    is_parallel: ClassVar = True

    def __init__(self, args: VolumeBindingArgs) -> None:
        self.args = args

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> Status:
        """Sort out the claims; SKIP when there are none."""
        if not has_volumes(pod):
            return SKIP
        objects = snapshot.objects
        claims = []
        for volume in pod.pod.spec.volumes:
            name = claim_name(pod.pod, volume)
            if name is None:
                continue
            claim = objects.claims.get(f"{pod.namespace}/{name}")
            problem = _problem(pod, name, claim, is_ephemeral=volume.ephemeral is not None)
            if problem or claim is None:
                return unresolvable(problem)
            claims.append(claim)
        if not claims:
            return SKIP
        bound = tuple(claim for claim in claims if is_bound(claim))
        waiting = [claim for claim in claims if not is_bound(claim)]
        if not all(_is_delayed(claim, objects) for claim in waiting):
            return unresolvable(UNBOUND_IMMEDIATE)
        state.write(PodClaims(bound, tuple(waiting)))
        return SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        """Bits of what is wrong, shape (N,)."""
        claims = state.read(PodClaims)
        codes = _reached(claims.bound, snapshot)
        if claims.delayed:
            codes |= _choose(claims.delayed, snapshot)[0]
        return codes

    def refusal(self, code: int, state: CycleState, pod: PodInfo) -> Status:
        """The reasons of all bits."""
        return unresolvable(*(reason for bit, reason in REASONS.items() if code & bit))

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """Book what the pod's claims get on the node, so that no other pod is promised it."""
        claims, port = state.find(PodClaims), state.find(VolumesPort)
        if claims is None or not claims.delayed or port is None:
            return SUCCESS
        row = port.snapshot.row_of(node)
        if row is None:
            return error(f'node "{node}" not found')
        on_node = self.volumes_on(state, port.snapshot, row)
        choices = {f"{pod.namespace}/{claim}": volume for claim, volume in on_node.items()}
        state.write(Booked(choices))
        port.binder.assume(choices, node)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Give it back."""
        booked = state.find(Booked)
        if booked is not None:
            state.read(VolumesPort).binder.forget(booked.choices)

    def pre_bind_preflight(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """There is something to bind if something was booked."""
        return SKIP if state.find(Booked) is None else SUCCESS

    async def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """Write the bookings and wait for the volumes."""
        binder, choices = state.read(VolumesPort).binder, state.read(Booked).choices
        return await binder.bind(choices, node, float(self.args.bind_timeout_seconds))

    def volumes_on(self, state: CycleState, snapshot: Snapshot, row: int) -> dict[str, str]:
        """What the delayed claims get on one feasible node: claim name to volume name, "" to be provisioned.

        Reserve books exactly this.
        """
        claims = state.find(PodClaims)
        if claims is None or not claims.delayed:
            return {}
        choices = _choose(claims.delayed, snapshot.at(np.array([row], dtype=np.intp)))[1]
        return {
            choice.claim.metadata.name: ""
            if choice.volumes[0] == PROVISION
            else choice.candidates[choice.volumes[0]].name
            for choice in choices
        }

    def events_to_register(self) -> tuple[EventWithHint, ...]:
        """What may bring volumes."""
        return hints.events()


# -- claims ------------------------------------------------------------------------------------------


def _problem(pod: PodInfo, name: str, claim: PersistentVolumeClaim | None, *, is_ephemeral: bool) -> str:
    """Why the claim makes the pod unschedulable everywhere; empty when it does not."""
    if claim is None:
        if is_ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        return claim_not_found(name)
    if claim.status.phase == "Lost":
        return (
            f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume '
            f'"{claim.spec.volume_name}"'
        )
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    return not_owned(pod.pod, claim) if is_ephemeral else ""


def _is_delayed(claim: PersistentVolumeClaim, objects: ClusterObjects) -> bool:
    """Whether an unbound claim waits for its first consumer; one that names a volume does not."""
    storage_class = objects.storage_classes.get(claim_class(claim))
    if storage_class is None or claim.spec.volume_name:
        return False
    if storage_class.volume_binding_mode is None:
        raise PluginError(
            VolumeBinding.name,
            "preFilter",
            f'VolumeBindingMode not set for StorageClass "{storage_class.name}"',
        )
    return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _requested(claim: PersistentVolumeClaim) -> int:
    """The claim's size in nano-bytes: quantities compare exactly."""
    return nanos(claim.spec.resources.requests.get("storage", 0))


# -- volumes that exist ------------------------------------------------------------------------------


def _reached(bound: Iterable[PersistentVolumeClaim], snapshot: Snapshot) -> IntArray:
    """AFFINITY where a bound volume cannot be reached, VOLUME_MISSING everywhere if there is none."""
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


# -- claims that wait --------------------------------------------------------------------------------


def _choose(delayed: tuple[PersistentVolumeClaim, ...], snapshot: Snapshot) -> tuple[IntArray, list[Choice]]:
    """What each claim gets on each node, and what is wrong where it gets nothing."""
    objects = snapshot.objects
    refused: IntArray = np.zeros(len(snapshot), dtype=np.int64)
    assigned = [claim for claim in delayed if SELECTED_NODE in claim.metadata.annotations]
    for claim in assigned:
        refused[snapshot.rows != _row_of(claim, snapshot)] = NOTHING_TO_BIND
    choices: list[Choice] = []
    for claim in sorted((claim for claim in delayed if claim not in assigned), key=_requested):
        choices.append(_smallest(claim, choices, snapshot))
    to_provision = [
        Choice(claim, (), np.full(len(snapshot), PROVISION, dtype=np.int64)) for claim in assigned
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


def _smallest(claim: PersistentVolumeClaim, earlier: list[Choice], snapshot: Snapshot) -> Choice:
    """The volume that the claim takes on each node."""
    candidates = _candidates(claim, snapshot.objects)
    reserved = [at for at, volume in enumerate(candidates) if volume.spec.claim_ref is not None]
    volumes: IntArray = np.full(len(snapshot), PROVISION, dtype=np.int64)
    for at in reversed(reserved[:1] or range(len(candidates))):
        free = _reachable(candidates[at], snapshot)
        for other in earlier:
            if candidates[at] in other.candidates:
                free = free & (other.volumes != other.candidates.index(candidates[at]))
        volumes[free] = at
    return Choice(claim, candidates, volumes)


def _candidates(claim: PersistentVolumeClaim, objects: ClusterObjects) -> tuple[PersistentVolume, ...]:
    """Volumes that the claim may take somewhere, the smallest first; one reserved for it excludes others."""
    class_name = claim_class(claim)
    by_class = objects.derived("volumes by class", lambda: _by_class(objects))
    try:
        selector = None if claim.spec.selector is None else compile_selector(claim.spec.selector)
    except SelectorError as exc:
        raise PluginError(VolumeBinding.name, "filter", str(exc)) from exc
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
    """Whether size and mode are right, and nobody else has it."""
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
    """Volumes by storage class, the smallest first, then by name."""
    classes: dict[str, list[PersistentVolume]] = {}
    for volume in sorted(
        objects.volumes.values(), key=lambda each: (nanos(each.spec.capacity.get("storage", 0)), each.name)
    ):
        classes.setdefault(volume_class(volume), []).append(volume)
    return classes


# -- provisioning ------------------------------------------------------------------------------------


def _obstacles(claim: PersistentVolumeClaim, objects: ClusterObjects, snapshot: Snapshot) -> IntArray:
    """NOTHING_TO_BIND or NO_SPACE where no volume can be made for the claim, shape (N,)."""
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
    """Bytes of the largest volume that can be made, -1 when nobody says."""
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
    """Where the class may make volumes: terms are alternatives, their expressions add up."""
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
