"""The fence around a session: allowed writes, timeouts, and writes stopped at the last moment."""

from __future__ import annotations

import asyncio

import pytest

from kube.scripted_server import ToldServer
from plimsoll.kube.session.errors import Fenced, NotFound, Unavailable
from plimsoll.kube.session.session import Session
from plimsoll.leadership.fence import Fence
from plimsoll.ports.writes import WriteOutcome
from plimsoll.testing.builders import a_pod
from plimsoll.testing.fakes import FakeClock, settled
from plimsoll.writers.pods import PodBinder

PATH = "/api/v1/namespaces/default/pods/a/binding"


@pytest.fixture
def fence() -> Fence:
    """Open for ten seconds on a clock that stands still."""
    clock = FakeClock()
    one = Fence(clock)
    one.open(clock.time + 10)
    return one


async def test_reading_needs_no_leader(told: tuple[ToldServer, Session], fence: Fence) -> None:
    """A standby lists and watches."""
    server, session = told
    fence.shut()
    server.then({"kind": "PodList"})

    assert await session.fenced(fence).object("GET", "/api/v1/pods") == {"kind": "PodList"}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_closed_fence_lets_no_write_pass(
    told: tuple[ToldServer, Session], fence: Fence, method: str
) -> None:
    """Nothing is sent."""
    server, session = told
    fence.shut()

    with pytest.raises(Fenced, match="does not lead"):
        await session.fenced(fence).request(method, PATH, {})

    assert server.requests == []


async def test_what_is_not_sent_is_an_answer_of_its_own(
    told: tuple[ToldServer, Session], fence: Fence
) -> None:
    """It is neither refused by the server nor unknown: it has not happened, and must not be tried again."""
    _, session = told
    fence.shut()

    answer = await PodBinder(session.fenced(fence)).bind(a_pod("a"), "node")

    assert answer.verdict is WriteOutcome.FENCED


async def test_an_open_fence_lets_bodies_pass_as_they_are(
    told: tuple[ToldServer, Session], fence: Fence
) -> None:
    """With their length and type."""
    server, session = told
    server.then()

    await session.fenced(fence).request("POST", PATH, {"kind": "Binding"})

    _, _, body, request = server.requests[0]
    assert body == {"kind": "Binding"}
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["Content-Length"] == "18"


async def test_a_write_takes_no_longer_than_the_lease_is_ours(told: tuple[ToldServer, Session]) -> None:
    """No caller waits for an answer beyond it."""
    _, session = told
    clock = FakeClock()
    fence = Fence(clock)
    fence.open(clock.time + 0.2)
    loop = asyncio.get_running_loop()
    began = loop.time()

    with pytest.raises(Unavailable):
        await session.fenced(fence).request("POST", PATH, {})

    assert loop.time() - began < 10, "the usual patience is 30 s"
    assert not fence.is_quiet(5), "it may happen yet"


async def test_a_fence_that_closes_before_the_body_is_sent_stops_the_write(
    told: tuple[ToldServer, Session], fence: Fence
) -> None:
    """As when the process is paused there: the request is never complete, so the server never acts on it."""
    server, session = told
    clock: FakeClock = fence._clock  # type: ignore[assignment] # a fake differs on purpose

    async def slow_credentials() -> str:
        clock.time += 20  # the process was paused after it had looked at the fence
        return ""

    session.credentials.authorization = slow_credentials  # type: ignore[method-assign] # replaced for this test

    with pytest.raises(Fenced):
        await session.fenced(fence).request("POST", PATH, {"kind": "Binding"})
    await settled()

    assert server.requests == []
    assert fence.is_quiet(5), "it has not happened"


async def test_a_refusal_is_an_answer(told: tuple[ToldServer, Session], fence: Fence) -> None:
    """The lease may be given away after it: what was asked has not happened and will not."""
    server, session = told
    server.then({"kind": "Status", "message": "no such pod"}, 404)

    with pytest.raises(NotFound):
        await session.fenced(fence).request("POST", PATH, {})

    assert fence.is_quiet(5)
    assert fence.under_way == 0


async def test_a_write_that_is_called_off_may_have_happened(
    told: tuple[ToldServer, Session], fence: Fence
) -> None:
    """The caller is cancelled before the answer."""
    _, session = told
    task = asyncio.create_task(session.fenced(fence).request("POST", PATH, {}))
    await settled()
    assert fence.under_way == 1

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert fence.under_way == 0
    assert not fence.is_quiet(5)
    fence._clock.time += 5  # type: ignore[attr-defined] # known to exist in this test
    assert fence.is_quiet(5)


def test_a_fence_that_was_shut_stays_shut_whatever_the_election_stores() -> None:
    """It is opened from another thread: the last store may come after the shutting."""
    clock = FakeClock()
    one = Fence(clock)
    one.open(clock.monotonic() + 10)
    assert one.seconds_left() == 10
    one.shut()
    one._until = clock.monotonic() + 10  # as a thread that had looked before and was paused in between

    assert one.seconds_left() == 0


async def test_writes_that_are_sent_together_pass_the_fence(
    told: tuple[ToldServer, Session], fence: Fence
) -> None:
    """While it is open all are sent, each with its own outcome; once it is shut none is."""
    server, session = told
    server.then({}, 201)
    server.then({"kind": "Status", "reason": "AlreadyExists"}, 409)
    fenced = session.fenced(fence)

    sent = await fenced.write_all("POST", [(PATH, b"{}")] * 2)
    fence.shut()
    stopped = await fenced.write_all("POST", [(PATH, b"{}")] * 2)

    assert [each.verdict for each in sent] == [WriteOutcome.DONE, WriteOutcome.CONFLICT]
    assert [each.verdict for each in stopped] == [WriteOutcome.FENCED] * 2
    assert (len(server.requests), fence.under_way) == (2, 0)


async def test_writes_whose_fence_closes_before_they_are_sent_are_not_lost_answers(
    told: tuple[ToldServer, Session], fence: Fence
) -> None:
    """The server is not asked about requests that were never sent, and the fence is quiet."""
    server, session = told
    fenced = session.fenced(fence)
    credentials = session.credentials.authorization

    async def slowly() -> str:
        fence.shut()
        return await credentials()

    session.credentials.authorization = slowly  # type: ignore[method-assign] # the process is paused here

    stopped = await fenced.write_all("POST", [(PATH, b"{}")] * 2)

    assert [each.verdict for each in stopped] == [WriteOutcome.FENCED] * 2
    assert (server.requests, fence.under_way) == ([], 0)
    assert fence.is_quiet(0)


async def test_of_writes_that_are_sent_together_those_without_rights_are_not_sent(
    told: tuple[ToldServer, Session],
) -> None:
    """Each outcome is that of its own request."""
    server, session = told
    server.then({}, 201)
    server.then({"kind": "Status", "reason": "AlreadyExists"}, 409)
    careful = session.permitted(lambda _, path: "no right" if path.endswith("/b") else "")

    sent = await careful.write_all("POST", [("/x/a", b"{}"), ("/x/b", b"{}"), ("/x/c", b"{}")])

    assert [each.verdict for each in sent] == [WriteOutcome.DONE, WriteOutcome.REFUSED, WriteOutcome.CONFLICT]
    assert [path for _, path, _, _ in server.requests] == ["/x/a", "/x/c"]


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_an_answer_that_leaves_the_outcome_open_does_not_count(
    told: tuple[ToldServer, Session], fence: Fence, status: int
) -> None:
    """The API server or a proxy gave up, and the write may still take effect: the lease must be kept."""
    server, session = told
    fenced = session.fenced(fence)
    for code in (status, 201, status):
        server.then({}, code)

    with pytest.raises(Unavailable):
        await fenced.request("POST", PATH, {})
    assert not fence.is_quiet(5)
    fence._clock.time += 5  # type: ignore[attr-defined] # known to exist in this test
    assert fence.is_quiet(5)
    await fenced.write_all("POST", [(PATH, b"{}")] * 2)

    assert not fence.is_quiet(5)
    assert fence.under_way == 0
