"""VolumeBinding: place pods where their bound volumes are accessible and other claims can get a volume.

Formula: per node, bound claims require their volume's node affinity. Each claim that waits for its first
consumer takes, smallest request first, the smallest available volume of its class that is large enough,
matches the mode, the access modes and the labels, is accessible from the node and was not taken by another
claim of the pod. A claim without such a volume is provisioned if its class has a provisioner, allows the
node's topology and, where the driver publishes capacity, has room for it.

Reserve books the found volumes on the chosen node. PreBind writes them (the volume's ``claimRef``, the
claim's selected node) and waits until all claims are bound, at most ``bindTimeoutSeconds``.

Units: bytes, exact; seconds.
Edges: a volume reserved for a claim is the only one that it takes, however large; a claim with a selected
node is provisioned there or nowhere; capacity is checked per claim, not summed. All refusals are final for
the node: removing pods frees no volume.
Source: kube-scheduler v1.36, ``volumebinding/volume_binding.go`` and ``binder.go``.
Differs: among equally small volumes the alphabetically first is taken, in upstream a random one. Scoring by
capacity (gate StorageCapacityScoring, off) is left out.
"""

from typing import ClassVar

import numpy as np
from msgspec import Struct
from pydantic import Field, NonNegativeInt

from plimsoll import framework as fwk
from plimsoll.framework.columns import units
from plimsoll.framework.volumes import (
    MIGRATED_PLUGINS,
    WAIT_FOR_FIRST_CONSUMER,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    VolumeChoices,
    VolumesPort,
    claim_class,
    claim_name,
    claim_not_found,
    has_volumes,
    is_bound,
    not_owned,
)
from plimsoll.toolkit.scheduling.volume_choice import (
    AFFINITY,
    NO_SPACE,
    NOTHING_TO_BIND,
    PROVISION,
    VOLUME_MISSING,
    choose,
    reached,
)

UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
#: The reasons of refusals by bit, in the order of output.
REASONS = {
    VOLUME_MISSING: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
    AFFINITY: "node(s) didn't match PersistentVolume's node affinity",
    NOTHING_TO_BIND: "node(s) didn't find available persistent volumes to bind",
    NO_SPACE: "node(s) did not have enough free storage",
}


class VolumeBindingArgs(fwk.PluginArgs):
    """Arguments, as written under ``pluginConfig`` in a SchedulingPolicy."""

    bind_timeout_seconds: NonNegativeInt = Field(
        default=600, description="How long binding waits for the volumes."
    )


class PodClaims(Struct, frozen=True):
    """The claims of one pod: those with a volume, and those that wait for the pod's node."""

    bound: tuple[PersistentVolumeClaim, ...]
    delayed: tuple[PersistentVolumeClaim, ...]


class Booked(Struct, frozen=True):
    """Bookings of Reserve, for PreBind."""

    choices: VolumeChoices


class VolumeBinding(
    fwk.PreFilterPlugin, fwk.FilterPlugin, fwk.ReservePlugin, fwk.PreBindPlugin, fwk.EnqueueExtensions
):
    """Find volumes for the pod's claims, book them, and bind them before the pod."""

    name: ClassVar = "VolumeBinding"
    args_model: ClassVar = VolumeBindingArgs
    declares: ClassVar = fwk.Declares(reads=fwk.Reads.NODE, only_constraints=True, is_parallel=True)

    def __init__(self, args: VolumeBindingArgs) -> None:
        self.args = args

    def pre_filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.Status:
        """Classify the claims; SKIP without any."""
        if not has_volumes(pod):
            return fwk.SKIP
        objects = snapshot.objects
        claims = []
        for volume in pod.pod.spec.volumes:
            name = claim_name(pod.pod, volume)
            if name is None:
                continue
            claim = objects.claims.get(f"{pod.namespace}/{name}")
            problem = _problem(pod, name, claim, is_ephemeral=volume.ephemeral is not None)
            if problem or claim is None:
                # Upstream's tests of claims that are being deleted wait for its reason, Unschedulable.
                is_leaving = claim is not None and claim.metadata.deletion_timestamp is not None
                return fwk.unresolvable(problem, no_node_helps=not is_leaving)
            claims.append(claim)
        if not claims:
            return fwk.SKIP
        bound = tuple(claim for claim in claims if is_bound(claim))
        waiting = [claim for claim in claims if not is_bound(claim)]
        if not all(_is_delayed(claim, objects) for claim in waiting):
            return fwk.unresolvable(UNBOUND_IMMEDIATE, no_node_helps=True)
        state.write(PodClaims(bound, tuple(waiting)))
        state.refer_to(*claims)
        return fwk.SUCCESS

    def filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """Bits of the problems, shape (N,)."""
        claims = state.read(PodClaims)
        codes = reached(claims.bound, snapshot)
        if claims.delayed:
            codes |= choose(claims.delayed, snapshot)[0]
        return codes

    def refusal(self, code: int, state: fwk.CycleState, pod: fwk.PodInfo) -> fwk.Status:
        """The reasons of all bits."""
        return fwk.unresolvable(*(reason for bit, reason in REASONS.items() if code & bit))

    def reserve(self, state: fwk.CycleState, pod: fwk.PodInfo, node: str) -> fwk.Status:
        """Book the volumes of the pod's claims on the node, so that no other pod gets them."""
        claims, port = state.find(PodClaims), state.find(VolumesPort)
        if claims is None or not claims.delayed or port is None:
            return fwk.SUCCESS
        row = port.snapshot.row_of(node)
        if row is None:
            return fwk.error(f'node "{node}" not found')
        on_node = self.volumes_on(state, port.snapshot, row)
        choices = {f"{pod.namespace}/{claim}": volume for claim, volume in on_node.items()}
        state.write(Booked(choices))
        port.binder.assume(choices, node)
        return fwk.SUCCESS

    def unreserve(self, state: fwk.CycleState, pod: fwk.PodInfo, node: str) -> None:
        """Release the bookings."""
        booked = state.find(Booked)
        if booked is not None:
            state.read(VolumesPort).binder.forget(booked.choices)

    def pre_bind_preflight(self, state: fwk.CycleState, pod: fwk.PodInfo, node: str) -> fwk.Status:
        """Success if anything was booked, which is then bound."""
        return fwk.SKIP if state.find(Booked) is None else fwk.SUCCESS

    async def pre_bind(self, state: fwk.CycleState, pod: fwk.PodInfo, node: str) -> fwk.Status:
        """Write the bookings and wait for the volumes."""
        binder, choices = state.read(VolumesPort).binder, state.read(Booked).choices
        return await binder.bind(choices, node, float(self.args.bind_timeout_seconds))

    def volumes_on(self, state: fwk.CycleState, snapshot: fwk.Snapshot, row: int) -> dict[str, str]:
        """The delayed claims' volumes on one feasible node: claim name to volume name, "" to provision one.

        Reserve books exactly these.
        """
        claims = state.find(PodClaims)
        if claims is None or not claims.delayed:
            return {}
        choices = choose(claims.delayed, snapshot.at(np.array([row], dtype=np.intp)))[1]
        return {
            choice.claim.metadata.name: ""
            if choice.volumes[0] == PROVISION
            else choice.candidates[choice.volumes[0]].name
            for choice in choices
        }

    def events_to_register(self) -> tuple[fwk.EventWithHint, ...]:
        """Nodes with other topology, and changes of any storage object."""
        either = fwk.ActionType.ADD | fwk.ActionType.UPDATE
        capacity = fwk.EventResource.CSI_STORAGE_CAPACITY
        claim = fwk.EventResource.PERSISTENT_VOLUME_CLAIM
        return (
            fwk.EventWithHint(fwk.EventResource.NODE, fwk.ActionType.ADD | fwk.ActionType.UPDATE_NODE_LABEL),
            fwk.EventWithHint(fwk.EventResource.PERSISTENT_VOLUME, either),
            fwk.EventWithHint(claim, either, _after_claim, by_template=True),
            fwk.EventWithHint(fwk.EventResource.STORAGE_CLASS, either, _after_class, by_template=True),
            fwk.EventWithHint(fwk.EventResource.CSI_NODE, either, _after_csi_node, by_template=True),
            fwk.EventWithHint(
                fwk.EventResource.CSI_DRIVER, fwk.ActionType.UPDATE, _after_driver, by_template=True
            ),
            fwk.EventWithHint(capacity, either, _after_capacity, by_template=True),
        )


def _after_claim(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """The claim belongs to the pod."""
    claim = change.new.metadata
    names = {claim_name(pod.pod, each) for each in pod.pod.spec.volumes}
    return fwk.QueueingHint.of(claim.namespace == pod.namespace and claim.name in names)


def _after_class(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """The class is new, or allows other topologies."""
    old, new = change.old, change.new
    return fwk.QueueingHint.of(old is None or old.allowed_topologies != new.allowed_topologies)


def _after_csi_node(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """The CSINode is new, or has migrated other plugins."""
    if change.old is None:
        return fwk.QueueingHint.QUEUE
    old, new = (each.metadata.annotations.get(MIGRATED_PLUGINS, "") for each in (change.old, change.new))
    return fwk.QueueingHint.of(set(old.split(",")) != set(new.split(",")))


def _after_driver(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """The driver of an inline volume of the pod no longer checks capacity."""
    if not change.old.spec.storage_capacity or change.new.spec.storage_capacity:
        return fwk.QueueingHint.SKIP
    volumes = pod.pod.spec.volumes
    return fwk.QueueingHint.of(any(each.csi and each.csi.driver == change.new.name for each in volumes))


def _after_capacity(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """The capacity has grown, or the maximum volume size has."""
    if change.old is None:
        return fwk.QueueingHint.QUEUE
    old: CSIStorageCapacity = change.old
    new: CSIStorageCapacity = change.new
    return fwk.QueueingHint.of(
        units(new.capacity or 0) > units(old.capacity or 0)
        or units(new.maximum_volume_size or 0) > units(old.maximum_volume_size or 0)
    )


def _problem(pod: fwk.PodInfo, name: str, claim: PersistentVolumeClaim | None, *, is_ephemeral: bool) -> str:
    """Why the claim makes the pod unschedulable everywhere; empty if it does not."""
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


def _is_delayed(claim: PersistentVolumeClaim, objects: fwk.ClusterObjects) -> bool:
    """Whether an unbound claim waits for its first consumer; False if it names a volume."""
    storage_class = objects.storage_classes.get(claim_class(claim))
    if storage_class is None or claim.spec.volume_name:
        return False
    if storage_class.volume_binding_mode is None:
        raise fwk.PluginError(
            VolumeBinding.name,
            "preFilter",
            f'VolumeBindingMode not set for StorageClass "{storage_class.name}"',
        )
    return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
