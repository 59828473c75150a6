"""Planes are the clusters that a run is made on: the development cluster, a control plane of ours, or any."""

from __future__ import annotations

import asyncio
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from kubernetes_asyncio import client, config

from chaos.proxy import Upstream

#: Seconds in which a cluster must be there, and a program must have ended after SIGTERM.
START_S, END_S = 120.0, 30.0


@dataclass(slots=True)
class Plane:
    """A cluster that somebody else runs.

    Attributes:
        plays_kubelets: Whether our nodes have kubelets only in this process.
        features: What its world has beyond the ordinary.
        server: The API server's process, if it is ours.
    """

    kubeconfig: Path
    plays_kubelets: bool = True
    features: Sequence[str] = ()
    server: subprocess.Popen[bytes] | None = None

    def signal(self, number: signal.Signals) -> bool:
        """Send the API server a signal, if it is ours."""
        if self.server is None or self.server.poll() is not None:
            return False
        self.server.send_signal(number)
        return True

    async def restart(self, away_s: float) -> bool:
        """Kill the API server and start it again, where its objects outlive it."""
        await asyncio.sleep(away_s * 0)
        return False


@asynccontextmanager
async def development(folder: Path, seed: int, features: Sequence[str]) -> AsyncIterator[Plane]:
    """The development cluster in a process of its own; all its objects are in its memory."""
    path = folder / "cluster.kubeconfig"
    path.unlink(missing_ok=True)
    command = [sys.executable, "-m", "chaos.lively_cluster", "--kubeconfig", str(path)]
    command += ["--seed", str(seed), "--features", *features]
    with (folder / "roadstead.log").open("wb") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + START_S
        while not path.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"roadstead does not start: {folder / 'roadstead.log'}")
            await asyncio.sleep(0.1)
        yield Plane(path, plays_kubelets=False, features=features, server=process)
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a program, by force if it does not end in time."""
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


async def upstream(kubeconfig: Path) -> Upstream:
    """The API server that a kubeconfig names, with its credentials as they are now."""
    found = client.Configuration()
    await config.load_kube_config(str(kubeconfig), client_configuration=found)
    host, tls = str(found.host), None
    if host.startswith("https"):
        tls = ssl.create_default_context(cafile=found.ssl_ca_cert)
        if not found.verify_ssl:
            tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        if found.cert_file:
            tls.load_cert_chain(found.cert_file, found.key_file)
    return Upstream(host, tls, await found.get_api_key_with_prefix("BearerToken") or "")
