"""An Inspection looks into the processes of a run at rest, and compares them with fresh ones."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from roadstead.store.api import Api
from roadstead.store.store import Change
from simulation.baselines import leftovers, remembered, stray_tasks, tasks_of
from simulation.cluster import RECORDS
from simulation.loop import VirtualLoop
from simulation.replica import Life

#: Seconds after which nothing may be remembered of a pod that is gone.
GONE_S = 60.0

#: Where a pod that is gone may be remembered: by a move that waits for its replacement; by a new leader, as
#: the replacement that a finished record names, of which there are as many as retention leaves; by the index
#: of these records, and by what tells which of their pods has taken whose place.
MEMORIES = (
    ".executor.machine._of_pod",
    ".executor.machine._replaced[]",
    ".executor._sightings[].(set)",
    ".keeper.known._by_pod",
)

#: Further looks, and seconds before each.
LOOKS, LOOK_AGAIN_S = 3, 1.7

#: Tasks by the part that a process has.
Fresh = Mapping[str, Counter[str]]


def part_of(life: Life) -> str:
    """What a process does: it leads, or stands by."""
    operator = life.operator
    if operator is None:
        return ""
    return "leader" if operator.leadership.acquired.is_set() else "standby"


class Inspection:
    """Looks into the processes of one run.

    Args:
        api: The API server; what is deleted is noted.
    """

    def __init__(self, api: Api, loop: VirtualLoop) -> None:
        self._api = api
        self._loop = loop
        self._gone: dict[str, float] = {}  #: uids of pods, with the times of their deletion
        api.store.follow(self._follow)

    def _follow(self, collection: str, change: Change) -> None:
        if collection == "pods" and change.type == "DELETED":
            self._gone[change.entry.obj["metadata"]["uid"]] = self._loop.time()

    def tasks(self, lives: Iterable[Life]) -> Fresh:
        """The tasks of processes, by part."""
        tasks = asyncio.all_tasks(self._loop)
        return {part_of(life): tasks_of(tasks, life) for life in lives}

    async def lasting(self, lives: Sequence[Life], fresh: Fresh) -> list[str]:
        """What is so at each of several looks: a rebalancing run may be under way at any one of them."""
        found = list(self.violations(lives, fresh))
        for _ in range(LOOKS):
            if found:
                await asyncio.sleep(LOOK_AGAIN_S)
                present = set(self.violations(lives, fresh))
                found = [each for each in found if each in present]
        return found

    def violations(self, lives: Iterable[Life], fresh: Fresh) -> Iterator[str]:
        """What must not be so in processes at rest.

        Args:
            lives: The present ones.
            fresh: The tasks of processes that have just begun.
        """
        records = {
            f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in self._api.list(RECORDS)
        }
        gone = {uid for uid, at in self._gone.items() if at < self._loop.time() - GONE_S}
        tasks = asyncio.all_tasks(self._loop)
        for life in lives:
            if life.ended or life.operator is None:
                yield f"{life.name} does not run: {life.ended}"
                continue
            found = [*leftovers(life.operator, records)]
            if part := part_of(life):
                found += stray_tasks(tasks_of(tasks, life), fresh[part])
            for path, count in remembered(life.operator, gone).items():
                if not path.endswith(MEMORIES):
                    found.append(f"{count} pods that are gone are remembered in {path}")
            yield from (f"{life.name} at rest: {sentence}" for sentence in found)
