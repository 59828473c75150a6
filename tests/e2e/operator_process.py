"""The operator as users run it: ``plimsoll run`` in a process of its own, on ports of its own."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from deploy.container import Container, restricted
from forked import WORKER, Forked

#: Seconds to start, and to end.
READY_S, END_S = 300.0, 120.0

#: Ports of each worker: below those that Linux gives to sockets that ask for any.
LOWEST_PORT, PORTS, WORKERS = 16_000, 1_000, 16
_TURNS = itertools.count(os.getpid())


def free_port() -> int:
    """A port that no process listens on at present, and that the system gives to none that asks for any."""
    worker = int(os.environ.get(WORKER, "0")) % WORKERS
    for turn in itertools.islice(_TURNS, PORTS):
        port = LOWEST_PORT + worker * PORTS + turn % PORTS
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            return port
    raise AssertionError("all ports of this worker are taken")


def optional_path(variable: str) -> Path | None:
    """What a variable of the environment names."""
    return Path(named) if (named := os.environ.get(variable)) else None


def summed(scraped: str, name: str, **labels: str) -> float:
    """The sum of a metric's samples that bear these labels, in one scrape."""
    total = 0.0
    for line in scraped.splitlines():
        if not line.startswith(name):
            continue
        head, _, value = line.rpartition(" ")
        family, _, rest = head.partition("{")
        if family == name and all(f'{key}="{wanted}"' in rest for key, wanted in labels.items()):
            total += float(value)
    return total


@dataclass(slots=True)
class Operator:
    """One ``plimsoll run`` after another, on one cluster."""

    kubeconfig: Path
    log: Path
    metrics_port: int = field(default_factory=free_port)
    health_port: int = field(default_factory=free_port)
    environment: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    #: A module with the operator's command, and what it takes before its arguments.
    program: tuple[str, ...] = ("plimsoll",)
    #: An unpacked image, to run it in place of this checkout: ``PLIMSOLL_E2E_BUNDLE`` names it for all tests.
    bundle: Path | None = field(default_factory=lambda: optional_path("PLIMSOLL_E2E_BUNDLE"))
    #: The command of another installation, which is run in place of this checkout.
    command: Path | None = None
    _process: Forked | Container | subprocess.Popen[bytes] | None = None

    def start(self) -> Operator:
        """Start a process; ``until_ready`` waits for it."""
        args = ["run", "--kubeconfig", str(self.kubeconfig), "--bind-address", "127.0.0.1"]
        args += ["--log-format", "text", "--metrics-port", str(self.metrics_port)]
        args += ["--health-port", str(self.health_port), *self.options]
        if self.command is not None:
            with self.log.open("ab") as sink:
                self._process = subprocess.Popen(
                    [self.command, *args], stdout=sink, stderr=subprocess.STDOUT, env=self._own_environment()
                )
        elif self.bundle is not None:
            with self.log.open("ab") as sink:
                self._process = self._contained(self.bundle, args, sink)
        else:
            self._process = Forked(*self.program, *args, output=self.log, environment=self.environment)
        return self

    def _own_environment(self) -> dict[str, str]:
        """This process's, without the folders from which it imports."""
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return {**kept, **self.environment}

    def _contained(self, bundle: Path, args: list[str], output: IO[bytes]) -> Container:
        """The image as a container, which has the kubeconfig and nothing else of this machine."""
        folder = Path(tempfile.mkdtemp())
        shutil.copy(self.kubeconfig, folder / "kubeconfig")
        (folder / "kubeconfig").chmod(0o644)
        files = {str(self.kubeconfig): folder / "kubeconfig"}
        config = restricted(bundle, files, self.environment, *args)
        return Container(folder / f"plimsoll-{next(_TURNS)}", config, output)

    @property
    def status(self) -> int | None:
        """The exit status, None while it runs."""
        return None if self._process is None else self._process.poll()

    def ask(self, path: str, port: int | None = None) -> tuple[int, str]:
        """Status and body of one of its endpoints; 0 without an answer."""
        url = f"http://127.0.0.1:{port or self.metrics_port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=60) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as exc:
            return exc.code, exc.read().decode()
        except OSError as exc:
            return 0, str(exc)

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that bear these labels, now."""
        return summed(self.ask("/metrics")[1], name, **labels)

    def until_ready(self) -> Operator:
        """Wait for /readyz."""
        deadline = time.monotonic() + READY_S
        while self.ask("/readyz")[0] != 200:
            if self.status is not None or time.monotonic() > deadline:
                raise AssertionError(f"the operator is not ready: {self.said()}")
            time.sleep(0.05)
        return self

    @property
    def leads(self) -> bool:
        """Whether it says that it is the leader."""
        return "leading as" in self.ask("/readyz")[1]

    def signal(self, number: int) -> None:
        """Send it a signal, such as SIGSTOP."""
        assert self._process is not None
        self._process.send_signal(number)

    def said(self) -> str:
        """Its log."""
        return self.log.read_text(errors="replace")

    def kill(self) -> None:
        """End it without a warning, as a machine does that loses power."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(END_S)

    async def stop(self) -> int:
        """End it politely while this event loop runs on: a door in it must pass on the last requests."""
        return await asyncio.to_thread(self.terminate)

    def terminate(self) -> int:
        """End it politely; the exit status."""
        if self._process is None:
            return 0
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"SIGTERM did not end the operator: {self.said()[-4000:]}") from None
