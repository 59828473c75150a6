"""Runs specs of Kubernetes' end-to-end suite with kube-scheduler and with Plimsoll, and compares the results.

make upstream-e2e KUBE=FOLDER                          both schedulers, one after the other
make upstream-e2e KUBE=FOLDER ARGS="--focus Preempt"   only specs whose names match
make upstream-e2e KUBE=FOLDER PAGE=docs/upstream-e2e.md  write the results on the page, too
make upstream-e2e KUBE=FOLDER ARGS="--judge FOLDER"  compare the reports of earlier runs once more
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from control_plane import program

from chaos.control_planes import control_plane
from chaos.planes import end
from chaos.world import NODES, POLICIES
from e2e.conftest import define
from e2e.kubelet import Kubelets
from e2e.operator_process import Operator
from e2e.speaker import Speaker, speaking
from roadstead.kubelets.nodes import make_node
from upstream_suite.results import BrokenSuiteError, Comparison, failures, read
from upstream_suite.specs import FOCUS, LEFT_OUT

#: The nodes, which are in two zones; some specs want fewer than seven.
ZONES = {"node-1": "a", "node-2": "b", "node-3": "a", "node-4": "b"}

#: The scheduler name that pods of the suite have.
POLICY = {
    "apiVersion": "plimsoll.dev/v1alpha1",
    "kind": "SchedulingPolicy",
    "metadata": {"name": "default"},
    "spec": {"scheduling": {"schedulerName": "default-scheduler"}},
}

#: The longest that the suite may take with one scheduler.
LIMIT = "90m"

#: The files that a run leaves for the comparison: the suite's, and the API server's version.
REPORT, VERSION = "junit_01.xml", "version"


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """What is run.

    Attributes:
        programs: Folder of etcd, kube-apiserver, kube-controller-manager, kube-scheduler, e2e.test.
        folder: For data, logs and reports; each scheduler has one of its own in it.
        focus: Regular expressions of the specs' names.
    """

    programs: Path
    folder: Path
    focus: Sequence[str]

    async def with_scheduler(self, name: str) -> None:
        """Write the report of the suite with one scheduler, and the version of the API server."""
        folder = self.folder / name
        folder.mkdir()
        task = asyncio.current_task()
        assert task is not None
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        async with (
            control_plane(self.programs, folder, controllers=("*",)) as plane,
            speaking(plane.kubeconfig) as speaker,
        ):
            kubelets = Kubelets(speaker, "")
            for node, zone in ZONES.items():
                made = await speaker.request("POST", NODES, make_node(node, zone=f"zone-{zone}"))
                made.accepted()
                await kubelets.register(node)
            speaker.begin(kubelets.play())
            async with SCHEDULERS[name](self.programs, plane.kubeconfig, folder, speaker):
                await self._suite(plane.kubeconfig, folder)
            version = (await speaker.request("GET", "/version")).accepted()["gitVersion"]
        (folder / VERSION).write_text(version.removeprefix("v"), encoding="utf-8")

    async def _suite(self, kubeconfig: Path, folder: Path) -> None:
        """Run it; what its specs make of the scheduler is in its report."""
        command = [
            program(self.programs, "e2e.test"),
            f"--kubeconfig={kubeconfig}",
            f"--kubectl-path={program(self.programs, 'kubectl')}",
            f"--report-dir={folder}",
            "--provider=skeleton",
            "--dump-logs-on-failure=false",
            f"--ginkgo.timeout={LIMIT}",
            "--ginkgo.seed=1",
            "--ginkgo.no-color",
            *(f"--ginkgo.focus={each}" for each in self.focus),
            *(f"--ginkgo.skip={each}" for each in LEFT_OUT),
        ]
        with (folder / "e2e.log").open("wb") as sink:
            suite = subprocess.Popen(command, cwd=folder, stdout=sink, stderr=subprocess.STDOUT)
        try:
            await asyncio.to_thread(suite.wait)
        finally:
            end(suite)


@asynccontextmanager
async def kube_scheduler(programs: Path, kubeconfig: Path, folder: Path, _: Speaker) -> AsyncIterator[None]:
    """Kubernetes' own scheduler, as it is without a configuration."""
    command = [program(programs, "kube-scheduler"), f"--kubeconfig={kubeconfig}", "--leader-elect=false"]
    with (folder / "kube-scheduler.log").open("wb") as sink:
        scheduler = subprocess.Popen([*command, "--secure-port=0"], stdout=sink, stderr=subprocess.STDOUT)
    try:
        yield
    finally:
        end(scheduler)


@asynccontextmanager
async def plimsoll(_: Path, kubeconfig: Path, folder: Path, speaker: Speaker) -> AsyncIterator[None]:
    """The operator of this checkout, with a policy that serves ``default-scheduler`` and moves nothing."""
    await define(speaker)
    await speaker.install(POLICIES, POLICY)
    log = folder / "plimsoll.log"
    endpoints = Operator(kubeconfig, log)
    command = [sys.executable, "-m", "plimsoll", "run", "--kubeconfig", str(kubeconfig)]
    command += ["--bind-address", "127.0.0.1", "--log-format", "text"]
    command += ["--metrics-port", str(endpoints.metrics_port), "--health-port", str(endpoints.health_port)]
    with log.open("wb") as sink:
        operator = subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT)
    try:
        await asyncio.to_thread(endpoints.until_ready)
        yield
    finally:
        end(operator)


#: By the names of the table's columns; the first is the reference.
SCHEDULERS: dict[str, Callable[[Path, Path, Path, Speaker], AbstractAsyncContextManager[None]]] = {
    "kube-scheduler": kube_scheduler,
    "Plimsoll": plimsoll,
}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    one = argparse.ArgumentParser(prog="make upstream-e2e", description=(__doc__ or "").partition("\n")[0])
    one.add_argument("programs", type=Path, help="folder of etcd, kube-apiserver, ... and e2e.test")
    one.add_argument("--focus", action="append", help="only specs whose names match a regular expression")
    one.add_argument("--only", choices=SCHEDULERS, action="append", help="only this scheduler")
    one.add_argument("--folder", type=Path, help="where data, logs and reports go")
    one.add_argument(
        "--judge", type=Path, metavar="FOLDER", help="compare the reports in it, and run nothing"
    )
    one.add_argument("--page", type=Path, help="a page whose section of this version is written")
    return one


def compared(folder: Path, names: Sequence[str]) -> Comparison:
    """The results that runs with some schedulers left in a folder; prints why specs fail.

    Raises:
        BrokenSuiteError: A run left no report.
    """
    runs, version = {}, ""
    for name in names:
        try:
            report = (folder / name / REPORT).read_text(encoding="utf-8")
            version = (folder / name / VERSION).read_text(encoding="utf-8")
        except FileNotFoundError as exc:
            log = folder / name / "e2e.log"
            raise BrokenSuiteError(f"the suite left no {exc.filename}: {log}") from None
        runs[name] = read(report)
        for spec, message in failures(report).items():
            print(f"{name} fails: {spec}: {message}", flush=True)
    return Comparison(version, runs)


def main() -> int:
    """Run and compare; 0 when each spec that passes with kube-scheduler passes with Plimsoll."""
    chosen = parser().parse_args()
    names = chosen.only or list(SCHEDULERS)
    folder = chosen.judge or chosen.folder or Path(tempfile.mkdtemp(prefix="plimsoll-upstream-e2e-"))
    if not chosen.judge:
        folder.mkdir(parents=True, exist_ok=chosen.folder is None)
        run = SuiteRun(chosen.programs.resolve(), folder.resolve(), chosen.focus or FOCUS)
        for name in names:
            print(f"the suite runs with {name}: {folder / name / 'e2e.log'}", flush=True)
            asyncio.run(run.with_scheduler(name))
    comparison = compared(folder, names)
    print(f"\n{comparison.table()}\n\n{comparison.summary()}")
    if chosen.page:
        chosen.page.write_text(comparison.on_page(chosen.page.read_text(encoding="utf-8")), encoding="utf-8")
    for spec in comparison.worse:
        print(f"passes with kube-scheduler only: {spec}")
    return int(bool(comparison.worse))


if __name__ == "__main__":
    sys.exit(main())
