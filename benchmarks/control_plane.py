"""A real control plane on loopback: etcd, kube-apiserver, controllers of namespaces and resource claims."""

import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml
from child_processes import free_port, process
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from roadstead import processes

#: Seconds in which the API server must be ready.
START_S = 120.0


@contextmanager
def api_server(programs: Path | None, folder: Path) -> Iterator[Path]:
    """A control plane of given programs, or a development cluster without controllers."""
    if programs is not None:
        with control_plane(programs, folder) as kubeconfig:
            yield kubeconfig
        return
    with processes.running(folder) as cluster:
        yield cluster.kubeconfig


@contextmanager
def control_plane(programs: Path, folder: Path) -> Iterator[Path]:
    """Etcd and kube-apiserver; yields the kubeconfig of an administrator. Both are ended at the end.

    Args:
        programs: Folder with ``kube-apiserver``, and with ``etcd`` unless that is on the PATH.
        folder: For data, certificates and logs.

    Raises:
        RuntimeError: If the API server is not ready in time, or a program is missing.
    """
    api, client, peer = (free_port() for _ in range(3))
    token = secrets.token_hex(16)
    (folder / "tokens.csv").write_text(f'{token},admin,admin,"system:masters"\n', encoding="utf-8")
    key = folder / "service-accounts.key"
    key.write_bytes(signing_key())
    with ExitStack() as running:
        etcd = f"http://127.0.0.1:{client}"
        running.enter_context(
            process(
                program(programs, "etcd"),
                f"--data-dir={folder / 'etcd'}",
                f"--listen-client-urls={etcd}",
                f"--advertise-client-urls={etcd}",
                f"--listen-peer-urls=http://127.0.0.1:{peer}",
                "--unsafe-no-fsync",
                log=folder / "etcd.log",
            )
        )
        server = running.enter_context(
            process(
                program(programs, "kube-apiserver"),
                f"--etcd-servers={etcd}",
                f"--secure-port={api}",
                "--bind-address=127.0.0.1",
                f"--cert-dir={folder / 'certificates'}",
                f"--token-auth-file={folder / 'tokens.csv'}",
                "--authorization-mode=RBAC",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-key-file={key}",
                f"--service-account-signing-key-file={key}",
                "--service-cluster-ip-range=10.0.0.0/24",
                "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
                "--max-requests-inflight=2000",
                "--max-mutating-requests-inflight=1000",
                log=folder / "kube-apiserver.log",
            )
        )
        kubeconfig = folder / "kubeconfig"
        certificate = folder / "certificates" / "apiserver.crt"
        kubeconfig.write_text(admin(api, certificate, token), encoding="utf-8")
        wait_until_ready(kubeconfig, server, folder / "kube-apiserver.log")
        running.enter_context(
            process(
                program(programs, "kube-controller-manager"),
                f"--kubeconfig={kubeconfig}",
                "--controllers=namespace-controller,resourceclaim-controller",
                "--kube-api-qps=2000",
                "--kube-api-burst=2000",
                "--leader-elect=false",
                "--secure-port=0",
                log=folder / "kube-controller-manager.log",
            )
        )
        yield kubeconfig


def admin(port: int, certificate: Path, token: str) -> str:
    """A kubeconfig. The API server signed its certificate itself, so that is the authority too."""
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "benchmark",
            "clusters": [
                {
                    "name": "benchmark",
                    "cluster": {
                        "server": f"https://127.0.0.1:{port}",
                        "certificate-authority": str(certificate),
                    },
                }
            ],
            "users": [{"name": "admin", "user": {"token": token}}],
            "contexts": [{"name": "benchmark", "context": {"cluster": "benchmark", "user": "admin"}}],
        }
    )


def signing_key() -> bytes:
    """A new key for tokens of service accounts, which the API server wants to have, PEM."""
    return rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def program(programs: Path, name: str) -> str:
    """The path of a program: in the folder, or on the PATH.

    Raises:
        RuntimeError: If it is in neither.
    """
    found = shutil.which(name, path=str(programs.resolve())) or shutil.which(name)
    if found is None:
        raise RuntimeError(f"{name} is neither in {programs} nor on the PATH")
    return found


def wait_until_ready(kubeconfig: Path, server: subprocess.Popen[bytes], log: Path) -> None:
    """Ask ``/readyz`` until it says yes.

    Raises:
        RuntimeError: If it does not in time, with the last line of the log.
    """
    deadline = time.monotonic() + START_S
    ask = ["kubectl", f"--kubeconfig={kubeconfig}", "get", "--raw", "/readyz"]
    while server.poll() is None and time.monotonic() < deadline:
        done = subprocess.run(ask, capture_output=True, check=False)  # noqa: S603 - kubectl
        if done.returncode == 0:
            return
        time.sleep(0.5)
    said = log.read_text(encoding="utf-8", errors="replace").splitlines()[-1:]
    raise RuntimeError(f"kube-apiserver is not ready: {''.join(said)} (all of it: {log})")
