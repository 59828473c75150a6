"""CPU time of each command's start, in multiples of a bare interpreter's (make bench-starts).

Each command runs several times in turn with ``python -c pass``, and the least CPU of each counts: other work
on the machine only adds. A small cluster, in a process of its own, answers over TLS. The operator is measured
until its first watch arrives, which a server of this process notes.
"""

from __future__ import annotations

import contextlib
import http.server
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
from pathlib import Path
from typing import Any

import yaml

from roadstead.clients import RunningCluster

#: Runs of each command.
TURNS = 7

#: Nodes and pods of the cluster.
NODES, PODS = 5, 10

BIN = Path(sysconfig.get_path("scripts"))
BARE = (sys.executable, "-c", "pass")


def cpu_of(command: tuple[str, ...]) -> float:
    """The CPU seconds of a process, from its start to its end."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 - ours
    _, _, usage = os.wait4(process.pid, 0)
    return usage.ru_utime + usage.ru_stime


class FirstWatch(http.server.BaseHTTPRequestHandler):
    """Refuses each request, and ends the operator at the first watch."""

    protocol_version = "HTTP/1.1"
    arrived: threading.Event

    def do_GET(self) -> None:
        """Look for a watch; say that there is nothing, which a new cluster might."""
        if "watch=" in self.path:
            self.arrived.set()
        with contextlib.suppress(OSError):  # the operator has been ended
            self.send_error(404)

    do_POST = do_PUT = do_PATCH = do_GET  # noqa: N815 - likewise

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def cpu_until_watch(folder: Path) -> float:
    """The CPU seconds of ``plimsoll run`` until its first watch arrives."""

    class Handler(FirstWatch):
        arrived = threading.Event()

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = folder / "operator"
        cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
        context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
        user = {"name": "u", "user": {"token": "t"}}
        content = {"current-context": "c", "clusters": [cluster], "contexts": [context], "users": [user]}
        place.write_text(yaml.safe_dump(content), encoding="utf-8")
        flags = ("--bind-address", "127.0.0.1", "--metrics-port", "0", "--health-port", "0")
        process = subprocess.Popen(  # noqa: S603 - ours
            (str(BIN / "plimsoll"), "run", "--kubeconfig", str(place), *flags), stderr=subprocess.DEVNULL
        )
        try:
            if not Handler.arrived.wait(60):
                raise RuntimeError("the operator has begun no watch within a minute")
            return _cpu_now(process.pid)
        finally:
            process.kill()
            process.wait()
            server.shutdown()


def _cpu_now(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def filled(cluster: RunningCluster) -> None:
    """Install definitions, policies and pods."""
    definitions = subprocess.run(  # noqa: S603 - ours
        (str(BIN / "plimsoll"), "crds"), capture_output=True, check=True
    ).stdout
    policies = subprocess.run(  # noqa: S603 - ours
        (str(BIN / "plimsoll"), "crds", "--examples"), capture_output=True, check=True
    ).stdout
    cluster.apply(*filter(None, yaml.safe_load_all(definitions)))
    named = {"scheduler", "rebalance-dry-run"}
    cluster.apply(
        *(each for each in yaml.safe_load_all(policies) if each and each["metadata"]["name"] in named)
    )
    for number in range(PODS):
        container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
        spec = {"containers": [container], "nodeName": f"node-{number % NODES + 1:04}" if number else ""}
        cluster.apply(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"pod-{number}"}, "spec": spec}
        )


def main() -> None:
    """Print a table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kubeconfig = folder / "kubeconfig"
        server = subprocess.Popen(  # noqa: S603 - ours
            (str(BIN / "roadstead"), "--nodes", str(NODES), "--kubeconfig", str(kubeconfig)),
            stdout=subprocess.PIPE,
        )
        try:
            assert server.stdout is not None
            server.stdout.readline()
            filled(RunningCluster(kubeconfig))
            measure(folder, ("--kubeconfig", str(kubeconfig)))
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()


def measure(folder: Path, there: tuple[str, ...]) -> None:
    """Measure all commands in turn."""
    plimsoll = str(BIN / "plimsoll")
    commands = {
        "version": (plimsoll, "version"),
        "--help": (plimsoll, "--help"),
        "explain pod --help": (plimsoll, "explain", "pod", "--help"),
        "explain pod --no-such-flag": (plimsoll, "explain", "pod", "--no-such-flag"),
        "crds": (plimsoll, "crds"),
        "explain pod, pending": (plimsoll, "explain", "pod", "pod-0", *there),
        "explain pod, placed": (plimsoll, "explain", "pod", "pod-1", *there),
        "plan": (plimsoll, "plan", *there),
        "roadstead --version": (str(BIN / "roadstead"), "--version"),
    }
    least: dict[str, float] = {}
    bare = float("inf")
    for _ in range(TURNS):
        bare = min(bare, cpu_of(BARE))
        for name, command in commands.items():
            least[name] = min(least.get(name, float("inf")), cpu_of(command))
        name = "run, until its first watch"
        least[name] = min(least.get(name, float("inf")), cpu_until_watch(folder))
    print(f"{'':28} CPU ms   times the bare interpreter ({bare * 1000:.1f} ms)")
    for name, seconds in least.items():
        print(f"{name:28} {seconds * 1000:6.0f} {seconds / bare:8.1f}")


if __name__ == "__main__":
    main()
