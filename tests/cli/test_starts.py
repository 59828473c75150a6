"""The modules that each command imports until it answers: a start costs as many modules as it loads.

``benchmarks/starts.py`` measures the starts; docs/adr/0043 has the figures.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

from roadstead.clients import RunningCluster

#: Packages that take more than 10 ms, by a module that each of them imports when something of it is used.
HEAVY = {
    "aiohttp": "aiohttp.client",
    "apscheduler": "apscheduler.triggers.cron",
    "asyncio": "asyncio",
    "cel": "dra_cel.compiler",
    "engine": "plimsoll.engine.scheduler",
    "jinja2": "jinja2",
    "kopf": "kopf",
    "kubernetes-asyncio's models": "kubernetes_asyncio.client.models.v1_pod",
    "moves": "plimsoll.rebalancing.moves.machine",
    "numpy": "numpy",
    "optimal": "plimsoll_optimal.planner",
    "prometheus": "prometheus_client",
    "pydantic": "pydantic",
    "rich": "rich",
    "structlog": "structlog",
    "urllib3": "urllib3.connectionpool",
    "web_pages": "plimsoll.web_pages",
    "yaml": "yaml",
}

#: What a command that answers from a cluster cannot do without.
READS = {"asyncio", "engine", "numpy", "pydantic", "yaml", "apscheduler"}

#: Each start, and the heavy packages that it may import.
STARTS: dict[str, set[str]] = {
    "version": set(),
    "--help": set(),
    "run --help": set(),
    "explain pod --no-such-flag": set(),
    "completion bash": set(),
    "explain pod web": READS,
    "explain eviction web": READS - {"engine"},
    "run": READS | {"aiohttp", "moves", "prometheus", "structlog"},
}

#: Runs a command, and prints the modules that are there at its end; the operator ends as it begins to watch.
PROBE = """
import os, sys
import atexit
def tell():
    print("\\n".join(sys.modules), file=sys.stderr, flush=True)
if sys.argv[1] == "run" and sys.argv[2] != "--help":
    from plimsoll.app.process import OperatorProcess
    async def live(*_):
        tell()
        os._exit(0)
    OperatorProcess.live = live
else:
    atexit.register(tell)
from plimsoll.commands.program import main
main()
"""

#: The operator's ports: any.
PORTS = ("--bind-address", "127.0.0.1", "--metrics-port", "0", "--health-port", "0")


def imported(*words: str) -> set[str]:
    """The heavy packages that are there at the end of a command."""
    command = [sys.executable, "-c", PROBE, *words]
    told = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=300
    ).stderr.splitlines()
    assert "plimsoll.cli" in told, told
    return {name for name, module in HEAVY.items() if module in told}


@pytest.mark.parametrize("start", STARTS)
def test_a_start_imports_what_it_uses(start: str, roadstead_process: RunningCluster) -> None:
    """A command that asks a cluster asks a small one, over TLS."""
    words = start.split()
    if start == "explain pod web":
        container = {"name": "main", "image": "i"}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web"},
            "spec": {"containers": [container]},
        }
        roadstead_process.apply(pod)
    if start in ("run", "explain pod web", "explain eviction web"):
        words += ["--kubeconfig", str(roadstead_process.kubeconfig), *(PORTS if start == "run" else ())]

    assert imported(*words) - STARTS[start] == set()


def test_every_heavy_package_is_one_that_is_there() -> None:
    """A marker that was renamed would allow everything."""
    assert [module for module in HEAVY.values() if find_spec(module) is None] == []
