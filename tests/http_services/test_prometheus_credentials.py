"""Credentials for Prometheus: read from Secrets each time, shown to the server that they name, never told."""

import base64
import logging
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.web_request import Request
from aiohttp.web_response import Response

from kube.scripted_server import ToldServer
from kube.tls_servers import Authority, load, served
from plimsoll.api.v1alpha1.prometheus import PrometheusProviderSpec
from plimsoll.http_services.credentials import ADDRESSES, PrometheusCredentials
from plimsoll.http_services.prometheus import PrometheusClient
from plimsoll.kube.session.session import Session
from plimsoll.ports.writes import WriteOutcome
from plimsoll.testing.fakes import RememberingObserver

TOKEN = "s3cret-0f-the-0perator"
AUTH = {"authToken": {"secretReference": {"name": "prom"}}}
BASIC = {"basicAuth": {"secretName": "prom"}}
PLAIN = {"allowPlainHTTP": True}


def a_secret(url: str | None, **values: str | bytes) -> dict[str, Any]:
    """As the API server returns it."""
    data = {
        key.replace("__", ".").replace("_", "-"): base64.b64encode(
            value if isinstance(value, bytes) else value.encode()
        ).decode()
        for key, value in values.items()
    }
    return {"metadata": {"annotations": {} if url is None else {ADDRESSES: url}}, "data": data}


async def answer(_: Request) -> Response:
    return web.json_response({"status": "success", "data": {"resultType": "vector", "result": []}})


@asynccontextmanager
async def a_prometheus(context: ssl.SSLContext | None = None) -> AsyncIterator[Any]:
    """Its address, and the headers of what was asked."""
    async with served(answer, context) as (port, asked):
        scheme = "http" if context is None else "https"
        yield f"{scheme}://127.0.0.1:{port}", asked


async def ask(session: Session, url: str, fields: Mapping[str, Any], folder: Path = Path("/nowhere")) -> Any:
    """The outcome of one query."""
    server = PrometheusProviderSpec.from_wire({"url": url, **fields})
    client = PrometheusClient(PrometheusCredentials(session, "plimsoll", folder))
    ((result, _),) = await client.query(server, ["up"])
    return result


@pytest.mark.parametrize(
    ("fields", "secret", "header", "value"),
    [
        (AUTH, {"prometheusAuthToken": TOKEN + "\n"}, "Authorization", f"Bearer {TOKEN}"),
        (
            BASIC,
            {"username": "reader", "password": "p:ä"},
            "Authorization",
            "Basic " + base64.b64encode("reader:p:ä".encode()).decode(),
        ),
        ({"headersSecret": "prom"}, {"X_Scope_OrgID": "team-a"}, "X-Scope-OrgID", "team-a"),
    ],
    ids=["token", "basic", "headers"],
)
async def test_a_secret_is_shown(
    told: tuple[ToldServer, Session],
    fields: dict[str, Any],
    secret: dict[str, str],
    header: str,
    value: str,
) -> None:
    """Read by its name in the operator's namespace, and sent as the header that it makes."""
    server, session = told
    async with a_prometheus() as (url, asked):
        server.then(a_secret(f"https://other {url}/", **secret))

        result = await ask(session, url, {**PLAIN, **fields})

    assert result.is_done
    assert server.requests[0][:2] == ("GET", "/api/v1/namespaces/plimsoll/secrets/prom")
    assert asked[0][3][header] == value


async def test_a_changed_secret_is_used_with_the_next_question(told: tuple[ToldServer, Session]) -> None:
    """A rotated token needs no restart of the operator."""
    server, session = told
    async with a_prometheus() as (url, asked):
        for token in ("old", "new"):
            server.then(a_secret(url, prometheusAuthToken=token))
            await ask(session, url, {**PLAIN, **AUTH})

    assert [headers["Authorization"] for *_, headers in asked] == ["Bearer old", "Bearer new"]


async def test_the_projected_token_is_shown_to_the_server_that_it_is_for(
    told: tuple[ToldServer, Session], tmp_path: Path
) -> None:
    """And read each time, because the kubelet renews it."""
    _, session = told
    projected = {"serviceAccountToken": True, **PLAIN}
    async with a_prometheus() as (url, asked):
        (tmp_path / "url").write_text(url)
        for token in ("old", "new"):
            (tmp_path / "token").write_text(token)
            await ask(session, url, projected, tmp_path)
        (tmp_path / "url").write_text("https://prometheus.monitoring.svc")
        refused = await ask(session, url, projected, tmp_path)
        absent = await ask(session, url, projected)

    assert [headers["Authorization"] for *_, headers in asked] == ["Bearer old", "Bearer new"]
    assert "the projected token is not for this server" in refused.message
    assert "there is no projected token" in absent.message


@pytest.mark.parametrize(
    ("fields", "secret", "sentence"),
    [
        (AUTH, {}, "Secret plimsoll/prom has no key prometheusAuthToken"),
        (AUTH, {"prometheusAuthToken": ""}, "has no key prometheusAuthToken"),
        (
            AUTH,
            {"prometheusAuthToken": b"\xff\xfe"},
            "the value of prometheusAuthToken in Secret",
        ),
        (AUTH, {"prometheusAuthToken": "a\r\nX-Evil: b"}, "cannot be sent in a header"),
        (AUTH, {"prometheusAuthToken": "a" * 20_000}, "cannot be sent in a header"),
        (BASIC, {"username": "reader"}, "Secret plimsoll/prom has no key password"),
        (BASIC, {"username": "a:b", "password": TOKEN}, "in Secret plimsoll/prom has a colon"),
        (
            {"headersSecret": "prom"},
            {"Host": "x"},
            "the key Host of Secret plimsoll/prom is no header that may",
        ),
        ({"headersSecret": "prom"}, {"authorization": "x"}, "the key authorization of Secret"),
        (
            {"headersSecret": "prom"},
            {"tls__crt": "x"},
            "the key tls.crt of Secret plimsoll/prom is no header",
        ),
        (
            {"headersSecret": "prom"},
            {f"X_{n}": "x" for n in range(17)},
            "has 17 keys; at most 16 headers are",
        ),
        (
            {"authToken": {"secretReference": {"name": "prom", "namespace": "kube-system"}}},
            None,
            "authToken.secretReference.namespace is not the operator's own, plimsoll; leave it out",
        ),
    ],
)
async def test_a_secret_that_cannot_be_used_is_a_sentence(
    told: tuple[ToldServer, Session], fields: dict[str, Any], secret: dict[str, str] | None, sentence: str
) -> None:
    """And nothing is asked without it."""
    server, session = told
    async with a_prometheus() as (url, asked):
        if secret is not None:
            server.then(a_secret(url, **secret))
        result = await ask(session, url, {**PLAIN, **fields})

    assert result.verdict is WriteOutcome.REFUSED
    assert result.message.startswith(f"Prometheus at {url} is not asked: ")
    assert sentence in result.message
    assert asked == []


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"message": TOKEN}, 404, "Secret plimsoll/prom does not exist"),
        ({"message": TOKEN}, 403, "may not read Secret plimsoll/prom; deploy/components/prometheus-access"),
        ({"message": TOKEN}, 500, "Secret plimsoll/prom cannot be read now"),
        ({"data": TOKEN, "metadata": {"annotations": 7}}, 200, "Secret plimsoll/prom is not for this server"),
        ({"data": {"prometheusAuthToken": 7}, "metadata": TOKEN}, 200, "is not for this server"),
    ],
)
async def test_a_secret_that_cannot_be_read_is_a_sentence(
    told: tuple[ToldServer, Session], body: dict[str, Any], status: int, sentence: str
) -> None:
    """The API server's own words are not repeated."""
    server, session = told
    async with a_prometheus() as (url, asked):
        server.then(body, status)
        result = await ask(session, url, {**PLAIN, **AUTH})

    assert sentence in result.message
    assert TOKEN not in result.message
    assert asked == []


@pytest.mark.parametrize("named", [None, "", "https://prometheus.monitoring.svc", "http://127.0.0.1"])
async def test_a_secret_is_not_shown_to_another_server(
    told: tuple[ToldServer, Session], named: str | None
) -> None:
    """Else who may write a policy could have every such Secret sent to a server of theirs."""
    server, session = told
    async with a_prometheus() as (url, asked):
        server.then(a_secret(named, prometheusAuthToken=TOKEN))
        result = await ask(session, url, {**PLAIN, **AUTH})

    assert f"Secret plimsoll/prom is not for this server; its annotation {ADDRESSES}" in result.message
    assert asked == []


@pytest.mark.parametrize(("status", "is_shown"), [(401, True), (403, False), (302, True), (200, True)])
async def test_a_token_is_in_no_message_and_no_log(
    told: tuple[ToldServer, Session],
    caplog: pytest.LogCaptureFixture,
    status: int,
    is_shown: bool,
) -> None:
    """Though the server repeats it, and sends the question elsewhere."""
    caplog.set_level(logging.DEBUG)
    server, session = told

    async def repeat(request: Request) -> Response:
        shown = request.headers.get("Authorization", "")
        return web.Response(status=status, text=shown, headers={"Location": "/elsewhere", "X-Told": shown})

    async with served(repeat) as (port, asked):
        url = f"http://127.0.0.1:{port}"
        fields: Mapping[str, Any] = AUTH if is_shown else {}
        if is_shown:
            server.then(a_secret(url, prometheusAuthToken=TOKEN))
        result = await ask(session, url, {**PLAIN, **fields})

    assert len(asked) == 1
    assert asked[0][1] == "/api/v1/query"
    assert (asked[0][3].get("Authorization") == f"Bearer {TOKEN}") is is_shown
    assert TOKEN not in result.message + caplog.text + repr(result)
    wanted = {401: "does not accept the credentials", 403: "it wants credentials", 302: "not followed"}
    assert wanted.get(status, "check the url") in result.message


async def test_no_proxy_of_the_environment_sees_a_token(
    told: tuple[ToldServer, Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the variables say."""
    server, session = told
    async with a_prometheus() as (url, asked), a_prometheus() as (proxy, seen):
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy)
        server.then(a_secret(url, prometheusAuthToken=TOKEN))
        await ask(session, url, {**PLAIN, **AUTH})

    assert (len(asked), seen) == (1, [])


async def test_both_sides_show_certificates(told: tuple[ToldServer, Session]) -> None:
    """From Secrets, under the name that the policy says; an unknown server sees no token."""
    server, session = told
    ours, theirs = Authority(), Authority()
    certificate, key = theirs.issue("prometheus.example.com")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=ours.pem.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    load(context, certificate, key)
    client_certificate, client_key = ours.issue("plimsoll")
    name = {"serverName": "prometheus.example.com"}
    async with a_prometheus(context) as (url, asked):
        token = a_secret(url, prometheusAuthToken=TOKEN)
        authority = a_secret(None, ca__crt=theirs.pem)
        pair = a_secret(url, tls__crt=client_certificate, tls__key=client_key)
        wrong = a_secret(url, tls__crt=client_certificate, tls__key=key)
        shown = {"caSecret": "ca", "clientCertSecret": "pair"}
        for tls, secrets, sentence in (
            ({**shown, **name}, [token, authority, pair], ""),
            ({"caSecret": "ca", **name}, [token, authority], "cannot be asked"),
            (shown, [token, authority, pair], "its TLS certificate cannot be verified"),
            ({"clientCertSecret": "pair", **name}, [token, pair], "its TLS certificate cannot be verified"),
            ({"clientCertSecret": "pair", "insecureSkipVerify": True}, [token, pair], ""),
            (
                {**shown, **name},
                [token, authority, wrong],
                "in the Secrets of tls is not PEM, or they do not",
            ),
            ({**shown, **name}, [token, a_secret(None, ca__crt="x"), pair], "in the Secrets of tls is not"),
            ({**shown, **name}, [token, a_secret(None)], "Secret plimsoll/ca has no key ca.crt"),
            ({**shown, **name}, [token, authority, a_secret(None)], "Secret plimsoll/pair is not for this"),
        ):
            server.answers.clear()
            asked.clear()
            for each in secrets:
                server.then(each)
            result = await ask(session, url, {"tls": tls, **AUTH})

            assert sentence in result.message, tls
            assert len(asked) == (not sentence), tls


async def test_a_silent_server_costs_one_timeout(
    told: tuple[ToldServer, Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many queries a policy has."""
    server, session = told
    monkeypatch.setattr("plimsoll.http_services.prometheus.QUERY_TIMEOUT_S", 0.2)
    provider = PrometheusProviderSpec(url=session.address)

    observer = RememberingObserver()
    client = PrometheusClient(PrometheusCredentials(session, "plimsoll"), observer)

    results = await client.query(provider, ["a", "b", "c"])

    assert [result.verdict for result, _ in results] == [WriteOutcome.UNKNOWN] * 3
    assert len(server.requests) == 1
    assert observer.asked == [("Prometheus", "unanswered")] * 3


async def test_a_query_that_fails_costs_no_other(told: tuple[ToldServer, Session]) -> None:
    """Each has its own outcome."""
    server, session = told
    fine = {"status": "success", "data": {"resultType": "vector", "result": []}}
    for body, status in ((fine, 200), ({"status": "error", "errorType": "bad_data"}, 400), (fine, 200)):
        server.then(body, status)
    provider = PrometheusProviderSpec(url=session.address)

    results = await PrometheusClient(PrometheusCredentials(session, "plimsoll")).query(
        provider, ["a", "b", "c"]
    )

    assert [result.is_done for result, _ in results] == [True, False, True]
