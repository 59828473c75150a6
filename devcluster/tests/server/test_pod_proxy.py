"""Requests to pods through the API server, and the tokens of service accounts that they may show."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import ClientSession, web

from roadstead.assembly import built_in_api
from roadstead.server.request_handler import RequestHandler
from roadstead.server.server import Server

TOKEN = "for-tests"
PODS = "/api/v1/namespaces/default/pods"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


@pytest.fixture
async def http() -> AsyncIterator[ClientSession]:
    """The administrator's session, with a server without controllers."""
    server = Server(RequestHandler(built_in_api(), TOKEN))
    url = await server.start()
    async with ClientSession(url, headers={"Authorization": f"Bearer {TOKEN}"}) as session:
        yield session
    await server.stop()


async def asked(http: ClientSession, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Status and answer."""
    async with http.request(method, path, json=body) as answer:
        return answer.status, await answer.json()


async def a_pod(http: ClientSession, address: str) -> None:
    """The pod web, with an address."""
    spec = {"containers": [{"name": "main", "image": "app:1"}]}
    assert (await asked(http, "POST", PODS, {"metadata": {"name": "web"}, "spec": spec}))[0] == 201
    found = (await asked(http, "GET", f"{PODS}/web"))[1]
    found["status"]["podIP"] = address
    assert (await asked(http, "PUT", f"{PODS}/web/status", found))[0] == 200


async def test_a_pod_receives_the_request_without_the_token(http: ClientSession) -> None:
    """The path, the query and other headers arrive, and the pod's status and body return."""
    seen: list[web.BaseRequest] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        seen.append(request)
        return web.Response(status=418, text="tea")

    runner = web.ServerRunner(web.Server(handler))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    await a_pod(http, "127.0.0.1")

    for named in (f"web:{port}", f"http:web:{port}"):
        path = f"{PODS}/{named}/proxy/a%2Fb/c?d=e"
        async with http.get(path, headers={"Own": "kept"}) as answer:
            assert (answer.status, await answer.text()) == (418, "tea")
    await runner.cleanup()

    assert [each.path_qs for each in seen] == ["/a%2Fb/c?d=e"] * 2
    assert seen[0].headers["Own"] == "kept"
    assert not [value for value in seen[0].headers.values() if TOKEN in value]


async def test_a_pod_that_cannot_be_reached(http: ClientSession) -> None:
    """No pod, no https, no other method, no process at a simulated address; and no caller without a token."""
    assert (await asked(http, "GET", f"{PODS}/gone:80/proxy/"))[0] == 404
    await a_pod(http, "10.0.0.1")
    assert (await asked(http, "GET", f"{PODS}/https:web:80/proxy/"))[0] == 400
    assert (await asked(http, "POST", f"{PODS}/web:80/proxy/"))[0] == 405
    status, refusal = await asked(http, "GET", f"{PODS}/web:80/proxy/")
    assert (status, refusal["reason"]) == (503, "ServiceUnavailable")
    async with http.get(f"{PODS}/web:80/proxy/", headers={"Authorization": "Bearer forged"}) as answer:
        assert answer.status == 401


async def reviewed(http: ClientSession, token: str, *audiences: str) -> Any:
    """The status of a TokenReview."""
    spec = {"token": token, **({"audiences": list(audiences)} if audiences else {})}
    return (await asked(http, "POST", REVIEWS, {"spec": spec}))[1]["status"]


async def test_a_token_is_recognized_for_its_audience_alone(http: ClientSession) -> None:
    """With its service account; a changed one is not, nor is it accepted in place of the administrator's."""
    assert (await asked(http, "POST", ACCOUNTS, {"metadata": {"name": "reader"}}))[0] == 201
    spec = {"audiences": ["a"], "expirationSeconds": 600}

    status, answer = await asked(http, "POST", f"{ACCOUNTS}/reader/token", {"spec": spec})

    token = answer["status"]["token"]
    assert (status, answer["spec"]) == (201, spec)
    found = await reviewed(http, token, "b", "a")
    assert found["authenticated"]
    assert found["audiences"] == ["a"]
    assert found["user"]["username"] == "system:serviceaccount:default:reader"
    for other in (await reviewed(http, token), await reviewed(http, token, "b")):
        assert not other.get("authenticated")
    assert not (await reviewed(http, token[:-1] + ("0" if token[-1] != "0" else "1"), "a")).get(
        "authenticated"
    )
    async with http.get(PODS, headers={"Authorization": f"Bearer {token}"}) as refused:
        assert refused.status == 401


async def test_the_administrators_token_has_no_other_audience(http: ClientSession) -> None:
    """That of the API server is the one."""
    assert (await reviewed(http, TOKEN))["authenticated"]
    assert not (await reviewed(http, TOKEN, "a")).get("authenticated")


async def test_requests_for_tokens_are_refused(http: ClientSession) -> None:
    """Of no account, and for less than ten minutes."""
    assert (await asked(http, "POST", f"{ACCOUNTS}/reader/token", {"spec": {"audiences": ["a"]}}))[0] == 404
    assert (await asked(http, "POST", ACCOUNTS, {"metadata": {"name": "reader"}}))[0] == 201
    short = {"spec": {"audiences": ["a"], "expirationSeconds": 60}}
    status, refusal = await asked(http, "POST", f"{ACCOUNTS}/reader/token", short)
    assert (status, refusal["reason"]) == (422, "Invalid")
