"""Sightings are the commits that watches have shown; a Lookout watches each collection, past all proxies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any

from e2e.speaker import Speaker
from promises.commits import Obj

#: What is watched, by the name that the checker has for it.
COLLECTIONS = {
    "nodes": "/api/v1/nodes",
    "pods": "/api/v1/pods",
    "deployments.apps": "/apis/apps/v1/deployments",
    "poddisruptionbudgets.policy": "/apis/policy/v1/poddisruptionbudgets",
    "leases.coordination.k8s.io": "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
    "schedulingpolicies.plimsoll.dev": "/apis/plimsoll.dev/v1alpha1/schedulingpolicies",
    "evictions.plimsoll.dev": "/apis/plimsoll.dev/v1alpha1/evictions",
}

#: Seconds until a watch that has ended is begun again.
PAUSE_S = 0.2


class BlindError(Exception):
    """Commits were missed, so nothing can be said about a run."""


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
    """

    def __init__(
        self,
        speaker: Speaker,
        clock: Callable[[], float],
        file: IO[str],
        seen: Callable[[Sighting], object],
    ) -> None:
        self._speaker = speaker
        self._clock = clock
        self._file = file
        self._seen = seen
        self._versions: dict[str, str] = {}

    async def begin(self) -> None:
        """See what is there."""
        for collection, path in COLLECTIONS.items():
            listed = (await self._speaker.request("GET", path)).accepted()
            self._versions[collection] = listed["metadata"]["resourceVersion"]
            for obj in listed["items"]:
                self._see(Sighting.of(collection, "ADDED", obj, self._clock()))

    async def watch(self, collection: str) -> None:
        """See what is written, until cancelled; over interruptions of the connection, too.

        Raises:
            BlindError: The API server does not know any more what was written meanwhile.
        """
        while True:
            version = self._versions[collection]
            try:
                async for event in self._speaker.watch(COLLECTIONS[collection], version):
                    self._take(collection, event)
            except (OSError, asyncio.IncompleteReadError, TimeoutError, ValueError):
                pass
            except Exception as exc:
                if type(exc).__module__.partition(".")[0] not in ("aiohttp", "kubernetes_asyncio"):
                    raise
            await asyncio.sleep(PAUSE_S)

    def _take(self, collection: str, event: Any) -> None:
        obj, kind = event["object"], event["type"]
        if kind == "ERROR":
            if obj.get("code") == 410:
                raise BlindError(f"the watch of {collection} lost its place: {obj.get('message')}")
            return
        self._versions[collection] = obj["metadata"]["resourceVersion"]
        if kind != "BOOKMARK":
            self._see(Sighting.of(collection, kind, obj, self._clock()))

    def _see(self, sighting: Sighting) -> None:
        self._file.write(sighting.line() + "\n")
        self._seen(sighting)
