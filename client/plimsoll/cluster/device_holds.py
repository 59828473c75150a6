"""Finds the devices that a reservation holds for its holder, in the cluster after other pods have left.

Devices of pods that are about to leave are held too, so no other pod gets them once they are free.
"""

from collections.abc import Iterable, Mapping

from plimsoll.devices.book import DeviceBook
from plimsoll.devices.fork_devices import MOST_STEPS, TIMEOUT_S, follow_devices
from plimsoll.devices.holds import DeviceHold
from plimsoll.devices.pod_claims import shared_keys
from plimsoll.devices.pod_devices import held_for, needs_devices
from plimsoll.framework import PodInfo, Snapshot
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.resource_claim import AllocationResult, ResourceClaim


def hold_of(pod: PodInfo, node: str, cluster: Cluster, leaving: Iterable[str] = ()) -> DeviceHold | None:
    """The devices to hold for a pod or its stand-in; None if it needs none.

    Free devices come first; devices of leaving pods are held if these do not suffice.

    Args:
        pod: The holder.
        node: The holder's future node.
        cluster: The present cluster; it is only read.
        leaving: Uids of pods that leave before the holder comes.
    """
    book = cluster.objects.known_ledger(DeviceBook)
    row = cluster.rows.get(node)
    if book is None or not book.is_served or row is None or not needs_devices(pod, book):
        return None
    fork = follow_devices(cluster.fork())
    for gone in ((), tuple(leaving)):
        for uid in gone:
            fork.displace(uid)
        then = fork.objects.ledger(DeviceBook)
        _share_named(then)
        found = held_for(pod, Snapshot(fork), row, MOST_STEPS, TIMEOUT_S)
        if found is not None:
            return found._replace(former=_former(pod, book.claims, then.claims))
    return None


def _share_named(book: DeviceBook) -> None:
    """Keep other devices from a claim that another holder's pod will have allocated again."""
    for hold in book.holds.values():
        for key in hold.former:
            claim, given = book.claims.get(key), hold.given.get(key)
            if claim is not None and given is not None and not claim.is_allocated:
                book.set_claim(claim.allocated(given))


def _former(
    pod: PodInfo, now: Mapping[str, ResourceClaim], then: Mapping[str, ResourceClaim]
) -> Mapping[str, AllocationResult]:
    """The devices that the pod's claims have now and will have lost."""
    found = {}
    for key in shared_keys(pod.pod, now):
        claim = now.get(key)
        if claim is None or claim.status.allocation is None:
            continue
        if key not in then or then[key].status.allocation != claim.status.allocation:
            found[key] = claim.status.allocation
    return found
