"""Executes docs/how-to/adopt-pods.md: adopted, the operator killed, handed over, removed."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from deploy.tools import ROOT
from e2e.conftest import define
from e2e.page_shell import execute
from e2e.polls import eventually
from e2e.speaker import MERGE, Speaker, speaking
from plimsoll.adoption.admission_objects import admission_objects
from plimsoll.api.v1alpha1 import SchedulingPolicy
from plimsoll.app import watchdog
from plimsoll.kube.adoption import KINDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from e2e.operator_process import Operator
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = [pytest.mark.e2e]

PAGE = (ROOT / "docs/how-to/adopt-pods.md").read_text(encoding="utf-8")
BEFORE, _, AFTER = PAGE.partition("$ kill -9 OPERATOR")
POLICIES = "/apis/plimsoll.dev/v1alpha1/schedulingpolicies"
PODS = "/api/v1/namespaces/shop/pods"


@contextlib.asynccontextmanager
async def default_scheduler(speaker: Speaker) -> AsyncIterator[None]:
    """Kube-scheduler, as far as the page needs it: binds the pods of its name to one node."""

    async def serve() -> None:
        while True:
            pods: list[Any] = (await speaker.request("GET", PODS)).body.get("items", [])
            for pod in pods:
                if pod["spec"]["schedulerName"] == "default-scheduler" and not pod["spec"].get("nodeName"):
                    name = pod["metadata"]["name"]
                    body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "node-0001"}}
                    (await speaker.request("POST", f"{PODS}/{name}/binding", body)).accepted()
            await asyncio.sleep(0.2)

    task = asyncio.ensure_future(serve())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.mark.slow  # the lease of a dead operator must go stale
async def test_the_page_on_how_to_adopt_pods(
    tmp_path: Path, start_roadstead: StartRoadstead, start_operator: Callable[..., Operator]
) -> None:
    cluster = start_roadstead(nodes=2)
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        await speaker.request("POST", "/api/v1/namespaces", {"metadata": {"name": "plimsoll"}})
        operator = start_operator(cluster.kubeconfig, "--leader-elect-resource-namespace", "plimsoll")
        operator.until_ready()
        async with default_scheduler(speaker):
            await execute(BEFORE, tmp_path, kubeconfig=cluster.kubeconfig)
            operator.kill()
            watching = asyncio.to_thread(watchdog.main, cluster.kubeconfig, "plimsoll", "plimsoll", 30.0)
            said, _ = await asyncio.gather(watching, execute(AFTER, tmp_path, kubeconfig=cluster.kubeconfig))
    assert said == "no operator leads: scheduler adopts no more pods"


async def test_who_is_adopted(start_roadstead: StartRoadstead) -> None:
    """A part of the owners, and no pod that names a scheduler, has a node or belongs to a DaemonSet."""
    cluster = start_roadstead(nodes=1)
    adopt = {"namespaces": {"include": ["shop"]}, "percentage": 10}
    spec = {"scheduling": {"schedulerName": "plimsoll", "adopt": adopt}}
    document = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "SchedulingPolicy", "spec": spec}
    document["metadata"] = {"name": "scheduler"}
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        await speaker.request("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
        (await speaker.request("POST", POLICIES, document)).accepted()
        for each in admission_objects(SchedulingPolicy.model_validate(document), "plimsoll"):
            path = f"/apis/{each['apiVersion']}/{KINDS[each['kind']]}"
            (await speaker.request("POST", path, each)).accepted()

        async def scheduler(uid: str, kind: str = "ReplicaSet", where: str = PODS, **fields: Any) -> str:
            owner = {"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": uid, "controller": True}
            metadata = {"name": f"web-{uid[:8]}", **({"ownerReferences": [owner]} if kind else {})}
            pod = {"metadata": metadata, "spec": {"containers": [{"name": "web", "image": "web"}], **fields}}
            answer = await speaker.request("POST", f"{where}?dryRun=All", pod)
            return str(answer.accepted()["spec"]["schedulerName"])

        chosen, other = "19999998-0000-4000-8000-000000000000", "1999999a-0000-4000-8000-000000000000"
        assert await scheduler(chosen) == "default-scheduler"  # no operator has written Ready
        ready = {"type": "Ready", "status": "True", "reason": "Serving", "message": ""}
        ready["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        await speaker.request(
            "PATCH", f"{POLICIES}/scheduler/status", {"status": {"conditions": [ready]}}, sends=MERGE
        )
        await eventually(lambda: scheduler(chosen), lambda name: name == "plimsoll")
        assert await scheduler(other) == "default-scheduler"
        assert await scheduler(chosen, kind="DaemonSet") == "default-scheduler"
        assert await scheduler(chosen, kind="") == "default-scheduler"
        assert await scheduler(chosen, schedulerName="volcano") == "volcano"
        assert await scheduler(chosen, nodeName="node-0001") == "default-scheduler"
        assert await scheduler(chosen, where="/api/v1/namespaces/default/pods") == "default-scheduler"
        uids = [str(uuid.UUID(int=place << 120 | 4 << 76)) for place in range(256)]
        adopted = [uid for uid in uids[::8] if await scheduler(uid) == "plimsoll"]
        assert adopted == uids[0:26:8]

        for change in ({"suspend": True}, {"suspend": None, "scheduling": {"adopt": None}}):
            await speaker.request("PATCH", f"{POLICIES}/scheduler", {"spec": change}, sends=MERGE)
            await eventually(lambda: scheduler(chosen), lambda name: name == "default-scheduler")
            await speaker.request(
                "PATCH", f"{POLICIES}/scheduler", {"spec": {"suspend": None, **spec}}, sends=MERGE
            )
            await eventually(lambda: scheduler(chosen), lambda name: name == "plimsoll")
        await speaker.request("DELETE", f"{POLICIES}/scheduler")
        assert await scheduler(chosen) == "default-scheduler"
