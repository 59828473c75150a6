"""Runs ``plimsoll`` and ``roadstead`` in processes that are forked from one that has imported them.

A new interpreter takes more than a second of processor time until it has imported the operator, and the tests
start some two hundred. So each process that runs tests starts this file as a program: the nursery. It imports
the commands once and forks a child for each one that is to run. The child is a process like any other: it
has its own arguments, environment, signals and exit status, and ends as an interpreter does.

The image, the wheel, the demo and the benchmarks are tested with interpreters of their own.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

#: Where the nursery's children live, and what it imports before it has any: also what commands import when
#: they use it, as each child would import it for itself.
ROOT = Path(__file__).parents[1]
PRELOADED = (
    "plimsoll.app.process",
    "plimsoll.app.kopf_front",
    "plimsoll.app.proposal_answers",
    "plimsoll.cli.callers.leader",
    "plimsoll.cli.commands.explain",
    "plimsoll.cli.commands.plan",
    "plimsoll.cli.commands.run",
    "plimsoll.cli.connection",
    "plimsoll.cli.progress",
    "plimsoll.cli.views.explain_pod",
    "plimsoll.cli.views.plan",
    "plimsoll.devices.cel.selectors",
    "plimsoll.inspection.plans.plans",
    "plimsoll.kube.cluster_reader",
    "plimsoll.kube.session.gated_body",
    "plimsoll.planning.optimal.planner",
    "plimsoll.planning.optimal.spread_repair",
    "plimsoll.planning.upstream.planner",
    "plimsoll.scheduling.extenders.client",
    "kubernetes_asyncio.client.api.apps_v1_api",
    "kubernetes_asyncio.client.api.authentication_v1_api",
    "kubernetes_asyncio.client.api.authorization_v1_api",
    "kubernetes_asyncio.client.api.core_v1_api",
    "roadstead.cluster",
)

#: Seconds between two looks at whether a process has ended.
PACE_S = 0.01


class Nursery:
    """Starts processes; one for each process that runs tests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, **request: Any) -> Any:
        """Its answer to one request."""
        with self._lock:
            if self._process is None:
                command = [sys.executable, "-P", __file__]
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
                )
                atexit.register(self._end, self._process)
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        process.communicate()


NURSERY = Nursery()


class Forked:
    """``python -m PROGRAM ARGS``, with the methods of subprocess.Popen that tests need.

    Args:
        program: A module with a command: ``plimsoll``, ``roadstead`` or a server of the tests.
        args: The arguments of the command.
        output: Where its output goes; the errors, too, unless they have a file of their own.
        errors: Where its errors go.
        environment: What differs from the environment of the tests.
    """

    def __init__(
        self,
        program: str,
        *args: str,
        output: Path,
        errors: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.returncode: int | None = None
        output.touch()
        self.pid: int = NURSERY.ask(
            args=[program, *args],
            output=str(output),
            errors=str(errors or output),
            environment={**os.environ, **(environment or {})},
        )

    def poll(self) -> int | None:
        """The exit status, None while it runs; the negative number of the signal that ended it."""
        if self.returncode is None:
            self.returncode = NURSERY.ask(ended=self.pid)
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Wait for the exit status.

        Raises:
            subprocess.TimeoutExpired: It runs on.
        """
        deadline = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("a forked process", timeout)
            time.sleep(PACE_S)
        return status

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


def serve() -> Any:
    """Answer requests until there are no more; return what to run in a child, None in the nursery."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "ended" in request:
            pid, status = os.waitpid(request["ended"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if not answer:
                answers.close()
                return request
        answers.write(json.dumps(answer).encode() + b"\n")
    return None


def become(args: list[str], output: str, errors: str, environment: dict[str, str]) -> None:
    """Turn this process into the one that runs a command."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    opened = [os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT) for path in (output, errors)]
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in zip((nothing, *opened), range(3), strict=True):
        os.dup2(source, target)
        os.close(source)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = args
    sys.path.append(str(ROOT / "tests"))
    runpy.run_module(args[0], run_name="__main__", alter_sys=True)


def build_models() -> None:
    """Build pydantic's models, which are built when they are first used."""
    models = [sys.modules["pydantic"].BaseModel]
    for model in models:
        models += model.__subclasses__()
        if model.__module__.startswith("plimsoll."):
            model.model_rebuild()


if __name__ == "__main__":
    for name in PRELOADED:
        __import__(name)
    build_models()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests
    gc.collect()
    gc.freeze()
    if (wanted := serve()) is not None:
        become(**wanted)
