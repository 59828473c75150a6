"""Custom resources as clients see them: over HTTP, with warnings, tables, discovery and other media types."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from roadstead.cluster import DevCluster

pytestmark = pytest.mark.e2e

JSON = "application/json"
TABLE = f"{JSON};as=Table;v=v1;g=meta.k8s.io,{JSON}"
AGGREGATED = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,{JSON}"
GROUP = "/apis/http.example.com"
GADGETS = f"{GROUP}/v1/namespaces/default/gadgets"


def a_definition() -> dict[str, Any]:
    """Gadgets in two versions, the older one deprecated."""
    spec = {
        "type": "object",
        "required": ["size"],
        "properties": {"size": {"type": "string", "enum": ["small", "large"]}, "parts": PARTS},
    }
    version = {
        "served": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        "additionalPrinterColumns": [{"name": "Size", "type": "string", "jsonPath": ".spec.size"}],
        "subresources": {"status": {}},
    }
    old = {"deprecated": True, "deprecationWarning": "use v1"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.http.example.com"},
        "spec": {
            "group": "http.example.com",
            "scope": "Namespaced",
            "names": {"plural": "gadgets", "kind": "Gadget"},
            "versions": [
                {**version, "name": "v1beta1", "storage": False, **old},
                {**version, "name": "v1", "storage": True},
            ],
        },
    }


PARTS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
    },
}


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    """A client of a cluster that serves Gadgets."""
    async with (
        DevCluster(controllers=False, kubelets=None) as cluster,
        aiohttp.ClientSession(
            cluster.plain_url, headers={"Authorization": f"Bearer {cluster.token}"}
        ) as session,
    ):
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        async with session.post(path, json=a_definition()) as made:
            assert made.status == 201, await made.text()
        yield session


def a_gadget(**spec: Any) -> dict[str, Any]:
    """A Gadget."""
    return {
        "apiVersion": "http.example.com/v1",
        "kind": "Gadget",
        "metadata": {"name": "a"},
        "spec": {"size": "small", **spec},
    }


async def test_unknown_fields_are_warned_about_or_refused(session: aiohttp.ClientSession) -> None:
    """As fieldValidation says; either way they are not stored."""
    stray = a_gadget(colour="red")

    async with session.post(GADGETS, json=stray, params={"fieldValidation": "Strict"}) as refused:
        assert refused.status == 400
        assert (await refused.json())["message"].endswith(
            'strict decoding error: unknown field "spec.colour"'
        )
    async with session.post(GADGETS, json=stray) as made:
        assert made.headers["Warning"] == '299 - "unknown field \\"spec.colour\\""'
        assert (await made.json())["spec"] == {"size": "small"}


async def test_refusal_names_the_field_and_what_is_allowed(session: aiohttp.ClientSession) -> None:
    """In the words of the API server, which people search for."""
    async with session.post(GADGETS, json=a_gadget(size="huge")) as refused:
        told = await refused.json()

    assert (refused.status, told["reason"]) == (422, "Invalid")
    assert told["message"] == (
        'Gadget.http.example.com "a" is invalid: spec.size: Unsupported value: "huge": supported values: '
        '"small", "large"'
    )


async def test_older_version_warns(session: aiohttp.ClientSession) -> None:
    """With every answer, and shows the same object."""
    async with session.post(GADGETS, json=a_gadget()):
        pass

    async with session.get(f"{GROUP}/v1beta1/namespaces/default/gadgets/a") as read:
        assert read.headers["Warning"] == '299 - "use v1"'
        assert (await read.json())["apiVersion"] == "http.example.com/v1beta1"


async def test_table_has_the_columns_of_the_definition(session: aiohttp.ClientSession) -> None:
    """Kubectl get prints it."""
    async with session.post(GADGETS, json=a_gadget()):
        pass

    async with session.get(GADGETS, headers={"Accept": TABLE}) as read:
        table = await read.json()

    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Size"]
    assert [row["cells"] for row in table["rows"]] == [["a", "small"]]


async def test_aggregated_discovery_is_chosen_by_its_media_type(session: aiohttp.ClientSession) -> None:
    """Clients choose their decoder by it."""
    async with session.get("/apis", headers={"Accept": AGGREGATED}) as read:
        groups = {one["metadata"]["name"]: one for one in (await read.json(content_type=None))["items"]}

    assert read.headers["Content-Type"] == f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    versions = groups["http.example.com"]["versions"]
    assert [one["version"] for one in versions] == ["v1", "v1beta1"]
    assert versions[0]["resources"][0]["subresources"][0]["subresource"] == "status"


async def test_apply_merges_lists_by_the_schemas_keys(session: aiohttp.ClientSession) -> None:
    """Two managers own different items of one list."""
    apply = {"Content-Type": "application/apply-patch+yaml"}
    for manager, part in (("alice", {"name": "wheel", "count": 4}), ("bob", {"name": "door", "count": 2})):
        where = {"fieldManager": manager}
        given = a_gadget(parts=[part])
        async with session.patch(f"{GADGETS}/a", json=given, params=where, headers=apply) as applied:
            assert applied.status in (200, 201), await applied.text()

    async with session.get(f"{GADGETS}/a") as read:
        parts = (await read.json())["spec"]["parts"]

    assert parts == [{"name": "wheel", "count": 4}, {"name": "door", "count": 2}]


async def test_kubectl_may_send_protocol_buffers(session: aiohttp.ClientSession) -> None:
    """A ConfigMap as kubectl create sends it."""
    body = b"k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x0d\x0a\x03\x0a\x01c\x12\x06\x0a\x01a\x12\x011"
    media = {"Content-Type": "application/vnd.kubernetes.protobuf"}

    async with session.post("/api/v1/namespaces/default/configmaps", data=body, headers=media) as made:
        assert made.status == 201, await made.text()
        assert (await made.json())["data"] == {"a": "1"}


async def test_openapi_describes_all_kinds_in_one_document_of_old(session: aiohttp.ClientSession) -> None:
    """References stay inside of it."""
    async with session.get("/openapi/v2") as read:
        definitions = (await read.json())["definitions"]

    assert definitions["com.example.http.v1.Gadget"]["properties"]["spec"]["required"] == ["size"]
    template = definitions["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["template"]
    assert template["allOf"][0]["$ref"].removeprefix("#/definitions/") in definitions


async def test_openapi_of_old_says_to_kubectl_what_patch_takes(session: aiohttp.ClientSession) -> None:
    """As protocol buffers, which kubectl asks for before it sends the items of a List."""
    media = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    async with session.get("/openapi/v2", headers={"Accept": media}) as read:
        body, answered = await read.read(), read.content_type

    assert answered == media.replace("@", ".")
    assert body.startswith(b"\x0a\x032.0\x42")
    assert b"/api/v1/namespaces/{name}" in body
    assert b'{"group":"","version":"v1","kind":"Namespace"}' in body
    assert b"\x12\x05query\x22\x0ffieldValidation" in body


async def test_finalizer_without_a_domain_is_warned_about(session: aiohttp.ClientSession) -> None:
    """Custom resources may have it."""
    gadget = a_gadget()
    gadget["metadata"]["finalizers"] = ["mine"]

    async with session.post(GADGETS, json=gadget) as made:
        assert made.status == 201, await made.text()
        assert "prefer a domain-qualified finalizer name" in made.headers["Warning"]
