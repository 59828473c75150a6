"""Requests about claims carry preconditions, nothing of drivers' fields, and parameters as written."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import orjson
import pytest

from devices.builders import DRIVER, a_claim
from plimsoll.devices.extended_resources import ANNOTATION
from plimsoll.devices.pod_claims import is_owned
from plimsoll.kube.resource_claims import ResourceClaims, allocation_json
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.resource_claim import AllocationResult, Consumer, ResourceClaim, ResourceClaimStatus
from plimsoll.ports.writes import DONE, WriteOutcome, WriteResult
from plimsoll.testing.builders import a_pod

ALLOCATION: dict[str, Any] = {
    "devices": {
        "results": [{"request": "r", "driver": DRIVER, "pool": "p", "device": "d"}],
        "config": [{"source": "FromClaim", "opaque": {"driver": DRIVER, "parameters": {"a": "", "b": []}}}],
    },
    "allocationTimestamp": "2026-01-31T12:00:00Z",
}
USER = Consumer(resource="pods", name="pod", uid="u1")


class _Session:
    """Keeps what is sent, and answers with the claim."""

    def __init__(self, uid: str = "uid-mine") -> None:
        self.sent: list[tuple[str, str, Any, str]] = []
        self._uid = uid

    async def request(self, method: str, path: str, body: Any = None, content_type: str = "") -> bytes:
        self.sent.append((method, path, body, content_type))
        return orjson.dumps({"metadata": {"name": "mine", "namespace": "default", "uid": self._uid}})

    async def write(self, method: str, path: str, body: Any = None, content_type: str = "") -> WriteResult:
        self.sent.append((method, path, body, content_type))
        return DONE


def test_parameters_of_drivers_stay_as_they_were_written() -> None:
    """Also empty ones: the API server compares them."""
    assert allocation_json(convert(AllocationResult, ALLOCATION)) == ALLOCATION


async def test_a_status_is_merged_on_the_version_that_was_read() -> None:
    """Allocation and reservations are sent, and nothing that drivers write."""
    session = _Session()
    allocation = convert(AllocationResult, ALLOCATION)
    status = ResourceClaimStatus(allocation=allocation, reserved_for=(USER,))

    answer = await ResourceClaims(cast("Any", session)).write_status(a_claim(), status)

    ((method, path, body, kind),) = session.sent
    assert (method, kind) == ("PATCH", "application/merge-patch+json")
    assert path == "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/mine/status"
    assert body["metadata"] == {"uid": "uid-mine", "resourceVersion": ""}
    assert body["status"] == {
        "allocation": ALLOCATION,
        "reservedFor": [{"resource": "pods", "name": "pod", "uid": "u1"}],
    }
    assert answer.result.is_done


async def test_a_reservation_leaves_the_allocation_alone() -> None:
    """Which never changes."""
    session = _Session()
    allocation = convert(AllocationResult, ALLOCATION)
    status = ResourceClaimStatus(allocation=allocation, reserved_for=(USER,))

    await ResourceClaims(cast("Any", session)).write_status(a_claim().allocated(allocation), status)

    assert list(session.sent[0][2]["status"]) == ["reservedFor"]


async def test_a_deallocation_takes_all_of_it_away() -> None:
    """With what drivers say of the devices."""
    session = _Session()

    await ResourceClaims(cast("Any", session)).write_status(a_claim(), ResourceClaimStatus())

    assert session.sent[0][2]["status"] == {"allocation": None, "reservedFor": None, "devices": None}


async def test_another_claim_of_the_name_is_not_the_claim() -> None:
    """It was deleted and made again."""
    answer = await ResourceClaims(cast("Any", _Session("other"))).read(a_claim())

    assert answer.result.verdict is WriteOutcome.GONE
    assert answer.claim is None


async def test_claims_are_looked_for_where_the_pod_is() -> None:
    """In its namespace; the one that it controls by uid, not one of a pod that had its name."""
    session = _Session()

    await ResourceClaims(cast("Any", session)).find(a_pod("p", namespace="b"))

    ((method, path, _, _),) = session.sent
    assert (method, path) == ("GET", "/apis/resource.k8s.io/v1/namespaces/b/resourceclaims")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "controller": True}
    for uid, is_its in (("uid-b-p", True), ("another", False)):
        claim = convert(ResourceClaim, {"metadata": {"ownerReferences": [{**owner, "uid": uid}]}})
        assert is_owned(claim, a_pod("p", namespace="b")) is is_its


ROOT = "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims"
CALLS: dict[str, tuple[Callable[[ResourceClaims, ResourceClaim, Any], Awaitable[object]], str]] = {
    "read": (lambda claims, claim, _: claims.read(claim), f"GET {ROOT}/mine"),
    "finalizers": (lambda claims, claim, _: claims.set_finalizers(claim, ()), f"PATCH {ROOT}/mine"),
    "status": (
        lambda claims, claim, _: claims.write_status(claim, ResourceClaimStatus()),
        f"PATCH {ROOT}/mine/status",
    ),
    "unreserve": (lambda claims, claim, pod: claims.unreserve(claim, pod), f"PATCH {ROOT}/mine/status"),
    "create": (lambda claims, claim, _: claims.create(claim, "p-"), f"POST {ROOT}"),
    "find": (lambda claims, _, pod: claims.find(pod), f"GET {ROOT}"),
    "delete": (lambda claims, claim, _: claims.delete(claim), f"DELETE {ROOT}/mine"),
    "mappings": (
        lambda claims, _, pod: claims.write_mappings(pod, "mine", ()),
        "PATCH /api/v1/namespaces/{}/pods/p/status",
    ),
}


@pytest.mark.parametrize("call", CALLS)
async def test_each_request_goes_to_the_namespace_of_its_object(call: str) -> None:
    """One after the other to two namespaces that have a claim and a pod of the same names."""
    session = _Session()
    does, where = CALLS[call]
    for namespace in ("a", "b", "a"):
        metadata = {
            "name": "mine",
            "namespace": namespace,
            "uid": "uid-mine",
            "annotations": {ANNOTATION: ""},
        }
        claim = convert(ResourceClaim, {"metadata": metadata})

        await does(ResourceClaims(cast("Any", session)), claim, a_pod("p", namespace=namespace))

        method, path, *_ = session.sent[-1]
        assert f"{method} {path}" == where.format(namespace)
