"""A real Prometheus as a source of the load book: behind TLS, a token and a tenant, and silent about them."""

from __future__ import annotations

import base64
import ssl
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web

from e2e.conftest import define
from e2e.polls import eventually
from e2e.prometheus import prometheus
from e2e.scene import Scene
from e2e.speaker import MERGE, speaking
from kube.tls_servers import Authority, load, served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence
    from pathlib import Path

    from e2e.operator_process import Operator
    from e2e.scene import Obj
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = pytest.mark.e2e

#: The operator's own namespace, the name in the server's certificate, and what must stay hidden.
OWN, HOST = "plimsoll", "prometheus.test"
TOKEN, NEXT_TOKEN, TENANT = "t0ken-that-nobody-sees", "the-next-t0ken-nobody-sees", "team-0f-the-test"

GIB = 2**30


@dataclass
class Gate:
    """What stands before Prometheus.

    Attributes:
        token: That it accepts.
        elsewhere: Where it redirects, "" where it does not.
        answered: How often it let something through.
    """

    upstream: int
    token: str = TOKEN
    elsewhere: str = ""
    answered: int = 0
    _session: aiohttp.ClientSession = field(default_factory=aiohttp.ClientSession)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Let through what shows the token and the tenant."""
        if self.elsewhere:
            return web.Response(status=302, headers={"Location": f"{self.elsewhere}{request.path_qs}"})
        headers = request.headers
        if headers.get("Authorization") != f"Bearer {self.token}" or headers.get("X-Scope-OrgID") != TENANT:
            return web.json_response({"status": "error", "error": str(headers)}, status=401)
        url = f"http://127.0.0.1:{self.upstream}{request.path}"
        async with self._session.get(url, params=request.query) as answer:
            self.answered += 1
            return web.Response(
                body=await answer.read(), status=answer.status, content_type="application/json"
            )

    async def close(self) -> None:
        await self._session.close()


@asynccontextmanager
async def gated(upstream: int, authority: Authority) -> AsyncIterator[tuple[Gate, str]]:
    """The gate and its address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load(context, *authority.issue(HOST))
    gate = Gate(upstream)
    try:
        async with served(gate.handle, context) as (port, _):
            yield gate, f"https://127.0.0.1:{port}"
    finally:
        await gate.close()


def secret(name: str, url: str, **values: str) -> Obj:
    data = {key.replace("_", "-"): base64.b64encode(each.encode()).decode() for key, each in values.items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "annotations": {"plimsoll.dev/prometheus-url": url}},
        "data": data,
    }


async def make_secrets(scene: Scene, url: str, authority: Authority) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OWN}}
    await scene.speaker.request("POST", "/api/v1/namespaces", namespace)  # it may be there
    path = f"/api/v1/namespaces/{OWN}/secrets"
    ca = {**secret("authority", url), "data": {"ca.crt": base64.b64encode(authority.pem).decode()}}
    for each in (
        secret("token", url, prometheusAuthToken=TOKEN),
        secret("tenant", url, X_Scope_OrgID=TENANT),
        ca,
    ):
        (await scene.speaker.request("POST", path, each)).accepted()


async def exported(metrics: dict[str, float], _: web.Request) -> web.Response:
    """What is scraped: the use of each node."""
    lines = [f'node_cores{{node="{name}"}} {cores}' for name, cores in metrics.items()]
    lines += [f'node_bytes{{node="{name}"}} {GIB}' for name in metrics]
    return web.Response(text="\n".join([*lines, ""]))


def policy_of(scene: Scene, url: str) -> Obj:
    """Places by load, and moves by the same readings."""
    return {
        "scheduling": {
            "schedulerName": scene.scheduler,
            "plugins": {"score": {"enabled": [{"name": "NodeLoad", "weight": 3}]}},
        },
        **scene.rebalancing(
            {
                "name": "LowNodeUtilization",
                "args": {
                    "thresholds": {"cpu": 1},
                    "targetThresholds": {"cpu": 99},
                    "metricsUtilization": {"source": "Prometheus"},
                },
            },
            metricsProviders=[
                {
                    "source": "Prometheus",
                    "prometheus": {
                        "url": url,
                        "authToken": {"secretReference": {"name": "token"}},
                        "headersSecret": "tenant",
                        "tls": {"caSecret": "authority", "serverName": HOST},
                        "queries": {
                            "node": {
                                "cpu": {"query": "node_cores", "unit": "Cores"},
                                "memory": {"query": "node_bytes", "unit": "Bytes"},
                            }
                        },
                    },
                }
            ],
        ),
    }


async def test_pods_are_placed_by_what_a_guarded_prometheus_measures(
    start_roadstead: StartRoadstead, start_operator: Callable[..., Operator], tmp_path: Path
) -> None:
    """No redirect is followed, and no token is in a log, a metric or a status, also where it is refused."""
    cluster, authority = start_roadstead(), Authority()
    metrics: dict[str, float] = {}
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        operator = start_operator(cluster.kubeconfig, "--leader-elect-resource-namespace", OWN)
        scene = await Scene(speaker).begin()
        busy, idle = await scene.node("busy"), await scene.node("idle")
        metrics |= {busy: 3.0, idle: 0.3, "unknown": 4.0}
        with prometheus(tmp_path, {"groups": []}) as server:
            async with (
                served(lambda request: exported(metrics, request)) as (exporter, _),
                gated(server.port, authority) as (gate, url),
                served(lambda _: exported({}, _)) as (other, strayed),
            ):
                await eventually(server.is_ready)
                server.scrape(exporter)
                await eventually(lambda: server.values("node_cores"), lambda found: len(found) == 3)
                await make_secrets(scene, url, authority)

                name = await scene.policy(policy_of(scene, url))

                async def known() -> float:
                    return operator.metric("plimsoll_load_nodes", state="measured")

                await eventually(known, lambda count: count == 2)
                for number in range(3):
                    await scene.pod(f"web-{number}")
                    assert await scene.until_bound(f"web-{number}") == idle
                assert not (await scene.runs(name, 1))["lastRun"].get("failures")

                gate.elsewhere = f"http://127.0.0.1:{other}"
                degraded = await scene.until_condition(name, "Degraded", "True", "StrategyFailed")
                assert "HTTP 302: redirects are not followed, check the url" in degraded["message"]
                assert strayed == []

                gate.elsewhere, gate.token = "", NEXT_TOKEN
                await eventually(
                    lambda: scene.policy_status(name),
                    lambda status: "it does not accept the credentials" in str(status),
                )
                changed = {"data": {"prometheusAuthToken": base64.b64encode(NEXT_TOKEN.encode()).decode()}}
                path = f"/api/v1/namespaces/{OWN}/secrets/token"
                (await speaker.request("PATCH", path, changed, sends=MERGE)).accepted()
                await scene.until_condition(name, "Degraded", "False")

                told = [
                    operator.log.read_text(),
                    operator.ask("/metrics")[1],
                    str(await scene.policy_status(name)),
                    str(await scene.items("/apis/events.k8s.io/v1/events")),
                ]
                for hidden in (TOKEN, NEXT_TOKEN, TENANT, _coded(TOKEN)):
                    assert not [each for each in told if hidden in each]
        assert await operator.stop() == 0


class Hostile:
    """A Prometheus that answers with what no node can use, and with one value that makes sense."""

    def __init__(self, nodes: Sequence[str]) -> None:
        self.sound, self.nodes, self.asked = nodes[0], nodes[1:], 0
        self._began = time.time()

    def _series(self) -> Iterator[tuple[dict[str, str], float, str]]:
        now = time.time()
        yield {"node": self.sound}, now, "0.5"
        odd = ["NaN", "-1", "1e300", "+Inf"]
        yield from (({"node": name}, now, value) for name, value in zip(self.nodes, odd, strict=False))
        future, contradicted, frozen = self.nodes[len(odd) :]
        yield {"node": future}, now + 3_600, "0.5"
        yield {"node": contradicted, "cpu": "0"}, now, "0.5"
        yield {"node": contradicted, "cpu": "1"}, now, "0.6"
        yield {"node": frozen}, self._began - 600, "0.5"
        yield from (({"node": f"unknown-{n}", "pad": "x" * 80}, now, "0.5") for n in range(10_000))

    async def handle(self, _: web.Request) -> web.Response:
        self.asked += 1
        result = [{"metric": labels, "value": [at, value]} for labels, at, value in self._series()]
        return web.json_response({"status": "success", "data": {"resultType": "vector", "result": result}})


async def test_hostile_readings_harm_one_node_each(
    start_roadstead: StartRoadstead, start_operator: Callable[..., Operator]
) -> None:
    """Not a number, negative, huge, endless, from the future, twice, frozen, and a megabyte of no node."""
    cluster = start_roadstead()
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        operator = start_operator(cluster.kubeconfig)
        scene = await Scene(speaker).begin()
        hostile = Hostile([await scene.node(f"n{number}") for number in range(8)])
        async with served(hostile.handle) as (port, _):
            spec = policy_of(scene, f"http://127.0.0.1:{port}")
            (provider,) = spec["rebalancing"]["metricsProviders"]
            for secret_field in ("authToken", "headersSecret", "tls"):
                del provider["prometheus"][secret_field]

            name = await scene.policy(spec)

            async def states() -> dict[str, float]:
                known = ("measured", "estimated", "stale", "unknown")
                return {each: operator.metric("plimsoll_load_nodes", state=each) for each in known}

            found = await eventually(states, lambda found: found["measured"] > 0)
            assert found == {"measured": 1, "estimated": 0, "stale": 0, "unknown": 7}
            for number in range(3):
                await scene.pod(f"web-{number}")
                assert await scene.until_bound(f"web-{number}")
            last = (await scene.runs(name, 2))["lastRun"]
            assert (last["result"], last.get("failures")) == ("Succeeded", [])
            assert await scene.records() == []
        assert await operator.stop() == 0


def _coded(text: str) -> Any:
    return base64.b64encode(text.encode()).decode()
