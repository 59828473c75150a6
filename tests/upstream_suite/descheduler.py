"""descheduler's own end-to-end tests, with descheduler and with Plimsoll as the image that they deploy.

The tests make a ConfigMap with a DeschedulerPolicy and a Deployment, and look at pods. The kubelet of the
Deployment's pod runs a program in its place: descheduler with the policy as it is, or the operator with
what ``plimsoll convert`` makes of it.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path

import yaml
from control_plane import program

from chaos.world import NODES, POLICIES
from e2e.conftest import define
from roadstead.kubelets.nodes import make_node
from upstream_suite.containers import IMAGE, ContainerRuntime, HasRun, interval_s
from upstream_suite.results import BrokenSuiteError, Run, failures_of_go, read_go
from upstream_suite.specs import DESCHEDULER_LEFT_OUT
from upstream_suite.stage import LOG, Stage, Suite
from upstream_suite.usage import serve_usage

#: How many pods each descheduler evicted: the name of its test, and the count, in order.
EVICTIONS = "evictions.json"

#: The zones of the tests' own cluster: two workers, and a control plane that has none.
ZONES = {"worker-a": "local-a", "worker-b": "local-b", "control-plane": ""}
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"

#: Volumes of the default class and of the one that a test makes like it; the tests want one of each.
VOLUMES = [
    (
        "/apis/storage.k8s.io/v1/storageclasses",
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {
                "name": "standard",
                "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
            },
            "provisioner": "kubernetes.io/no-provisioner",
        },
    ),
    *(
        (
            "/api/v1/persistentvolumes",
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": name},
                "spec": {
                    "storageClassName": name,
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "hostPath": {"path": f"/{name}"},
                },
            },
        )
        for name in ("standard", "unprotected")
    ),
]


@asynccontextmanager
async def descheduler(stage: Stage, policy: str, options: Sequence[str]) -> AsyncIterator[HasRun]:
    """The program itself, with the options of its container."""
    file = stage.folder / "policy.yaml"
    file.write_text(policy, encoding="utf-8")
    log = stage.folder / "descheduler.log"
    seen = log.stat().st_size if log.exists() else 0
    given = [str(file) if each.endswith("/policy.yaml") else each for each in options]
    own = [f"--kubeconfig={stage.kubeconfig}", "--bind-address=127.0.0.1", "--secure-port=0"]

    async def has_run() -> bool:
        return b"Number of evictions/requests" in log.read_bytes()[seen:]

    async with stage.process("descheduler", program(stage.suite, "descheduler"), *given, *own):
        yield has_run


@asynccontextmanager
async def plimsoll(stage: Stage, policy: str, options: Sequence[str]) -> AsyncIterator[HasRun]:
    """The operator, with the policies that our command makes of descheduler's."""
    command = [sys.executable, "-m", "plimsoll", "convert", "-", "--keep-behaviour"]
    with (stage.folder / "convert.log").open("ab") as report:
        done = await asyncio.to_thread(
            subprocess.run, command, input=policy.encode(), stdout=subprocess.PIPE, stderr=report, check=False
        )
    made = list(yaml.safe_load_all(done.stdout)) if done.returncode == 0 else []
    paths = [f"{POLICIES}/{each['metadata']['name']}" for each in made]

    async def has_run() -> bool:
        found = [(await stage.speaker.request("GET", path)).accepted() for path in paths]
        return all(each.get("status", {}).get("lastRun", {}).get("completionTime") for each in found)

    for each in made:
        each["spec"]["rebalancing"] |= {
            "mode": "Enforce",
            "schedule": {"intervalSeconds": interval_s(options)},
        }
        await stage.speaker.install(POLICIES, each)
    try:
        async with stage.operator():
            yield has_run
    finally:
        for path in paths:
            await stage.speaker.request("DELETE", path)


#: By the names of the table's columns; the first is the reference.
DESCHEDULERS: dict[str, Callable[[Stage, str, Sequence[str]], AbstractAsyncContextManager[HasRun]]] = {
    "descheduler": descheduler,
    "Plimsoll": plimsoll,
}


async def play(stage: Stage, name: str, focus: Sequence[str]) -> str:
    """Run the tests with one descheduler; returns the version of descheduler's programs."""
    kubelets = ContainerRuntime(stage.speaker, "", start=partial(DESCHEDULERS[name], stage))
    for node, zone in ZONES.items():
        made = make_node(node, cpu="16", zone=zone, labels={} if zone else {CONTROL_PLANE: ""})
        if not zone:
            del made["metadata"]["labels"]["topology.kubernetes.io/zone"]
            made["spec"]["taints"] = [{"key": CONTROL_PLANE, "effect": "NoSchedule"}]
        (await stage.speaker.request("POST", NODES, made)).accepted()
        await kubelets.register(node)
    stage.speaker.begin(kubelets.play())
    stage.speaker.begin(serve_usage(stage.speaker, ZONES, kubelets.running))
    for path, obj in VOLUMES:
        await stage.speaker.install(path, obj)
    await define(stage.speaker)
    async with stage.kube_scheduler():
        await stage.run(
            program(stage.suite, "e2e.test"),
            "-test.v",
            "-test.timeout=90m",
            f"-test.run={'|'.join(focus)}",
            f"-test.skip=^({'|'.join(DESCHEDULER_LEFT_OUT)})$",
            f"--descheduler-image={IMAGE}",
            environment={"KUBECONFIG": str(stage.kubeconfig)},
        )
    (stage.folder / EVICTIONS).write_text(json.dumps(kubelets.evictions), encoding="utf-8")
    ask = [program(stage.suite, "descheduler"), "version"]
    said = await asyncio.to_thread(subprocess.run, ask, capture_output=True, check=True)
    found = re.search(r"v(\d+\.\d+\.\d+)", said.stdout.decode())
    return found[1] if found else "of unknown version"


def judge(folder: Path) -> Run:
    """What a run left in its folder: of each test whether it passes, and how many pods were evicted."""
    log, evictions = folder / LOG, folder / EVICTIONS
    if not (log.exists() and evictions.exists()):
        raise BrokenSuiteError(f"the tests left no {EVICTIONS}: {log}")
    text = log.read_text(encoding="utf-8", errors="replace")
    counts = json.loads(evictions.read_text(encoding="utf-8"))
    return Run(read_go(text, counts), failures_of_go(text))


DESCHEDULER = Suite("descheduler", DESCHEDULERS, play, judge)
