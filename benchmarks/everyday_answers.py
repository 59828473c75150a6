"""CPU seconds, seconds and lines of everyday questions in a large cluster (docs/everyday-questions.md).

    python benchmarks/everyday_answers.py --nodes 5000 --pods 100000

The cluster is that of benchmarks/looking_ahead.py with 200 pending pods, a thousand records of moves and a
node with GPUs. A server of this process lists it in pages, as an API server does; each question is a process
of its own, whose processor time is its own alone. The last column is the first line of the answer.
"""

from __future__ import annotations

import argparse
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import yaml
from looking_ahead import CREATED, node_documents, pod_documents, policy_document
from output import append

if TYPE_CHECKING:
    from collections.abc import Iterator

Document = dict[str, Any]
GPU = "nvidia.com/gpu"
OURS = "/apis/plimsoll.dev/v1alpha1"

#: Each question's command.
QUESTIONS = (
    "explain pod ns1/p1",
    "explain pod ns0/pending-0",
    "explain pods -A",
    "explain pod ns0/moved-7",
    "explain eviction ns0/moved-7",
    "history -A",
    "history ns0/moved-7",
    "explain node n00001",
    "explain policy benchmark",
    "plan",
    "whatif --drain n00001",
    "whatif --add-nodes 3",
    "top nodes",
    f"top pods -A --resource {GPU}",
    "top namespaces",
)


def pending(count: int) -> Iterator[Document]:
    """Pods that fit no node."""
    for number in range(count):
        requests = {"cpu": "15900m"} if number else {"cpu": "64"}
        yield {
            "metadata": {
                "name": f"pending-{number}",
                "namespace": "ns0",
                "uid": f"pending-{number}",
                "creationTimestamp": CREATED,
            },
            "spec": {
                "schedulerName": "plimsoll",
                "containers": [{"name": "main", "image": "app", "resources": {"requests": requests}}],
            },
            "status": {"phase": "Pending"},
        }


def records(count: int) -> Iterator[Document]:
    """Moves that settled within the last hour."""
    ended = time.time()
    for number in range(count):
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ended - 60 - 3 * number))
        name = f"moved-{number}"
        yield {
            "metadata": {"name": name, "namespace": "ns0", "creationTimestamp": moment},
            "spec": {
                "pod": {"namespace": "ns0", "name": name, "uid": name},
                "owner": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "moved", "uid": "moved"},
                "policy": "benchmark",
                "strategy": "RemoveDuplicates",
                "mode": "Enforce",
                "reason": "two pods of ReplicaSet moved are on its node",
                "fromNode": "n00001",
                "targetNode": "n00002",
            },
            "status": {"phase": "Settled", "transitions": [{"phase": "Settled", "time": moment}]},
        }


def gpu_pods() -> Iterator[Document]:
    """A node with GPUs, and who uses them."""
    for number, pod in enumerate(pod_documents(1, 4, 7)):
        pod["metadata"] |= {"name": f"gpu-{number}", "namespace": "research", "uid": f"gpu-{number}"}
        pod["spec"]["nodeName"] = "gpu"
        pod["spec"]["containers"][0]["resources"]["requests"][GPU] = "1"
        yield pod


def collections(nodes: int, pods: int) -> dict[str, list[bytes]]:
    """The objects by the path of their collection."""
    (gpu,) = node_documents(1)
    gpu["metadata"] |= {"name": "gpu", "uid": "gpu"}
    gpu["status"]["allocatable"] = gpu["status"]["capacity"] = {**gpu["status"]["capacity"], GPU: "8"}
    found: dict[str, Iterator[Document] | list[Document]] = {
        "/api/v1/nodes": [*node_documents(nodes), gpu],
        "/api/v1/pods": [*pod_documents(nodes, pods, 1), *pending(200), *gpu_pods()],
        f"{OURS}/schedulingpolicies": [policy_document()],
        f"{OURS}/evictions": records(1000),
    }
    return {path: [json.dumps(each).encode() for each in objects] for path, objects in found.items()}


class Cluster(http.server.BaseHTTPRequestHandler):
    """Lists the collections page by page, and knows pods by their names."""

    protocol_version = "HTTP/1.1"
    held: dict[str, list[bytes]]
    names: set[str]

    def do_GET(self) -> None:
        """Answer a list, or whether a pod is there."""
        path, _, query = self.path.partition("?")
        asked = dict(parse_qsl(query))
        code, body = 200, b'{"kind":"List","metadata":{},"items":[]}'
        if path in self.held:
            begin, limit = int(asked.get("continue", "0")), int(asked.get("limit", "500"))
            items = self.held[path]
            rest = str(begin + limit) if begin + limit < len(items) else ""
            body = b'{"metadata":{"continue":"%s"},"items":[%s]}' % (
                rest.encode(),
                b",".join(items[begin : begin + limit]),
            )
        elif "/pods/" in path:
            code, body = (200, b"{}") if path in self.names else (404, b'{"reason":"NotFound","code":404}')
        elif path.startswith("/apis/metrics.k8s.io"):
            code, body = 404, b'{"reason":"NotFound","code":404}'
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def asked(question: str, kubeconfig: Path) -> tuple[float, float, list[str]]:
    """CPU seconds, seconds by the clock, and the lines of an answer."""
    operator = ("--operator", "none") if question.startswith(("explain pod ", "explain node")) else ()
    command = [sys.executable, "-m", "plimsoll", *question.split(), *operator]
    began = time.monotonic()
    with tempfile.TemporaryFile() as sink:
        process = subprocess.Popen(  # noqa: S603 - ours
            command, stdout=sink, stderr=sink, env={**os.environ, "KUBECONFIG": str(kubeconfig)}
        )
        _, _, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - began
        sink.seek(0)
        lines = sink.read().decode().splitlines()
    return usage.ru_utime + usage.ru_stime, wall, lines


def main() -> None:
    """Ask each question once."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--only", default="", help="questions that contain this")
    parser.add_argument("--output", type=Path, help="append each result as a line of JSON")
    given = parser.parse_args()
    Cluster.held = collections(given.nodes, given.pods)
    Cluster.names = {"/api/v1/namespaces/ns1/pods/p1", "/api/v1/namespaces/ns0/pods/pending-0"}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cluster)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "config"
        content = {
            "clusters": [{"name": "a", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "users": [{"name": "a", "user": {}}],
            "current-context": "a",
        }
        kubeconfig.write_text(yaml.safe_dump(content), encoding="utf-8")
        for question in QUESTIONS:
            if given.only in question:
                cpu, wall, lines = asked(question, kubeconfig)
                first = lines[0] if lines else ""
                print(
                    f"{cpu:6.2f} s CPU {wall:6.1f} s {len(lines):4} lines  {question}: {first[:110]}",
                    flush=True,
                )
                append(given.output, question=question, cpu_s=cpu, wall_s=wall, lines=len(lines), first=first)
    server.shutdown()


if __name__ == "__main__":
    main()
