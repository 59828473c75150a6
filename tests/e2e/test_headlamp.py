"""The plugin for Headlamp asks a running operator, and its tests read objects like those of a cluster.

PLIMSOLL_WRITE_GOLDEN=1 records it again.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from cli.commands import say
from cli.test_headlamp_plugin import PLUGIN, needs_packages
from e2e.polls import eventually
from e2e.test_asking_the_leader import LEASE, a_pod, an_account, users_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.operator_process import Operator
    from e2e.scene import Scene

pytestmark = pytest.mark.e2e

RECORDED = PLUGIN / "src" / "recorded"

#: As `headlamp-plugin test` has it, which runs all tests.
CONFIGURATION = "node_modules/@kinvolk/headlamp-plugin/config/vite.config.mjs"

#: What no page shows, and what differs from cluster to cluster.
LEFT_OUT = ("managedFields", "tolerations", "volumes")


async def test_recorded_objects_are_like_those_of_a_cluster(
    scene: Scene, operator: Operator, defined: Path
) -> None:
    """A move that settled, its policy, a pod that nodes refuse for three reasons, and the memory of it."""
    await scene.node("old")
    await scene.scheduling()
    await scene.deployment("web", 2)
    await scene.until_running(2, app="web")
    await scene.node("new")
    policy = await scene.policy(scene.rebalancing({"name": "RemoveDuplicates", "args": {}}))
    (record,) = await scene.until_finished(1)
    await scene.runs(policy, 1)
    taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    await scene.node("tainted", taints=[taint])
    await scene.pod("big", cpu="64")
    await eventually(lambda: scene.condition("big"), lambda found: "untolerated" in found.get("message", ""))
    words = ["explain", "pod", "big", "-n", scene.name, "-o", "json", "--kubeconfig", str(defined)]
    url = f"http://127.0.0.1:{operator.metrics_port}"
    said = await asyncio.to_thread(say, *words, "--operator", url)
    path = f"/apis/plimsoll.dev/v1alpha1/schedulingpolicies/{policy}"
    found = {
        "eviction": record,
        "policy": (await scene.speaker.request("GET", path)).accepted(),
        "pendingPod": await scene.a_pod("big"),
        "podMemory": json.loads(said.out)["operator"],
    }

    for name, document in found.items():
        file = RECORDED / f"{name}.json"
        if os.environ.get("PLIMSOLL_WRITE_GOLDEN"):
            text = json.dumps(_without(document), indent=2, sort_keys=True)
            file.write_text(text.replace(scene.name, "shop") + "\n", encoding="utf-8")
        recorded = json.loads(file.read_text(encoding="utf-8"))
        missing = set(_paths(recorded)) - set(_paths(document))
        assert not missing, f"{file} has fields that no cluster has; PLIMSOLL_WRITE_GOLDEN=1 writes it"


@needs_packages
@pytest.mark.skipif(
    "PLIMSOLL_E2E_KUBECONFIG" in os.environ, reason="its API server does not reach pods on loopback"
)
async def test_the_plugin_asks_the_operator_that_leads(
    scene: Scene, operator: Operator, defined: Path, tmp_path: Path
) -> None:
    """Its own code, in node: lease, pod, token, and the proxy of the API server."""
    await scene.node("small", cpu="1")
    await scene.policy({"scheduling": {"schedulerName": scene.scheduler}})
    await scene.pod("big", cpu="3")
    await eventually(lambda: scene.condition("big"), lambda found: found.get("status") == "False")
    holder = (await scene.speaker.request("GET", LEASE)).accepted()["spec"]["holderIdentity"]
    await a_pod(scene, "kube-system", holder.rpartition("_")[0], operator.metrics_port)
    await an_account(scene, "kube-system")
    (user, *_) = await asyncio.to_thread(users_of, defined)
    authority = await asyncio.to_thread(_authority, defined, tmp_path / "ca.crt")
    live = {
        "server": scene.speaker.api.configuration.host,
        "token": user["user"]["token"],
        "lease": "kube-system",
        "pod": {"namespace": scene.name, "name": "big", "schedulerName": scene.scheduler},
    }

    environment = {"CI": "true", "NO_COLOR": "1", "VITE_PLIMSOLL_LIVE": json.dumps(live), **authority}

    def asked() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["node_modules/.bin/vitest", "run", "-c", CONFIGURATION, "operatorMemory.live"],
            cwd=PLUGIN,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    done = await asyncio.to_thread(asked)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def _authority(kubeconfig: Path, file: Path) -> dict[str, str]:
    """Lets node trust the cluster's certificate; nothing for a cluster without TLS."""
    cluster = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))["clusters"][0]["cluster"]
    file.write_bytes(base64.b64decode(cluster.get("certificate-authority-data", "")))
    return {"NODE_EXTRA_CA_CERTS": str(file)} if file.stat().st_size else {}


def _without(document: Any) -> Any:
    if isinstance(document, dict):
        return {key: _without(each) for key, each in document.items() if key not in LEFT_OUT}
    return [_without(each) for each in document] if isinstance(document, list) else document


def _paths(document: Any, path: str = "") -> Iterator[str]:
    """The fields of a document with the types of their values; labels are no fields."""
    if isinstance(document, dict) and not path.endswith(("labels", "annotations", "nodeSelector")):
        for key, each in document.items():
            yield from _paths(each, f"{path}.{key}")
    elif isinstance(document, list):
        for each in document:
            yield from _paths(each, f"{path}[]")
    else:
        yield f"{path}: {type(document).__name__}"
