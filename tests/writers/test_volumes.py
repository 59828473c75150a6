"""Writes of volumes and claims carry the uid and version of the object."""

from kube.scripted_server import ToldServer
from plimsoll.kube.session.session import Session
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.storage import PersistentVolume, PersistentVolumeClaim
from plimsoll.ports.writes import WriteOutcome
from plimsoll.writers.volumes import VolumePatcher

CLAIM = convert(PersistentVolumeClaim, {"metadata": {"name": "data", "namespace": "team", "uid": "u1"}})
VOLUME = convert(PersistentVolume, {"metadata": {"name": "disk", "resourceVersion": "7"}})


async def test_a_claim_receives_its_node(told: tuple[ToldServer, Session]) -> None:
    """Provisioners look for the annotation."""
    server, session = told
    server.then({})

    answer = await VolumePatcher(session).select_node(CLAIM, "n1")

    method, path, body, request = server.requests[0]
    assert (method, path) == ("PATCH", "/api/v1/namespaces/team/persistentvolumeclaims/data")
    assert request.headers["Content-Type"] == "application/merge-patch+json"
    assert body == {"metadata": {"uid": "u1", "annotations": {"volume.kubernetes.io/selected-node": "n1"}}}
    assert answer.verdict is WriteOutcome.DONE


async def test_a_volume_is_kept_for_a_claim(told: tuple[ToldServer, Session]) -> None:
    """Identified by its name and uid, and only in the state that was decided on."""
    server, session = told
    server.then({})

    await VolumePatcher(session).reserve(VOLUME, CLAIM)

    method, path, body, _ = server.requests[0]
    assert (method, path) == ("PATCH", "/api/v1/persistentvolumes/disk")
    assert body["metadata"] == {
        "resourceVersion": "7",
        "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"},
    }
    assert body["spec"]["claimRef"] == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": "team",
        "name": "data",
        "uid": "u1",
    }
