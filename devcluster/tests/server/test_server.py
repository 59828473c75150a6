"""The API server over HTTP: lists, pages, watches, conditional writes, bindings, evictions, refusals."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from roadstead.assembly import built_in_api
from roadstead.server.request_handler import RequestHandler
from roadstead.server.server import Server
from roadstead.store.api import Api

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
TOKEN = "for-tests"


class Client:
    """Talks to a server."""

    def __init__(self, session: aiohttp.ClientSession, api: Api) -> None:
        self.session, self.api = session, api

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """One request: its code and its body."""
        content = None if body is None else json.dumps(body)
        sent = {"Content-Type": "application/json", **headers}
        async with self.session.request(method, path, data=content, headers=sent) as response:
            text = await response.text()
            return response.status, json.loads(text) if text.startswith("{") else text

    async def events(self, path: str) -> list[Any]:
        """What a watch says until the server ends it."""
        async with self.session.get(path) as response:
            return [json.loads(line) async for line in response.content]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """A client of a server without controllers."""
    api = built_in_api()
    server = Server(RequestHandler(api, TOKEN))
    url = await server.start()
    async with aiohttp.ClientSession(url, headers={"Authorization": f"Bearer {TOKEN}"}) as session:
        yield Client(session, api)
    await server.stop()


def a_lease(name: str, **labels: str) -> Any:
    """A Lease."""
    return {"metadata": {"name": name, "labels": labels}, "spec": {"holderIdentity": "nobody"}}


def a_pod(name: str, **spec: Any) -> Any:
    """A pod that is labelled with its name's first part."""
    spec = {"containers": [{"name": "main", "image": "app:1"}], **spec}
    return {"metadata": {"name": name, "labels": {"app": name.partition("-")[0]}}, "spec": spec}


def a_binding(name: str, node: str) -> Any:
    """A Binding."""
    return {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}


async def test_wrong_token_is_refused(client: Client) -> None:
    """401, as a Status."""
    code, body = await client.send("GET", PODS, Authorization="Bearer wrong")

    assert (code, body["reason"]) == (401, "Unauthorized")


async def test_pages_show_one_state(client: Client) -> None:
    """What comes and goes between two pages does not show in the second."""
    for name in "abcd":
        await client.send("POST", LEASES, a_lease(name))

    _, first = await client.send("GET", f"{LEASES}?limit=2")
    await client.send("POST", LEASES, a_lease("bb"))
    await client.send("DELETE", f"{LEASES}/d")
    _, second = await client.send("GET", f"{LEASES}?limit=2&continue={first['metadata']['continue']}")

    assert first["metadata"]["remainingItemCount"] == 2
    assert [one["metadata"]["name"] for one in second["items"]] == ["c", "d"]
    assert second["metadata"] == {"resourceVersion": first["metadata"]["resourceVersion"]}


async def test_watch_resumes_where_it_was(client: Client) -> None:
    """From a version on: every later change, in order, and nothing before."""
    _, one = await client.send("POST", LEASES, a_lease("one"))
    await client.send("POST", LEASES, a_lease("two"))
    await client.send("DELETE", f"{LEASES}/two")
    version = one["metadata"]["resourceVersion"]

    events = await client.events(f"{LEASES}?watch=true&timeoutSeconds=1&resourceVersion={version}")

    assert [event["type"] for event in events] == ["ADDED", "DELETED"]


async def test_watch_of_a_selection_turns_leaving_into_deleted(client: Client) -> None:
    """An object that no longer is selected is DELETED in its last selected state, with a new version."""
    _, listed = await client.send("GET", PODS)
    await client.send("POST", PODS, a_pod("a"))
    await client.send("POST", f"{PODS}/a/binding", a_binding("a", "n1"))
    start = f"watch=true&timeoutSeconds=1&resourceVersion={listed['metadata']['resourceVersion']}"

    unbound = await client.events(f"{PODS}?{start}&fieldSelector=spec.nodeName%3D")
    bound = await client.events(f"{PODS}?{start}&fieldSelector=spec.nodeName%3Dn1")

    assert [event["type"] for event in unbound] == ["ADDED", "DELETED"]
    assert "nodeName" not in unbound[1]["object"]["spec"]
    assert [event["type"] for event in bound] == ["ADDED"]
    versions = [events[-1]["object"]["metadata"]["resourceVersion"] for events in (unbound, bound)]
    assert versions[0] == versions[1]


async def test_streaming_list_ends_with_a_bookmark(client: Client) -> None:
    """The objects first, then a bookmark that says that this was all."""
    await client.send("POST", LEASES, a_lease("one"))
    asked = "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"

    events = await client.events(f"{LEASES}?watch=true&timeoutSeconds=1&{asked}")

    assert [event["type"] for event in events[:2]] == ["ADDED", "BOOKMARK"]
    assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_watch_from_a_forgotten_version_is_gone(client: Client) -> None:
    """An ERROR event with code 410 on a stream that begins with 200."""
    for turn in range(3):
        await client.send("POST", LEASES, a_lease(f"l{turn}"))
    client.api.store.collection("leases.coordination.k8s.io").complete_since = client.api.store.revision

    events = await client.events(f"{LEASES}?watch=true&resourceVersion=2&timeoutSeconds=5")

    assert [event["type"] for event in events] == ["ERROR"]
    assert (events[0]["object"]["code"], events[0]["object"]["reason"]) == (410, "Expired")


async def test_all_watchers_are_sent_the_same_bytes(client: Client) -> None:
    """An object is encoded once, however many watch."""
    _, listed = await client.send("GET", LEASES)
    path = f"{LEASES}?watch=true&timeoutSeconds=1&resourceVersion={listed['metadata']['resourceVersion']}"
    watching = [asyncio.ensure_future(client.events(path)) for _ in range(3)]
    await client.send("POST", LEASES, a_lease("one"))

    first, *others = await asyncio.gather(*watching)

    assert [event["type"] for event in first] == ["ADDED"]
    assert all(other == first for other in others)


async def test_exactly_one_binding_wins(client: Client) -> None:
    """Of several schedulers one succeeds, the others get a conflict."""
    await client.send("POST", PODS, a_pod("a"))

    replies = await asyncio.gather(
        *(client.send("POST", f"{PODS}/a/binding", a_binding("a", f"n{turn}")) for turn in range(4))
    )

    assert sorted(code for code, _ in replies) == [201, 409, 409, 409]


async def test_binding_of_another_pod_of_the_name_is_refused(client: Client) -> None:
    """The uid is a precondition."""
    await client.send("POST", PODS, a_pod("a"))
    binding = a_binding("a", "n1")
    binding["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000"

    code, body = await client.send("POST", f"{PODS}/a/binding", binding)

    assert (code, body["reason"]) == (409, "Conflict")


async def test_eviction_takes_from_the_budget_until_it_is_empty(client: Client) -> None:
    """The books are kept in the budget's status; then 429 says why."""
    running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    merge = "application/merge-patch+json"
    for name in ("web-0", "web-1"):
        await client.send("POST", PODS, a_pod(name, nodeName="n1"))
        await client.send("PATCH", f"{PODS}/{name}/status", {"status": running}, **{"Content-Type": merge})
    budget = {
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    await client.send("POST", BUDGETS, budget)
    counted = {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1}
    await client.send("PATCH", f"{BUDGETS}/web/status", {"status": counted}, **{"Content-Type": merge})

    dry, _ = await client.send("POST", f"{PODS}/web-0/eviction?dryRun=All", {"metadata": {"name": "web-0"}})
    first, _ = await client.send("POST", f"{PODS}/web-0/eviction", {"metadata": {"name": "web-0"}})
    second, body = await client.send("POST", f"{PODS}/web-1/eviction", {"metadata": {"name": "web-1"}})

    assert (dry, first, second) == (201, 201, 429)
    assert body["details"]["causes"][0]["reason"] == "DisruptionBudget"
    _, books = await client.send("GET", f"{BUDGETS}/web")
    assert list(books["status"]["disruptedPods"]) == ["web-0"]


async def test_dry_run_writes_nothing(client: Client) -> None:
    """The answer is as if, and the version of the store stays."""
    before = client.api.store.revision

    code, body = await client.send("POST", f"{PODS}?dryRun=All", a_pod("a"))

    assert code == 201
    assert body["spec"]["schedulerName"] == "default-scheduler"
    assert client.api.store.revision == before


async def test_unknown_field_warns_and_is_refused_strictly(client: Client) -> None:
    """As kubectl asks for it."""
    config = {"metadata": {"name": "a"}, "datum": {}}
    path = "/api/v1/namespaces/default/configmaps?dryRun=All"
    async with client.session.post(path, json=config) as response:
        warning = response.headers["Warning"]

    code, body = await client.send("POST", f"{path}&fieldValidation=Strict", config)

    assert warning == '299 - "unknown field \\"datum\\""'
    assert code == 400
    assert body["message"].endswith('strict decoding error: unknown field "datum"')


async def test_managed_fields_tell_who_wrote_what(client: Client) -> None:
    """They are in the JSON of every object."""
    path = "/api/v1/namespaces/default/configmaps"

    _, made = await client.send(
        "POST", f"{path}?fieldManager=alice", {"metadata": {"name": "a"}, "data": {"x": "1"}}
    )

    entry = made["metadata"]["managedFields"][0]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("alice", "Update", "v1")
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:x": {}}}


@pytest.mark.parametrize(
    ("method", "path", "code", "reason"),
    [
        ("GET", f"{PODS}/nope", 404, "NotFound"),
        ("PUT", PODS, 405, "MethodNotAllowed"),
        ("POST", f"{PODS}/a", 405, "MethodNotAllowed"),
        ("GET", f"{PODS}?labelSelector=a%20b", 400, "BadRequest"),
        ("GET", f"{PODS}?fieldSelector=spec.priority%3D0", 400, "BadRequest"),
        ("GET", f"{PODS}?resourceVersion=99999999", 504, "Timeout"),
    ],
)
async def test_malformed_requests_are_rejected(
    client: Client, method: str, path: str, code: int, reason: str
) -> None:
    """Each with the code and the reason of a Status."""
    answered, body = await client.send(method, path, {} if method != "GET" else None)

    assert (answered, body["reason"]) == (code, reason)
