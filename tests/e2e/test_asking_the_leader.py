"""``plimsoll explain`` asks the leading operator through the API server, without the user's token."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
import yaml
from aiohttp import web

from cli.commands import say
from e2e.polls import eventually
from e2e.speaker import MERGE
from plimsoll.cli.callers import leader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from e2e.operator_process import Operator
    from e2e.scene import Scene

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/plimsoll"

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(
        "PLIMSOLL_E2E_KUBECONFIG" in os.environ, reason="its API server does not reach pods on loopback"
    ),
]


async def a_pod(scene: Scene, namespace: str, name: str, port: int) -> None:
    """A pod whose process listens on a port of loopback."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    ports = [{"name": "metrics", "containerPort": port}]
    spec = {"containers": [{"name": "main", "image": "app:1", "ports": ports}], "nodeName": "nowhere"}
    await scene.make(pods, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    scene.remember(f"{pods}/{name}?gracePeriodSeconds=0")
    status = {"status": {"podIP": "127.0.0.1"}}
    (await scene.speaker.request("PATCH", f"{pods}/{name}/status", status, sends=MERGE)).accepted()


async def an_account(scene: Scene, namespace: str) -> None:
    """The account whose tokens are shown."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "plimsoll-reader"}}
    await scene.make(accounts, account)
    scene.remember(f"{accounts}/plimsoll-reader")


async def explained(scene: Scene, kubeconfig: Path, *more: str) -> dict[str, Any]:
    """The explanation of the pod big."""
    words = ["explain", "pod", "big", "-n", scene.name, "-o", "json", "--kubeconfig", str(kubeconfig)]
    said = await asyncio.to_thread(say, *words, *more)
    assert (said.code, said.err) == (0, "")
    answer: dict[str, Any] = json.loads(said.out)
    return answer


async def test_the_leader_is_found_and_asked(
    scene: Scene, operator: Operator, defined: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its pod and the account are there, the answer says what is missing; other audiences get 401."""
    monkeypatch.setattr(leader, "ANSWER_S", 60.0)  # a busy machine is slow, not wrong
    await scene.node("small", cpu="1")
    await scene.policy({"scheduling": {"schedulerName": scene.scheduler}})
    await scene.pod("big", cpu="3")
    await eventually(lambda: scene.condition("big"), lambda found: found.get("status") == "False")
    holder = (await scene.speaker.request("GET", LEASE)).accepted()["spec"]["holderIdentity"]
    pod = holder.rpartition("_")[0]
    lease = ("--lease", "kube-system/plimsoll")

    why = (await explained(scene, defined, *lease))["unknown"][0]
    assert why == (
        "the operator was not asked: it runs outside of the cluster or has ended"
        f" ({pod} holds the lease and is no pod of namespace kube-system); if it runs, name its address:"
        " --operator http://HOST:8081"
    )
    await a_pod(scene, "kube-system", pod, operator.metrics_port)
    why = (await explained(scene, defined, *lease))["unknown"][0]
    assert (
        "namespace kube-system has no ServiceAccount plimsoll-reader; apply deploy/components/explain" in why
    )
    await an_account(scene, "kube-system")

    answer = await explained(scene, defined, *lease)

    assert answer["operator"]["queue"]["attempts"] >= 1
    assert not [each for each in answer["unknown"] if "operator" in each]
    assert "operator" not in await explained(scene, defined, "--operator", "none")
    assert await status_for(scene, pod, operator, "plimsoll.dev") == 200
    assert await status_for(scene, pod, operator, "another.dev") == 401


async def status_for(scene: Scene, pod: str, operator: Operator, audience: str) -> int:
    """The status that a token of an audience gets."""
    account = "/api/v1/namespaces/kube-system/serviceaccounts/plimsoll-reader/token"
    spec = {"audiences": [audience]}
    answer = (await scene.speaker.request("POST", account, {"spec": spec})).accepted()
    headers = {"Plimsoll-Authorization": f"Bearer {answer['status']['token']}"}
    url = f"http://127.0.0.1:{operator.metrics_port}/explain/nodes/none"
    async with aiohttp.ClientSession() as http, http.get(url, headers=headers) as said:
        return said.status


@asynccontextmanager
async def listening(seen: list[web.BaseRequest], delay_s: float) -> AsyncIterator[int]:
    """Somebody who is no operator, and answers with a redirect after a delay; the port."""

    async def handler(request: web.BaseRequest) -> web.Response:
        seen.append(request)
        await asyncio.sleep(delay_s)
        return web.Response(status=302, headers={"Location": "/stolen"})

    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield int(runner.addresses[0][1])
    await runner.cleanup()


def users_of(kubeconfig: Path) -> list[dict[str, Any]]:
    """The users of a kubeconfig."""
    users: list[dict[str, Any]] = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))["users"]
    return users


@pytest.mark.parametrize(
    ("delay_s", "patience_s", "why"), [(0.0, 60.0, "answered 302"), (600.0, 6.0, "no answer in 6 s")]
)
async def test_a_pod_that_a_lease_names_sees_no_token_of_the_user(
    scene: Scene,
    defined: Path,
    monkeypatch: pytest.MonkeyPatch,
    delay_s: float,
    patience_s: float,
    why: str,
) -> None:
    """A stranger receives a token of our audience, one request, and a few seconds."""
    monkeypatch.setattr(leader, "ANSWER_S", patience_s)
    await scene.pod("big", cpu="3")
    users = await asyncio.to_thread(users_of, defined)
    lease = {"metadata": {"name": "plimsoll"}, "spec": {"holderIdentity": "stranger_1"}}
    await scene.make(scene.path("leases", "/apis/coordination.k8s.io/v1"), lease)
    scene.remember(scene.path("leases/plimsoll", "/apis/coordination.k8s.io/v1"))
    await an_account(scene, scene.name)
    seen: list[web.BaseRequest] = []
    async with listening(seen, delay_s) as port:
        await a_pod(scene, scene.name, "stranger", port)

        answer = await explained(scene, defined, "--lease", f"{scene.name}/plimsoll")
    assert why in answer["unknown"][0]
    assert [each.path for each in seen] == [f"/explain/pods/{scene.name}/big"]
    tokens = [each["user"]["token"] for each in users if "token" in each["user"]]
    assert tokens
    shown = [*seen[0].headers.values()]
    assert seen[0].headers["Plimsoll-Authorization"].startswith("Bearer ")
    assert not [each for each in shown if any(token in each for token in tokens)]
