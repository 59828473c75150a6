"""Empties twelve nodes, three at a time and under load, and counts what services lose meanwhile.

make drain-nodes                                  ours, kubectl drain, and Karpenter's rule (played), in turn
make drain-nodes ARGS="--ways ours --kills 10"    the operator is killed ten times in between
make drain-nodes ARGS="--programs FOLDER"         etcd, kube-apiserver and controllers of a folder
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from chaos.planes import Plane
from drain_trials.ways import WAYS, Outcome
from drain_trials.world import World
from e2e.conftest import define
from e2e.operator_process import Operator
from e2e.scene import Scene
from e2e.speaker import speaking
from roadstead import processes

#: Seconds that a pod takes from being bound to ready, as images and applications do.
START_S = 3.0

#: Seconds between two kills of the operator.
BETWEEN_S = (1.0, 9.0)

#: Controllers of a real control plane that the workloads need in addition to those of chaos.
FURTHER = ("statefulset-controller", "endpointslice-controller")


def main() -> int:
    """Read the command line and try each way; the exit status is 1 if ours left a service short."""
    parser = argparse.ArgumentParser(prog="drain_trials", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ways", nargs="*", default=[*WAYS], choices=[*WAYS])
    parser.add_argument("--nodes", type=int, default=12, help="to empty; as many new ones are there")
    parser.add_argument("--max-concurrent", type=int, default=3)
    parser.add_argument("--kills", type=int, default=0, help="of the operator, while it works")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--within", type=float, default=600.0, help="seconds for each way")
    parser.add_argument("--programs", type=Path, help="of a control plane to start: kube-apiserver and so on")
    chosen = parser.parse_args()
    found = {way: asyncio.run(tried(way, chosen)) for way in chosen.ways}
    heads = ("way", "nodes", "short", "below", "pods", "gang", "wall s", "kills")
    print("\n{:14} {:>5} {:>10} {:>10} {:>5} {:>6} {:>7} {:>5}".format(*heads))
    print("short: pod seconds below the wanted replicas; below: those below the budget, or without a service")
    for way, one in found.items():
        print(one.row(way))
    ours = found.get("ours")
    return int(ours is not None and bool(ours.faults()))


@dataclass(slots=True)
class Killer:
    """Kills the operator again and again while it works, and starts it again."""

    scene: Scene
    operator: Operator
    random: random.Random
    most: int
    done: int = 0

    async def work(self) -> None:
        """Kill as often as asked for, at random moments, each time when it leads."""
        while self.done < self.most:
            await asyncio.sleep(self.random.uniform(*BETWEEN_S))
            await self.scene.crash(self.operator)
            self.done += 1
            await asyncio.to_thread(self.operator.start().until_ready)


async def tried(way: str, chosen: argparse.Namespace) -> Outcome:
    """One way on a cluster of its own."""
    folder = Path(tempfile.mkdtemp(prefix="draining-"))
    async with AsyncExitStack() as stack:
        if chosen.programs is not None:
            from chaos.control_planes import CONTROLLERS, control_plane  # noqa: PLC0415 - benchmarks have it

            plane = await stack.enter_async_context(
                control_plane(chosen.programs, folder, (*CONTROLLERS, *FURTHER))
            )
        else:
            plane = Plane(stack.enter_context(processes.running(folder, nodes=0)).kubeconfig)
        speaker = await stack.enter_async_context(speaking(plane.kubeconfig))
        await define(speaker)
        operator = Operator(plane.kubeconfig, folder / "operator.log")
        stack.callback(operator.kill)
        await asyncio.to_thread(operator.start().until_ready)
        scene = await Scene(speaker, start_s=START_S).begin()
        world = World(scene)
        await world.make(chosen.nodes)
        for work in (world.watch(), world.load()):
            speaker.begin(work)
        killer = Killer(scene, operator, random.Random(chosen.seed), chosen.kills if way == "ours" else 0)
        kills = asyncio.create_task(killer.work())
        began = time.monotonic()
        outcome = await WAYS[way](world, plane.kubeconfig, chosen.max_concurrent, chosen.within)
        outcome.wall_s = time.monotonic() - began
        kills.cancel()
        with suppress(asyncio.CancelledError):
            await kills
        outcome.kills = killer.done
        print(f"{way}: {outcome.told}; log of the operator: {folder / 'operator.log'}", flush=True)
        if not outcome.faults():
            shutil.rmtree(folder, ignore_errors=True)
        return outcome


if __name__ == "__main__":
    sys.exit(main())
