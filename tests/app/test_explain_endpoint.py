"""The endpoint /explain/ serves callers with a valid token and the right to the path, and no others."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson
import pytest

from plimsoll.answers.operator_memory import NodeMemory, PodMemory
from plimsoll.app.endpoints import Endpoints, serving
from plimsoll.app.memory import endpoint as module
from plimsoll.app.memory.caller_gate import KEPT_S, REVIEWS, CallerGate
from plimsoll.app.memory.endpoint import BURST, ExplainEndpoint
from plimsoll.kube.access_reviews import Caller
from plimsoll.kube.session.errors import Unauthorized
from plimsoll.testing.fakes import FakeClock

EMPTY = {"standing": "leading", "queue": None, "assumed": "", "room": None}


class Reviews:
    """A cluster of two users: jane may, joe may not."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.problem: Exception | None = None

    async def caller(self, token: str, audience: str = "") -> Caller | None:
        self.asked.append(token)
        if audience:
            return Caller("jane") if (token, audience) == ("reader's", "plimsoll.dev") else None
        if self.problem is not None:
            raise self.problem
        return {"jane's": Caller("jane"), "joe's": Caller("joe")}.get(token)

    async def may_get(self, caller: Caller, path: str) -> bool:
        self.asked.append(f"{caller.user} {path}")
        return caller.user == "jane"


async def a_pod(namespace: str, name: str) -> PodMemory:
    return PodMemory(standing="leading", queue=None, assumed="", room=None)


async def a_node(name: str) -> NodeMemory:
    return NodeMemory(standing="leading", assumed=[name], rooms=[])


async def nothing() -> bytes:
    return b""


Ask = Callable[..., Awaitable[tuple[int, str]]]


@asynccontextmanager
async def asking(reviews: Reviews, clock: FakeClock, pod: Any = a_pod) -> AsyncIterator[Ask]:
    """Status and body of a path, for a token."""
    async with serving_explain(reviews, clock, pod) as port, asking_from("127.0.0.1", port) as ask:
        yield ask


@asynccontextmanager
async def serving_explain(reviews: Reviews, clock: FakeClock, pod: Any = a_pod) -> AsyncIterator[int]:
    """The port that the endpoint is served on."""
    explain = ExplainEndpoint(CallerGate(reviews, clock), pod, a_node)
    said = Endpoints(lambda: "", lambda: "", lambda: "", nothing, explain)
    async with serving("127.0.0.1", [0], said) as (port,):
        yield port


@asynccontextmanager
async def asking_from(address: str, port: int) -> AsyncIterator[Ask]:
    """Status and body of a path, for a token, asked from an address of this machine."""
    connector = aiohttp.TCPConnector(local_addr=(address, 0))
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", connector=connector) as http:

        async def ask(path: str, token: str = "", **headers: str) -> tuple[int, str]:
            shown = {"Authorization": f"Bearer {token}"} if token else {}
            async with http.get(path, headers={**shown, **headers}) as answer:
                return answer.status, await answer.text()

        yield ask


async def test_who_may_receives_the_memory_and_is_reviewed_once() -> None:
    """Until the outcome is old."""
    reviews, clock = Reviews(), FakeClock()
    async with asking(reviews, clock) as ask:
        status, body = await ask("/explain/pods/shop/web", "jane's")
        assert (status, orjson.loads(body)) == (200, EMPTY)
        assert (await ask("/explain/pods/shop/db", "jane's"))[0] == 200
        assert reviews.asked == ["jane's", "jane /explain/pods"]
        status, body = await ask("/explain/nodes/n1", "jane's")
        assert (status, orjson.loads(body)["assumed"]) == (200, ["n1"])
        await clock.advance(KEPT_S)

        await ask("/explain/pods/shop/web", "jane's")

    assert len(reviews.asked) == 6


@pytest.mark.parametrize(
    ("token", "status", "text"),
    [
        ("", 401, "a bearer token of the cluster is needed\n"),
        ("forged", 401, "the API server does not accept the token\n"),
        (
            "joe's",
            403,
            'User "joe" cannot get path "/explain/pods"; the ClusterRole plimsoll-explain grants it\n',
        ),
    ],
)
async def test_others_receive_nothing(token: str, status: int, text: str) -> None:
    """Neither once nor when the outcome is kept."""
    async with asking(Reviews(), FakeClock()) as ask:
        assert await ask("/explain/pods/shop/web", token) == (status, text)
        assert await ask("/explain/pods/shop/web", token) == (status, text)


async def test_our_header_takes_tokens_of_our_audience_alone() -> None:
    """Neither that of the API server's audience, though Authorization takes it; nor the other way round."""
    async with asking(Reviews(), FakeClock()) as ask:
        assert (await ask("/explain/nodes/n1", "jane's"))[0] == 200
        refused = await ask("/explain/nodes/n1", **{"Plimsoll-Authorization": "Bearer jane's"})
        assert refused == (401, "the API server does not accept the token for the audience plimsoll.dev\n")
        assert (await ask("/explain/nodes/n1", **{"Plimsoll-Authorization": "Bearer reader's"}))[0] == 200
        assert (await ask("/explain/nodes/n1", "reader's"))[0] == 401
        both = {"Plimsoll-Authorization": "Bearer forged"}
        assert (await ask("/explain/nodes/n1", "jane's", **both))[0] == 401


@pytest.mark.parametrize(
    "header",
    [
        "X-Forwarded-User",
        "X-Forwarded-Groups",
        "X-Forwarded-Access-Token",
        "X-Auth-Request-User",
        "X-Remote-User",
        "Impersonate-User",
    ],
)
async def test_a_header_that_names_a_user_is_not_read(header: str) -> None:
    """Every pod that reaches the port could write it: the API server says whose a token is."""
    reviews = Reviews()
    async with asking(reviews, FakeClock()) as ask:
        assert (await ask("/explain/nodes/n1", **{header: "jane"}))[0] == 401
        assert reviews.asked == []
        assert (await ask("/explain/nodes/n1", "joe's", **{header: "jane"}))[0] == 403


async def test_a_password_is_no_token() -> None:
    """Another scheme is not reviewed."""
    reviews = Reviews()
    async with asking(reviews, FakeClock()) as ask:
        assert (await ask("/explain/nodes/n1", Authorization="Basic jane's"))[0] == 401
    assert reviews.asked == []


@pytest.mark.parametrize(
    "path", ["/explain/", "/explain/pods/web", "/explain/pods//web", "/explain/nodes/a%2Fb"]
)
async def test_other_paths_do_not_exist(path: str) -> None:
    """No caller is reviewed for them."""
    reviews = Reviews()
    async with asking(reviews, FakeClock()) as ask:
        assert (await ask(path, "jane's"))[0] == 404
    assert reviews.asked == []


async def test_an_operator_that_may_not_review_says_what_grants_it() -> None:
    """It is not kept: the right may be granted the next moment."""
    reviews = Reviews()
    reviews.problem = Unauthorized("POST tokenreviews", 403, message="forbidden")
    async with asking(reviews, FakeClock()) as ask:
        status, text = await ask("/explain/nodes/n1", "jane's")
        assert status == 503
        assert "; apply deploy/components/explain (chart: explain.enabled: true)" in text
        reviews.problem = None
        assert (await ask("/explain/nodes/n1", "jane's"))[0] == 200


async def test_wrong_tokens_spend_neither_the_rate_of_requests_nor_the_reviews_of_other_addresses() -> None:
    """An address has few reviews a second; who is admitted already needs none."""
    reviews, clock = Reviews(), FakeClock()
    async with (
        serving_explain(reviews, clock) as port,
        asking_from("127.0.0.1", port) as ask,
        asking_from("127.0.0.2", port) as elsewhere,
    ):
        assert (await ask("/explain/nodes/n1", "jane's"))[0] == 200
        asked = [(await ask("/explain/nodes/n1", f"forged {each}"))[0] for each in range(REVIEWS + 5)]
        assert asked == [401] * (REVIEWS - 1) + [429] * 6
        assert sum("forged" in each for each in reviews.asked) == REVIEWS - 1
        assert (await ask("/explain/nodes/n1", "jane's"))[0] == 200
        assert (await elsewhere("/explain/pods/shop/web", "jane's"))[0] == 200
        await clock.advance(1.0)
        assert (await ask("/explain/nodes/n1", "joe's"))[0] == 403


async def test_requests_of_admitted_callers_have_a_rate() -> None:
    clock = FakeClock()
    async with asking(Reviews(), clock) as ask:
        statuses = [(await ask("/explain/nodes/n1", "jane's"))[0] for _ in range(BURST + 1)]
        assert statuses == [200] * BURST + [429]
        assert [(await ask("/explain/nodes/n1"))[0] for _ in range(BURST + 1)] == [401] * (BURST + 1)
        await clock.advance(1.0)
        assert (await ask("/explain/nodes/n1", "jane's"))[0] == 200


async def test_a_busy_main_loop_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller receives 503."""
    monkeypatch.setattr(module, "ANSWER_S", 0.05)

    async def never(*_: str) -> PodMemory:
        await asyncio.Event().wait()
        raise AssertionError

    async with asking(Reviews(), FakeClock(), never) as ask:
        assert await ask("/explain/pods/shop/web", "jane's") == (503, "the main event loop is busy\n")
