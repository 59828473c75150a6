"""View is the cluster as the commits so far have made it, with the recent versions of what is decided by.

Who decides sees what a watch has shown: an object as it was at any time of the last ``stale_s`` seconds. So a
decision is judged by the versions that were in force within them, and one that any of these permits is right.
"""

from __future__ import annotations

from collections.abc import Iterable

from promises.commits import Commit, Obj

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
POLICIES = "schedulingpolicies.plimsoll.dev"
GROUPS = "podgroups.plimsoll.dev"
RECORDS = "evictions.plimsoll.dev"
BUDGETS = "poddisruptionbudgets.policy"
SLICES = "resourceslices.resource.k8s.io"
CLASSES = "priorityclasses.scheduling.k8s.io"

#: Collections whose earlier versions are kept, and for how many seconds beyond ``stale_s``.
KEPT, KEPT_S = frozenset(("pods", "nodes", "namespaces", POLICIES, GROUPS, BUDGETS, SLICES)), 900.0

Key = tuple[str, str]


class View:
    """All objects, by collection and key, in the order in which they were created.

    Args:
        stale_s: Seconds that a watch may be behind.
    """

    def __init__(self, stale_s: float = 30.0) -> None:
        self.stale_s = stale_s
        self._delays: dict[str, tuple[float, float]] = {}
        self._collections: dict[str, dict[Key, Obj]] = {}
        self._versions: dict[tuple[str, Key], list[tuple[float, Obj | None]]] = {}

    def see(self, commit: Commit) -> None:
        """A write."""
        objects = self._collections.setdefault(commit.collection, {})
        if commit.type == "DELETED":
            objects.pop(commit.key, None)
        else:
            objects[commit.key] = commit.obj
        if commit.collection in KEPT:
            self._keep(commit)
        if commit.collection == DEFINITIONS and commit.type == "DELETED":
            self._collections.pop(commit.obj["metadata"]["name"], None)

    def _keep(self, commit: Commit) -> None:
        kept = self._versions.setdefault((commit.collection, commit.key), [])
        while len(kept) > 1 and kept[1][0] < commit.at - self.stale_s - KEPT_S:
            del kept[0]
        kept.append((commit.at, None if commit.type == "DELETED" else commit.obj))

    def delay(self, collection: str, now: float, seconds: float) -> None:
        """Watches of a collection are known to be behind by so much for some time."""
        self._delays[collection] = (now + 2 * seconds, seconds)

    def objects(self, collection: str) -> Iterable[Obj]:
        """Those of a collection."""
        return self._collections.get(collection, {}).values()

    def find(self, collection: str, namespace: str, name: str) -> Obj | None:
        """One object; ``namespace`` is "" for objects without one."""
        return self._collections.get(collection, {}).get((namespace, name))

    def known(self, collection: str) -> list[Key]:
        """The keys of the objects whose versions are kept, also of those that are gone."""
        return [key for name, key in self._versions if name == collection]

    def versions(self, collection: str, key: Key, since: float) -> list[Obj | None]:
        """An object as it was at a time and ever since, oldest first; None while it was not there."""
        kept = self._versions.get((collection, key), ())
        later = [obj for at, obj in kept if at > since]
        earlier = [obj for at, obj in kept if at <= since]
        return [earlier[-1] if earlier else None, *later]

    def recent(self, collection: str, key: Key, at: float) -> list[Obj | None]:
        """An object as a watch may show it."""
        until, more_s = self._delays.get(collection, (0.0, 0.0))
        return self.versions(collection, key, at - self.stale_s - (more_s if at < until else 0.0))
