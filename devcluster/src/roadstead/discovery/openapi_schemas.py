"""Renders schemas for OpenAPI documents.

Those of built-in kinds come from ``schemas.models``, those of custom resources from definitions.
``kubectl explain`` prints them, and ``kubectl apply`` merges lists by them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from roadstead.schemas.fields import schema_of, struct
from roadstead.schemas.models import models
from roadstead.schemas.schemas import (
    INT_OR_STRING,
    MICRO_TIME,
    QUANTITY,
    TIME,
    Array,
    Mapping,
    Node,
    Struct,
)
from roadstead.schemas.structural import EMBEDDED

if TYPE_CHECKING:
    from roadstead.values.resources import Obj, Resource

GVK = "x-kubernetes-group-version-kind"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_META_MODELS = (
    "Condition",
    "DeleteOptions",
    "LabelSelector",
    "LabelSelectorRequirement",
    "ListMeta",
    "ManagedFieldsEntry",
    "ObjectMeta",
    "OwnerReference",
    "Preconditions",
    "Status",
    "StatusCause",
    "StatusDetails",
)
_API_VERSION = (
    "APIVersion defines the versioned schema of this representation of an object. Servers should convert "
    "recognized schemas to the latest internal value, and may reject unrecognized values. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources"
)
_KIND = (
    "Kind is a string value representing the REST resource this object represents. Servers may infer this "
    "from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds"
)
_METADATA = (
    "Standard object's metadata. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)
_SCALARS: dict[str, Obj] = {
    "str": {"type": "string"},
    "int": {"type": "integer", "format": "int32"},
    "float": {"type": "number", "format": "double"},
    "bool": {"type": "boolean"},
    "datetime": {"type": "string", "format": "date-time"},
    "object": {"type": "object"},
}
#: Named types that are strings or numbers in JSON.
_NAMED: dict[Node, tuple[str, Obj]] = {
    INT_OR_STRING: (
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        # Without a type: kubectl explain then shows the name.
        {"description": "A number, or a string such as a share in percent.", "format": "int-or-string"}
        | {"oneOf": [{"type": "integer"}, {"type": "string"}]},
    ),
    QUANTITY: (
        "io.k8s.apimachinery.pkg.api.resource.Quantity",
        {"description": "An amount of a resource, such as 500m or 1Gi."}
        | {"oneOf": [{"type": "string"}, {"type": "number"}]},
    ),
    TIME: (
        f"{_META}.Time",
        {"description": "A moment, in RFC 3339.", "type": "string", "format": "date-time"},
    ),
    MICRO_TIME: (
        f"{_META}.MicroTime",
        {"description": "A moment with microseconds, in RFC 3339.", "type": "string", "format": "date-time"},
    ),
}


def reference(name: str) -> Obj:
    """A reference to a schema of the document."""
    return {"$ref": f"#/components/schemas/{name}"}


def schema_name(resource: Resource) -> str:
    """The name of a kind's schema, such as "io.k8s.api.apps.v1.Deployment"."""
    if resource.custom:
        domain = ".".join(reversed(resource.group.split(".")))
        return f"{domain}.{resource.version}.{resource.kind}"
    return f"io.k8s.api.{_short(resource.group)}.{resource.version}.{resource.kind}"


def _short(group: str) -> str:
    return group.partition(".")[0] or "core"


def built_in_schemas(resources: list[Resource]) -> Obj:
    """The schemas of built-in kinds of one group version, with those that they refer to."""
    found: Obj = {}
    for resource in resources:
        root = schema_of(resource.group, resource.version, resource.kind)
        if root is None:
            continue
        home = f"io.k8s.api.{_short(resource.group)}.{resource.version}"
        _collect(root.name, home, found)
        found[_name(root.name, home)][GVK] = [_gvk(resource)]
    return found


def _gvk(resource: Resource) -> Obj:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _name(model: str, home: str) -> str:
    kind = re.sub(r"^[A-Za-z]*?V\d+((alpha|beta)\d+)?(?=[A-Z])", "", model)
    return f"{_META if kind in _META_MODELS else home}.{kind}"


def _collect(model: str, home: str, found: Obj) -> None:
    name = _name(model, home)
    if name in found:
        return
    required, fields = models()[model]["required"], models()[model]["fields"]
    schema: Obj = {"type": "object", **({"required": required} if required else {}), "properties": {}}
    found[name] = schema
    for key, (kind, description) in fields.items():
        node = struct(model).fields[key]
        typed = _typed(kind, node, home)
        if description:
            typed = {"description": description, **typed}
        schema["properties"][key] = typed
        for other in re.findall(r"\w+", kind):
            if other in models():
                _collect(other, home, found)
    found.update((name, dict(plain)) for name, plain in _NAMED.values())


def _typed(kind: str, node: Node, home: str) -> Obj:
    if found := re.fullmatch(r"list\[(.*)\]", kind):
        items = node.items if isinstance(node, Array) else node
        typed: Obj = {"type": "array", "items": _typed(found[1], items, home)}
        return {**typed, **(_merging(node) if isinstance(node, Array) else {})}
    if found := re.fullmatch(r"dict\(str, (.*)\)", kind):
        values = node.values if isinstance(node, Mapping) else node
        return {"type": "object", "additionalProperties": _typed(found[1], values, home)}
    if node in _NAMED:
        return {"allOf": [reference(_NAMED[node][0])]}
    if isinstance(node, Struct):
        return {"allOf": [reference(_name(node.name, home))], "default": {}}
    return dict(_SCALARS.get(kind, {"type": "object"}))


def _merging(node: Array) -> Obj:
    """The extensions by which apply and strategic merge patch merge a list."""
    extensions: Obj = {"x-kubernetes-list-type": "map" if node.keys else "set" if node.is_set else "atomic"}
    if node.keys:
        extensions["x-kubernetes-list-map-keys"] = list(node.keys)
    if node.merge_key:
        extensions["x-kubernetes-patch-merge-key"] = node.merge_key
    if node.merge_key or node.merges_values:
        extensions["x-kubernetes-patch-strategy"] = "merge"
    return extensions


def custom_schemas(resource: Resource, schema: Obj) -> Obj:
    """The schema of a custom resource and of its list."""
    name = schema_name(resource)
    properties = {
        "apiVersion": {"description": _API_VERSION, "type": "string"},
        "kind": {"description": _KIND, "type": "string"},
        "metadata": {"description": _METADATA, "allOf": [reference(f"{_META}.ObjectMeta")]},
    }
    given = schema.get("properties") or {}
    listed: dict[str, Any] = {
        "description": f"{resource.kind}List is a list of {resource.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": properties["apiVersion"],
            "kind": properties["kind"],
            "metadata": {"allOf": [reference(f"{_META}.ListMeta")]},
            "items": {"type": "array", "items": reference(name)},
        },
        GVK: [{**_gvk(resource), "kind": resource.list_kind or f"{resource.kind}List"}],
    }
    found: Obj = {
        name: {
            **{key: value for key, value in schema.items() if key != EMBEDDED},
            "properties": {**given, **properties},
            GVK: [_gvk(resource)],
        },
        f"{name}List": listed,
    }
    for model in ("V1ObjectMeta", "V1ListMeta"):
        _collect(model, _META, found)
    return found
