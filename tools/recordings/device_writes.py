"""Binds a recorded pod by the operator's own binder, and keeps what that and its undoing write for claims."""

import asyncio
from collections.abc import Sequence
from typing import Any

from plimsoll.cluster.watch_events import ObjectAdded, ObjectDeleted, ObjectUpdated, WatchEvent
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.bookings import Booking
from plimsoll.devices.extended_resources import Mapped
from plimsoll.framework import PodInfo, Status
from plimsoll.kube.resource_claims import allocation_json, claim_json, consumer_json, mappings_json
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.resource_claim import ResourceClaim, ResourceClaimStatus
from plimsoll.ports.observer import Observer
from plimsoll.ports.resource_claims import ClaimAnswer
from plimsoll.ports.writes import WriteResult
from plimsoll.scheduling.devices.device_claims import DeviceClaims
from plimsoll.testing.fakes import FakeClaims, FakeClock, FakeRecorder, settled

Write = dict[str, Any]

#: How a recording says that a field has the present time.
NOW = "*"


class RecordedClaims(FakeClaims):
    """An API server of claims that keeps what it was sent, as recordings have it."""

    def __init__(self, *claims: ResourceClaim) -> None:
        super().__init__(*claims)
        self.sent: list[Write] = []
        self._allocated = {each.key for each in claims if each.is_allocated}

    def _note(self, verb: str, claim: ResourceClaim, **more: Any) -> None:
        target = {"resource": "resourceclaims", "namespace": claim.namespace, "name": claim.name}
        self.sent.append({"verb": verb, **target, **more})

    async def set_finalizers(self, claim: ResourceClaim, finalizers: Sequence[str]) -> ClaimAnswer:
        """An update upstream."""
        self._note("update", claim, finalizers=list(finalizers))
        return await super().set_finalizers(claim, finalizers)

    async def write_status(self, claim: ResourceClaim, status: ResourceClaimStatus) -> ClaimAnswer:
        """An update of the status upstream."""
        written: dict[str, Any] = {}
        if status.allocation is not None:
            written["allocation"] = allocation_json(status.allocation)
            written["allocation"]["allocationTimestamp"] = NOW
        written["reservedFor"] = [consumer_json(each) for each in status.reserved_for]
        self._note("update", claim, subresource="status", status=written)
        return await super().write_status(claim, status)

    async def unreserve(self, claim: ResourceClaim, pod: Pod) -> ClaimAnswer:
        """A patch."""
        removed = [{"$patch": "delete", "uid": pod.uid}]
        patch = {"metadata": {"uid": claim.uid}, "status": {"reservedFor": removed}}
        self._note("patch", claim, subresource="status", patch=patch, patchType=STRATEGIC)
        return await super().unreserve(claim, pod)

    async def create(self, claim: ResourceClaim, prefix: str) -> ClaimAnswer:
        """With a name that the server makes."""
        made = claim_json(claim, prefix)
        meta = {key: made["metadata"][key] for key in ("annotations", "ownerReferences")}
        self._note("create", claim, generateName=prefix, object={**meta, "spec": made["spec"]})
        self.sent[-1]["name"] = ""
        return await super().create(claim, prefix)

    async def delete(self, claim: ResourceClaim) -> WriteResult:
        """A deletion."""
        self._note("delete", claim)
        return await super().delete(claim)

    async def write_mappings(self, pod: Pod, claim: str, mappings: Sequence[Mapped]) -> WriteResult:
        """A patch of the pod's status."""
        target = {"resource": "pods", "subresource": "status", "namespace": pod.namespace, "name": pod.name}
        patch = {"status": mappings_json(claim, mappings)}
        self.sent.append({"verb": "patch", **target, "patch": patch, "patchType": STRATEGIC})
        return await super().write_mappings(pod, claim, mappings)


#: The type of these patches.
STRATEGIC = "application/strategic-merge-patch+json"


def carried_out(
    cluster: Cluster, pod: PodInfo, node: str, bookings: Sequence[Booking]
) -> tuple[list[Write], Status | None, list[Write]]:
    """Carry bookings out on a fork of a cluster, then undo them.

    Returns:
        What PreBind wrote; how it ended, None while it waits; what Unreserve wrote.
    """
    return asyncio.run(_carried_out(cluster.fork(), pod, node, bookings))


async def _carried_out(
    cluster: Cluster, pod: PodInfo, node: str, bookings: Sequence[Booking]
) -> tuple[list[Write], Status | None, list[Write]]:
    book = cluster.objects.ledger(DeviceBook)
    server = RecordedClaims(*book.claims.values())
    for each in server.claims.values():
        book.set_claim(each)
    binder = DeviceClaims(cluster, server, FakeClock(), Observer(), FakeRecorder(), lambda _: None)

    def show(event: WatchEvent) -> None:
        match event:
            case ObjectAdded(ResourceClaim() as claim) | ObjectUpdated(_, ResourceClaim() as claim):
                book.set_claim(claim)
            case ObjectDeleted(ResourceClaim() as claim):
                book.remove_claim(claim.key)
            case _:
                return
        binder.observe(event)

    server.watch = show
    status = Status(reasons=(problem,)) if (problem := binder.assume(bookings)) else None
    work = asyncio.ensure_future(binder.bind(pod, node, bookings, 600.0))
    await settled()
    if work.done():
        status = work.result()
    else:
        work.cancel()
    written, server.sent = server.sent, []
    binder.forget(pod, bookings)
    await settled()
    return written, status, server.sent
