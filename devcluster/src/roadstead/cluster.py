"""Runs API server, controllers and kubelets in one asyncio process on loopback.

The command ``roadstead`` and tests use it. It is a development tool: one administrator, whose token is
generated at each start and written into the kubeconfig, and all state in memory.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime as dt
import gc
import os
import secrets
import signal
from typing import TYPE_CHECKING, Self

import aiohttp
import yaml
from yarl import URL

from roadstead.assembly import ALWAYS_ALLOW, built_in_api, create_built_in_objects, extended_server, utc_now
from roadstead.certificates import loopback_identity
from roadstead.controllers import chosen, make_context, start_controllers
from roadstead.controllers.event_expiry import EVENT_TTL_S, EventExpiry
from roadstead.controllers.volumes.binder import HOST_PATH
from roadstead.controllers.volumes.matching import CLASSES, LATE
from roadstead.controllers.work_queue import WorkQueue
from roadstead.kinds.storage import DEFAULT_CLASS
from roadstead.kubelets.devices import DeviceDriver
from roadstead.kubelets.kubelets import Kubelets, KubeletSettings
from roadstead.kubelets.nodes import make_node
from roadstead.scheduler import Scheduler
from roadstead.server.connector import InProcessConnector
from roadstead.server.metrics_api import MetricsApi
from roadstead.store.api import key_of
from roadstead.values.status_errors import bad_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from roadstead.server.server import Connected
    from roadstead.values.resources import Obj

NAME = "roadstead"
#: A POST to this path restores the initial objects.
RESET = "/roadstead/reset"
ZONES = 3
#: Seconds in which the answer to a request for a restart is sent.
RESTART_AFTER_S = 0.02
#: Thresholds of Python's garbage collector: new objects before a collection of the youngest generation, and
#: collections of each generation before one of the next. Python's defaults are 700, 10 and 10. A collection
#: of all objects that the store keeps for watches takes a second of CPU, in which no request is answered.
GC_THRESHOLDS = (20_000, 20, 100)


def new_token() -> str:
    """A random token of 256 bits."""
    return secrets.token_urlsafe(32)


def write_privately(path: Path, content: str) -> None:
    """Write a file atomically, readable only by its owner."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(content)
    part.replace(path)


def kubeconfig(url: str, token: str, *, certificate: bytes = b"", plain_url: str = "") -> str:
    """A kubeconfig, as YAML.

    Args:
        url: the server's URL.
        token: the bearer token.
        certificate: the certificate authority of ``url``, PEM.
        plain_url: the URL without TLS, for the context "roadstead-http".
    """
    cluster = {"server": url}
    if certificate:
        cluster["certificate-authority-data"] = base64.b64encode(certificate).decode()
    clusters = {NAME: cluster}
    if plain_url:
        clusters[f"{NAME}-http"] = {"server": plain_url}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": found} for name, found in clusters.items()],
            "users": [{"name": NAME, "user": {"token": token}}],
            "contexts": [
                {"name": name, "context": {"cluster": name, "user": NAME, "namespace": "default"}}
                for name in clusters
            ],
            "current-context": NAME,
        },
        sort_keys=False,
    )


def simulated_nodes(
    count: int, *, cpu: str = "8", memory: str = "32Gi", pods: int = 110, devices: str = ""
) -> list[Obj]:
    """Nodes of one size in three zones, each with a simulated kubelet."""
    return [
        make_node(
            f"node-{number + 1:04}",
            cpu=cpu,
            memory=memory,
            pods=pods,
            zone=f"zone-{'abc'[number % ZONES]}",
            devices=devices,
        )
        for number in range(count)
    ]


def default_storage_class(name: str) -> Obj:
    """The default storage class, as a small cluster has it: volumes are made where the first pod goes."""
    return {
        "metadata": {"name": name, "annotations": {DEFAULT_CLASS: "true"}},
        "provisioner": HOST_PATH,
        "volumeBindingMode": LATE,
    }


class DevCluster:
    """A cluster while an ``async with`` block runs.

    Args:
        nodes: the initial nodes.
        controllers: the controllers to run: all, none, or a list of names as ``controllers.chosen`` reads it.
        scheduler: whether to bind the pods of ``default-scheduler``.
        storage_class: the name of a default storage class, whose volumes are provisioned; "" for none.
        kubelets: the delays of simulated kubelets; None runs none.
        port: the port on 127.0.0.1; 0 selects a free one, None opens no port.
        token: the bearer token of its clients; random if empty.
        token_file: further tokens, one per line; the file may be replaced at any time.
        clock: the time, with zone, of objects, controllers and kubelets.
        event_ttl_s: seconds from the last write of an Event to its deletion.
        pod_groups: whether PodGroups and Workloads of scheduling.k8s.io/v1alpha2 are served.
        composite_groups: whether they, and CompositePodGroups, are served in v1alpha3 instead.
        job_groups: whether Jobs whose pods need one another get one of each; only with ``pod_groups``.
        actions: called on a POST to their path, as ``reset`` is; a StatusError is the response.
        authorization: "AlwaysAllow", or "RBAC" for roles and their bindings.

    Attributes:
        url: the URL, with TLS.
        plain_url: the URL without TLS, for latency-sensitive clients.
        faults: what breaks requests on purpose.
        api: the write path that HTTP uses, too.
    """

    def __init__(
        self,
        *,
        nodes: Iterable[Obj] = (),
        controllers: bool | str = True,
        scheduler: bool = False,
        storage_class: str = "",
        kubelets: KubeletSettings | None = KubeletSettings(),  # noqa: B008 - frozen
        port: int | None = 0,
        token: str = "",
        token_file: Path | None = None,
        clock: Callable[[], dt.datetime] = utc_now,
        event_ttl_s: float = EVENT_TTL_S,
        pod_groups: bool = False,
        composite_groups: bool = False,
        job_groups: bool = False,
        actions: Mapping[str, Callable[[], None]] | None = None,
        authorization: str = ALWAYS_ALLOW,
    ) -> None:
        self._offset = dt.timedelta()
        moved: Callable[[], dt.datetime] = lambda: clock() + self._offset  # noqa: E731
        self.api = built_in_api(moved, pod_groups=pod_groups, composite_groups=composite_groups)
        self.token = token or new_token()
        self.url = ""
        self.plain_url = ""
        self._certificate = b""
        self._nodes = list(nodes)
        self._controllers = controllers if isinstance(controllers, str) else "*" if controllers else ""
        chosen(self._controllers)  # an unknown name is an error here, not when the cluster starts
        self._with_scheduler = scheduler
        self._storage_class = storage_class
        self._kubelet_settings = kubelets
        self._port = port
        self._server = extended_server(
            self.api,
            self.token,
            actions={RESET: self.reset, **(actions or {})},
            token_file=token_file,
            authorization=authorization,
        )
        self.faults = self._server.faults
        self.faults.controls |= {"/roadstead/restart": self._restart, "/roadstead/clock": self._move_clock}
        self._restarting: asyncio.Task[None] | None = None
        self._queue = WorkQueue(lambda: moved().timestamp(), self._server.webhooks)
        self._context = make_context(
            self.api, self._queue, job_groups=pod_groups and job_groups and not composite_groups
        )
        self._event_expiry = EventExpiry(self._context, event_ttl_s)
        self._worker: asyncio.Task[None] | None = None
        self._built_in = {
            (name, key_of(entry.obj)): entry.revision for name, entry in self.api.store.everything()
        }

    async def __aenter__(self) -> Self:
        context = self._context
        self._event_expiry.start()
        start_controllers(context, self._controllers)
        if self._with_scheduler:
            Scheduler(context).start()
        if self._kubelet_settings is not None:
            Kubelets(context, self._kubelet_settings).start()
            MetricsApi(context).start()
            DeviceDriver(context).start()
        self._create_initial_objects()
        if self._port is None:
            await self._server.open()
        else:
            identity = await asyncio.to_thread(loopback_identity)
            self._tls = identity.context
            await self._listen(0, self._port)
            self._certificate = identity.certificate
        self._worker = asyncio.create_task(self._queue.run(), name="controllers and kubelets")
        return self

    async def _listen(self, plain_port: int, port: int) -> None:
        self.plain_url = await self._server.start(plain_port)
        self.url = await self._server.start(port, self._tls)

    async def __aexit__(self, *_: object) -> None:
        if self._restarting is not None:
            await self._restarting
        if self._worker is not None:
            self._worker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._worker
        await self._server.stop()

    def session(self) -> aiohttp.ClientSession:
        """A session of an administrator in this process, over connections without a port.

        It accepts paths: ``await session.get("/api/v1/nodes")``. The caller closes it.
        """
        return aiohttp.ClientSession(
            "http://roadstead.test",
            connector=InProcessConnector(self._server),
            headers={"Authorization": f"Bearer {self.token}"},
        )

    def _restart(self, body: Obj) -> Obj:
        """Answer, then reset all connections, refuse new ones for a while, and listen on the same ports."""
        if self._port is None:
            raise bad_request("a cluster without a port has no listener to restart")

        async def restart() -> None:
            await asyncio.sleep(RESTART_AFTER_S)
            ports = [URL(url).port or 0 for url in (self.plain_url, self.url)]
            await self._server.stop(abruptly=True)
            await asyncio.sleep(float(body.get("down_s", 0.0)))
            await self._listen(*ports)

        self._restarting = asyncio.create_task(restart(), name="restart")
        return {}

    def _move_clock(self, body: Obj) -> Obj:
        self._offset += dt.timedelta(seconds=float(body["seconds"]))
        self._queue.wake()
        return {}

    async def connect(self, make_protocol: Callable[[], Connected]) -> tuple[asyncio.Transport, Connected]:
        """Connect a client in this process without a port, as ``loop.create_connection`` does with one."""
        return await self._server.connect(make_protocol)

    def reset(self) -> None:
        """Restore the initial objects: delete all others, and create the nodes again.

        Finalizers are ignored. Versions continue to increase, so that watches see the deletions. Faults are
        removed, and the clock is set back.
        """
        self.faults.clear()
        self._offset = dt.timedelta()
        self.api.store.restore(self._built_in)
        create_built_in_objects(self.api)
        self._create_initial_objects()

    def _create_initial_objects(self) -> None:
        if self._storage_class and self.api.find(CLASSES, None, self._storage_class) is None:
            self.api.create(CLASSES, default_storage_class(self._storage_class))
        for node in self._nodes:
            if self.api.find("nodes", None, node["metadata"]["name"]) is None:
                self.api.create("nodes", node)
        self._queue.run_due()

    def write_kubeconfig(self, path: Path) -> None:
        """Write the kubeconfig of an administrator in one step."""
        write_privately(
            path, kubeconfig(self.url, self.token, certificate=self._certificate, plain_url=self.plain_url)
        )


async def serve(cluster: DevCluster, path: Path, ready: Callable[[str], None]) -> None:
    """Run a cluster until SIGTERM or SIGINT.

    Args:
        cluster: the cluster, not yet entered.
        path: the kubeconfig to write once requests are answered.
        ready: called with the URL after that.
    """
    gc.set_threshold(*GC_THRESHOLDS)
    async with cluster:
        ended = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        await asyncio.to_thread(cluster.write_kubeconfig, path)
        ready(cluster.url)
        await ended.wait()
