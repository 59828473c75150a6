"""Sightings are the commits that watches have shown; a Lookout watches each collection, past all proxies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any

from chaos.world import DEFINITIONS, DEPLOYMENTS, OURS
from e2e.speaker import Speaker
from promises.commits import Obj

#: What is watched, by the name that the checker has for it.
COLLECTIONS = {
    "nodes": "/api/v1/nodes",
    "pods": "/api/v1/pods",
    "deployments.apps": DEPLOYMENTS,
    "replicasets.apps": "/apis/apps/v1/replicasets",
    "poddisruptionbudgets.policy": "/apis/policy/v1/poddisruptionbudgets",
    "leases.coordination.k8s.io": "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
    "schedulingpolicies.plimsoll.dev": "/apis/plimsoll.dev/v1alpha1/schedulingpolicies",
    "evictions.plimsoll.dev": "/apis/plimsoll.dev/v1alpha1/evictions",
    "podgroups.plimsoll.dev": "/apis/plimsoll.dev/v1alpha1/podgroups",
    "customresourcedefinitions.apiextensions.k8s.io": DEFINITIONS,
    "namespaces": "/api/v1/namespaces",
    "statefulsets.apps": "/apis/apps/v1/statefulsets",
    "priorityclasses.scheduling.k8s.io": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "persistentvolumeclaims": "/api/v1/persistentvolumeclaims",
    "persistentvolumes": "/api/v1/persistentvolumes",
    "storageclasses.storage.k8s.io": "/apis/storage.k8s.io/v1/storageclasses",
    "csinodes.storage.k8s.io": "/apis/storage.k8s.io/v1/csinodes",
    "resourceclaims.resource.k8s.io": "/apis/resource.k8s.io/v1/resourceclaims",
    "resourceslices.resource.k8s.io": "/apis/resource.k8s.io/v1/resourceslices",
}

#: Seconds until a watch that has ended is begun again.
PAUSE_S = 0.2


class ExpiredError(Exception):
    """An API server that was started again does not know what was written before."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """One commit.

    Attributes:
        at: Seconds since the run began.
        version: Its resourceVersion, which orders all of a cluster.
    """

    collection: str
    type: str
    obj: Obj
    at: float
    version: int

    def line(self) -> str:
        """A line of JSON."""
        return json.dumps(
            {"collection": self.collection, "type": self.type, "obj": self.obj, "at": round(self.at, 4)}
        )

    @classmethod
    def of(cls, collection: str, kind: str, obj: Obj, at: float) -> Sighting:
        """What a watch has shown, without what is not judged."""
        obj["metadata"].pop("managedFields", None)
        return cls(collection, kind, obj, at, int(obj["metadata"]["resourceVersion"]))

    @classmethod
    def read(cls, line: str) -> Sighting:
        """What :meth:`line` has written."""
        found: dict[str, Any] = json.loads(line)
        return cls.of(found["collection"], found["type"], found["obj"], found["at"])


class Lookout:
    """Watches a cluster.

    Args:
        file: Where all sightings are written.
        seen: Takes each.
        collections: What is watched, by the name that the checker has for it.
        nodes: Labels of the nodes that matter.

    Attributes:
        relists: How often a watch had to begin again with a list: of what was written meanwhile, the last
            version of each object is known.
    """

    def __init__(
        self,
        speaker: Speaker,
        clock: Callable[[], float],
        file: IO[str],
        seen: Callable[[Sighting], object],
        collections: Mapping[str, str] = COLLECTIONS,
        nodes: Mapping[str, str] = OURS,
    ) -> None:
        self._collections, self._nodes = collections, nodes
        self._speaker = speaker
        self._clock = clock
        self._file = file
        self._seen = seen
        self.relists = 0
        self._versions: dict[str, str] = {}
        self._there: dict[str, dict[str, Obj]] = {collection: {} for collection in collections}

    async def begin(self) -> None:
        """See what is there; a collection that is not served may be later."""
        for collection in self._collections:
            try:
                await self._list(collection)
            except AssertionError:
                self._versions[collection] = ""

    async def _list(self, collection: str) -> None:
        """See what is there, and what is gone."""
        listed = (await self._speaker.request("GET", self._collections[collection])).accepted()
        version = self._versions[collection] = listed["metadata"]["resourceVersion"]
        known = self._there[collection]
        found = {obj["metadata"]["uid"]: obj for obj in listed["items"]}
        for uid in [uid for uid in known if uid not in found]:
            gone = {**known[uid], "metadata": {**known[uid]["metadata"], "resourceVersion": version}}
            self._see(Sighting.of(collection, "DELETED", gone, self._clock()))
        for uid, obj in found.items():
            before = known.get(uid)
            if before is None or before["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
                kind = "ADDED" if before is None else "MODIFIED"
                self._see(Sighting.of(collection, kind, obj, self._clock()))

    async def watch(self, collection: str) -> None:
        """See what is written, until cancelled; over interruptions of the connection, too."""
        while True:
            version = self._versions[collection]
            try:
                if not version:
                    await self._list(collection)
                    continue
                async for event in self._speaker.watch(self._collections[collection], version):
                    self._take(collection, event)
            except ExpiredError:
                self.relists += 1
                self._versions[collection] = ""
                continue
            except (OSError, AssertionError, KeyError, TimeoutError, ValueError):
                pass  # the connection has ended, or this is no answer to a list or watch
            except Exception as exc:
                if type(exc).__module__.partition(".")[0] not in ("aiohttp", "kubernetes_asyncio"):
                    raise
            await asyncio.sleep(PAUSE_S)

    def _take(self, collection: str, event: Any) -> None:
        if event.get("code") == 410:
            raise ExpiredError
        obj, kind = event["object"], event["type"]
        if kind == "ERROR":
            if obj.get("code") == 410:
                raise ExpiredError
            return
        self._versions[collection] = obj["metadata"]["resourceVersion"]
        if kind != "BOOKMARK":
            self._see(Sighting.of(collection, kind, obj, self._clock()))

    def _see(self, sighting: Sighting) -> None:
        labels = sighting.obj["metadata"].get("labels") or {}
        if sighting.collection == "nodes" and not self._nodes.items() <= labels.items():
            return  # our pods do not go there
        known, uid = self._there[sighting.collection], sighting.obj["metadata"]["uid"]
        if sighting.type == "DELETED":
            known.pop(uid, None)
        else:
            known[uid] = sighting.obj
        self._file.write(sighting.line() + "\n")
        self._seen(sighting)
