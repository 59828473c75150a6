"""Conversion webhooks in addition to ``test_webhook_answers``: watches, caches, Services."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

import conversion_cases
from asked_server import Asker, Case, HookServer, answering, space_of
from conversion_cases import V1, V2, a_turnip, defined, right
from roadstead.certificates import loopback_identity
from roadstead.cluster import DevCluster
from webhook_cases import MERGE

SPACE = space_of(0)
IDENTITY = loopback_identity(names=[f"hook.{SPACE}.svc"])
KEY = f"turnips.{SPACE}.example.com"


@pytest.fixture
async def cluster() -> AsyncIterator[DevCluster]:
    """A cluster in which only the test and the namespace controller write."""
    async with DevCluster(port=None, kubelets=None, controllers="namespace-controller") as found:
        yield found


@pytest.fixture
async def asker(cluster: DevCluster) -> AsyncIterator[Asker]:
    """Asks the cluster."""
    async with cluster.session() as session, answering(IDENTITY) as hooks:
        yield Asker(session, hooks, 0)


class Switch:
    """A webhook that can be broken."""

    def __init__(self) -> None:
        self.works = True
        self.asked = 0
        self.refused = asyncio.Event()

    def __call__(self, request: Any) -> Any:
        self.asked += len(request["objects"])
        if not self.works:
            self.refused.set()
        return right(request) if self.works else {"http": 500, "text": "oh"}


async def prepared(asker: Asker, answer: Any = right) -> HookServer:
    """The definition of turnips, and one turnip."""
    setup = [["POST", V1, a_turnip("v1", size=5)]]
    await asker.prepare(0, Case("turnips", [], definition=defined(answer), setup=setup))
    return asker.hooks


async def sent(asker: Asker, *request: Any) -> Any:
    """The body of a successful answer."""
    code, answer, _ = await asker.send(SPACE, *request)
    assert code < 300, answer
    return answer


async def events(asker: Asker, query: str, count: int, opened: asyncio.Event) -> list[Any]:
    """The first events of a watch of v2: type and length."""
    path = f"{V2}?watch=true&{query}".replace("SPACE", SPACE)
    found: list[Any] = []
    async with asker.session.get(path) as answer:
        assert answer.status == 200
        opened.set()
        async for line in answer.content:
            event = json.loads(line)
            obj = event["object"]
            assert obj["apiVersion"].endswith("/v2")
            found.append((event["type"], obj["spec"]["length"]))
            if len(found) == count:
                return found
    return found


async def test_events_of_an_open_watch_wait_until_they_can_be_converted(asker: Asker) -> None:
    hook = Switch()
    await prepared(asker, hook)
    opened = asyncio.Event()
    watched = asyncio.create_task(events(asker, "resourceVersion=0&timeoutSeconds=60", 4, opened))
    await opened.wait()
    for size in (6, 7, 8):
        hook.works = size != 7
        await sent(asker, "PATCH", f"{V1}/one", {"spec": {"size": size}}, MERGE)
        if not hook.works:
            await hook.refused.wait()
    assert await watched == [
        ("ADDED", 5),
        ("MODIFIED", 6),
        ("MODIFIED", 7),
        ("MODIFIED", 8),
    ]


async def test_a_selector_sees_the_labels_of_the_version_that_is_asked_for(asker: Asker) -> None:
    def label(one: Any) -> None:
        length = one["spec"].get("length") or 0
        one["metadata"]["labels"] = {"long": "yes" if length > 5 else "no"}

    await prepared(asker, conversion_cases.changing(label))
    query = "labelSelector=long%3Dyes"
    assert (await sent(asker, "GET", f"{V2}?{query}"))["items"] == []
    opened = asyncio.Event()
    watched = asyncio.create_task(events(asker, f"resourceVersion=0&{query}&timeoutSeconds=60", 2, opened))
    await opened.wait()
    await sent(asker, "PATCH", f"{V1}/one", {"spec": {"size": 9}}, MERGE)
    assert [one["spec"]["length"] for one in (await sent(asker, "GET", f"{V2}?{query}"))["items"]] == [9]
    await sent(asker, "PATCH", f"{V1}/one", {"spec": {"size": 3}}, MERGE)

    assert await watched == [("ADDED", 9), ("DELETED", 9)]


async def test_a_list_is_converted_once_and_a_single_object_each_time(asker: Asker) -> None:
    hook = Switch()
    await prepared(asker, hook)
    for name in ("two", "three"):
        await sent(asker, "POST", V1, a_turnip("v1", name))
    before = hook.asked
    for _ in range(2):
        await sent(asker, "GET", V2)
    assert hook.asked - before == 3
    for _ in range(2):
        await sent(asker, "GET", f"{V2}/one")
    assert hook.asked - before == 5
    hook.works = False
    assert (await sent(asker, "GET", V2))["items"]  # as kube-apiserver's cache
    code, refused, _ = await asker.send(SPACE, "GET", f"{V2}/one")
    assert (code, refused["message"].partition(" failed: ")[0]) == (
        500,
        f"conversion webhook for {SPACE}.example.com/v1, Kind=Turnip",
    )


async def test_two_writers_in_two_versions_lose_no_update(asker: Asker) -> None:
    await prepared(asker)
    spec = [{"spec": {"note": "n"}}, {"spec": {"size": 8}}]
    await asyncio.gather(
        sent(asker, "PATCH", f"{V2}/one", spec[0], MERGE), sent(asker, "PATCH", f"{V1}/one", spec[1], MERGE)
    )
    assert (await sent(asker, "GET", f"{V2}/one"))["spec"] == {"note": "n", "length": 8}


async def test_a_service_is_asked_on_its_port_and_named_when_it_is_missing(asker: Asker) -> None:
    hooks = await prepared(asker)
    definition = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{KEY}"
    service = {"name": "hook", "namespace": SPACE, "path": f"/{SPACE}/c"}
    config = {"service": service, "url": None}
    patch = {"spec": {"conversion": {"webhook": {"clientConfig": config}}}}
    await sent(asker, "PATCH", definition, patch, MERGE)
    code, refused, _ = await asker.send(SPACE, "GET", f"{V2}/one")
    url = f"https://hook.{SPACE}.svc:443/{SPACE}/c?timeout=30s"
    what = f"conversion webhook for {SPACE}.example.com/v1, Kind=Turnip failed"
    assert (code, refused["message"]) == (500, f'{what}: Post "{url}": service "hook" not found')
    annotations = {"roadstead.test/loopback-port": str(hooks.port)}
    body = {"metadata": {"name": "hook", "annotations": annotations}, "spec": {"ports": [{"port": 443}]}}
    await sent(asker, "POST", "services", body)
    assert (await sent(asker, "GET", f"{V2}/one"))["spec"] == {"length": 5}


async def test_the_definition_and_its_turnips_go_though_the_webhook_is_broken(
    cluster: DevCluster, asker: Asker
) -> None:
    """The server deletes in the stored version, as in kube-apiserver, where the finalizer does so."""
    hook = Switch()
    await prepared(asker, hook)
    hook.works = False
    assert cluster.api.get(KEY, SPACE, "one")["apiVersion"].endswith("/v1")
    await sent(asker, "DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{KEY}")
    assert cluster.api.find("customresourcedefinitions.apiextensions.k8s.io", None, KEY) is None
