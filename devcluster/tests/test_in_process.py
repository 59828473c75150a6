"""A cluster in the test's own event loop, and its return to the start."""

import asyncio
import datetime as dt
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from roadstead.cluster import RESET, DevCluster, simulated_nodes
from roadstead.values.status_errors import StatusError

WIDGETS = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"plural": "widgets", "kind": "Widget"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}
CRDS = "customresourcedefinitions.apiextensions.k8s.io"
CONTAINER = {"name": "main", "image": "app:1"}


@pytest.fixture
async def cluster() -> AsyncIterator[DevCluster]:
    """A cluster of two nodes without a port."""
    async with DevCluster(nodes=simulated_nodes(2), port=None) as one:
        yield one


async def test_answers_a_session_without_a_port(cluster: DevCluster) -> None:
    """Lists, refusals and bodies larger than a socket's buffer pass."""
    async with cluster.session() as session:
        async with session.get("/api/v1/nodes") as answer:
            nodes = (await answer.json())["items"]
        data = {"metadata": {"name": "large"}, "data": {"text": "x" * 900_000}}
        async with session.post("/api/v1/namespaces/default/configmaps", json=data) as answer:
            created = answer.status
        async with session.get("/api/v1/namespaces/default/configmaps/large") as answer:
            text = (await answer.json())["data"]["text"]
        async with session.get("/api/v1/nodes", headers={"Authorization": "Bearer wrong"}) as answer:
            refused = answer.status

    assert len(nodes) == 2
    assert (cluster.url, cluster.plain_url) == ("", "")
    assert (created, len(text), refused) == (201, 900_000, 401)


async def test_a_watch_goes_through_it(cluster: DevCluster) -> None:
    """Changes arrive as lines, while another request of the session is answered."""
    async with (
        cluster.session() as session,
        session.get("/api/v1/namespaces/default/configmaps", params={"watch": "true"}) as watch,
    ):
        async with session.post(
            "/api/v1/namespaces/default/configmaps", json={"metadata": {"name": "seen"}}
        ) as answer:
            assert answer.status == 201
        change = json.loads(await asyncio.wait_for(watch.content.readline(), 60))

    assert (change["type"], change["object"]["metadata"]["name"]) == ("ADDED", "seen")


async def test_a_watch_ends_with_the_definition_of_its_resource(cluster: DevCluster) -> None:
    """It says first that the objects are gone; a version of the first life is too old for the second."""
    path = "/apis/example.com/v1/widgets"
    cluster.api.create(CRDS, WIDGETS)
    cluster.api.create("widgets.example.com", {"metadata": {"name": "one", "namespace": "default"}})
    version = str(cluster.api.store.revision)
    asked = {"watch": "true", "resourceVersion": version}
    async with cluster.session() as session:
        async with session.get(path, params=asked) as watch:
            cluster.api.delete(CRDS, None, "widgets.example.com")
            told = (await asyncio.wait_for(watch.content.read(), 60)).splitlines()
        async with session.get(path) as answer:
            absent = answer.status, await answer.text()
        cluster.api.create(CRDS, WIDGETS)
        async with session.get(path, params=asked) as watch:
            again = json.loads(await asyncio.wait_for(watch.content.read(), 60))

    assert [json.loads(line)["type"] for line in told] == ["DELETED"]
    assert absent == (404, "404 page not found\n")
    assert (again["type"], again["object"]["code"]) == ("ERROR", 410)


async def test_connects_any_protocol(cluster: DevCluster) -> None:
    """As an event loop does, for clients that are not aiohttp's."""
    received: asyncio.Queue[bytes] = asyncio.Queue()

    class Reader(asyncio.Protocol):
        def data_received(self, data: Any) -> None:
            received.put_nowait(data)

    transport, protocol = await cluster.connect(Reader)
    transport.write(b"GET /readyz HTTP/1.1\r\nHost: any\r\n\r\n")
    answer = await asyncio.wait_for(received.get(), 60)
    transport.close()

    assert isinstance(protocol, Reader)
    assert answer.startswith(b"HTTP/1.1 200 OK")


async def test_no_connection_outlives_it() -> None:
    """A session of a cluster that has ended is refused."""
    async with DevCluster(port=None) as ended:
        session = ended.session()

    async with session:
        with pytest.raises(RuntimeError, match="not open"):
            await session.get("/api/v1/nodes")


async def test_objects_bear_the_time_of_its_clock() -> None:
    """A test can set the time."""
    moment = dt.datetime(2031, 5, 6, 7, 8, 9, tzinfo=dt.UTC)

    async with DevCluster(port=None, clock=lambda: moment) as cluster:
        created = cluster.api.create("namespaces", {"metadata": {"name": "timed"}})

    assert created["metadata"]["creationTimestamp"] == "2031-05-06T07:08:09Z"


def contents(cluster: DevCluster) -> Any:
    """The names of all objects but events, by collection."""
    found: dict[str, set[str]] = {}
    for name, entry in cluster.api.store.everything():
        found.setdefault(name, set()).add(entry.obj["metadata"]["name"])
    return found


async def test_reset_returns_to_the_start(cluster: DevCluster) -> None:
    """Objects, definitions, namespaces and nodes of a test are gone; what the cluster began with is back."""
    before = contents(cluster)
    api = cluster.api
    api.create("namespaces", {"metadata": {"name": "test", "finalizers": ["example.com/stays"]}})
    api.create(CRDS, WIDGETS)
    api.create(
        "widgets.example.com", {"metadata": {"name": "one", "namespace": "test", "finalizers": ["a/b"]}}
    )
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER]}}
    api.create(
        "deployments.apps",
        {
            "metadata": {"name": "web", "namespace": "test"},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
        },
    )
    api.patch("nodes", None, "node-0001", {"spec": {"unschedulable": True}})
    api.delete("nodes", None, "node-0002")
    api.patch("namespaces", None, "default", {"metadata": {"labels": {"changed": "yes"}}})
    async with asyncio.timeout(300):
        while len(api.list("pods", "test")) < 2:  # noqa: ASYNC110 - the store announces to subscribers only
            await asyncio.sleep(0.01)

    async with cluster.session() as session, session.post(RESET) as answer:
        assert answer.status == 200

    await asyncio.sleep(0.5)  # controllers have time to do nothing more
    assert {name: held for name, held in contents(cluster).items() if held} == before
    assert not any("unschedulable" in node["spec"] for node in api.list("nodes"))
    assert "changed" not in (api.get("namespaces", None, "default")["metadata"].get("labels") or {})
    with pytest.raises(StatusError):
        api.list("widgets.example.com")


async def test_a_watch_sees_what_a_reset_deletes(cluster: DevCluster) -> None:
    """Informers need no new list."""
    cluster.api.create("configmaps", {"metadata": {"name": "mine", "namespace": "default"}})
    seen = []
    cluster.api.subscribe("configmaps", lambda kind, new, _old: seen.append((kind, new["metadata"]["name"])))

    cluster.reset()

    assert seen == [("DELETED", "mine")]


async def test_the_same_definition_is_served_again_after_a_reset(cluster: DevCluster) -> None:
    """The next test brings its own kinds of the same name."""
    for name in ("first", "second"):
        cluster.api.create(CRDS, WIDGETS)
        cluster.api.create("widgets.example.com", {"metadata": {"name": name, "namespace": "default"}})

        assert [one["metadata"]["name"] for one in cluster.api.list("widgets.example.com")] == [name]
        cluster.reset()
