"""Builds a ``Kind`` for each definition from its schemas and rules.

Source: apiextensions-apiserver v1.36 ``pkg/registry/customresource/strategy.go`` and ``status_strategy.go``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from roadstead.definitions.rules import Rules, compiled_rules, path_steps
from roadstead.kinds.kind import Kind, ScalePaths
from roadstead.schemas import fields, json_paths, structural
from roadstead.schemas.field_errors import NOWHERE
from roadstead.schemas.schema_values import list_causes, value_causes
from roadstead.schemas.schemas import ANY, Array, Mapping, MismatchError, Node, Struct
from roadstead.values.status_errors import Cause, bad_request, forbidden

if TYPE_CHECKING:
    from roadstead.kinds.kind import Objects
    from roadstead.values.resources import Obj, Resource

#: With one of these, rules are not evaluated: they would fail on the invalid value.
_BLOCKING = (
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
)
_UNCHECKED = (
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the "
    "existing errors to complete validation"
)


@dataclass(frozen=True, slots=True)
class Version:
    """One compiled version of a definition.

    Attributes:
        given: the version in the definition.
        schema: the schema of the resource, without its metadata.
        node: the schema for patches and apply.
        rules: the rules of the schema, or None.
    """

    given: Obj
    schema: Obj
    node: Node
    rules: Rules | None
    has_status: bool
    scale: Obj | None
    columns: list[Obj] = field(default_factory=list)


def made_version(given: Obj) -> Version:
    """Compile a version."""
    schema = given["schema"]["openAPIV3Schema"]
    subresources = given.get("subresources") or {}
    return Version(
        given,
        structural.without_metadata(schema),
        Struct(
            "resource",
            {
                **{key: merged_node(inner) for key, inner in (schema.get("properties") or {}).items()},
                "metadata": fields.struct("V1ObjectMeta"),
            },
            is_open=bool(schema.get(structural.PRESERVE)),
        ),
        compiled_rules(schema).rules,
        subresources.get("status") is not None,
        subresources.get("scale"),
        given.get("additionalPrinterColumns") or [],
    )


def merged_node(schema: Obj) -> Node:
    """The schema by which server-side apply merges."""
    atomic = schema.get("x-kubernetes-map-type") == "atomic"
    kind = schema.get("type")
    if kind == "object":
        values = structural.values_schema(schema)
        if values is not None:
            return Mapping(merged_node(values), atomic=atomic)
        properties = schema.get("properties") or {}
        inner = {key: merged_node(each) for key, each in properties.items()}
        return Struct("object", inner, atomic=atomic, is_open=bool(schema.get(structural.PRESERVE)))
    if kind == "array":
        items = schema.get("items") or {}
        keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        given = items.get("properties") or {}
        return Array(
            merged_node(items),
            keys=keys,
            is_set=schema.get("x-kubernetes-list-type") == "set",
            defaults={key: given[key]["default"] for key in keys if "default" in given.get(key, {})},
        )
    return ANY


class CustomKind(Kind):
    """The resources of one definition.

    Args:
        definition: a CustomResourceDefinition that was accepted.

    Attributes:
        is_ending: whether the definition is being deleted.
    """

    counts_generation = True
    qualified_finalizers = False
    warns_of_finalizers = True
    unconditional_update = False

    def __init__(self, definition: Obj) -> None:
        spec = definition["spec"]
        self.is_ending = bool((definition.get("metadata") or {}).get("deletionTimestamp"))
        self._key = f"{spec['names']['plural']}.{spec['group']}"
        self.versions: dict[str, Version] = {
            f"{spec['group']}/{version['name']}": made_version(version) for version in spec["versions"]
        }
        self.storage = next(
            f"{spec['group']}/{version['name']}" for version in spec["versions"] if version["storage"]
        )
        self._selectable = {
            one["jsonPath"].removeprefix("."): one["jsonPath"]
            for version in spec["versions"]
            for one in version.get("selectableFields") or []
        }

    def version(self, obj: Obj) -> Version:
        """The version that an object is in."""
        return self.versions.get(obj["apiVersion"]) or self.versions[self.storage]

    def schema(self, resource: Resource) -> Node:
        """The types of the fields, and how lists merge."""
        return self.versions[resource.api_version].node

    def decode(self, obj: Obj, resource: Resource) -> tuple[Obj, list[str]]:
        """Drop unknown fields."""
        unknown = structural.prune(obj, self.versions[resource.api_version].schema)
        strays: list[str] = []
        try:
            metadata = fields.struct("V1ObjectMeta").taken(obj.get("metadata") or {}, strays)
        except MismatchError as error:
            raise bad_request(
                f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
                f"{error}"
            ) from error
        obj["metadata"] = metadata
        return obj, unknown + [f"metadata.{stray}" for stray in strays]

    def scale_paths(self, resource: Resource) -> ScalePaths:
        """The paths of the definition."""
        scale = self.versions[resource.api_version].scale or {}
        return ScalePaths(
            *(
                tuple(path_steps(scale.get(key, "")) or ())
                for key in ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
            )
        )

    def admit_create(self, obj: Obj, objects: Objects) -> None:
        """Nothing is created while the definition is being deleted.

        Source: apiextensions-apiserver v1.36 ``pkg/apiserver/customresource_handler.go``.
        """
        if self.is_ending:
            why = "create not allowed while custom resource definition is terminating"
            raise forbidden(objects.resource(self._key), obj["metadata"].get("name", ""), why)

    def default(self, obj: Obj) -> None:
        """Drop unknown fields and nulls, fill in defaults."""
        self.coerce(obj)
        structural.fill_defaults(obj, self.version(obj).schema)

    def coerce(self, obj: Obj) -> None:
        """Drop unknown fields and nulls."""
        schema = self.version(obj).schema
        structural.prune(obj, schema)
        structural.drop_nulls(obj, schema)

    def prepare_create(self, obj: Obj) -> None:
        """Drop status if it has a subresource."""
        if self.version(obj).has_status:
            obj.pop("status", None)

    def prepare_update(self, new: Obj, old: Obj) -> None:
        """Likewise."""
        if not self.version(new).has_status:
            return
        if "status" in old:
            new["status"] = old["status"]
        else:
            new.pop("status", None)

    def prepare_status(self, new: Obj, old: Obj) -> None:
        """Only status changes, and no metadata."""
        status = new.get("status")
        version = new["metadata"].get("resourceVersion")
        managed = new["metadata"].get("managedFields")
        new.clear()
        new.update({key: value for key, value in old.items() if key != "status"})
        new["metadata"] = {**old["metadata"]}
        if version:
            new["metadata"]["resourceVersion"] = version
        if managed is not None:
            new["metadata"]["managedFields"] = managed
        if status is not None:
            new["status"] = status

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Schema, lists, and then rules."""
        return self._causes(obj, None)

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """Likewise; unchanged values are not validated again."""
        return self._causes(new, old)

    def validate_status(self, new: Obj, old: Obj) -> list[Cause]:
        """Likewise."""
        return self._causes(new, old)

    def _causes(self, obj: Obj, old: Obj | None) -> list[Cause]:
        version = self.version(obj)
        causes = value_causes(obj, version.schema, old=old)
        if old is None or not list_causes(old, version.schema):
            causes += list_causes(obj, version.schema)
        if version.rules is None:
            return causes
        if any(cause.reason in _BLOCKING for cause in causes):
            return [*causes, Cause(NOWHERE, _UNCHECKED)]
        return causes + version.rules.causes(obj, old, update=old is not None)

    def spec_changed(self, new: Obj, old: Obj) -> bool:
        """Any change outside of metadata counts."""
        return any(
            new.get(key) != old.get(key)
            for key in {*new, *old}
            if key not in ("metadata", "kind", "apiVersion")
        )

    def fields(self, obj: Obj) -> dict[str, str]:
        """The values of ``selectableFields``."""
        found: dict[str, str] = {}
        for name, path in self._selectable.items():
            values = json_paths.values(obj, path)
            found[name] = _selected(values[0]) if values else ""
        return found

    def field_labels(self) -> frozenset[str]:
        """The names of ``selectableFields``."""
        return frozenset(self._selectable)


def _selected(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
