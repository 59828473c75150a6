"""Schedulers as processes: started, weighed by what the kernel says of them, and ended by their pid."""

import os
import re
import shlex
import ssl
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import yaml
from child_processes import cpu_s, free_port
from control_plane import program


@dataclass(frozen=True, slots=True)
class Contestant:
    """A scheduler to measure.

    Attributes:
        label: In the table.
        scheduler_name: Of the pods that it serves.
        command: Starts it, in the foreground; ended with SIGTERM.
        environment: Variables that it has besides those of the benchmark.
        metrics: Where its metrics are read; "" if it is not known.
    """

    label: str
    scheduler_name: str
    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    metrics: str = ""


def ours(kubeconfig: Path, scheduler_name: str, variant: str = "plimsoll") -> Contestant:
    """``plimsoll run``; a variant is a label, and after a colon variables: ``before:PYTHONPATH=FOLDER``."""
    command: tuple[str, ...] = (sys.executable, "-m", "plimsoll", "run", "--kubeconfig", str(kubeconfig))
    port = free_port()
    command += ("--metrics-port", str(port), "--health-port", "0", "--bind-address", "127.0.0.1")
    label, _, settings = variant.partition(":")
    pairs = (setting.partition("=") for setting in shlex.split(settings))
    environment = tuple((name, value) for name, _, value in pairs)
    return Contestant(label, scheduler_name, command, environment, f"http://127.0.0.1:{port}/metrics")


def another(command: str, scheduler_name: str) -> Contestant:
    """A scheduler by its command line."""
    words = tuple(shlex.split(command))
    return Contestant(Path(words[0]).stem, scheduler_name, words)


def kube_scheduler(programs: Path, kubeconfig: Path, folder: Path) -> Contestant:
    """kube-scheduler with its defaults, but for its own limit of requests a second."""
    configuration = folder / "kube-scheduler.yaml"
    configuration.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 10000},
                "leaderElection": {"leaderElect": False},
            }
        )
    )
    port = free_port()
    command = (
        program(programs, "kube-scheduler"),
        f"--config={configuration}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder}",
        "--authorization-always-allow-paths=/metrics",
    )
    return Contestant(
        "kube-scheduler", "default-scheduler", command, metrics=f"https://127.0.0.1:{port}/metrics"
    )


#: A line of both schedulers' metrics: requests to the API server that write.
WRITES = re.compile(
    r'^(?:plimsoll_)?rest_client_requests_total{[^}]*method="(?:DELETE|PATCH|POST|PUT)"[^}]*} (\S+)$',
    re.MULTILINE,
)


class Running:
    """A contestant's process."""

    def __init__(self, contestant: Contestant, log: Path) -> None:
        self.contestant = contestant
        self._log = log
        with log.open("wb") as sink:
            self._process = subprocess.Popen(  # noqa: S603 - what the user asked for
                contestant.command,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env={**os.environ, **dict(contestant.environment)},
            )

    def cpu_s(self) -> float:
        """CPU seconds of the process and its children, ended ones included: plans are made in forks."""
        return sum(sum(cpu_s(pid)) for pid in self._pids())

    def peak_mib(self) -> float:
        """The most memory that was resident, MiB, children included."""
        return sum(self._peak_kib(pid) for pid in self._pids()) / 1024

    def writes(self) -> int | None:
        """The number of requests to the API server that write, so far; None if it does not tell."""
        if not self.contestant.metrics:
            return None
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE  # a certificate of its own, on loopback
        with urllib.request.urlopen(self.contestant.metrics, context=tls, timeout=30) as page:  # noqa: S310
            return int(sum(map(float, WRITES.findall(page.read().decode()))))

    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def said(self) -> str:
        """The end of its log."""
        return self._log.read_text(errors="replace")[-3000:]

    def signal(self, number: int) -> None:
        """Send it a signal, such as SIGSTOP."""
        self._process.send_signal(number)

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _pids(self) -> list[int]:
        found = [self._process.pid]
        for pid in found:
            try:
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            except OSError:
                continue
            found += [int(child) for child in children]
        return found

    @staticmethod
    def _peak_kib(pid: int) -> int:
        try:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        except OSError:
            return 0
        return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)
