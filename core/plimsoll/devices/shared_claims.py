"""Groups pods that share a ResourceClaim: it is deallocated when all have left, so they move together."""

from collections.abc import Sequence

from msgspec import Struct

from plimsoll.devices.book import DeviceBook
from plimsoll.devices.fork_devices import ForkDevices
from plimsoll.devices.pod_claims import shared_keys
from plimsoll.framework import PodInfo
from plimsoll.framework.descheduling.proposals import Candidate, Refusal
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.objects import ClusterObjects


class SharedClaimGroup(Struct, frozen=True):
    """Pods that leave a node together because of shared claims.

    Attributes:
        candidates: The proposed pods, then the others.
        claims: Keys of the claims that are then deallocated.
        is_shared: Whether several of the pods use one claim.
    """

    candidates: tuple[Candidate, ...]
    claims: tuple[str, ...]
    is_shared: bool


def together(candidates: Sequence[Candidate], fork: Cluster) -> SharedClaimGroup | Refusal | None:
    """The pods that must move together, or why they cannot; None if no claim ties a pod to its node."""
    if not fork.has_index(ForkDevices):
        return None
    devices = fork.index(ForkDevices)
    found = {each.pod.uid: each for each in candidates}
    claims: dict[str, int] = {}
    left = [each.pod for each in candidates]
    while left:
        pod = left.pop(0)
        for claim in devices.ties(pod):
            claims[claim.key] = claims.get(claim.key, 0) + 1
            for user in claim.status.reserved_for:
                if user.uid in found:
                    continue
                if user.is_group:
                    return _of_group(claim.key, user.name)
                other = fork.pods.get(user.uid)
                if other is None:
                    return _stays(claim.key, f"{user.resource}/{user.name}", "is not known to run on a node")
                if other.is_terminating:
                    continue
                found[other.uid] = Candidate(other, _node_of(other, fork), _reason(claim.key, pod))
                left.append(other)
    if not claims:
        return None
    return SharedClaimGroup(tuple(found.values()), tuple(claims), max(claims.values()) > 1)


def kept_by_group_claim(pod: PodInfo, objects: ClusterObjects) -> Refusal | None:
    """Why a member of a group stays where the claim of its group has devices; None if nothing keeps it there.

    The API server frees such a claim when its PodGroup is deleted, not when the pods leave: a replacement
    could only return to the nodes that reach the devices.
    """
    book = objects.known_ledger(DeviceBook)
    if book is None:
        return None
    for key in shared_keys(pod.pod, book.claims):
        claim = book.claims.get(key)
        allocation = None if claim is None else claim.status.allocation
        if claim is None or allocation is None or allocation.node_selector is None:
            continue
        for user in claim.status.reserved_for:
            if user.is_group:
                return _of_group(key, user.name)
    return None


def _node_of(pod: PodInfo, fork: Cluster) -> str:
    row = fork.row_of_pod(pod.uid)
    return pod.pod.node_name if row is None else fork.nodes[row].name


def _reason(claim: str, pod: PodInfo) -> str:
    return f"it shares ResourceClaim {claim} with pod {pod.key}, which moves"


def _of_group(claim: str, group: str) -> Refusal:
    return Refusal(
        "SharedClaim",
        f"ResourceClaim {claim} keeps the pod where its devices are: it is reserved for PodGroup {group}, and"
        " they are free only once the group is deleted",
    )


def _stays(claim: str, user: str, why: str) -> Refusal:
    return Refusal(
        "SharedClaim", f"ResourceClaim {claim} keeps the pod on its node: {user} uses it as well and {why}"
    )
