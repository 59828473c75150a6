"""VolumeRestrictions: prevent conflicting mounts of a disk, and a second user of a single-pod claim.

Formula: a node is refused if the pod's inline disk conflicts with one of a pod there; every node is refused
if a claim of the pod with access mode ReadWriteOncePod is in use anywhere::

    conflicts = sum over the pod's ReadWriteOncePod claims of (1 if some placed pod mounts it)

Units: none.
Edges: two users of a GCE disk, iSCSI disk or Ceph image are compatible if both only read; of an EBS volume
never. Pods that a simulation adds or removes change ``conflicts`` by claim name, in any namespace.
Source: kube-scheduler v1.36, ``volumerestrictions/volume_restrictions.go``.
Differs: a deleted pod of another namespace that had the disk is an event that helps; upstream passes over it.
"""

from typing import ClassVar

from msgspec import Struct

from plimsoll import framework as fwk
from plimsoll.framework.volumes import Volume, VolumeUsers, claim_not_found, has_volumes, mounted_claims

DISK_CONFLICT = fwk.unschedulable("node(s) had no available disk")
CLAIM_IN_USE = fwk.unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod"
)
ONE_POD = "ReadWriteOncePod"


class ClaimsInUse(Struct):
    """The pod's single-pod claims, and the number of their other users."""

    claims: frozenset[str]
    conflicts: int

    def clone(self) -> "ClaimsInUse":
        """An independent copy."""
        return ClaimsInUse(self.claims, self.conflicts)


class VolumeRestrictions(
    fwk.PreFilterPlugin, fwk.PreFilterExtensions, fwk.FilterPlugin, fwk.EnqueueExtensions
):
    """Keep apart pods that cannot share a volume."""

    name: ClassVar = "VolumeRestrictions"
    declares: ClassVar = fwk.Declares(reads=fwk.Reads.CLUSTER)

    def result_version(self, template: fwk.PodTemplate, snapshot: fwk.Snapshot) -> fwk.ResultVersion | None:
        """INDIFFERENT for pods without volumes, None for others."""
        return None if template.sample.spec.volumes else fwk.INDIFFERENT

    def pre_filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.Status:
        """Look up the claims; SKIP without a disk and without a claim in use."""
        if not has_volumes(pod):
            return fwk.SKIP
        objects = snapshot.objects
        claims = set()
        for name in mounted_claims(pod):
            claim = objects.claims.get(f"{pod.namespace}/{name}")
            if claim is None:
                return fwk.unresolvable(claim_not_found(name), no_node_helps=True)
            if ONE_POD in claim.spec.access_modes:
                claims.add(name)
        users = snapshot.index(VolumeUsers)
        conflicts = sum(users.is_mounted(f"{pod.namespace}/{name}") for name in claims)
        if not conflicts and not _disks(pod):
            return fwk.SKIP
        state.write(ClaimsInUse(frozenset(claims), conflicts))
        return fwk.SUCCESS

    def filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """1 for a disk, 2 for a claim, shape (N,)."""
        codes = fwk.all_feasible(snapshot)
        if state.read(ClaimsInUse).conflicts > 0:
            codes[:] = 2
        disks = _disks(pod)
        if disks:
            users = snapshot.index(VolumeUsers)
            busy = {
                row
                for row in users.rows
                if any(
                    _conflict(disk, other)
                    for user in users.on(row)
                    for disk in disks
                    for other in _disks(user)
                )
            }
            for position in [at for at, row in enumerate(snapshot.rows.tolist()) if row in busy]:
                codes[position] = 1
        return codes

    def eased(self, template: fwk.PodTemplate) -> bool:
        """True: pods that leave release their volumes."""
        return True

    def refusal(self, code: int, state: fwk.CycleState, pod: fwk.PodInfo) -> fwk.Status:
        """The conflicting disk or claim."""
        return DISK_CONFLICT if code == 1 else CLAIM_IN_USE

    def add_pod(
        self, state: fwk.CycleState, pod: fwk.PodInfo, added: fwk.PodInfo, node: int, snapshot: fwk.Snapshot
    ) -> fwk.Status:
        """Count one more user of each claim that the pod shares."""
        in_use = state.read(ClaimsInUse)
        in_use.conflicts += sum(name in in_use.claims for name in mounted_claims(added))
        return fwk.SUCCESS

    def remove_pod(
        self, state: fwk.CycleState, pod: fwk.PodInfo, removed: fwk.PodInfo, node: int, snapshot: fwk.Snapshot
    ) -> fwk.Status:
        """Count one user less."""
        in_use = state.read(ClaimsInUse)
        in_use.conflicts -= sum(name in in_use.claims for name in mounted_claims(removed))
        return fwk.SUCCESS

    def events_to_register(self) -> tuple[fwk.EventWithHint, ...]:
        """Deletions of pods with a shared volume, new nodes, and the pod's own claims."""
        claim = fwk.EventResource.PERSISTENT_VOLUME_CLAIM
        return (
            fwk.EventWithHint(
                fwk.EventResource.ASSIGNED_POD, fwk.ActionType.DELETE, _after_pod, by_template=True
            ),
            fwk.EventWithHint(fwk.EventResource.NODE, fwk.ActionType.ADD),
            fwk.EventWithHint(claim, fwk.ActionType.ADD, _after_claim, by_template=True),
        )


def _after_pod(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """The deleted pod shared a claim or a disk with the waiting pod."""
    other: fwk.PodInfo = change.old
    shares = not set(mounted_claims(pod)).isdisjoint(mounted_claims(other))
    return fwk.QueueingHint.of(
        (shares and other.namespace == pod.namespace)
        or any(_conflict(disk, its) for disk in _disks(pod) for its in _disks(other))
    )


def _after_claim(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """The claim belongs to the pod."""
    claim = change.new.metadata
    return fwk.QueueingHint.of(claim.namespace == pod.namespace and claim.name in mounted_claims(pod))


def _disks(pod: fwk.PodInfo) -> list[Volume]:
    return [
        volume
        for volume in pod.template.sample.spec.volumes
        if volume.gce_persistent_disk or volume.aws_elastic_block_store or volume.iscsi or volume.rbd
    ]


def _conflict(one: Volume, other: Volume) -> bool:
    """Whether two pods on one node cannot have both volumes."""
    if one.gce_persistent_disk and other.gce_persistent_disk:
        gce, its_gce = one.gce_persistent_disk, other.gce_persistent_disk
        return gce.pd_name == its_gce.pd_name and not (gce.read_only and its_gce.read_only)
    if one.aws_elastic_block_store and other.aws_elastic_block_store:
        return one.aws_elastic_block_store.volume_id == other.aws_elastic_block_store.volume_id
    if one.iscsi and other.iscsi:
        return one.iscsi.iqn == other.iscsi.iqn and not (one.iscsi.read_only and other.iscsi.read_only)
    if one.rbd and other.rbd:
        return (
            not set(one.rbd.monitors).isdisjoint(other.rbd.monitors)
            and one.rbd.pool == other.rbd.pool
            and one.rbd.image == other.rbd.image
            and not (one.rbd.read_only and other.rbd.read_only)
        )
    return False
