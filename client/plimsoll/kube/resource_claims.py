"""Allocates, reserves, creates and deletes ResourceClaims (resource.k8s.io/v1).

The status is patched, not replaced. A patch with the resourceVersion that was read is refused as a conflict
if the claim has changed, as an update would be. Unlike an update, it keeps what drivers wrote and fields that
this version does not know.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from plimsoll.devices.extended_resources import ANNOTATION, Mapped, is_left_over
from plimsoll.kube.session.discovery import offered
from plimsoll.kube.session.errors import APIError, answer_of
from plimsoll.kube.session.session import JSON, MERGE_PATCH, STRATEGIC_PATCH, Session
from plimsoll.model.decoding import DecodeError, decode
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.resource_claim import (
    AllocationResult,
    Consumer,
    ResourceClaim,
    ResourceClaimStatus,
)
from plimsoll.ports.resource_claims import ClaimAnswer
from plimsoll.ports.writes import DONE, WriteOutcome, WriteResult

GROUP = "/apis/resource.k8s.io/v1"

#: The resources of the group that scheduling pods with claims requires.
NEEDED = ("deviceclasses", "resourceclaims", "resourceslices")


class _Claims(msgspec.Struct):
    items: list[ResourceClaim] = []


class ResourceClaims:
    """Reads and writes claims."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def offered(self) -> WriteResult:
        """Whether discovery lists the required resources; GONE when it does not."""
        return await offered(self._session, GROUP, NEEDED)

    async def read(self, claim: ResourceClaim) -> ClaimAnswer:
        """Read this very claim; another claim of its name does not count."""
        answer = await self._sent("GET", _path(claim))
        if answer.claim is not None and answer.claim.uid != claim.uid:
            return ClaimAnswer(WriteResult(WriteOutcome.GONE, f"resourceclaim {claim.key} was replaced"))
        return answer

    async def set_finalizers(self, claim: ResourceClaim, finalizers: Sequence[str]) -> ClaimAnswer:
        """PATCH the claim's metadata."""
        body = {"metadata": {**_precondition(claim), "finalizers": list(finalizers)}}
        return await self._sent("PATCH", _path(claim), body, MERGE_PATCH)

    async def write_status(self, claim: ResourceClaim, status: ResourceClaimStatus) -> ClaimAnswer:
        """PATCH the claim's status."""
        written: dict[str, Any] = {"reservedFor": [consumer_json(each) for each in status.reserved_for]}
        if status.allocation is None:
            written = {"allocation": None, "reservedFor": None, "devices": None}
        elif claim.status.allocation is None:
            written["allocation"] = allocation_json(status.allocation)
        body = {"metadata": _precondition(claim), "status": written}
        return await self._sent("PATCH", f"{_path(claim)}/status", body, MERGE_PATCH)

    async def unreserve(self, claim: ResourceClaim, pod: Pod) -> ClaimAnswer:
        """PATCH the claim's status; unconditionally, as in kube-scheduler."""
        removed = {"$patch": "delete", "uid": pod.uid}
        body = {"metadata": {"uid": claim.uid}, "status": {"reservedFor": [removed]}}
        return await self._sent("PATCH", f"{_path(claim)}/status", body, STRATEGIC_PATCH)

    async def create(self, claim: ResourceClaim, prefix: str) -> ClaimAnswer:
        """POST the claim."""
        return await self._sent("POST", _collection(claim.namespace), claim_json(claim, prefix))

    async def find(self, pod: Pod) -> ClaimAnswer:
        """List the claims of the pod's namespace, and return the one that the pod controls."""
        path = _collection(pod.namespace)
        try:
            listed = decode(_Claims, await self._session.request("GET", path)).items
        except APIError as exc:
            return ClaimAnswer(answer_of(exc))
        except DecodeError as exc:
            return ClaimAnswer(WriteResult(WriteOutcome.UNKNOWN, f"GET {path}: {exc}"))
        return ClaimAnswer(DONE, next((each for each in listed if is_left_over(each, pod)), None))

    async def delete(self, claim: ResourceClaim) -> WriteResult:
        """DELETE the claim."""
        return await self._session.write("DELETE", _path(claim), {"preconditions": {"uid": claim.uid}})

    async def write_mappings(self, pod: Pod, claim: str, mappings: Sequence[Mapped]) -> WriteResult:
        """PATCH the pod's status."""
        body = {"metadata": {"uid": pod.uid}, "status": mappings_json(claim, mappings)}
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status"
        return await self._session.write("PATCH", path, body, content_type=STRATEGIC_PATCH)

    async def _sent(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> ClaimAnswer:
        try:
            content = await self._session.request(method, path, body, content_type=content_type)
            return ClaimAnswer(DONE, decode(ResourceClaim, content))
        except APIError as exc:
            return ClaimAnswer(answer_of(exc))
        except DecodeError as exc:
            lost = WriteResult(WriteOutcome.UNKNOWN, f"{method} {path}: the answer cannot be read: {exc}")
            return ClaimAnswer(lost)


def _collection(namespace: str) -> str:
    return f"{GROUP}/namespaces/{namespace}/resourceclaims"


def _path(claim: ResourceClaim) -> str:
    return f"{_collection(claim.namespace)}/{claim.name}"


def _precondition(claim: ResourceClaim) -> dict[str, str]:
    return {"uid": claim.uid, "resourceVersion": claim.metadata.resource_version}


def allocation_json(allocation: AllocationResult) -> dict[str, Any]:
    """An allocation as the API has it: without empty fields, with drivers' parameters verbatim."""
    plain = msgspec.to_builtins(allocation)
    devices = plain.get("devices", {})
    found: dict[str, Any] = {"devices": {}}
    if devices.get("results"):
        found["devices"]["results"] = _filled(devices["results"])
    if devices.get("config"):
        found["devices"]["config"] = list(devices["config"])
    if "nodeSelector" in plain:
        found["nodeSelector"] = _filled(plain["nodeSelector"])
    if "allocationTimestamp" in plain:
        found["allocationTimestamp"] = plain["allocationTimestamp"]
    return found


def consumer_json(consumer: Consumer) -> dict[str, str]:
    """A consumer as the API has it."""
    plain: dict[str, str] = msgspec.to_builtins(consumer)
    return plain


def claim_json(claim: ResourceClaim, prefix: str) -> dict[str, Any]:
    """A new claim for extended resources as the API has it."""
    requests = [
        {
            "name": each.name,
            "exactly": {
                "deviceClassName": each.exactly.device_class_name,
                "allocationMode": each.exactly.allocation_mode,
                "count": each.exactly.count,
            },
        }
        for each in claim.spec.devices.requests
        if each.exactly is not None
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": prefix,
            "namespace": claim.namespace,
            "annotations": {ANNOTATION: claim.metadata.annotations[ANNOTATION]},
            "ownerReferences": [msgspec.to_builtins(each) for each in claim.metadata.owner_references],
        },
        "spec": {"devices": {"requests": requests} if requests else {}},
    }


def mappings_json(claim: str, mappings: Sequence[Mapped]) -> dict[str, Any]:
    """The part of a pod's status that maps extended resources to a claim."""
    mapped = [
        {"containerName": each.container, "resourceName": each.resource, "requestName": each.request}
        for each in mappings
    ]
    return {"extendedResourceClaimStatus": {"resourceClaimName": claim, "requestMappings": mapped}}


def _filled(value: Any) -> Any:
    """The value without empty fields."""
    if isinstance(value, Mapping):
        return {key: _filled(each) for key, each in value.items() if each not in (None, "", [], (), {})}
    if isinstance(value, list | tuple):
        return [_filled(each) for each in value]
    return value
