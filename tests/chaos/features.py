"""Features are what a world on the development cluster has beyond the ordinary, seen from a run.

Something of a feature is under way if an object of it was written in the last five seconds: a pod of it was
made, bound, moved or deleted, or its group, its claim, or a record of its policy changed. A request is about
a feature if it names such an object.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from chaos.sightings import Sighting
from chaos.world import BROKEN
from e2e.speaker import Speaker
from promises.record_book import PREEMPTION

#: The label by which the objects of a feature, and its pods, are known.
FEATURE = "plimsoll.dev/chaos-feature"

#: A feature; and a part of the world that is a fault.
EXTENDERS, DEFINITIONS = "extenders", "definitions"

#: All of them, as reports name them.
FEATURES = (
    "surges",
    "preemption",
    "windows",
    "approvals",
    "volumes",
    "devices",
    "gangs",
    "demands",
    EXTENDERS,
)

#: Seconds for which a feature counts as under way after a write.
RECENT_S = 5.0

#: Features by the policy of a record, and by the collection of an object.
OF_POLICIES = {"surge": "surges", "ask": "approvals", "windows": "windows", "gpus": "devices"}
OF_COLLECTIONS = {
    "podgroups.plimsoll.dev": "gangs",
    "resourceclaims.resource.k8s.io": "devices",
    "persistentvolumeclaims": "volumes",
}


class Features:
    """What people do with them, and which of them something happens to.

    Args:
        names: Those of the run's world.
        random: Draws what people work with.
        clock: Seconds since the run began.
    """

    def __init__(self, names: Sequence[str], random: Random, clock: Callable[[], float]) -> None:
        self._names = list(names)
        self._random = random
        self._clock = clock
        self._latest: dict[str, float] = {}
        self._owners: dict[tuple[str, str, str], str] = {}
        self.speaker: Speaker | None = None

    # -- acts ----------------------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Create what features begin with."""
        await self._tell("begin")

    async def work(self) -> bool:
        """Somebody works with one of them."""
        return bool(self._names) and await self._tell(f"act/{self._random.choice(self._names)}")

    async def end(self) -> None:
        """What was switched off for a while is on again."""
        await self._tell("end")

    async def late(self) -> None:
        """Create what is judged without faults."""
        await self._tell("late")

    async def delete_definition(self) -> bool:
        """Delete a custom resource definition, or create one again that is gone."""
        return bool(self._names) and await self._tell(f"act/{DEFINITIONS}")

    async def restore_definitions(self) -> None:
        """All are there again."""
        await self._tell(f"end/{DEFINITIONS}")

    async def _tell(self, what: str) -> bool:
        if not self._names or self.speaker is None:
            return False
        try:
            return (await self.speaker.request("POST", f"/chaos/{what}")).status == 200
        except BROKEN:
            return False

    # -- what is under way ---------------------------------------------------------------------------------

    def see(self, sighting: Sighting) -> None:
        """A watch has shown a write."""
        meta = sighting.obj["metadata"]
        found = (meta.get("labels") or {}).get(FEATURE) or OF_COLLECTIONS.get(sighting.collection)
        spec = sighting.obj.get("spec") or {}
        if sighting.collection == "evictions.plimsoll.dev":
            is_victim = spec.get("strategy") == PREEMPTION
            found = "preemption" if is_victim else OF_POLICIES.get(spec.get("policy", ""), found)
        if found in self._names:
            self._latest[found] = sighting.at
            resource = sighting.collection.partition(".")[0]
            self._owners[resource, meta.get("namespace") or "", meta["name"]] = found

    def about(self, path: str) -> list[str]:
        """Names of the features that a request is about."""
        parts = path.strip("/").split("/")
        rest = parts[3:] if parts[0] == "apis" else parts[2:]
        namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        resource, name = (*rest, "", "")[:2]
        owner = self._owners.get((resource, namespace, name))
        return [owner] if owner else []

    def under_way(self) -> list[str]:
        """Names of the features of which something is under way."""
        since = self._clock() - RECENT_S
        return [name for name in self._names if self._latest.get(name, -RECENT_S) >= since]
