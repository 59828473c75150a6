"""Describes the resources of a cluster as discovery names them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ServedResource:
    """A resource as listed by discovery.

    Attributes:
        root: the path of its group and version, such as "/apis/apps/v1".
        plural: its name in paths.
        kind: the kind of its objects.
        names: all by which kubectl finds it, lowercase.
        namespaced: whether its objects have namespaces.
    """

    root: str
    plural: str
    kind: str
    names: frozenset[str]
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        """The path of an object, or of the collection."""
        within = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{self.root}{within}/{self.plural}{'/' + name if name else ''}"


def served_resource(root: str, item: JsonObject) -> ServedResource:
    """A resource in an APIGroupDiscoveryList.

    Args:
        root: the path of its group and version.
        item: the resource in the list.
    """
    kind = item["responseKind"]["kind"]
    names = {item["resource"], item.get("singularResource", ""), kind.lower(), *item.get("shortNames", ())}
    return ServedResource(
        root, item["resource"], kind, frozenset(names - {""}), item.get("scope") == "Namespaced"
    )
