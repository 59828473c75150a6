"""Runs the operator's Deployments of a test cluster, in place of its nodes.

Pods of the development cluster are pretended. So somebody binds them (there is no scheduler but ours), starts
a real process for each replica with its container's options, under the rights that the cluster gives to its
service account, and ends it with its Deployment; and runs the command of a Helm test.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from e2e.door import Door, door, kubeconfig_for
from e2e.rbac import Asked, Rights
from e2e.speaker import MERGE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from e2e.operator_process import Operator
    from e2e.speaker import Speaker
    from roadstead.clients import RunningCluster

Obj = dict[str, Any]
SELECTOR = "app.kubernetes.io/name=plimsoll"
PACE_S = 0.4


@dataclass(slots=True)
class Host:
    """The nodes of one cluster, as far as they run the operator."""

    speaker: Speaker
    cluster: RunningCluster
    start: Callable[..., Operator]
    folder: Path
    refused: set[tuple[str, str, str]] = field(default_factory=set)
    ran: list[list[str]] = field(default_factory=list)  #: the options of each process, in their order
    tested: list[int] = field(default_factory=list)  #: the exit status of each Helm test
    said: list[str] = field(default_factory=list)  #: the log of each process that was ended
    _rights: Rights | None = None
    _operators: list[Operator] = field(default_factory=list)
    _running: tuple[object, ...] = ()
    _asked: set[str] = field(default_factory=set)

    async def run(self) -> None:
        """Do so until cancelled."""
        async with door(self.cluster.plain_url, self._permits) as entrance:
            self.refused = entrance.refused
            try:
                while True:
                    await self._look(entrance)
                    await asyncio.sleep(PACE_S)
            finally:
                for operator in self._operators:
                    operator.kill()

    def _permits(self, asked: Asked) -> bool:
        return self._rights is not None and self._rights(asked)

    async def _look(self, entrance: Door) -> None:
        query = {"labelSelector": SELECTOR}
        found = (await self.speaker.request("GET", "/apis/apps/v1/deployments", **query)).accepted()["items"]
        for pod in (await self.speaker.request("GET", "/api/v1/pods", **query)).accepted()["items"]:
            if "nodeName" in pod["spec"]:
                continue
            if pod["metadata"]["labels"].get("app.kubernetes.io/component") == "test":
                await self._test(pod)
            else:
                await self._bind(pod)
        wanted: tuple[object, ...] = ()
        for deployment in found:
            namespace, spec = deployment["metadata"]["namespace"], deployment["spec"]["template"]["spec"]
            self._rights = await Rights.read(self.speaker, namespace, spec["serviceAccountName"])
            container = spec["containers"][0]
            wanted = (namespace, container["image"], deployment["spec"]["replicas"], *container["args"][1:])
        if wanted != self._running:
            for operator in self._operators:
                await operator.stop()
                self.said.append(operator.said())
            self._operators, self._running = [], wanted
            if wanted:
                namespace, _, replicas, *options = wanted
                options.append(f"--leader-elect-resource-namespace={namespace}")  # a pod knows its own
                config = kubeconfig_for(self.folder / "door", entrance.url, self.cluster.token)
                self._operators = [self.start(config, *options) for _ in range(replicas)]  # type: ignore[call-overload] # the library is untyped
                self.ran.append(options)  # type: ignore[arg-type] # a fake has only what is used

    async def _bind(self, pod: Obj) -> None:
        (node, *_) = (await self.speaker.request("GET", "/api/v1/nodes")).accepted()["items"]
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name},
            "target": {"kind": "Node", "name": node["metadata"]["name"]},
        }
        await self.speaker.request("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/binding", binding)

    async def _test(self, pod: Obj) -> None:
        """Run the command of a Helm test's container, which asks the Service, and tell how it ended."""
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        if pod["metadata"]["uid"] in self._asked:
            return
        self._asked.add(pod["metadata"]["uid"])
        _, *args, url = pod["spec"]["containers"][0]["command"]
        service = (await self.speaker.request("GET", f"/api/v1/namespaces/{namespace}/services")).accepted()
        names = {f"{each['metadata']['name']}.{namespace}" for each in service["items"]}
        assert url.split("/")[2].partition(":")[0] in names
        port = self._operators[0].metrics_port
        process = await asyncio.create_subprocess_exec(
            sys.executable, *args, f"http://127.0.0.1:{port}/readyz"
        )
        status = await process.wait()
        self.tested.append(status)
        phase = {"status": {"phase": "Failed" if status else "Succeeded"}}
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
        await self.speaker.request("PATCH", path, phase, sends=MERGE)
