"""Plays situations of groups on a real API server, with kube-scheduler and with Plimsoll in turn.

make group-scenarios                                            Plimsoll alone, development cluster
make group-scenarios KUBE=FOLDER                                prints the table
make group-scenarios KUBE=FOLDER PAGE=docs/groups-side-by-side.md  and writes it
make group-scenarios KUBE=FOLDER ARGS="--focus preempts --only Plimsoll"
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from e2e.scene import Scene
from e2e.speaker import speaking
from group_scenarios.situations import SITUATIONS
from group_scenarios.steps import PRIORITIES, Situation, class_of, outcome
from group_scenarios.table import COLUMNS, table, with_table
from roadstead import processes
from upstream_suite.kubernetes import plimsoll
from upstream_suite.stage import Stage, stage

GATES = ",".join(
    f"{gate}=true"
    for gate in (
        "GenericWorkload",
        "GangScheduling",
        "TopologyAwareWorkloadScheduling",
        "WorkloadAwarePreemption",
    )
)
OPTIONS = (f"--feature-gates={GATES}", "--runtime-config=scheduling.k8s.io/v1alpha2=true")

#: Situations that are played concurrently; each has nodes of its own.
CONCURRENT = 4

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


@asynccontextmanager
async def kube_scheduler(made: Stage) -> AsyncIterator[None]:
    """Kubernetes' own scheduler with the gates on."""
    async with made.kube_scheduler(None, f"--feature-gates={GATES}"):
        yield


SCHEDULERS = dict(zip(COLUMNS, (kube_scheduler, plimsoll), strict=True))


@asynccontextmanager
async def development_stage(folder: Path) -> AsyncIterator[Stage]:
    """The development cluster, without nodes."""
    with processes.running(folder, nodes=0, pod_groups=True) as cluster:
        async with speaking(cluster.kubeconfig) as speaker:
            yield Stage(folder, folder, folder, cluster.kubeconfig, speaker)


async def played(
    programs: Path | None, scheduler: str, chosen: Iterable[Situation], folder: Path
) -> dict[str, str]:
    """The outcome of each situation, by title, with one scheduler on a control plane of its own."""
    found: dict[str, str] = {}
    places = asyncio.Semaphore(CONCURRENT)

    async def one(made: Stage, situation: Situation) -> None:
        async with places:
            scene = await Scene(made.speaker).begin()
            try:
                found[situation.title] = await outcome(scene, situation)
            finally:
                await scene.end()
        print(f"{scheduler}: {situation.title}: {found[situation.title] or 'as told'}", flush=True)

    plane = development_stage(folder) if programs is None else stage(programs, programs, folder, OPTIONS)
    async with plane as made, AsyncExitStack() as stack:
        for value in PRIORITIES:
            kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": value}
            document = {**kind, "metadata": {"name": class_of(value)}}
            (await made.speaker.request("POST", CLASSES, document)).accepted()
        await stack.enter_async_context(SCHEDULERS[scheduler](made))
        await asyncio.gather(*(one(made, each) for each in chosen))
    return found


def main() -> int:
    """Play, print the table, and write it; 0 when all goes as told."""
    parser = argparse.ArgumentParser(
        prog="make group-scenarios", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("programs", type=Path, nargs="?", help="folder of etcd, kube-apiserver and so on")
    parser.add_argument("--focus", default="", help="only situations whose titles match an expression")
    parser.add_argument("--only", choices=[*SCHEDULERS], help="only this column")
    parser.add_argument("--page", type=Path, help="a page on which the table is written")
    asked = parser.parse_args()
    chosen = {
        part: kept
        for part, all_of_it in SITUATIONS.items()
        if (kept := tuple(each for each in all_of_it if re.search(asked.focus, each.title)))
    }
    folder = Path(tempfile.mkdtemp(prefix="plimsoll-group-scenarios-"))
    print(f"logs are in {folder}", flush=True)
    results: dict[str, dict[str, str]] = {}
    names = [asked.only] if asked.only else [*SCHEDULERS] if asked.programs else ["Plimsoll"]
    for name in names:
        (own := folder / name).mkdir()
        every = [each for part in chosen.values() for each in part]
        results[name] = asyncio.run(played(asked.programs and asked.programs.resolve(), name, every, own))
    print(f"\n{(text := table(chosen, results))}")
    if asked.page:
        page = asked.page.read_text(encoding="utf-8")
        asked.page.write_text(with_table(page, text), encoding="utf-8")
    return int(any(found for result in results.values() for found in result.values()))


if __name__ == "__main__":
    sys.exit(main())
