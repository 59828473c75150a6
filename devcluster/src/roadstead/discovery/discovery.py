"""Serves discovery: groups, versions and resources.

There are two forms: one document for each group and version, and aggregated documents, which client-go and
kubectl request first.

Source: kube-apiserver v1.36; ``pkg/endpoints/discovery`` of apiserver.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from typing import TYPE_CHECKING

import orjson

from roadstead.definitions.definitions import version_rank
from roadstead.server.renderers import Document

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roadstead.values.resources import Obj, Registry, Resource, Subresource

_AGGREGATED = "APIGroupDiscoveryList"
#: Groups in the order in which a real server lists them; definitions' groups follow.
_ORDER = (
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "resource.k8s.io",
)


class Discovery:
    """Serves paths below ``/api`` and ``/apis`` that name no resource.

    Args:
        registry: the served resources.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def __call__(self, path: str, accept: str) -> Document | None:
        """The document at a path, None for an unknown path."""
        parts = [part for part in path.split("/") if part]
        match parts:
            case ["api" | "apis"] if version := _aggregated_version(accept):
                return self._aggregated(core=parts[0] == "api", version=version)
            case ["api"]:
                return _document(
                    {
                        "kind": "APIVersions",
                        "versions": ["v1"],
                        "serverAddressByClientCIDRs": [],
                    }
                )
            case ["apis"]:
                groups = [self._group(group) for group in self._groups() if group]
                return _document({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
            case ["api", version] if self._registry.serves("", version):
                return _document(self._resources("", version))
            case ["apis", group] if self._registry.serves(group):
                return _document({"kind": "APIGroup", "apiVersion": "v1", **self._group(group)})
            case ["apis", group, version] if self._registry.serves(group, version):
                return _document(self._resources(group, version))
        return None

    def _groups(self) -> list[str]:
        groups = dict.fromkeys(resource.group for resource in self._registry)
        rank = {group: position for position, group in enumerate(_ORDER)}
        return sorted(groups, key=lambda group: (rank.get(group, len(rank)), group))

    def _versions(self, group: str) -> list[str]:
        versions = {resource.version for resource in self._registry if resource.group == group}
        return sorted(versions, key=version_rank)

    def _of(self, group: str, version: str) -> list[Resource]:
        found = [one for one in self._registry if (one.group, one.version) == (group, version)]
        return sorted(found, key=lambda one: one.plural)

    def _group(self, group: str) -> Obj:
        versions = [
            {"groupVersion": f"{group}/{version}", "version": version} for version in self._versions(group)
        ]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _resources(self, group: str, version: str) -> Obj:
        listed = []
        for resource in self._of(group, version):
            listed.append(_resource(resource))
            listed += [_subresource(resource, sub) for sub in resource.subresources]
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": listed,
        }

    def _aggregated(self, *, core: bool, version: str) -> Document:
        items = [self._aggregated_group(group) for group in self._groups() if (group == "") is core]
        body = {
            "kind": _AGGREGATED,
            "apiVersion": f"apidiscovery.k8s.io/{version}",
            "metadata": {},
            "items": items,
        }
        return _document(body, f"application/json;g=apidiscovery.k8s.io;v={version};as={_AGGREGATED}")

    def _aggregated_group(self, group: str) -> Obj:
        versions = [
            {
                "version": version,
                "resources": [_aggregated_resource(one) for one in self._of(group, version)],
                "freshness": "Current",
            }
            for version in self._versions(group)
        ]
        return {"metadata": {"name": group} if group else {}, "versions": versions}


def _document(body: Obj, content_type: str = "application/json") -> Document:
    return Document(orjson.dumps(body), content_type)


def _aggregated_version(accept: str) -> str:
    """The version of aggregated discovery that a client accepts, "" for none."""
    for clause in accept.split(","):
        given = dict(part.strip().split("=", 1) for part in clause.split(";")[1:] if "=" in part)
        if given.get("g") == "apidiscovery.k8s.io" and given.get("as") == _AGGREGATED:
            version = given.get("v", "")
            if version in ("v2", "v2beta1"):
                return version
    return ""


def _verbs(verbs: Iterable[str]) -> list[str]:
    return sorted(verbs)


def _names(resource: Resource) -> Obj:
    document: Obj = {}
    if resource.short_names:
        document["shortNames"] = list(resource.short_names)
    if resource.categories:
        document["categories"] = list(resource.categories)
    return document


def _resource(resource: Resource) -> Obj:
    document: Obj = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _verbs(resource.verbs),
        **_names(resource),
    }
    if not resource.ephemeral:
        document["storageVersionHash"] = _storage_hash(resource)
    return document


def _storage_hash(resource: Resource) -> str:
    """Eight bytes of a hash of the storage version's name, by which clients notice a change."""
    text = f"{resource.stored_api_version}/{resource.kind}"
    return b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


def _subresource(resource: Resource, sub: Subresource) -> Obj:
    document: Obj = {
        "name": f"{resource.plural}/{sub.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
    }
    if sub.group:
        document |= {"group": sub.group, "version": sub.version}
    return {**document, "kind": sub.kind or resource.kind, "verbs": _verbs(sub.verbs)}


def _response_kind(resource: Resource, kind: str, group: str = "", version: str = "") -> Obj:
    """The kind of a response; clients infer group and version of built-in resources."""
    if resource.custom and not group:
        group, version = resource.group, resource.version
    return {"group": group, "version": version, "kind": kind}


def _aggregated_resource(resource: Resource) -> Obj:
    document: Obj = {
        "resource": resource.plural,
        "responseKind": _response_kind(resource, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": _verbs(resource.verbs),
        **_names(resource),
    }
    if resource.subresources:
        document["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": _response_kind(resource, sub.kind or resource.kind, sub.group, sub.version),
                "verbs": _verbs(sub.verbs),
            }
            for sub in resource.subresources
        ]
    return document
