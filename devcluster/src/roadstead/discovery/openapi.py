"""Serves ``/openapi/v3`` (an index and a document for each group version) and ``/openapi/v2``.

kubectl reads them for the parameters of PATCH, the merging of lists and the descriptions of fields. The
documents of built-in groups are made once; those of custom resources change with their definitions.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import orjson

from roadstead.definitions.custom_kind import CustomKind
from roadstead.definitions.definitions import version_rank
from roadstead.discovery.openapi_protobuf import ACCEPTED, PROTOBUF, patch_operations
from roadstead.discovery.openapi_schemas import (
    GVK,
    built_in_schemas,
    custom_schemas,
    reference,
    schema_name,
)
from roadstead.server.renderers import Document
from roadstead.server.request_handler import VERSION

if TYPE_CHECKING:
    from roadstead.store.api import Api
    from roadstead.values.resources import Obj, Resource

_ROOT = "/openapi/v3"
_STRATEGIC = "application/strategic-merge-patch+json"
_PATCH_TYPES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    _STRATEGIC,
    "application/apply-patch+yaml",
)
_METHODS = {"get": "get", "put": "update", "patch": "patch", "delete": "delete"}
_COLLECTION_METHODS = {"get": "list", "post": "create", "delete": "deletecollection"}
_PARAMETERS = {
    "create": ("dryRun", "fieldManager", "fieldValidation"),
    "update": ("dryRun", "fieldManager", "fieldValidation"),
    "patch": ("dryRun", "fieldManager", "fieldValidation", "force"),
    "delete": ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"),
    "deletecollection": (
        "dryRun",
        "fieldSelector",
        "labelSelector",
        "gracePeriodSeconds",
        "propagationPolicy",
    ),
    "list": ("continue", "fieldSelector", "labelSelector", "limit", "resourceVersion", "watch"),
    "get": (),
}
_TYPES = {"force": "boolean", "watch": "boolean", "orphanDependents": "boolean"}
_TYPES |= {"limit": "integer", "gracePeriodSeconds": "integer"}


class OpenApi:
    """Serves paths below ``/openapi``.

    Args:
        api: its registry and kinds are described.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._made: dict[str, bytes] = {}

    def __call__(self, path: str, accept: str) -> Document | None:
        """The document at a path, None for an unknown path."""
        if path == "/openapi/v2":
            if ACCEPTED in accept or PROTOBUF in accept:
                return Document(patch_operations(self._patched()), PROTOBUF)
            return Document(self._version_2())
        if path.rstrip("/") == _ROOT:
            return Document(orjson.dumps({"paths": self._index()}))
        if not path.startswith(f"{_ROOT}/"):
            return None
        place = path.removeprefix(f"{_ROOT}/")
        resources = self._places().get(place)
        if resources is None:
            return None
        if any(resource.custom for resource in resources):
            return Document(orjson.dumps(self._document(resources)))
        if place not in self._made:
            self._made[place] = orjson.dumps(self._document(resources))
        return Document(self._made[place])

    def _places(self) -> dict[str, list[Resource]]:
        """The resources of each group version, by the path of its document."""
        found: dict[str, list[Resource]] = {}
        for resource in self._api.registry:
            root = f"apis/{resource.group}" if resource.group else "api"
            found.setdefault(f"{root}/{resource.version}", []).append(resource)
        return found

    def _index(self) -> Obj:
        index: Obj = {}
        for place, resources in sorted(self._places().items(), key=lambda one: _order(one[0])):
            url = f"{_ROOT}/{place}?hash={self._hash(resources)}"
            index[place] = {"serverRelativeURL": url}
        return index

    def _hash(self, resources: list[Resource]) -> str:
        """A hash that changes with the document; clients cache documents by it."""
        parts = [VERSION["gitVersion"], *sorted(map(repr, resources))]
        parts += [
            orjson.dumps(version.given).decode()
            for resource in resources
            if isinstance(kind := self._api.kind(resource), CustomKind)
            for version in kind.versions.values()
        ]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest().upper()

    def _version_2(self) -> bytes:
        """The schemas of all group versions in one document, in JSON only, and without paths."""
        schemas: Obj = {}
        for resources in self._places().values():
            schemas |= self._document(resources)["components"]["schemas"]
        document = {
            "swagger": "2.0",
            "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
            "paths": {},
            "definitions": schemas,
        }
        return orjson.dumps(document).replace(b"#/components/schemas/", b"#/definitions/")

    def _patched(self) -> dict[str, Obj]:
        """The operation of PATCH by path."""
        paths = (_paths(resource) for resources in self._places().values() for resource in resources)
        return {path: item["patch"] for found in paths for path, item in found.items() if "patch" in item}

    def _document(self, resources: list[Resource]) -> Obj:
        schemas = built_in_schemas([resource for resource in resources if not resource.custom])
        paths: Obj = {}
        for resource in resources:
            kind = self._api.kind(resource)
            if isinstance(kind, CustomKind):
                given = kind.versions[resource.api_version].given["schema"]["openAPIV3Schema"]
                schemas |= custom_schemas(resource, given)
            paths |= _paths(resource)
        return {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
            "paths": paths,
            "components": {"schemas": schemas},
        }


def _order(place: str) -> tuple[str, tuple[int, int, int, str]]:
    group, _, version = place.rpartition("/")
    return group, version_rank(version)


def _paths(resource: Resource) -> Obj:
    """The paths of a resource and of its subresources."""
    root = f"/apis/{resource.group}" if resource.group else "/api"
    home = f"{root}/{resource.version}"
    found: Obj = {}
    collection = f"{home}/{resource.plural}"
    if resource.namespaced:
        found[collection] = _operations(resource, {"get": "list"}, resource.verbs)
        collection = f"{home}/namespaces/{{namespace}}/{resource.plural}"
    found[collection] = _operations(resource, _COLLECTION_METHODS, resource.verbs)
    single = f"{collection}/{{name}}"
    found[single] = _operations(resource, _METHODS, resource.verbs)
    for sub in resource.subresources:
        methods = {**_METHODS, "post": "create"}
        found[f"{single}/{sub.name}"] = _operations(
            resource, methods, sub.verbs, kind=(sub.group, sub.version, sub.kind)
        )
    return {path: item for path, item in found.items() if item}


def _operations(
    resource: Resource,
    methods: dict[str, str],
    verbs: tuple[str, ...],
    kind: tuple[str, str, str] = ("", "", ""),
) -> Obj:
    group, version, name = kind
    operation = {
        "group": group or resource.group,
        "version": version or resource.version,
        "kind": name or resource.kind,
    }
    return {
        method: _operation(resource, verb, operation) for method, verb in methods.items() if verb in verbs
    }


def _operation(resource: Resource, verb: str, kind: Obj) -> Obj:
    content = {"application/json": {"schema": reference(schema_name(resource))}}
    operation: Obj = {
        "tags": [f"{resource.group or 'core'}_{resource.version}"],
        "description": f"{verb} objects of kind {resource.kind}",
        "operationId": f"{verb}{resource.kind}",
        "parameters": [
            {
                "name": name,
                "in": "query",
                "schema": {"type": _TYPES.get(name, "string"), "uniqueItems": True},
            }
            for name in _PARAMETERS[verb]
        ],
        "responses": {"200": {"description": "OK", "content": content}},
        "x-kubernetes-action": {"update": "put", "create": "post"}.get(verb, verb),
        GVK: kind,
    }
    if verb == "patch":
        # kubectl sends a strategic merge patch to every resource that accepts one.
        taken = [media for media in _PATCH_TYPES if not (resource.custom and media == _STRATEGIC)]
        body = {media: {"schema": {"type": "object"}} for media in taken}
        operation["requestBody"] = {"content": body, "required": True}
    elif verb in ("create", "update"):
        operation["requestBody"] = {"content": content, "required": True}
    return operation
