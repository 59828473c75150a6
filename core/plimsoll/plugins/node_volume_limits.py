"""NodeVolumeLimits: attach no more volumes of a driver to a node than its limit.

Formula, per driver d with a limit on the node::

    attached = volumes of pods on the node, and VolumeAttachments of the node for others
    refused where count(attached of d) + count(the pod's volumes of d, not those of pods there) > limit[d]

Units: volumes, each once however many pods share it.
Edges: nodes without a CSINode, or whose driver has no limit, pass; an attached volume that the pod requests
and no pod on the node uses counts twice; a claim without a volume counts for its class's driver; in-tree
disks count on nodes that have migrated them.
Source: kube-scheduler v1.36, ``nodevolumelimits/csi.go``.
Differs: nothing known.
"""

from collections.abc import Iterable
from typing import ClassVar

from msgspec import Struct

from plimsoll import framework as fwk
from plimsoll.framework.volumes import (
    DRIVER_OF_PLUGIN,
    Attachable,
    CSINode,
    Volume,
    VolumeUsers,
    attachable,
    attachable_inline,
    claim_name,
    claim_not_found,
    has_volumes,
    in_tree_plugin,
)

TOO_MANY = fwk.unschedulable("node(s) exceed max volume count")


class VolumeLimitsState(Struct, frozen=True):
    """Why the pod's own volumes are unknown; the same on every node."""

    status: fwk.Status


class NodeVolumeLimits(fwk.PreFilterPlugin, fwk.FilterPlugin, fwk.EnqueueExtensions):
    """Enforce the attach limits of drivers."""

    name: ClassVar = "NodeVolumeLimits"
    declares: ClassVar = fwk.Declares(reads=fwk.Reads.ROW, only_constraints=True)

    def pre_filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.Status:
        """SKIP pods without claims and without disks that may have been migrated."""
        if not has_volumes(pod):
            return fwk.SKIP
        problem: fwk.Status | None = None
        concerned = False
        for volume in pod.pod.spec.volumes:
            name = claim_name(pod.pod, volume)
            if name is None:
                concerned |= (
                    in_tree_plugin(volume.gce_persistent_disk, volume.aws_elastic_block_store) is not None
                )
                continue
            concerned = True
            claim = snapshot.objects.claims.get(f"{pod.namespace}/{name}")
            if claim is None:
                problem = problem or fwk.unresolvable(
                    f"looking up PVC {pod.namespace}/{name}: {claim_not_found(name)}"
                )
        if not concerned:
            return fwk.SKIP
        if problem is not None:
            state.write(VolumeLimitsState(problem))
        return fwk.SUCCESS

    def filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """1 where the limit would be exceeded, 2 where a claim is missing, shape (N,)."""
        codes = fwk.all_feasible(snapshot)
        objects = snapshot.objects
        if any(
            name is not None and f"{pod.namespace}/{name}" not in objects.claims
            for name in (claim_name(pod.pod, volume) for volume in pod.pod.spec.volumes)
        ):
            codes[:] = 2
            return codes
        limits = objects.derived("volume limits by node", lambda: _limits(objects))
        if not limits:
            return codes
        attachments = objects.derived("attachments by node", lambda: _attachments(objects))
        users = snapshot.index(VolumeUsers)
        rows = snapshot.rows.tolist()
        # Volumes are few, and nodes with limits may have migrated different disks: one node at a time.
        for position, node in enumerate(snapshot.nodes):
            limit = limits.get(node.name)
            if limit is None:
                continue
            csi_node = objects.csi_nodes[node.name]
            new = set(_volumes([pod], objects, csi_node))
            if not any(volume.driver in limit for volume in new):
                continue
            attached = set(_volumes(users.on(rows[position]), objects, csi_node))
            new -= attached
            held = attached | attachments.get(node.name, set())
            for driver in {volume.driver for volume in new} & limit.keys():
                wanted = sum(volume.driver == driver for volume in new)
                if wanted + sum(volume.driver == driver for volume in held) > limit[driver]:
                    codes[position] = 1
                    break
        return codes

    def refusal(self, code: int, state: fwk.CycleState, pod: fwk.PodInfo) -> fwk.Status:
        """The exceeded limit, or the claim's problem."""
        return TOO_MANY if code == 1 else state.read(VolumeLimitsState).status

    def events_to_register(self) -> tuple[fwk.EventWithHint, ...]:
        """Higher limits, deletions of pods and attachments, and the pod's own claims."""
        claim = fwk.EventResource.PERSISTENT_VOLUME_CLAIM
        detached = fwk.EventResource.VOLUME_ATTACHMENT
        return (
            fwk.EventWithHint(fwk.EventResource.CSI_NODE, fwk.ActionType.ADD),
            fwk.EventWithHint(
                fwk.EventResource.CSI_NODE, fwk.ActionType.UPDATE, _after_limits, by_template=True
            ),
            fwk.EventWithHint(
                fwk.EventResource.ASSIGNED_POD, fwk.ActionType.DELETE, _after_pod, by_template=True
            ),
            fwk.EventWithHint(claim, fwk.ActionType.ADD, _after_claim, by_template=True),
            fwk.EventWithHint(detached, fwk.ActionType.DELETE, _after_attachment, by_template=True),
        )


def _after_limits(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """The limit of some driver has risen."""

    def limits(node: CSINode) -> dict[str, int]:
        return {each.name: (each.allocatable and each.allocatable.count) or 0 for each in node.spec.drivers}

    old = limits(change.old)
    return fwk.QueueingHint.of(any(limit > old.get(name, 0) for name, limit in limits(change.new).items()))


def _after_pod(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """The pod that left its node had a volume that a driver attaches."""
    spec = change.old.pod.spec
    return fwk.QueueingHint.of(
        bool(spec.node_name)
        and any(
            each.persistent_volume_claim is not None or each.ephemeral is not None or _inline_plugin(each)
            for each in spec.volumes
        )
    )


def _after_claim(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """The claim belongs to the pod."""
    claim = change.new.metadata
    names = {claim_name(pod.pod, each) for each in pod.pod.spec.volumes}
    return fwk.QueueingHint.of(claim.namespace == pod.namespace and claim.name in names)


def _after_attachment(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """The detached volume may make room for a claim of the pod, or for a disk of that driver."""
    driver = change.old.spec.attacher
    return fwk.QueueingHint.of(
        any(
            each.persistent_volume_claim is not None
            or DRIVER_OF_PLUGIN.get(_inline_plugin(each) or "") == driver
            for each in pod.pod.spec.volumes
        )
    )


def _inline_plugin(volume: Volume) -> str | None:
    return in_tree_plugin(volume.gce_persistent_disk, volume.aws_elastic_block_store)


def _limits(objects: fwk.ClusterObjects) -> dict[str, dict[str, int]]:
    """Limits by node name and driver, if any."""
    limits = {
        node.name: {
            driver.name: driver.allocatable.count
            for driver in node.spec.drivers
            if driver.allocatable is not None and driver.allocatable.count is not None
        }
        for node in objects.csi_nodes.values()
    }
    return {name: limit for name, limit in limits.items() if limit}


def _attachments(objects: fwk.ClusterObjects) -> dict[str, set[Attachable]]:
    """The attached volumes by node name, according to VolumeAttachments."""
    attached: dict[str, set[Attachable]] = {}
    for each in objects.attachments.values():
        volume = objects.volumes.get(each.spec.source.persistent_volume_name or "")
        if each.spec.attacher and volume is not None and volume.spec.csi is not None:
            attached.setdefault(each.spec.node_name, set()).add(
                Attachable(each.spec.attacher, volume.spec.csi.volume_handle)
            )
    return attached


def _volumes(
    pods: Iterable[fwk.PodInfo], objects: fwk.ClusterObjects, csi_node: CSINode
) -> Iterable[Attachable]:
    """The volumes that drivers attach for these pods; missing claims are skipped."""
    for pod in pods:
        for volume in pod.pod.spec.volumes:
            name = claim_name(pod.pod, volume)
            claim = objects.claims.get(f"{pod.namespace}/{name}") if name else None
            if name is None:
                found = attachable_inline(volume, csi_node)
            else:
                found = None if claim is None else attachable(claim, objects, csi_node)
            if found is not None:
                yield found
