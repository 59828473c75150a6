"""Prometheus over HTTP: accepted samples, and messages of failures."""

import asyncio
import functools
import gzip
import tracemalloc
from asyncio.streams import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kube.scripted_server import ToldServer, told_server
from plimsoll.api.v1alpha1.prometheus import PrometheusProviderSpec
from plimsoll.framework.descheduling.measurements import Sample
from plimsoll.http_services import prometheus as client
from plimsoll.http_services.credentials import PrometheusCredentials
from plimsoll.http_services.prometheus import PrometheusClient
from plimsoll.kube.session.session import Session
from plimsoll.ports.writes import WriteOutcome


async def asked(session: Any, url: str, query: str) -> Any:
    """The outcome of one query without credentials; the model does not check the address."""
    server = PrometheusProviderSpec.model_construct(url=url)
    ((answer, samples),) = await PrometheusClient(PrometheusCredentials(session, "plimsoll")).query(
        server, [query]
    )
    return answer, samples


def vector(*samples: tuple[str, ...]) -> dict[str, Any]:
    """An answer of Prometheus with values by instance."""
    result = [{"metric": {"instance": name}, "value": [1.5, value]} for name, value in samples]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


@pytest.fixture
async def prometheus(tmp_path: Path) -> AsyncIterator[Any]:
    """A server with scripted answers, and its address."""
    async with told_server(tmp_path) as (server, session):
        yield server, session, session.address


async def test_a_query_is_asked_as_it_is_written(prometheus: tuple[ToldServer, Session, str]) -> None:
    """Encoded, appended to the address, with or without a slash at its end."""
    server, session, address = prometheus
    server.then(vector(("n1", "0.5")))

    answer, samples = await asked(session, f"{address}/", 'rate(x{a="b"}[5m])')

    assert answer.is_done
    assert samples == [Sample({"instance": "n1"}, 0.5, 1.5)]
    assert server.requests[0][3].query["query"] == 'rate(x{a="b"}[5m])'
    assert server.requests[0][3].path == "/api/v1/query"


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        (
            {"status": "error", "errorType": "bad_data", "error": "parse error: unexpected end"},
            400,
            "HTTP 400: error type bad_data, check the query",
        ),
        (
            {"status": "error", "errorType": "timeout"},
            503,
            "HTTP 503: error type timeout, the query took too long",
        ),
        ({"status": "error"}, 503, "HTTP 503: no success"),
        ({"status": "success", "data": {"resultType": "scalar", "result": []}}, 200, "a scalar, not"),
        (b"<html>", 200, "this is not an answer of Prometheus' HTTP API, check the url"),
        (b"", 502, "HTTP 502"),
        (vector(("n1", "half")), 200, "not an answer of Prometheus"),
        ({"status": "success", "data": {"resultType": "vector", "result": [7]}}, 200, "HTTP 200"),
    ],
)
async def test_an_invalid_answer_is_reported_in_a_sentence(
    prometheus: tuple[ToldServer, Session, str], body: bytes | dict[str, Any], status: int, sentence: str
) -> None:
    """With the address and what to do."""
    server, session, address = prometheus
    server.then(body, status)

    answer, samples = await asked(session, address, "up")

    assert answer.verdict is WriteOutcome.REFUSED
    assert answer.message.startswith(f"Prometheus at {address} answered")
    assert sentence in answer.message
    assert not samples


async def test_not_a_number_is_a_sample_that_no_strategy_takes(
    prometheus: tuple[ToldServer, Session, str],
) -> None:
    """It is handed on; a strategy skips the node (tests/strategies)."""
    server, session, address = prometheus
    server.then(vector(("n1", "NaN"), ("n2", "0.1")))

    _, samples = await asked(session, address, "up")

    assert [sample.value == sample.value for sample in samples] == [False, True]


async def test_a_prometheus_that_does_not_answer_is_given_up(
    prometheus: tuple[ToldServer, Session, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run goes on without it."""
    _, session, address = prometheus
    monkeypatch.setattr(client, "QUERY_TIMEOUT_S", 0.2)

    answer, _ = await asyncio.wait_for(asked(session, address, "up"), 20)

    assert answer.verdict is WriteOutcome.UNKNOWN
    assert "did not answer within" in answer.message


async def test_a_prometheus_that_is_not_there_is_named(prometheus: tuple[ToldServer, Session, str]) -> None:
    """The port is closed."""
    _, session, _ = prometheus

    answer, _ = await asked(session, "http://127.0.0.1:9", "up")

    assert answer.verdict is WriteOutcome.UNKNOWN
    assert answer.message.startswith("Prometheus at http://127.0.0.1:9 cannot be asked")


async def test_an_endless_answer_is_cut_off(
    prometheus: tuple[ToldServer, Session, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory has a bound for any server."""
    server, session, address = prometheus
    monkeypatch.setattr(client, "LONGEST_ANSWER", 2**20)
    server.then(b"x" * 2**21)

    answer, _ = await asked(session, address, "up")

    assert answer.message.endswith("answered more than 1 MiB")


SECRET = "the-secret-of-another-service"


@pytest.mark.parametrize(
    ("body", "status", "headers"),
    [
        ({"status": "error", "errorType": "bad_data", "error": SECRET}, 400, {}),
        ({"status": "error", "errorType": SECRET, "error": SECRET}, 400, {}),
        ({"status": SECRET}, 200, {}),
        ({"status": "success", "data": {"resultType": SECRET, "result": []}}, 200, {}),
        (vector(("n1", SECRET)), 200, {}),
        ({SECRET: SECRET}, 200, {}),
        (SECRET.encode(), 403, {}),
        (b"", 302, {"Location": f"http://{SECRET}/"}),
        (vector(("n1", "1")), 200, {"Content-Encoding": SECRET}),
    ],
)
async def test_nothing_of_an_answer_is_shown(
    prometheus: tuple[ToldServer, Session, str],
    body: bytes | dict[str, Any],
    status: int,
    headers: dict[str, Any],
) -> None:
    """Else who may write policies could read what only the operator can reach."""
    server, session, address = prometheus
    server.then(body, status, headers)

    answer, _ = await asked(session, address, "up")

    assert answer.verdict is WriteOutcome.REFUSED
    assert answer.message.startswith(f"Prometheus at {address} answered HTTP {status}: ")
    assert SECRET not in answer.message


async def test_nothing_is_shown_of_a_server_that_does_not_speak_http() -> None:
    """The library's exceptions quote what they could not read."""

    async def speak(_reader: StreamReader, writer: StreamWriter) -> None:
        writer.write(f"220 {SECRET} ESMTP\r\n".encode())
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    answer, _ = await asked(None, address, "up")
    server.close()

    assert answer.message == f"Prometheus at {address} cannot be asked: the answer is not HTTP"


@pytest.mark.parametrize(
    "suffix",
    ["?x=", "#", "/a?b", "@evil", "/\\..", "\n", " "],
    ids=["query", "fragment", "both", "user", "slash", "line", "space"],
)
async def test_an_address_that_chooses_more_than_a_prefix_is_not_asked(
    prometheus: tuple[ToldServer, Session, str], suffix: str
) -> None:
    """Validation refuses it; so does who would use it, without showing what may be a password."""
    server, session, address = prometheus
    given = address.replace("//", "//user:password@") if suffix == "@evil" else address + suffix

    answer, _ = await asked(session, given, "up")

    assert answer.verdict is WriteOutcome.REFUSED
    assert answer.message == "prometheus.url is not an address without user, query and fragment"
    assert server.requests == []


@functools.cache
def a_bomb() -> bytes:
    return gzip.compress(b" " * 10**8)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "GZIP"])
async def test_a_compressed_answer_is_refused_and_not_unpacked(
    prometheus: tuple[ToldServer, Session, str], encoding: str
) -> None:
    """A hundred kilobytes would become a hundred megabytes."""
    server, session, address = prometheus
    server.then(a_bomb(), headers={"Content-Encoding": encoding})
    tracemalloc.start()

    answer, samples = await asked(session, address, "up")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert server.requests[0][3].headers.getall("Accept-Encoding") == ["identity"]
    assert answer.message == (
        f"Prometheus at {address} answered HTTP 200: the answer is compressed, which was not asked for"
    )
    assert not samples
    assert peak < 2**21


async def test_an_answer_that_is_too_long_is_refused(
    prometheus: tuple[ToldServer, Session, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it is framed: here without a length."""
    server, session, address = prometheus
    monkeypatch.setattr(client, "LONGEST_ANSWER", 2**20)
    forever = asyncio.Event()
    server.then_stream(*[b" " * 2**18] * 5, hold=forever)

    answer, _ = await asked(session, address, "up")
    forever.set()

    assert answer.message == f"Prometheus at {address} answered more than 1 MiB"
