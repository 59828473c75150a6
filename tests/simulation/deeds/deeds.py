"""Deeds are what people, machines and other programs do to a cluster while the operator works."""

from __future__ import annotations

import asyncio

from simulation.deeds.administrators import AdministratorDeeds
from simulation.deeds.lease_faults import LeaseFaults
from simulation.deeds.move_faults import MoveFaults
from simulation.deeds.nodes import NodeDeeds
from simulation.deeds.people import PeopleDeeds
from simulation.deeds.processes import ProcessDeeds
from simulation.deeds.programs import ProgramDeeds
from simulation.deeds.refused_writes import RefusedWrites
from simulation.deeds.scene import Scene, attempted
from simulation.deeds.write_faults import WriteFaults

#: Mean virtual seconds between two deeds.
EVERY_S = 3.0

#: So many kinds are drawn until one finds something to be done to.
DRAWS = 4


class Deeds:
    """Does one after the other, each of a kind that the seed has enabled; some at certain writes."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._ways = {
            **ProcessDeeds(scene).ways,
            **NodeDeeds(scene).ways,
            **PeopleDeeds(scene).ways,
            **AdministratorDeeds(scene).ways,
            **ProgramDeeds(scene).ways,
        }
        scene.network.around += [
            WriteFaults(scene, self._ways),
            MoveFaults(scene),
            LeaseFaults(scene),
            RefusedWrites(scene),
        ]

    async def run(self) -> None:
        """Act until the faults stop."""
        scene = self._scene
        while not scene.faults.is_over:
            await asyncio.sleep(scene.random.expovariate(1.0 / EVERY_S))
            for _ in range(DRAWS):
                kind = scene.faults.deed()
                if kind is not None and attempted(self._ways[kind]):
                    scene.faults.count(kind)
                    scene.tell("deed", kind)
                    break

    async def end(self) -> None:
        """What was to pass has passed."""
        self._scene.undo_all()
        self._scene.network.notice_silence()
