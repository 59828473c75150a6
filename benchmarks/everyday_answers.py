"""CPU seconds and lines of the everyday questions (docs/everyday-questions.md) in a large cluster.

    PYTHONPATH=tests:devcluster/src:benchmarks python benchmarks/everyday_answers.py

The cluster is the one of the page, as its test has it, and around it the nodes and pods of
benchmarks/looking_ahead.py. The development cluster's API server, in a process of its own, serves it. Each
command of plimsoll is run as it stands there, in order, in a process of its own whose processor time counts;
kubectl's own are left out. A first line answers if it is no heading of a table, no error and not empty.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml
from child_processes import process
from looking_ahead import node_documents, pod_documents
from output import append

from cli.everyday_scene import everyday
from e2e.page_shell import named_files, shown_commands
from roadstead.assembly import built_in_api, extended_server
from roadstead.cluster import kubeconfig, new_token

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "everyday-questions.md"
#: Collections of the kinds of the scene.
PLURALS = {
    "Deployment": "deployments.apps",
    "Eviction": "evictions.plimsoll.dev",
    "Lease": "leases.coordination.k8s.io",
    "Namespace": "namespaces",
    "Node": "nodes",
    "Pod": "pods",
    "PodDisruptionBudget": "poddisruptionbudgets.policy",
    "SchedulingPolicy": "schedulingpolicies.plimsoll.dev",
}


async def serve(path: Path, nodes: int, pods: int) -> None:
    """An API server with all of it, until SIGTERM; then there is its kubeconfig."""
    api, token = built_in_api(), new_token()
    server = extended_server(api, token)
    for file in sorted((ROOT / "crds").glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            api.create("customresourcedefinitions.apiextensions.k8s.io", document)
    for number in range(50):
        api.create("namespaces", {"metadata": {"name": f"ns{number}"}})
    documents = everyday()
    for node in node_documents(nodes):
        api.create("nodes", node)
    for pod in pod_documents(nodes, pods, 1):
        api.create("pods", pod)
    for each in documents:
        plural, status = PLURALS[each["kind"]], each.get("status")
        made = api.create(plural, each)
        if status:  # of custom resources a creation drops it
            api.update_status(plural, {**made, "status": status})
    url = await server.start()
    partly = path.with_suffix(".partly")
    await asyncio.to_thread(partly.write_text, kubeconfig(url, token))
    partly.rename(path)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    await server.stop()


def asked(command: str, folder: Path, config: Path) -> tuple[float, list[str], int]:
    """CPU seconds, lines and exit code of a command's answer."""
    start = [sys.executable, "-m", "plimsoll", *shlex.split(command)[1:]]
    environment = {**os.environ, "KUBECONFIG": str(config), "COLUMNS": "110"}
    with tempfile.TemporaryFile() as sink:
        one = subprocess.Popen(start, stdout=sink, stderr=sink, env=environment, cwd=folder)  # noqa: S603 - as the page has it
        _, status, usage = os.wait4(one.pid, 0)
        sink.seek(0)
        lines = sink.read().decode().splitlines()
    return usage.ru_utime + usage.ru_stime, lines, os.waitstatus_to_exitcode(status)


def answers(line: str) -> bool:
    """Whether a first line is an answer."""
    return bool(line.strip()) and line.upper() != line and not line.lower().startswith("error")


def main() -> None:
    """Ask each question once."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--only", default="", help="commands that contain this")
    parser.add_argument("--kubeconfig", type=Path, help="a server that holds all that; none is started then")
    parser.add_argument("--output", type=Path, help="append each result as a line of JSON")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve(given.serve, given.nodes, given.pods))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        config = given.kubeconfig
        if config is not None:
            ask_all(given, folder, config)
            return
        config, log = folder / "kubeconfig", folder / "server.log"
        size = ("--nodes", str(given.nodes), "--pods", str(given.pods))
        with process(sys.executable, __file__, "--serve", str(config), *size, log=log) as server:
            while not config.exists():
                if server.poll() is not None:
                    raise SystemExit(log.read_text())
                time.sleep(0.5)
            ask_all(given, folder, config)


def ask_all(given: argparse.Namespace, folder: Path, config: Path) -> None:
    """Run the page's commands, and print a line for each."""
    text = PAGE.read_text(encoding="utf-8")
    for name, content in named_files(text).items():
        (folder / name).write_text(content, encoding="utf-8")
    for shown in shown_commands(text):
        if given.only not in shown.command or not shown.command.startswith("plimsoll "):
            continue
        cpu, lines, code = asked(shown.command, folder, config)
        first = lines[0] if lines else ""
        is_answer = answers(first) and code in (0, 2)  # 2 says that there is something
        mark = "answers" if is_answer else "DOES NOT"
        print(f"{cpu:6.2f} s CPU {len(lines):5} lines  {mark}  {shown.command}: {first[:110]}", flush=True)
        append(
            given.output,
            command=shown.command,
            cpu_s=cpu,
            lines=len(lines),
            answers="yes" if is_answer else "no",
            first=first,
        )


if __name__ == "__main__":
    main()
