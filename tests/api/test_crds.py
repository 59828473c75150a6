"""The committed CustomResourceDefinitions equal those of the models, and an API server accepts them."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.api import crds
from plimsoll.api.schema.resource import CustomResource
from plimsoll.api.v1alpha1 import KINDS, Eviction, SchedulingPolicy

CRDS = Path(__file__).parents[2] / "crds"

openapi_schema = functools.cache(crds.openapi_schema)


def parts(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema inside a schema, with its path."""
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from parts(field, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from parts(schema[key], f"{path}[]")


def filled(schema: dict[str, Any], value: Any) -> Any:
    """The value after the API server filled in the defaults (structural defaulting, apiextensions v1)."""
    if isinstance(value, dict):
        fields = schema.get("properties", {})
        present = {name: field["default"] for name, field in fields.items() if "default" in field} | value
        return {name: filled(fields.get(name, {}), item) for name, item in present.items()}
    if isinstance(value, list):
        return [filled(schema.get("items", {}), item) for item in value]
    return value


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    """The files as the models say them now; made once in each run."""
    return crds.crd_files()


@pytest.fixture(params=KINDS, ids=[kind.definition.kind for kind in KINDS])
def kind(request: pytest.FixtureRequest) -> type[CustomResource]:
    """Each kind of the group."""
    result: type[CustomResource] = request.param
    return result


def test_the_committed_files_are_what_the_models_say(files: dict[str, str]) -> None:
    """A difference means that a model changed and `make crds` was not run."""
    committed = {path.name: path.read_text(encoding="utf-8") for path in CRDS.iterdir()}

    assert committed == files, "run `make crds` and commit what it writes"


def test_the_compared_schemas_are_those_of_the_models() -> None:
    """Likewise; a start compares them with the installed definitions."""
    assert crds.SCHEMAS.read_bytes() == crds.compared_schemas(), "run `make crds` and commit what it writes"


def test_yaml_reads_back_as_it_was_meant(kind: type[CustomResource], files: dict[str, str]) -> None:
    """Folded lines and quotes change nothing."""
    content = files[f"plimsoll.dev_{kind.definition.plural}.yaml"]

    assert yaml.load(content, Loader=yaml.CSafeLoader) == crds.crd(kind)


def test_every_part_is_structural(kind: type[CustomResource]) -> None:
    """Each has a type or is int-or-string, and says nothing that apiextensions v1 forbids."""
    for path, part in parts(openapi_schema(kind)):
        assert ("type" in part) != ("x-kubernetes-int-or-string" in part), path
        assert part.keys().isdisjoint({"$ref", "anyOf", "oneOf", "allOf", "title", "const", "nullable"}), path
        assert part.get("additionalProperties") is not False, path
        assert not ("properties" in part and "additionalProperties" in part), path
        if part.get("type") == "object" and path != ".metadata":
            assert {
                "properties",
                "additionalProperties",
                "x-kubernetes-preserve-unknown-fields",
            } & part.keys(), path


def test_every_field_explains_itself(kind: type[CustomResource]) -> None:
    """`kubectl explain` has a sentence for each field."""
    for path, part in parts(openapi_schema(kind)):
        if path.split(".")[-1].endswith("[]") and part.get("type") != "object":
            continue
        assert path == ".metadata" or part.get("description", "").endswith("."), path


def test_every_list_says_how_it_merges_and_how_long_it_may_be(kind: type[CustomResource]) -> None:
    """Bounds keep objects small and the cost of CEL rules known; map keys are required."""
    for path, part in parts(openapi_schema(kind)):
        if part.get("type") == "array":
            assert part["maxItems"] > 0, path
        for key in part.get("x-kubernetes-list-map-keys", []):
            assert key in part["items"]["required"], path


def test_paths_of_columns_and_selectable_fields_exist(kind: type[CustomResource]) -> None:
    """A column that names no field would stay empty for ever."""
    known = dict(parts(openapi_schema(kind)))

    for column in kind.definition.columns:
        path = column.path.split("[")[0]
        assert path in known or path == ".metadata.creationTimestamp", column
    for path in kind.definition.selectable_fields:
        assert known[path]["type"] in {"string", "integer", "boolean"}
    assert len(kind.definition.selectable_fields) <= 8


def test_rules_blame_fields_that_exist(kind: type[CustomResource]) -> None:
    """The API server refuses a CRD whose rule points nowhere."""
    for path, part in parts(openapi_schema(kind)):
        for rule in part.get("x-kubernetes-validations", []):
            assert rule["message"], path
            blamed: Any = part
            for field in rule.get("fieldPath", "").split(".")[1:]:
                assert field in blamed["properties"], path
                blamed = blamed["properties"][field]


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"rebalancing": {}},
        {"rebalancing": {"schedule": {"cron": "0 2 * * *"}, "limits": {"total": "100%"}}},
        {"rebalancing": {"evictor": {"podProtections": {"defaultDisabled": ["PodsWithLocalStorage"]}}}},
        {"rebalancing": {"strategies": [{"name": "RemoveDuplicates"}]}, "scope": {"namespaces": {}}},
        {"scheduling": {"schedulerName": "plimsoll", "plugins": {"score": {"disabled": [{"name": "*"}]}}}},
    ],
)
def test_the_api_servers_defaults_are_the_models(spec: dict[str, Any]) -> None:
    """What the API server fills in is what the model would have assumed, no more and no less."""
    schema = openapi_schema(SchedulingPolicy)["properties"]["spec"]
    small = SchedulingPolicy.from_wire({"spec": spec})
    stored = filled(schema, spec)

    assert SchedulingPolicy.from_wire({"spec": stored}) == small
    assert ("rebalancing" in stored) == ("rebalancing" in spec)
    assert ("scheduling" in stored) == ("scheduling" in spec)


def test_no_default_reaches_into_a_status(kind: type[CustomResource]) -> None:
    """What the operator did not write stays absent."""
    status = openapi_schema(kind)["properties"]["status"]

    assert [path for path, part in parts(status) if "default" in part] == []


def test_kinds_have_the_names_users_type() -> None:
    """`kubectl get spol`, `kubectl get plev`, `kubectl get plimsoll`."""
    policy = crds.crd(SchedulingPolicy)["spec"]
    record = crds.crd(Eviction)["spec"]

    assert policy["scope"] == "Cluster"
    assert policy["names"]["shortNames"] == ["spol"]
    assert record["scope"] == "Namespaced"
    assert record["names"]["plural"] == "evictions"
    assert record["names"]["shortNames"] == ["plev"]
    assert policy["names"]["categories"] == record["names"]["categories"] == ["plimsoll"]
    assert policy["versions"][0]["subresources"] == record["versions"][0]["subresources"] == {"status": {}}


def test_what_a_structural_schema_cannot_say_is_an_error() -> None:
    """Nothing of a model is lost silently on the way to the API server."""
    with pytest.raises(ValueError, match="anyOf"):
        crds.structural({"anyOf": [{"type": "string"}, {"type": "integer"}]}, {})
    with pytest.raises(ValueError, match="exclusiveMinimum"):
        crds.structural({"type": "integer", "exclusiveMinimum": 0}, {})
