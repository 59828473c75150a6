"""Answers that are JSON and no answers: each is one outcome with a sentence, never another exception."""

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest

from fuzzing.told_session import ToldTransport, a_session
from plimsoll.cli.callers.pauses import OperatorLease, press
from plimsoll.kube.custom_resources import PolicyResources
from plimsoll.kube.leases import LATEST, LeaseStore
from plimsoll.kube.lists import objects
from plimsoll.kube.metrics_api import UsageMeter
from plimsoll.kube.session.errors import LONGEST_MESSAGE, APIError, answer_of, error_of
from plimsoll.kube.session.session import Session
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.testing.builders import a_pod
from plimsoll.testing.fakes import FakeClock
from plimsoll.writers.nodes import NodeTainter
from plimsoll.writers.pods import SIGN_WITHIN_S, PodBinder, PodEvictor

POD = a_pod("p")
Call = Callable[[Session], Awaitable[Any]]


def saying(body: Any, status: int = 200) -> Session:
    """A session to a server that says one thing."""
    content = body if isinstance(body, bytes) else orjson.dumps(body)
    return a_session(ToldTransport(lambda _method, _path: (status, content)))


@pytest.mark.parametrize("body", [b"", b"[", b"\xff", {"items": 7}, {"items": [7]}, {"items": [{}]}])
async def test_a_pod_that_cannot_be_read_back_is_unknown(body: Any) -> None:
    """The binding is asked about again, and the pod counts on its node meanwhile."""
    answer, node = await PodBinder(saying(body)).node_of(POD)

    assert (answer.verdict, node) == (WriteOutcome.UNKNOWN, "")
    assert "the answer cannot be read" in answer.message


@pytest.mark.parametrize("body", [{"spec": 1}, {"spec": {"taints": [1]}}, {"spec": {}}, {}])
async def test_a_node_that_cannot_be_read_is_not_written(body: Any) -> None:
    """Its taints are not known, and the list of them is written as a whole."""
    answer = await NodeTainter(saying(body), FakeClock()).close("n1")

    assert answer.verdict is WriteOutcome.UNKNOWN


@pytest.mark.parametrize("details", [{"causes": [1]}, {"causes": "x"}, {"retryAfterSeconds": "soon"}, 7])
async def test_a_refusal_with_odd_details_is_a_busy_server(details: Any) -> None:
    """No budget is named, and no time: the next try leaves others some."""
    refusal = 429, orjson.dumps({"message": "no", "details": details})
    found = 200, orjson.dumps({"items": [{"metadata": {"uid": POD.uid}}]})
    session = a_session(ToldTransport(lambda method, _path: found if method == "GET" else refusal))

    answer = await PodEvictor(session).evict(POD)

    assert (answer.verdict, answer.message, answer.retry_after_s) == (WriteOutcome.BUSY, "no", SIGN_WITHIN_S)


def test_a_server_that_says_very_much_is_cut_short() -> None:
    """Its words go into logs, records and conditions; its wish to be left alone ends after an hour."""
    said = error_of("GET /", 429, {"message": "x" * 99_999, "details": {"retryAfterSeconds": 10**9}})

    assert len(str(said)) < LONGEST_MESSAGE + 100
    assert answer_of(said).retry_after_s == 3600


@pytest.mark.parametrize(
    ("moment", "renewed"),
    [("0001-01-01T00:00:00+23:00", 0.0), ("9999-12-31T23:59:59.999999-23:00", LATEST)],
)
async def test_a_lease_of_any_time_can_be_written_again(moment: str, renewed: float) -> None:
    """Another client may have written it."""
    spec = {"holderIdentity": "a", "renewTime": moment, "acquireTime": moment}
    store = LeaseStore(saying({"metadata": {"annotations": ["x"]}, "spec": spec}), "ns", "plimsoll", 1.0)

    _, found = await store.read()
    assert found is not None
    answer, _ = await store.write(found)

    assert (found.renewed, answer.verdict) == (renewed, WriteOutcome.DONE)


async def test_a_lease_without_a_time_zone_is_no_lease() -> None:
    """It would be read in the zone of this machine."""
    spec = {"renewTime": "2026-01-01T00:00:00"}

    answer, found = await LeaseStore(saying({"metadata": {}, "spec": spec}), "ns", "plimsoll", 1.0).read()

    assert (answer.verdict, found) == (WriteOutcome.UNKNOWN, None)


@pytest.mark.parametrize(
    "items", [7, [7], [{"usage": []}], [{"metadata": {"name": "a"}, "usage": {"cpu": []}}]]
)
async def test_readings_that_make_no_sense_are_left_out(items: Any) -> None:
    """All of them, here."""
    assert await UsageMeter(saying({"versions": [{"version": "v1"}], "items": items})).nodes() == (
        WriteResult(WriteOutcome.DONE),
        [],
    )


async def test_documents_without_a_name_are_no_policies() -> None:
    """What follows takes the name for granted."""
    named = {"metadata": {"name": "a"}}

    assert await PolicyResources(saying({"items": [7, {}, {"metadata": {"name": 7}}, named]})).list() == (
        WriteResult(WriteOutcome.DONE),
        [named],
    )


async def listed(session: Session) -> object:
    """What a command lists."""
    return [each async for each in objects(session, "/api/v1/pods")]


@pytest.mark.parametrize(
    ("call", "body"),
    [
        (listed, {"items": 7}),
        (listed, {"metadata": [1]}),
        (lambda session: press(session, OperatorLease("", "plimsoll"), paused=True), {"items": [{}]}),
        (lambda session: press(session, OperatorLease("ns", "plimsoll"), paused=True), {"metadata": [1]}),
    ],
)
async def test_a_command_says_that_an_answer_cannot_be_read(call: Call, body: Any) -> None:
    """Its caller prints the sentence of an APIError."""
    with pytest.raises(APIError, match="the answer cannot be read"):
        await call(saying(body))


async def test_an_answer_that_is_no_list_deletes_no_policy() -> None:
    """Nothing is known then; a list without objects is something else, also with null, as Go writes it."""
    answer, found = await PolicyResources(saying({"kind": "Status"})).list()

    assert (answer.verdict, found) == (WriteOutcome.UNKNOWN, ())
    empties: list[Any] = [{"items": []}, {"items": None}]
    for empty in empties:
        assert await PolicyResources(saying(empty)).list() == (WriteResult(WriteOutcome.DONE), [])
