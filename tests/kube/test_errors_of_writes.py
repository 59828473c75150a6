"""Every write at every status and with any body: one outcome by a table, sent as often as the table says."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest
from pydantic import BaseModel

from devices.builders import a_claim
from fuzzing.told_session import ToldTransport, a_session
from plimsoll.kube.custom_resources import NamespacedResources, PolicyResources
from plimsoll.kube.leases import LeaseStore
from plimsoll.kube.resource_claims import ResourceClaims
from plimsoll.kube.session.discovery import offered
from plimsoll.kube.session.session import Session
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.deployment import Deployment
from plimsoll.model.kinds.resource_claim import ResourceClaimStatus
from plimsoll.model.kinds.storage import PersistentVolume, PersistentVolumeClaim
from plimsoll.ports.leases import Lease
from plimsoll.ports.pod_writes import ConditionUpdate
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.testing.builders import a_pod
from plimsoll.testing.fakes import FakeClock
from plimsoll.writers.deployments import DeploymentRollouts
from plimsoll.writers.nodes import TRIES, NodeTainter
from plimsoll.writers.pods import PodBinder, PodDocuments, PodEvictor, PodPreemptor, PodStatusPatcher
from plimsoll.writers.volumes import VolumePatcher

GONE, CONFLICT, BUSY = WriteOutcome.GONE, WriteOutcome.CONFLICT, WriteOutcome.BUSY
REFUSED, UNKNOWN, DONE = WriteOutcome.REFUSED, WriteOutcome.UNKNOWN, WriteOutcome.DONE

#: What a failed write means, by its status; the write may have happened where it is unknown.
MEANING = {
    **dict.fromkeys((400, 403, 422), REFUSED),
    **dict.fromkeys((404, 410), GONE),
    409: CONFLICT,
    **dict.fromkeys((401, 429), BUSY),
    **dict.fromkeys((302, 405, 408, 413, 415, 500, 502, 503, 504, 507), UNKNOWN),
}

BODIES = {
    "status": orjson.dumps({"kind": "Status", "message": "no", "reason": "Because"}),
    "page": b"<html>go away</html>",
    "list": b"[1]",
    "empty": b"",
}

POD, CLAIM = a_pod("p", uid="u1"), a_claim()
META = {"name": "x", "namespace": "default", "uid": "u1", "resourceVersion": "1"}
VOLUME_CLAIM = convert(PersistentVolumeClaim, {"metadata": META})
VOLUME = convert(PersistentVolume, {"metadata": META})
DEPLOYMENT = convert(Deployment, {"metadata": META})
RECORD: dict[str, Any] = {"metadata": META, "status": {}}
LEASE = Lease("a", 15, 0.0, 0.0, version="1", metadata={})

Write = Callable[[Session], Awaitable[Any]]


def records(session: Session) -> NamespacedResources:
    """The records of evictions."""
    return NamespacedResources(session, "evictions", BaseModel)


WRITES: dict[str, Write] = {
    "bind": lambda s: PodBinder(s).bind(POD, "n"),
    "evict": lambda s: PodEvictor(s).evict(POD),
    "preempt": lambda s: PodPreemptor(s, FakeClock()).preempt(POD, "us"),
    "clear a nomination": lambda s: PodPreemptor(s, FakeClock()).clear_nomination(POD),
    "nominate": lambda s: PodStatusPatcher(s, FakeClock()).nominate(POD, "n"),
    "condition": lambda s: PodStatusPatcher(s, FakeClock()).write_condition(POD, ConditionUpdate("R", "m")),
    "close": lambda s: NodeTainter(s, FakeClock()).close("n"),
    "avoid": lambda s: NodeTainter(s, FakeClock()).avoid("n"),
    "mark": lambda s: DeploymentRollouts(s).mark(DEPLOYMENT, "m"),
    "policy": lambda s: PolicyResources(s).write_status("p", {}),
    "record": lambda s: records(s).create(RECORD),
    "record's status": lambda s: records(s).write_status("default", "x", {}),
    "record's end": lambda s: records(s).delete("default", "x", uid="u1"),
    "volume": lambda s: VolumePatcher(s).reserve(VOLUME, VOLUME_CLAIM),
    "node of a volume": lambda s: VolumePatcher(s).select_node(VOLUME_CLAIM, "n"),
    "finalizers": lambda s: ResourceClaims(s).set_finalizers(CLAIM, ["f"]),
    "allocation": lambda s: ResourceClaims(s).write_status(CLAIM, ResourceClaimStatus()),
    "unreserve": lambda s: ResourceClaims(s).unreserve(CLAIM, POD),
    "claim": lambda s: ResourceClaims(s).delete(CLAIM),
    "mappings": lambda s: ResourceClaims(s).write_mappings(POD, "c", ()),
    "lease": lambda s: LeaseStore(s, "ns", "plimsoll", 1.0).write(LEASE),
}

#: What is read before or after a write: the pod as it was judged, and a node without taints.
READS = {
    "pods": {"items": [{"metadata": {"name": "p", "namespace": "default", "uid": "u1"}}]},
    "nodes/n": {"metadata": {"resourceVersion": "1"}, "spec": {}},
}

#: Where a write has its own meaning: with the pod there, an eviction conflicts with the API server's work.
OWN = {("evict", 409): BUSY}


def outcome(write: str, status: int, body: bytes) -> tuple[WriteResult, list[str]]:
    """What became of a write, and the writes that were sent."""
    sent: list[str] = []

    def answer(method: str, path: str) -> tuple[int, bytes]:
        if method == "GET":
            return 200, orjson.dumps(next(READS[end] for end in READS if path.endswith(end)))
        sent.append(method)
        return status, body

    found = asyncio.run(_awaited(WRITES[write], a_session(ToldTransport(answer))))
    result = found[0] if isinstance(found, tuple) else found
    assert isinstance(result, WriteResult)
    return result, sent


async def _awaited(write: Write, session: Session) -> Any:
    return await write(session)


@pytest.mark.parametrize("write", WRITES)
def test_a_write_that_fails_has_one_outcome_whatever_the_body_says(write: str) -> None:
    for status, meaning in MEANING.items():
        for name, body in BODIES.items():
            result, sent = outcome(write, status, body)

            said = (write, status, name, result)
            assert result.verdict is OWN.get((write, status), meaning), said
            assert result.message, said
            assert name != "status" or result.message.startswith("no"), said
            tries = TRIES if write in ("close", "avoid") and status == 409 else 1
            assert len(sent) == tries, said


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("page", [b"<html>log in</html>", b"[1]", b"no"])
def test_a_login_page_in_place_of_an_answer_is_no_success(write: str, page: bytes) -> None:
    """A proxy answers 200: the write may not have arrived."""
    result, _ = outcome(write, 200, page)

    assert result.verdict is UNKNOWN
    assert "the answer cannot be read" in result.message


@pytest.mark.parametrize("body", [b'{"metadata": 7}', b'{"metadata": {"uid": []}}', b"{"])
@pytest.mark.parametrize("write", ["finalizers", "allocation", "unreserve"])
def test_a_claim_that_cannot_be_read_after_its_write_is_unknown(write: str, body: bytes) -> None:
    """It is read again before the next write."""
    result, _ = outcome(write, 200, body)

    assert result.verdict is UNKNOWN
    assert "the answer cannot be read" in result.message


@pytest.mark.parametrize("status", [200, 404, 500])
@pytest.mark.parametrize("items", [[], ["evictions"], ["other"], ["evictions", "podgroups"]])
def test_discovery_names_exactly_what_is_missing(status: int, items: list[str]) -> None:
    needed = ["evictions", "podgroups"]
    body = orjson.dumps({"resources": [{"name": each} for each in items], "message": "no"})
    session = a_session(ToldTransport(lambda _method, _path: (status, body)))

    async def asked() -> WriteResult:
        return await offered(session, "/apis/g/v1", needed)

    found = asyncio.run(asked())

    missing = [each for each in needed if each not in items]
    if status != 200:
        assert found.verdict is MEANING[status]
    elif missing:
        assert found == WriteResult(GONE, f"/apis/g/v1 does not serve {' and '.join(missing)}")
    else:
        assert found.verdict is DONE


@pytest.mark.parametrize(
    ("status", "body", "verdict"),
    [
        (200, {"metadata": {"uid": "u1"}}, DONE),
        (200, {"metadata": {"uid": "another"}}, GONE),
        (200, {"metadata": 7}, UNKNOWN),
        (404, {}, GONE),
        (403, {}, REFUSED),
        (401, {}, BUSY),
    ],
)
def test_a_document_is_that_of_the_uid_or_none(status: int, body: Any, verdict: WriteOutcome) -> None:
    content = orjson.dumps(body)
    session = a_session(ToldTransport(lambda _method, _path: (status, content)))

    async def asked() -> tuple[WriteResult, bytes]:
        return await PodDocuments(session).read(POD)

    answer, found = asyncio.run(asked())

    assert (answer.verdict, found) == (verdict, content if verdict is DONE else b"")
