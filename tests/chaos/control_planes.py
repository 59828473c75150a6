"""A control plane of ours for runs on sockets: etcd, a kube-apiserver that is killed, and controllers."""

from __future__ import annotations

import asyncio
import secrets
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from child_processes import free_port
from control_plane import admin, program, signing_key, wait_until_ready

from chaos.planes import Plane, end

#: What a cluster cannot do without while nodes and pods come and go.
CONTROLLERS = (
    "namespace-controller",
    "deployment-controller",
    "replicaset-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "pod-garbage-collector-controller",
    "node-lifecycle-controller",
    "taint-eviction-controller",
    "resourceclaim-controller",
)


@dataclass(slots=True)
class OwnPlane(Plane):
    """A control plane whose API server is ours to kill: its objects are in etcd."""

    command: list[str] = field(default_factory=list)
    log: Path = Path()

    def start(self) -> None:
        """Start the API server."""
        with self.log.open("ab") as sink:
            self.server = subprocess.Popen(self.command, stdout=sink, stderr=subprocess.STDOUT)

    async def restart(self, away_s: float) -> bool:
        """Kill the API server, start it again, and wait until it is ready."""
        if self.server is None:
            return False
        self.server.kill()
        self.server.wait()
        await asyncio.sleep(away_s)
        self.start()
        await asyncio.to_thread(wait_until_ready, self.kubeconfig, self.server, self.log)
        return True


@asynccontextmanager
async def control_plane(
    programs: Path, folder: Path, controllers: Sequence[str] = CONTROLLERS, options: Sequence[str] = ()
) -> AsyncIterator[Plane]:
    """Etcd, kube-apiserver and kube-controller-manager on loopback, until the block ends.

    Args:
        programs: Folder with the programs; etcd may be on the PATH.
        folder: For data, certificates and logs.
        controllers: As kube-controller-manager names them; "*" for its default ones.
        options: Further ones of kube-apiserver.
    """
    port, token = free_port(), secrets.token_hex(16)
    etcd, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    (folder / "tokens.csv").write_text(f'{token},admin,admin,"system:masters"\n')
    key = folder / "service-accounts.key"
    key.write_bytes(signing_key())
    certificates = folder / "certificates"
    kubeconfig = folder / "cluster.kubeconfig"
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *options: str) -> None:
        with (folder / f"{name}.log").open("wb") as sink:
            command = [program(programs, name), *options]
            started.append(subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT))

    server = [
        program(programs, "kube-apiserver"),
        f"--etcd-servers={etcd}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--cert-dir={certificates}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--disable-admission-plugins=ServiceAccount",
        *options,
    ]
    plane = OwnPlane(kubeconfig, command=server, log=folder / "kube-apiserver.log")
    try:
        addresses = (f"--listen-client-urls={etcd}", f"--advertise-client-urls={etcd}")
        peers = (f"--listen-peer-urls={peer}", "--unsafe-no-fsync")
        start("etcd", f"--data-dir={folder / 'etcd'}", *addresses, *peers)
        plane.start()
        kubeconfig.write_text(admin(port, certificates / "apiserver.crt", token))
        assert plane.server is not None
        await asyncio.to_thread(wait_until_ready, kubeconfig, plane.server, plane.log)
        start(
            "kube-controller-manager",
            f"--kubeconfig={kubeconfig}",
            f"--controllers={','.join(controllers)}",
            f"--service-account-private-key-file={key}",
            f"--root-ca-file={certificates / 'apiserver.crt'}",
            "--leader-elect=false",
            "--secure-port=0",
        )
        yield plane
    finally:
        for each in (*started[1:], *([plane.server] if plane.server is not None else []), *started[:1]):
            end(each)  # etcd last
