"""Kubernetes' own end-to-end suite, with a scheduler."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from control_plane import program

from chaos.world import NODES, POLICIES
from e2e.conftest import define
from e2e.kubelet import Kubelets
from roadstead.kubelets.nodes import make_node
from upstream_suite.results import BrokenSuiteError, Run, failures, read
from upstream_suite.specs import FOCUS, LEFT_OUT
from upstream_suite.stage import LOG, Stage, Suite

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

#: The suite's report.
REPORT = "junit_01.xml"


@asynccontextmanager
async def plimsoll(stage: Stage) -> AsyncIterator[None]:
    """The operator with a policy that serves ``default-scheduler`` and moves nothing."""
    await define(stage.speaker)
    await stage.speaker.install(POLICIES, POLICY)
    async with stage.operator():
        yield


#: By the names of the table's columns; the first is the reference.
SCHEDULERS: dict[str, Callable[[Stage], AbstractAsyncContextManager[None]]] = {
    "kube-scheduler": Stage.kube_scheduler,
    "Plimsoll": plimsoll,
}


async def play(stage: Stage, scheduler: str, focus: Sequence[str]) -> str:
    """Run the suite with one scheduler; returns the version of Kubernetes."""
    kubelets = Kubelets(stage.speaker, "")
    for node, zone in ZONES.items():
        (await stage.speaker.request("POST", NODES, make_node(node, zone=f"zone-{zone}"))).accepted()
        await kubelets.register(node)
    stage.speaker.begin(kubelets.play())
    async with SCHEDULERS[scheduler](stage):
        await stage.run(
            program(stage.suite, "e2e.test"),
            f"--kubeconfig={stage.kubeconfig}",
            f"--kubectl-path={program(stage.programs, 'kubectl')}",
            f"--report-dir={stage.folder}",
            "--provider=skeleton",
            "--dump-logs-on-failure=false",
            f"--ginkgo.timeout={LIMIT}",
            "--ginkgo.seed=1",
            "--ginkgo.no-color",
            *(f"--ginkgo.focus={each}" for each in focus or FOCUS),
            *(f"--ginkgo.skip={each}" for each in LEFT_OUT),
        )
    version: str = (await stage.speaker.request("GET", "/version")).accepted()["gitVersion"]
    return version.removeprefix("v")


def judge(folder: Path) -> Run:
    """What a run left in its folder."""
    report = folder / REPORT
    if not report.exists():
        raise BrokenSuiteError(f"the suite left no {report}: {folder / LOG}")
    text = report.read_text(encoding="utf-8")
    return Run(read(text), failures(text))


KUBERNETES = Suite("Kubernetes", SCHEDULERS, play, judge)
