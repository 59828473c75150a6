"""CustomResourceDefinitions: refused or accepted, served, changed, deleted with what they define."""

from typing import Any

import orjson
import pytest

from roadstead.assembly import built_in_api
from roadstead.definitions.definitions import CRDS, Definitions, version_rank
from roadstead.discovery.discovery import Discovery
from roadstead.discovery.openapi import OpenApi
from roadstead.store.api import Api, StatusError, Write
from roadstead.values.copies import copied
from roadstead.values.resources import Obj

GADGETS = "gadgets.example.com"


@pytest.fixture
def api() -> Api:
    """An API that serves what definitions define."""
    api = built_in_api()
    Definitions(api)
    return api


def a_definition(spec: Obj | None = None, *, version: Obj | None = None, **more: Any) -> Obj:
    """A definition of Gadgets with a size."""
    schema = spec or {"type": "object", "properties": {"size": {"type": "integer", "default": 1}}}
    first = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
        **(version or {}),
    }
    names = {"plural": "gadgets", "kind": "Gadget", "shortNames": ["gd"]}
    group = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [first]}
    return {"metadata": {"name": GADGETS}, "spec": {**group, **more}}


def a_gadget(name: str = "a", **content: Any) -> Obj:
    """A Gadget in the default namespace."""
    return {"metadata": {"name": name, "namespace": "default"}, **content}


def refusal(api: Api, definition: Obj) -> dict[str, str]:
    """Why a definition is refused: messages by field."""
    with pytest.raises(StatusError) as refused:
        api.create(CRDS, definition)
    assert refused.value.code == 422
    return {cause["field"]: cause["message"] for cause in refused.value.details["causes"]}


def test_definition_is_established_and_served_immediately(api: Api) -> None:
    """Names that follow from others are filled in, accepted, and known to the registry."""
    api.create(CRDS, a_definition())

    status = api.get(CRDS, None, GADGETS)["status"]
    assert {one["type"]: one["status"] for one in status["conditions"]} == {
        "NamesAccepted": "True",
        "Established": "True",
    }
    names = status["acceptedNames"]
    assert (names["singular"], names["listKind"], status["storedVersions"]) == (
        "gadget",
        "GadgetList",
        ["v1"],
    )
    assert api.create(GADGETS, a_gadget(spec={}))["spec"] == {"size": 1}


def test_names_that_are_taken_wait_until_they_are_free(api: Api) -> None:
    """A second definition of the group with the same short name is not served before the first is gone."""
    api.create(CRDS, a_definition())
    other = a_definition(names={"plural": "gizmos", "kind": "Gizmo", "shortNames": ["gd"]})
    other["metadata"]["name"] = "gizmos.example.com"

    api.create(CRDS, other)

    conditions = {
        one["type"]: one for one in api.get(CRDS, None, "gizmos.example.com")["status"]["conditions"]
    }
    assert conditions["NamesAccepted"]["reason"] == "ShortNamesConflict"
    assert conditions["NamesAccepted"]["message"] == '"gd" is already in use'
    with pytest.raises(StatusError):
        api.list("gizmos.example.com")
    api.delete(CRDS, None, GADGETS)
    assert api.list("gizmos.example.com") == []


def test_change_of_the_schema_shows_immediately(api: Api) -> None:
    """Stored objects are read by the schema of today, in the version that they had."""
    made = api.create(CRDS, a_definition()) and api.create(GADGETS, a_gadget(spec={"size": 5}))
    colour = {"type": "object", "properties": {"colour": {"type": "string", "default": "red"}}}

    api.update(CRDS, {**copied(api.get(CRDS, None, GADGETS)), "spec": a_definition(colour)["spec"]})

    read = api.get(GADGETS, "default", "a")
    assert read["spec"] == {"colour": "red"}
    assert read["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_deletion_takes_the_resources_along(api: Api) -> None:
    """A resource with a finalizer keeps its definition until it is released."""
    api.create(CRDS, a_definition())
    api.create(GADGETS, a_gadget("free"))
    kept = a_gadget("kept")
    kept["metadata"]["finalizers"] = ["example.com/keep"]
    api.create(GADGETS, kept)

    api.delete(CRDS, None, GADGETS)

    assert [one["metadata"]["name"] for one in api.list(GADGETS)] == ["kept"]
    conditions = api.get(CRDS, None, GADGETS)["status"]["conditions"]
    assert conditions[-1]["type"] == "Terminating"
    api.patch(GADGETS, "default", "kept", {"metadata": {"finalizers": None}})
    assert api.find(CRDS, None, GADGETS) is None
    with pytest.raises(StatusError):
        api.list(GADGETS)


def test_nothing_is_created_while_a_definition_is_being_deleted(api: Api) -> None:
    """As kube-apiserver 1.36.2 words it; what is there can still be changed."""
    api.create(CRDS, a_definition())
    kept = a_gadget("kept")
    kept["metadata"]["finalizers"] = ["example.com/keep"]
    api.create(GADGETS, kept)
    api.delete(CRDS, None, GADGETS)

    with pytest.raises(StatusError) as refused:
        api.create(GADGETS, a_gadget("late"))

    assert refused.value.status["message"] == (
        'gadgets.example.com "late" is forbidden: create not allowed while custom resource definition is '
        "terminating"
    )
    assert (refused.value.code, refused.value.status["details"]) == (
        403,
        {"name": "late", "group": "example.com", "kind": "gadgets"},
    )
    api.patch(GADGETS, "default", "kept", {"metadata": {"labels": {"still": "changed"}}})


def test_second_life_begins_empty(api: Api) -> None:
    """What was defined before is not there again."""
    api.create(CRDS, a_definition())
    api.create(GADGETS, a_gadget())
    api.delete(CRDS, None, GADGETS)

    api.create(CRDS, a_definition())

    assert api.list(GADGETS) == []


def test_status_has_its_own_way_in(api: Api) -> None:
    """With the subresource, neither kind of write changes the other's part; only spec counts generations."""
    api.create(CRDS, a_definition(OPEN, version={"subresources": {"status": {}}, "schema": OPEN_ROOT}))
    made = api.create(GADGETS, a_gadget(spec={"x": 1}, status={"y": 1}))
    assert "status" not in made

    told = api.update_status(GADGETS, {**made, "spec": {"x": 9}, "status": {"y": 2}})
    assert (told["spec"], told["status"], told["metadata"]["generation"]) == ({"x": 1}, {"y": 2}, 1)

    changed = api.update(GADGETS, {**told, "spec": {"x": 2}, "status": {"y": 3}})
    assert (changed["spec"], changed["status"], changed["metadata"]["generation"]) == ({"x": 2}, {"y": 2}, 2)


OPEN: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
OPEN_ROOT: Obj = {"openAPIV3Schema": {"type": "object", "properties": {"spec": OPEN, "status": OPEN}}}


def test_versions_show_the_same_object(api: Api) -> None:
    """Stored in one version, served in each that is served."""
    definition = a_definition()
    first = definition["spec"]["versions"][0]
    definition["spec"]["versions"] = [
        {**first, "name": "v1beta1", "storage": False, "deprecated": True},
        first,
    ]
    api.create(CRDS, definition)
    api.create(GADGETS, a_gadget(spec={"size": 3}))
    old = api.registry.at("example.com", "v1beta1", "gadgets")
    assert old is not None

    read = api.entry(old, "default", "a").obj

    assert (read["apiVersion"], read["spec"]) == ("example.com/v1beta1", {"size": 3})
    assert old.warning == "example.com/v1beta1 Gadget is deprecated"
    assert api.get(GADGETS, "default", "a")["apiVersion"] == "example.com/v1"


def test_selectable_fields_select(api: Api) -> None:
    """And other fields do not."""
    spec = {"type": "object", "properties": {"node": {"type": "string"}}}
    api.create(CRDS, a_definition(spec, version={"selectableFields": [{"jsonPath": ".spec.node"}]}))
    for name, node in (("a", "n1"), ("b", "n2")):
        api.create(GADGETS, a_gadget(name, spec={"node": node}))

    chosen = api.list(GADGETS, fields="spec.node=n2")

    assert [one["metadata"]["name"] for one in chosen] == ["b"]
    with pytest.raises(StatusError, match=r"field label not supported: spec\.other"):
        api.list(GADGETS, fields="spec.other=x")


def test_invalid_schema_is_reported_before_rules(api: Api) -> None:
    """Rules would stumble over what is wrong already."""
    spec = {
        "type": "object",
        "properties": {"size": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.size > 1", "message": "size must be above 1"}],
    }
    api.create(CRDS, a_definition(spec))

    with pytest.raises(StatusError) as refused:
        api.create(GADGETS, a_gadget(spec={"size": "x"}))
    assert [cause["field"] for cause in refused.value.details["causes"]] == ["spec.size", "<nil>"]
    with pytest.raises(StatusError, match="spec: Invalid value: size must be above 1"):
        api.create(GADGETS, a_gadget(spec={"size": 1}), Write(dry_run=True))


@pytest.mark.parametrize(
    ("schema", "field", "message"),
    [
        pytest.param(
            {"properties": {"a": {"type": "string"}}},
            "type",
            "Required value: must not be empty for specified object fields",
            id="no type",
        ),
        pytest.param(
            {"type": "object", "default": 5},
            "default",
            'Invalid value: "integer"',
            id="default of another type",
        ),
        pytest.param(
            {"type": "object", "properties": {}, "default": {"x": 1}},
            "default",
            'Invalid value: {"x":1}: must not have unknown fields',
            id="default that would be pruned",
        ),
        pytest.param({"type": "array"}, "items", "Required value: must be specified", id="array of nothing"),
        pytest.param(
            {"type": "string", "pattern": "("},
            "pattern",
            'Invalid value: "(": must be a valid regular expression',
            id="pattern",
        ),
        pytest.param(
            {"type": "object", "anyOf": [{"type": "object"}]},
            "anyOf[0].type",
            "Forbidden: must be empty to be structural",
            id="structure in anyOf",
        ),
        pytest.param(
            {"type": "object", "anyOf": [{"properties": {"a": {"minimum": 1}}}]},
            "properties[a]",
            "Required value: because it is defined in spec.versions[0].schema.openAPIV3Schema",
            id="unknown field in anyOf",
        ),
        pytest.param(
            {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"},
            "x-kubernetes-list-map-keys",
            "Required value: must not be empty",
            id="map without keys",
        ),
        pytest.param(
            {"type": "array", "uniqueItems": True, "items": {"type": "string"}},
            "uniqueItems",
            "Forbidden: uniqueItems cannot be set to true",
            id="unique items",
        ),
        pytest.param(
            {"type": "object", "x-kubernetes-validations": [{"rule": "self.b > 1"}]},
            "x-kubernetes-validations[0].rule",
            'Invalid value: "self.b > 1": compilation failed: ERROR: <input>:1:5: undefined field',
            id="rule about an unknown field",
        ),
        pytest.param(
            {"type": "object", "x-kubernetes-validations": [{"rule": "true", "fieldPath": ".nope"}]},
            "x-kubernetes-validations[0].fieldPath",
            'Invalid value: ".nope": must be a valid path',
            id="field path",
        ),
        pytest.param(
            {"type": "object", "x-kubernetes-validations": [{"rule": "true", "reason": "Because"}]},
            "x-kubernetes-validations[0].reason",
            'Unsupported value: "Because": supported values: "FieldValueDuplicate"',
            id="reason",
        ),
    ],
)
def test_schemas_that_are_refused(api: Api, schema: Obj, field: str, message: str) -> None:
    """With the path of the keyword and what is allowed there."""
    told = refusal(api, a_definition(schema))

    where = f"spec.versions[0].schema.openAPIV3Schema.properties[spec].{field}"
    assert list(told) == [where]
    assert told[where].startswith(message)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"metadata": {"name": "x.example.com"}}, "metadata.name"),
        ({"spec": {"versions": []}}, "spec.versions"),
        ({"spec": {"scope": "Galaxy"}}, "spec.scope"),
        ({"spec": {"group": "example"}}, "spec.group"),
        ({"spec": {"names": {"plural": "gadgets", "kind": "Bad Kind"}}}, "spec.names.kind"),
    ],
)
def test_definitions_that_are_refused(api: Api, change: Obj, field: str) -> None:
    """With the field that is wrong."""
    definition = a_definition()
    for part, fields in change.items():
        definition[part] = {**definition[part], **fields}

    assert field in refusal(api, definition)


CONVERTER = {"clientConfig": {"url": "https://127.0.0.1/"}, "conversionReviewVersions": ["v1"]}


@pytest.mark.parametrize(
    ("conversion", "field", "message"),
    [
        (
            {"strategy": "Other"},
            "strategy",
            'Unsupported value: "Other": supported values: "None", "Webhook"',
        ),
        (
            {"strategy": "None", "webhook": CONVERTER},
            "webhookClientConfig",
            "Forbidden: should not be set when strategy is not set to Webhook",
        ),
        (
            {"strategy": "Webhook", "webhook": {**CONVERTER, "clientConfig": None}},
            "webhookClientConfig",
            "Required value: required when strategy is set to Webhook",
        ),
        (
            {"strategy": "Webhook", "webhook": {**CONVERTER, "clientConfig": {}}},
            "webhookClientConfig",
            "Required value: exactly one of url or service is required",
        ),
        (
            {"strategy": "Webhook", "webhook": {**CONVERTER, "conversionReviewVersions": []}},
            "conversionReviewVersions",
            "Required value",
        ),
        (
            {"strategy": "Webhook", "webhook": {**CONVERTER, "conversionReviewVersions": ["v3"]}},
            "conversionReviewVersions",
            'Invalid value: ["v3"]: must include at least one of v1, v1beta1',
        ),
    ],
)
def test_a_conversion_is_checked(api: Api, conversion: Obj, field: str, message: str) -> None:
    assert refusal(api, a_definition(conversion=conversion)) == {f"spec.conversion.{field}": message}


def test_a_conversion_webhook_of_one_version_is_accepted(api: Api) -> None:
    """As projects of controller-runtime name one beforehand."""
    service = {"name": "hook", "namespace": "default"}
    webhook = {**CONVERTER, "clientConfig": {"service": service}}
    made = api.create(CRDS, a_definition(conversion={"strategy": "Webhook", "webhook": webhook}))
    assert made["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"] == 443
    assert api.create(GADGETS, a_gadget(spec={}))["spec"] == {"size": 1}


def test_group_is_fixed(api: Api) -> None:
    """The name of a definition says it."""
    api.create(CRDS, a_definition())

    with pytest.raises(StatusError, match="field is immutable"):
        api.patch(CRDS, None, GADGETS, {"spec": {"group": "other.example.com"}})


def test_columns_and_scale_paths_are_checked(api: Api) -> None:
    """A path that cannot be read, a type that does not exist, a path outside of spec."""
    columns = [
        {"name": "A", "type": "text", "jsonPath": ".spec.a"},
        {"name": "B", "type": "string", "jsonPath": "x"},
    ]
    scale = {"specReplicasPath": ".status.size", "statusReplicasPath": ".status.size"}

    told = refusal(
        api, a_definition(version={"additionalPrinterColumns": columns, "subresources": {"scale": scale}})
    )

    at = "spec.versions[0]"
    assert set(told) == {
        f"{at}.additionalPrinterColumns[0].type",
        f"{at}.additionalPrinterColumns[1].JSONPath",
        f"{at}.subresources.scale.specReplicasPath",
    }


def test_versions_are_ranked_as_discovery_ranks_them() -> None:
    """Stable before beta before alpha, newest first, other names last."""
    names = ["foo1", "v1alpha2", "v1", "v11beta2", "v2", "v1beta1", "v11beta10", "bar"]

    assert sorted(names, key=version_rank) == [
        *("v2", "v1", "v11beta10", "v11beta2", "v1beta1", "v1alpha2", "bar", "foo1")
    ]


def test_definition_is_discovered_and_explained(api: Api) -> None:
    """In the documents of old, in the aggregated ones, and in OpenAPI, until it is gone."""
    api.create(CRDS, a_definition(version={"subresources": {"status": {}}}))
    discovery, openapi = Discovery(api.registry), OpenApi(api)

    listed = discovery("/apis/example.com/v1", "")
    described = openapi("/openapi/v3/apis/example.com/v1", "")

    assert listed is not None
    assert described is not None
    assert [one["name"] for one in orjson.loads(listed.content)["resources"]] == ["gadgets", "gadgets/status"]
    document = orjson.loads(described.content)
    assert document["components"]["schemas"]["com.example.v1.Gadget"]["properties"]["spec"]["properties"] == {
        "size": {"type": "integer", "default": 1}
    }
    patch = document["paths"]["/apis/example.com/v1/namespaces/{namespace}/gadgets/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    api.delete(CRDS, None, GADGETS)
    assert discovery("/apis/example.com", "") is None
    assert openapi("/openapi/v3/apis/example.com/v1", "") is None


def test_index_changes_with_a_definition(api: Api) -> None:
    """Clients keep a document under its address, so that a new schema needs a new one."""
    api.create(CRDS, a_definition())
    openapi = OpenApi(api)

    def address() -> str:
        index = openapi("/openapi/v3", "")
        assert index is not None
        url: str = orjson.loads(index.content)["paths"]["apis/example.com/v1"]["serverRelativeURL"]
        return url

    before = address()
    api.patch(CRDS, None, GADGETS, {"spec": {"versions": a_definition(OPEN)["spec"]["versions"]}})

    assert address() != before


def test_openapi_says_how_lists_of_pods_merge(api: Api) -> None:
    """Kubectl apply builds its patches by these."""
    document = OpenApi(api)("/openapi/v3/api/v1", "")
    assert document is not None
    schemas = orjson.loads(document.content)["components"]["schemas"]

    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]

    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-patch-strategy"] == "merge"
    assert containers["description"].startswith("List of containers belonging to the pod.")
