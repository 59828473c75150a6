"""The cluster that a suite of others runs on: a real control plane, and nodes whose kubelets are played."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from control_plane import program

from chaos.control_planes import control_plane
from chaos.planes import end
from e2e.operator_process import Operator
from e2e.speaker import Speaker, speaking
from upstream_suite.results import Run

#: The output of a suite.
LOG = "e2e.log"


@dataclass(frozen=True, slots=True)
class Stage:
    """A cluster of one run.

    Attributes:
        programs: Folder of etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl.
        suite: Folder of the suite's programs.
        folder: For data, logs and reports.
        kubeconfig: Of an administrator.
        speaker: Speaks to the API server.
    """

    programs: Path
    suite: Path
    folder: Path
    kubeconfig: Path
    speaker: Speaker

    async def run(self, *command: str, environment: Mapping[str, str] | None = None) -> None:
        """Run a suite to its end; what it says of its specs is in its log or report."""
        with (self.folder / LOG).open("wb") as sink:
            suite = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**os.environ, **(environment or {})},
                stdout=sink,
                stderr=subprocess.STDOUT,
            )
        try:
            await asyncio.to_thread(suite.wait)
        finally:
            end(suite)

    @asynccontextmanager
    async def process(self, name: str, *command: str) -> AsyncIterator[None]:
        """A program that runs until the block ends; its output is appended to a log of that name."""
        with (self.folder / f"{name}.log").open("ab") as sink:
            started = subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT)
        try:
            yield
        finally:
            await asyncio.to_thread(end, started)

    @asynccontextmanager
    async def kube_scheduler(
        self, profile: Mapping[str, object] | None = None, *options: str
    ) -> AsyncIterator[None]:
        """Kubernetes' own scheduler with one profile, the default one without it, and further options."""
        command = [program(self.programs, "kube-scheduler"), "--secure-port=0", *options]
        if profile is None:
            command += [f"--kubeconfig={self.kubeconfig}", "--leader-elect=false"]
        else:
            written = self.folder / "kube-scheduler.yaml"
            written.write_text(json.dumps(self.configuration(profile)))
            command.append(f"--config={written}")
        async with self.process("kube-scheduler", *command):
            yield

    def configuration(self, profile: Mapping[str, object]) -> dict[str, object]:
        """A KubeSchedulerConfiguration with one profile, for this cluster."""
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(self.kubeconfig)},
            "profiles": [profile],
        }

    @asynccontextmanager
    async def operator(self) -> AsyncIterator[None]:
        """The operator of this checkout, ready."""
        endpoints = Operator(self.kubeconfig, self.folder / "plimsoll.log")
        command = [sys.executable, "-m", "plimsoll", "run", "--kubeconfig", str(self.kubeconfig)]
        command += ["--bind-address", "127.0.0.1", "--log-format", "text"]
        command += ["--metrics-port", str(endpoints.metrics_port)]
        command += ["--health-port", str(endpoints.health_port)]
        async with self.process("plimsoll", *command):
            await asyncio.to_thread(endpoints.until_ready)
            yield


@dataclass(frozen=True, slots=True)
class Suite:
    """Specs of others.

    Attributes:
        title: Whose they are.
        programs: The columns of the table; the first is the reference.
        play: Runs those whose names match any of some expressions, [] for all, with one program; returns
            their version.
        judge: Reads what a run left in its folder.
    """

    title: str
    programs: Collection[str]
    play: Callable[[Stage, str, Sequence[str]], Awaitable[str]]
    judge: Callable[[Path], Run]


@asynccontextmanager
async def stage(
    programs: Path, suite: Path, folder: Path, options: Sequence[str] = ()
) -> AsyncIterator[Stage]:
    """A control plane without nodes; SIGTERM and SIGINT end it in order.

    Args:
        programs: As of :class:`Stage`; likewise ``suite`` and ``folder``.
        suite: Folder of the suite's programs.
        folder: For data, logs and reports.
        options: Further ones of kube-apiserver.
    """
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    async with (
        control_plane(programs, folder, controllers=("*",), options=options) as plane,
        speaking(plane.kubeconfig) as speaker,
    ):
        yield Stage(programs, suite, folder, plane.kubeconfig, speaker)
