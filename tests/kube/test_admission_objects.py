"""AdmissionObjects reads, applies and deletes what adopts pods, and says which of it there was."""

from typing import Any

import pytest

from kube.scripted_server import ToldServer
from plimsoll.kube.adoption import AdmissionObjects
from plimsoll.kube.session.errors import APIError
from plimsoll.kube.session.session import Session

API = "admissionregistration.k8s.io/v1"
POLICY: dict[str, Any] = {
    "apiVersion": API,
    "kind": "MutatingAdmissionPolicy",
    "metadata": {"name": "adopt"},
    "spec": {"variables": []},
}
BINDING = {**POLICY, "kind": "MutatingAdmissionPolicyBinding"}
PATHS = [f"/apis/{API}/mutatingadmissionpolicies/adopt", f"/apis/{API}/mutatingadmissionpolicybindings/adopt"]
GONE = {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}
REFUSED = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "no"}


@pytest.mark.parametrize("wanted", [POLICY, BINDING], ids=["policy", "binding"])
async def test_each_object_is_asked_for_by_its_kind_and_name(
    told: tuple[ToldServer, Session], wanted: dict[str, Any]
) -> None:
    """Applied as ours by force; read and deleted once where it is there, and none the second time."""
    server, session = told
    objects = AdmissionObjects(session)
    for body, status in ((wanted, 200), (wanted, 200), ({}, 200), (GONE, 404), (GONE, 404)):
        server.then(body, status)

    await objects.apply(wanted)
    read, deleted = await objects.read([wanted]), await objects.delete(wanted)
    again = await objects.read([wanted]), await objects.delete(wanted)

    assert (read, deleted, again) == ([wanted], True, ([None], False))
    path = PATHS[wanted is BINDING]
    asked = [(method, at.partition("?")[0], body) for method, at, body, _ in server.requests]
    assert asked == [
        ("PATCH", path, wanted),
        *[("GET", path, None), ("DELETE", path, None)] * 2,
    ]
    applied = server.requests[0][3]
    assert applied.headers["Content-Type"] == "application/apply-patch+yaml"
    assert dict(applied.query) == {"fieldManager": "plimsoll", "force": "true"}


async def test_a_refusal_is_no_absence(told: tuple[ToldServer, Session]) -> None:
    """A refused read, write or delete is an error, and does not count as an object that is absent."""
    server, session = told
    objects = AdmissionObjects(session)
    for ask in (objects.apply, objects.delete, lambda each: objects.read([each])):
        server.then(REFUSED, 403)
        with pytest.raises(APIError):
            await ask(POLICY)
