"""Indexes placed pods with claims or disks by node, and counts the mounts of each claim."""

from collections.abc import Iterable

from plimsoll.model.columns.columns import PodIndex
from plimsoll.model.kinds.pod_info import PodInfo


class VolumeUsers(PodIndex):
    """Placed pods with claims or disks, by row, and the number of mounts of each claim."""

    def __init__(self, _cluster: object = None) -> None:
        self._by_row: dict[int, dict[str, PodInfo]] = {}
        self._mounts: dict[str, int] = {}

    def on(self, row: int) -> Iterable[PodInfo]:
        """The pods with volumes on one node."""
        return self._by_row.get(row, {}).values()

    @property
    def rows(self) -> Iterable[int]:
        """Rows with at least one such pod."""
        return self._by_row.keys()

    def is_mounted(self, claim: str) -> bool:
        """Whether some placed pod mounts the claim ``namespace/name``."""
        return claim in self._mounts

    def add(self, pod: PodInfo, row: int) -> None:
        """Add a placed pod."""
        if has_volumes(pod):
            self._by_row.setdefault(row, {})[pod.uid] = pod
            self._mount(pod, 1)

    def remove(self, pod: PodInfo, row: int) -> None:
        """Remove a pod."""
        if has_volumes(pod):
            del self._by_row[row][pod.uid]
            if not self._by_row[row]:
                del self._by_row[row]
            self._mount(pod, -1)

    def renew(self, before: PodInfo, pod: PodInfo, row: int) -> None:  # noqa: ARG002 - the index's signature
        """Keep the pod's new state."""
        if has_volumes(pod):
            self._by_row[row][pod.uid] = pod

    def move_row(self, source: int, target: int) -> None:
        """Move a node to another row."""
        if source in self._by_row:
            self._by_row[target] = self._by_row.pop(source)

    def fork(self) -> "VolumeUsers":
        """An independent copy."""
        twin = VolumeUsers()
        twin._by_row = {row: dict(pods) for row, pods in self._by_row.items()}
        twin._mounts = dict(self._mounts)
        return twin

    def _mount(self, pod: PodInfo, amount: int) -> None:
        for name in set(mounted_claims(pod)):
            key = f"{pod.namespace}/{name}"
            left = self._mounts.get(key, 0) + amount
            if left:
                self._mounts[key] = left
            else:
                del self._mounts[key]


def mounted_claims(pod: PodInfo) -> list[str]:
    """The names of the claims that a pod mounts directly, once per mount."""
    return [
        volume.persistent_volume_claim.claim_name
        for volume in pod.template.sample.spec.volumes
        if volume.persistent_volume_claim is not None
    ]


def has_volumes(pod: PodInfo) -> bool:
    """Whether a pod has a claim or a disk; no decision reads directories and images."""
    volumes = pod.template.sample.spec.volumes
    return bool(volumes) and any(
        volume.persistent_volume_claim is not None
        or volume.ephemeral is not None
        or volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.iscsi is not None
        or volume.rbd is not None
        for volume in volumes
    )
