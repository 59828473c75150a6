"""Measures ``plimsoll run`` in clusters of growing size: start, first run, a wave of pods, pod events.

    python benchmarks/scale.py [--sizes 1000x20000,5000x100000,50000x500000] [--seconds 30]

For each size, ``synthetic_cluster.py`` serves it over TLS in a process of its own, and the operator runs as
users run it, with a policy that schedules and predicts moves by six strategies. Each row has CPU seconds and
memory by /proc: until the first of 100 waiting pods is bound; when the first rebalancing run is over; while
2,000 pods are placed, a pod's CPU, first of forty owners one after the other, then of fifty that take turns;
while ``--rate`` pod events a second arrive, as a share of one core, with those that the server really sent.
Memory is resident, the peak so far, and at the end. An operator that finds no lease lists twice; with
``--restart`` it finds one that was given back, and lists once. With ``--churn`` the events go on for so many
seconds, in which every fifth one has begun or ended a pod; a line a minute says what the operator's memory is
then. All processes end with this one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import yaml
from child_processes import cpu_s, process
from output import append

SERVER = Path(__file__).with_name("synthetic_cluster.py")
HEAD = (
    "| Nodes | Pods | First binding: CPU s | wall s | peak MiB | First run: CPU s | peak MiB"
    " | A pod of a rollout, CPU ms | of a wave | pods/s | Events: cores | sent a second | peak MiB"
    " | at the end, MiB | load |"
)


@dataclass(slots=True)
class Growth:
    """What one size cost.

    Attributes:
        sent_per_s: Pod events a second that the server has sent.
        churn_mib: Resident memory, minute by minute.
    """

    nodes: int
    pods: int
    first_cpu_s: float = 0.0
    first_s: float = 0.0
    first_mib: float = 0.0
    run_cpu_s: float = 0.0
    run_mib: float = 0.0
    rollout_ms: float = 0.0
    wave_ms: float = 0.0
    wave_per_s: float = 0.0
    cores: float = 0.0
    sent_per_s: float = 0.0
    churn_mib: list[float] = field(default_factory=list)
    peak_mib: float = 0.0
    end_mib: float = 0.0

    def row(self) -> str:
        """A line of the table."""
        return (
            f"| {self.nodes:,} | {self.pods:,} | {self.first_cpu_s:.1f} | {self.first_s:.0f}"
            f" | {self.first_mib:.0f} | {self.run_cpu_s:.1f} | {self.run_mib:.0f} | {self.rollout_ms:.2f}"
            f" | {self.wave_ms:.2f}"
            f" | {self.wave_per_s:.0f} | {self.cores:.2f} | {self.sent_per_s:.0f}"
            f" | {self.peak_mib:.0f} | {self.end_mib:.0f}"
            f" | {os.getloadavg()[0]:.0f} |"
        )


class Weighed:
    """A process, weighed by what the kernel says of it (Linux)."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log = log

    def cpu_s(self) -> float:
        """CPU seconds until now, with those of children that have ended: plans are made in forks."""
        return sum(cpu_s(self.process.pid))

    def mib(self, field: str = "VmHWM") -> float:
        """Resident memory: the peak, or the present (``VmRSS``)."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(field)), 0.0)

    def check(self) -> None:
        """It still runs."""
        if self.process.poll() is not None:
            raise SystemExit(f"{self.process.args!r} has ended:\n{self.log.read_text()[-3000:]}")


@contextmanager
def weighed(log: Path, *command: str) -> Iterator[Weighed]:
    """A process that ends with the block."""
    with process(*command, log=log) as one:
        yield Weighed(one, log)


class SyntheticServer:
    """The server's side: what it has seen, and what it shall do."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        self._url: str = config["clusters"][0]["cluster"]["server"]
        self._token: str = config["users"][0]["user"]["token"]
        self._seen = kubeconfig.with_suffix(".seen")
        self._tls = ssl.create_default_context()
        self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE

    def seen(self, what: str) -> list[str]:
        """What followed this word, in order."""
        lines = self._seen.read_text(encoding="utf-8").splitlines() if self._seen.exists() else []
        return [line.partition(" ")[2] for line in lines if line.startswith(what + " ")]

    def bound(self) -> int:
        """Pods that were bound."""
        return int((self.seen("bound") or ["0"])[-1])

    def sent(self) -> int:
        """Pod events that were sent."""
        return sum(map(int, self.seen("sent")))

    def do(self, action: str) -> None:
        """Ask for a change."""
        request = urllib.request.Request(  # noqa: S310 - loopback
            f"{self._url}/synthetic/{action}", b"", {"Authorization": f"Bearer {self._token}"}, method="POST"
        )
        with urllib.request.urlopen(request, context=self._tls, timeout=600):  # noqa: S310
            pass


def wait_for(processes: tuple[Weighed, ...], found: Path | None, patience_s: float) -> None:
    """Until a file is there."""
    until = time.monotonic() + patience_s
    while found is not None and not found.exists():
        for each in processes:
            each.check()
        if time.monotonic() > until:
            raise SystemExit(f"{found.name} was not written in {patience_s:.0f} s")
        time.sleep(0.02)


def measure(found: Growth, chosen: argparse.Namespace, folder: Path) -> None:
    """Start server and operator, and weigh the operator."""
    file = folder / f"{found.nodes}.kubeconfig"
    size = ["--nodes", str(found.nodes), "--pods", str(found.pods), "--wave", str(chosen.wave)]
    size += ["--restart"] if chosen.restart else []
    with weighed(folder / "server.log", sys.executable, str(SERVER), str(file), *size) as server:
        wait_for((server,), file, chosen.patience)
        command = ("-m", "plimsoll", "run", "--kubeconfig", str(file), "--bind-address", "127.0.0.1")
        ports = ("--metrics-port", "0", "--health-port", "0", "--log-format", "text")
        # Both share the machine: a lease that is lost for want of a processor would end the measurement.
        lease = ("--leader-elect-lease-duration", "600s", "--leader-elect-renew-deadline", "590s")
        began = time.monotonic()
        with weighed(folder / "operator.log", sys.executable, *command, *ports, *lease) as operator:
            both, seen = (server, operator), SyntheticServer(file)
            wait_for(both, file.with_suffix(".seen"), chosen.patience)
            while not seen.bound():
                operator.check()
                time.sleep(0.02)
            found.first_cpu_s, found.first_mib = operator.cpu_s(), operator.mib()
            found.first_s = time.monotonic() - began
            until = time.monotonic() + chosen.patience
            while not any(is_over(json.loads(each)) for each in seen.seen("ran")):
                operator.check()
                if time.monotonic() > until:
                    break
                time.sleep(0.1)
            found.run_cpu_s, found.run_mib = operator.cpu_s(), operator.mib()
            time.sleep(5)
            found.rollout_ms, _ = wave("rollout", operator, seen, chosen)
            found.wave_ms, found.wave_per_s = wave("pods", operator, seen, chosen)
            time.sleep(5)
            seen.do(f"events/{chosen.rate}")
            time.sleep(2)
            cpu_s, at, sent = operator.cpu_s(), time.monotonic(), seen.sent()
            time.sleep(chosen.seconds)
            took_s = time.monotonic() - at
            found.cores = (operator.cpu_s() - cpu_s) / took_s
            found.sent_per_s = (seen.sent() - sent) / took_s
            churn(found, operator, seen, chosen.churn)
            seen.do("events/0")
            found.peak_mib, found.end_mib = operator.mib(), operator.mib("VmRSS")
            operator.check()


def churn(found: Growth, operator: Weighed, seen: SyntheticServer, seconds: float) -> None:
    """Let the events go on, and say each minute what memory the operator has."""
    began = time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        time.sleep(min(60.0, seconds - passed))
        operator.check()
        found.churn_mib.append(operator.mib("VmRSS"))
        print(
            f"churn, {time.monotonic() - began:.0f} s: {found.churn_mib[-1]:.0f} MiB, {seen.sent():,} events",
            flush=True,
        )


def is_over(status: dict[str, object]) -> bool:
    """Whether the status has the end of a run."""
    return bool(status.get("message"))


def wave(
    action: str, operator: Weighed, seen: SyntheticServer, chosen: argparse.Namespace
) -> tuple[float, float]:
    """A wave of pods: CPU ms a pod, and pods a second by the wall (of server and operator together)."""
    wanted = seen.bound() // 100 * 100 + chosen.wave
    cpu_s, at = operator.cpu_s(), time.monotonic()
    seen.do(action)
    until = at + chosen.patience
    while seen.bound() < wanted and time.monotonic() < until:
        operator.check()
        time.sleep(0.02)
    took_s = time.monotonic() - at
    time.sleep(3)  # the events of the last bindings
    return (operator.cpu_s() - cpu_s) / chosen.wave * 1000, chosen.wave / took_s


def main() -> None:
    """Read the command line and measure size by size."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--sizes", default="1000x20000,5000x100000", help="nodes x pods, comma-separated")
    parser.add_argument("--seconds", type=float, default=30.0, help="of pod events")
    parser.add_argument("--rate", type=int, default=500, choices=(100, 500, 1000, 2000))
    parser.add_argument("--churn", type=float, default=0.0, help="seconds for which the events go on")
    parser.add_argument("--wave", type=int, default=2000)
    parser.add_argument("--patience", type=float, default=600.0, help="seconds for each step, at most")
    parser.add_argument("--restart", action="store_true", help="begin where an operator has ended before")
    parser.add_argument("--logs", type=Path, help="keep the logs in this folder")
    parser.add_argument("--output", type=Path, help="append each row as a line of JSON")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all processes end with this one
    print(HEAD)
    print("|" + " ---: |" * 15, flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.logs or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for size in chosen.sizes.split(","):
            nodes, _, pods = size.partition("x")
            for old in folder.glob(f"{nodes}.*"):
                old.unlink()
            growth = Growth(int(nodes), int(pods))
            try:
                measure(growth, chosen, folder)
            finally:  # what was measured before something broke
                print(growth.row(), flush=True)
            append(chosen.output, **asdict(growth))
    print(f"\n{os.cpu_count()} CPUs, Python {platform.python_version()}, {chosen.rate} pod events a second")


if __name__ == "__main__":
    main()
