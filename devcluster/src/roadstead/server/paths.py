"""Parses request paths into resource, namespace, object and subresource."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from roadstead.values.resources import Registry, Resource


@dataclass(frozen=True, slots=True)
class Target:
    """The subject of a request; ``namespace`` is None for all namespaces and for cluster-scoped objects."""

    resource: Resource
    namespace: str | None
    name: str = ""
    subresource: str = ""


def target(path: str, registry: Registry) -> Target | None:
    """Parse a path below ``/api`` or ``/apis``; None if nothing is served there."""
    parts = [unquote(part) for part in path.split("/") if part]
    if len(parts) >= 3 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace: str | None = None
    if rest[0] == "namespaces" and len(rest) >= 3:
        inner = registry.at(group, version, rest[2])
        if inner is not None and inner.namespaced:
            namespace, rest = rest[1], rest[2:]
    resource = registry.at(group, version, rest[0])
    if resource is None or len(rest) > 3:
        return None
    name, subresource = [*rest[1:], "", ""][:2]
    if name and resource.namespaced and namespace is None:
        return None
    return Target(resource, namespace, name, subresource)
