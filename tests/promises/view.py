"""View is the cluster as the commits so far have made it."""

from __future__ import annotations

from collections.abc import Iterable

from promises.commits import Commit, Obj

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


class View:
    """All objects, by collection and key, in the order in which they were created."""

    def __init__(self) -> None:
        self._collections: dict[str, dict[tuple[str, str], Obj]] = {}

    def see(self, commit: Commit) -> None:
        """A write."""
        objects = self._collections.setdefault(commit.collection, {})
        if commit.type == "DELETED":
            objects.pop(commit.key, None)
        else:
            objects[commit.key] = commit.obj
        if commit.collection == DEFINITIONS and commit.type == "DELETED":
            self._collections.pop(commit.obj["metadata"]["name"], None)

    def objects(self, collection: str) -> Iterable[Obj]:
        """Those of a collection."""
        return self._collections.get(collection, {}).values()

    def find(self, collection: str, namespace: str, name: str) -> Obj | None:
        """One object; ``namespace`` is "" for objects without one."""
        return self._collections.get(collection, {}).get((namespace, name))
