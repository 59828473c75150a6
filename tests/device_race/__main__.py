"""Two schedulers allocate from the same slices, in two processes, and are judged from outside.

make devices-race MINUTES=10    on the development cluster; each operator serves one scheduler name
make devices-race MINUTES=2 ARGS="--planted ignores_rivals"    a planted bug, which must be found
make devices-race KUBECONFIG=file    any test cluster: nodes, with kubelets that are played, are made there
make devices-race KUBECONFIG=file RIVAL=default-scheduler    one operator, against a scheduler that runs there
make devices-race ARGS="--programs FOLDER --rival kube-scheduler"    etcd, kube-apiserver ... of a folder
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import heapq
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random

from chaos.planes import Plane, end
from chaos.sightings import Lookout, Sighting
from device_race.world import GPU, GPUS, NODES, World
from e2e.speaker import Speaker, speaking
from promises.commits import UNKNOWN, Commit, Obj
from promises.devices import (
    CLAIMS,
    DevicePromise,
    allocation_of,
    devices,
    devices_of,
    scheduler_of,
)
from promises.findings import Findings
from promises.pods import is_leaving, node_of
from promises.view import SLICES, View

COLLECTIONS = {
    "nodes": "/api/v1/nodes",
    "pods": "/api/v1/pods",
    CLAIMS: "/apis/resource.k8s.io/v1/resourceclaims",
    SLICES: "/apis/resource.k8s.io/v1/resourceslices",
}

#: Seconds that a commit waits for others of lower version.
SETTLING_S = 3.0

#: Seconds after the churn in which everything must have come to an end, and until operators are ready.
REST_S, READY_S = 40.0, 90.0

#: The schedulers of two operators.
OURS = ("red", "blue")

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


class Referee:
    """Has commits judged in the order of their versions.

    Args:
        others: Schedulers that are not ours.
    """

    def __init__(self, others: frozenset[str]) -> None:
        self.view, self.findings = View(), Findings()
        self.promise = DevicePromise(self.view, self.findings, others)
        self.commits = 0
        self._waiting: list[tuple[int, int, Sighting]] = []
        self._told = 0

    def see(self, sighting: Sighting) -> None:
        """A watch has shown a commit."""
        self.commits += 1
        heapq.heappush(self._waiting, (sighting.version, self.commits, sighting))

    def advance(self, until: float) -> None:
        """Judge what was seen up to a time."""
        while self._waiting and self._waiting[0][2].at <= until:
            _, _, seen = heapq.heappop(self._waiting)
            meta = seen.obj["metadata"]
            before = self.view.find(seen.collection, meta.get("namespace") or "", meta["name"])
            if before is not None and before["metadata"]["uid"] != meta["uid"]:
                before = None
            commit = Commit(seen.collection, seen.type, seen.obj, before, UNKNOWN, seen.at)
            self.view.see(commit)
            self.promise.judge(commit)
        for each in self.findings.violations[self._told :]:
            print(f"VIOLATION {each}", flush=True)
        self._told = len(self.findings.violations)


@dataclass(frozen=True, slots=True)
class RacePlan:
    """What is run.

    Attributes:
        folder: For logs and records.
        seconds: With churn.
        pods: That are there at a time.
        planted: The name of a bug, or "".
        kubeconfig: Of a test cluster; None: the development cluster, or one of ``programs``.
        programs: Folder of a control plane to start.
        rival: The name of another scheduler, for which half of the pods are; "": a second operator's.
    """

    folder: Path
    seed: int
    seconds: float
    pods: int
    planted: str = ""
    kubeconfig: Path | None = None
    programs: Path | None = None
    rival: str = ""

    @property
    def ours(self) -> tuple[str, ...]:
        """The schedulers of our operators, of which each has one."""
        return OURS[:1] if self.rival else OURS


class Race:
    """One run."""

    def __init__(self, plan: RacePlan) -> None:
        self._plan = plan
        self._random = Random(plan.seed)
        self._began = time.monotonic()
        self.referee = Referee(frozenset({plan.rival} - {""}))

    def now(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began

    async def run(self) -> list[str]:
        """From the first object to the verdict: what is wrong."""
        plan, task = self._plan, asyncio.current_task()
        assert task is not None
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        async with AsyncExitStack() as stack:
            plane = await self._plane(stack)
            speaker = await stack.enter_async_context(speaking(plane.kubeconfig))
            schedulers = [*plan.ours, *([plan.rival] if plan.rival else ())]
            world = World(speaker, self._random, plan.pods, schedulers)
            if plane.plays_kubelets:
                stack.push_async_callback(world.clear)
            await world.make(plan.ours, simulates_nodes=not plane.plays_kubelets)
            for name in plan.ours:
                self._start(stack, name, self._operator(plane.kubeconfig, name))
            if plan.rival and plan.programs is not None:
                self._start(stack, plan.rival, self._kube_scheduler(plane.kubeconfig))
            file = stack.enter_context(
                gzip.open(plan.folder / "commits.jsonl.gz", "wt", compresslevel=1)  # noqa: SIM115 - the stack closes it
            )
            lookout = Lookout(speaker, self.now, file, self.referee.see, COLLECTIONS, nodes={})
            await lookout.begin()
            watches = [asyncio.create_task(lookout.watch(each), name=each) for each in COLLECTIONS]
            stack.push_async_callback(_ended, *watches)
            await self._ready(speaker)
            churn = asyncio.create_task(world.churn(), name="churn")
            try:
                await self._pass(plan.seconds, [*watches, churn])
            finally:
                await _ended(churn)
            await self._pass(REST_S, watches)
            self.referee.advance(self.now())
            print(f"{world.created} pods were created, {world.deleted} deleted before their end")
            return [*self.referee.findings.violations, *self.referee.promise.unfinished(), *self._left()]

    async def _plane(self, stack: AsyncExitStack) -> Plane:
        """The cluster: the one that was named, one of given programs, or a development cluster."""
        plan = self._plan
        if plan.kubeconfig is not None:
            return Plane(plan.kubeconfig)
        if plan.programs is not None:
            from chaos.control_planes import control_plane  # noqa: PLC0415 - benchmarks have what it needs

            return await stack.enter_async_context(control_plane(plan.programs, plan.folder))
        kubeconfig = plan.folder / "cluster.kubeconfig"
        kubeconfig.unlink(missing_ok=True)
        command = [sys.executable, "-m", "roadstead", "--kubeconfig", str(kubeconfig), "--nodes", str(NODES)]
        devices = f"count={GPUS},numa=2"
        self._start(stack, "roadstead", [*command, "--devices", devices, "--start-seconds", "0.5"])
        await asyncio.to_thread(_until_there, kubeconfig)
        return Plane(kubeconfig, plays_kubelets=False)

    def _operator(self, kubeconfig: Path, name: str) -> list[str]:
        words = [sys.executable, "-m", "e2e.one_name", name]
        if self._plan.planted:
            words = [sys.executable, "-m", "device_race.planted_operator", self._plan.planted, name]
        words += ["run", "--kubeconfig", str(kubeconfig), "--log-format", "text"]
        words += ["--leader-elect-resource-name", f"plimsoll-{name}"]
        return [*words, "--metrics-port", "0", "--health-port", "0", "--bind-address", "127.0.0.1"]

    def _kube_scheduler(self, kubeconfig: Path) -> list[str]:
        """kube-scheduler of the programs, which serves the rival's pods."""
        from control_plane import program  # noqa: PLC0415 - likewise

        assert self._plan.programs is not None
        configuration = self._plan.folder / "kube-scheduler.yaml"
        connection = {"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 10000}
        configuration.write_text(
            json.dumps(
                {
                    "apiVersion": "kubescheduler.config.k8s.io/v1",
                    "kind": "KubeSchedulerConfiguration",
                    "clientConnection": connection,
                    "leaderElection": {"leaderElect": False},
                    "profiles": [{"schedulerName": self._plan.rival}],
                }
            )
        )
        words = [program(self._plan.programs, "kube-scheduler"), f"--config={configuration}"]
        return [*words, "--secure-port=0"]

    def _start(self, stack: AsyncExitStack, name: str, command: list[str]) -> None:
        log = stack.enter_context((self._plan.folder / f"{name}.log").open("wb"))
        stack.callback(end, subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT))

    async def _ready(self, speaker: Speaker) -> None:
        """Until each operator has its lease."""
        deadline = self.now() + READY_S
        while self.now() < deadline:
            await asyncio.sleep(0.5)
            leases = (await speaker.request("GET", LEASES)).body.get("items") or []
            holders = {
                each["spec"]["holderIdentity"]
                for each in leases
                if each["metadata"]["name"].removeprefix("plimsoll-") in self._plan.ours
                and each["spec"].get("holderIdentity")
            }
            if len(holders) == len(self._plan.ours):
                return
        raise RuntimeError(f"not each operator leads: {self._plan.folder}")

    async def _pass(self, seconds: float, tasks: list[asyncio.Task[None]]) -> None:
        until = self.now() + seconds
        while self.now() < until:
            await asyncio.sleep(0.5)
            self.referee.advance(self.now() - SETTLING_S)
            for task in tasks:
                if task.done():
                    task.result()
                    raise RuntimeError(f"{task.get_name()} has ended")

    def _left(self) -> list[str]:
        """Pods that wait at the end although a node has as many free GPUs as they have claims on one."""
        view = self.referee.view
        pods = [each for each in view.objects("pods") if not is_leaving(each)]
        waiting = [each for each in pods if not node_of(each)]
        print(f"{len(pods) - len(waiting)} pods have a node at the end, {len(waiting)} wait")
        waiting = [each for each in waiting if scheduler_of(each) in self._plan.ours]
        taken = {device for claim in view.objects(CLAIMS) for device in devices_of(allocation_of(claim))}
        free = Counter(
            each["spec"]["nodeName"]
            for each in view.objects(SLICES)
            for device in devices(each)
            if each["spec"]["driver"] == GPU
            and (GPU, each["spec"]["pool"]["name"], device["name"]) not in taken
        )
        most = max(free.values(), default=0)
        modest = [each for each in waiting if 0 < _wants_gpus(each) <= most]
        return [
            f"{each['metadata']['name']} waits although {most} GPUs of a node are free" for each in modest
        ]


def _wants_gpus(pod: Obj) -> int:
    """How many GPUs a pod waits for that takes any; 0 where it waits for something else."""
    claims = [each.get("resourceClaimTemplateName") for each in pod["spec"]["resourceClaims"]]
    return len(claims) if {*claims} <= {"one", "either"} else 0


def _until_there(path: Path) -> None:
    """Wait until a file is written."""
    while not path.exists():
        time.sleep(0.2)


async def _ended(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def main() -> int:
    """Run; 0 when no promise was broken, 1 when one was."""
    parser = argparse.ArgumentParser(prog="make devices-race", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="with churn")
    parser.add_argument("--seed", type=int, help="what is made, and what leaves; random")
    parser.add_argument("--pods", type=int, default=34, help="pods that are there at a time")
    parser.add_argument("--folder", type=Path, help="where logs and records go")
    parser.add_argument("--planted", default="", help="the name of a bug of device_race.planted_operator")
    parser.add_argument("--kubeconfig", type=Path, help="a test cluster; left out: the development cluster")
    parser.add_argument("--programs", type=Path, help="of a control plane to start: kube-apiserver and so on")
    parser.add_argument(
        "--rival",
        default="",
        help="a scheduler that is not ours, by its name: with --programs kube-scheduler is started under it, "
        "else it runs in the cluster; left out: a second operator",
    )
    chosen = parser.parse_args()
    seed = random.randrange(10**6) if chosen.seed is None else chosen.seed
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="plimsoll-race-"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"seed {seed}, logs and records in {folder}", flush=True)
    os.environ["PYTHONUNBUFFERED"] = "1"
    plan = RacePlan(
        folder,
        seed,
        chosen.minutes * 60.0,
        chosen.pods,
        chosen.planted,
        chosen.kubeconfig,
        chosen.programs,
        chosen.rival,
    )
    race = Race(plan)
    wrong = asyncio.run(race.run())
    promise = race.referee.promise
    bound = ", ".join(f"{count:,} by {name}" for name, count in sorted(promise.bound.items()))
    print(
        f"{race.referee.commits:,} commits, pods with claims bound: {bound}; "
        f"{promise.contested} times one device for two claims, {len(wrong)} violations"
    )
    if chosen.rival:
        print(f"{len(promise.theirs)} times a device was in use twice that {chosen.rival} had allocated last")
    for each in wrong:
        print(f"VIOLATION {each}")
    return int(bool(wrong)) if not chosen.planted else int(not wrong)


if __name__ == "__main__":
    sys.exit(main())
