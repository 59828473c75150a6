"""Containers of descheduler's tests, played by the kubelets of their nodes."""

from __future__ import annotations

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import Any

from e2e.kubelet import Kubelets
from e2e.polls import eventually
from roadstead.kubelets import pods

Obj = dict[str, Any]

#: Whether a descheduler that runs has ended its first cycle.
HasRun = Callable[[], Awaitable[bool]]
Descheduler = Callable[[str, Sequence[str]], AbstractAsyncContextManager[HasRun]]

#: The image of descheduler's Deployment.
IMAGE = "descheduler"

#: How often a container that fails is started again.
RESTARTS = 4

#: Seconds until a descheduler's first cycle should have ended; one that is deleted before it gets to its end.
CYCLE_S = 40.0


def interval_s(options: Sequence[str]) -> int:
    """Seconds of ``--descheduling-interval``, as Go writes a duration of one unit."""
    text = options[options.index("--descheduling-interval") + 1]
    return int(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]


def exit_code(container: Obj) -> int | None:
    """What a container's command ends with; None if it runs on."""
    text = " ".join([*container.get("command", ()), *container.get("args", ())])
    if text.endswith("/false"):
        return 1
    ends = re.search(r"\bexit (\d+)$", text)
    return int(ends[1]) if ends else None


def is_evicted(pod: Obj) -> bool:
    """Whether a pod goes because of the Eviction API."""
    return any(
        each.get("reason") == "EvictionByEvictionAPI" for each in pod["status"].get("conditions") or ()
    )


@dataclass
class ContainerRuntime(Kubelets):
    """Kubelets that play what containers of descheduler's tests do, and run a descheduler in place of one.

    Attributes:
        start: Runs a descheduler with a policy and its container's options.
        evictions: For each descheduler that has ended its test's label, and how many pods were evicted.
        running: The pods whose containers were started, by uid.
    """

    start: Descheduler = field(kw_only=True)
    evictions: list[tuple[str, int]] = field(default_factory=list)
    running: dict[str, Obj] = field(default_factory=dict)
    _evicted: set[str] = field(default_factory=set)
    _deschedulers: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _ran: dict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))

    def _look(self, kind: str, pod: Obj) -> None:
        if (kind == "DELETED" or "deletionTimestamp" in pod["metadata"]) and is_evicted(pod):
            self._evicted.add(pod["metadata"]["uid"])
        if kind == "DELETED":
            self.running.pop(pod["metadata"]["uid"], None)
        super()._look(kind, pod)

    async def _live(self, pod: Obj) -> None:
        container, uid = pod["spec"]["containers"][0], pod["metadata"]["uid"]
        self.running[uid] = pod
        if container["image"] == IMAGE:
            self._deschedulers[uid] = asyncio.create_task(self._deschedule(pod, container["args"]))
        elif (code := exit_code(container)) is not None:
            await self._exit(pod, code)

    async def _deschedule(self, pod: Obj, options: Sequence[str]) -> None:
        """Run a descheduler until it is cancelled."""
        (name,) = (each["configMap"]["name"] for each in pod["spec"]["volumes"] if "configMap" in each)
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/configmaps/{name}"
        policy = (await self.speaker.request("GET", path)).accepted()["data"]["policy.yaml"]
        before, ran = len(self._evicted), self._ran[pod["metadata"]["uid"]]
        try:
            async with self.start(policy, options) as has_run:
                with suppress(AssertionError):
                    await eventually(has_run, within_s=CYCLE_S)
                ran.set()
                await asyncio.Event().wait()
        finally:
            ran.set()
            self.evictions.append((pod["metadata"]["labels"]["test"], len(self._evicted) - before))

    async def _let_go(self, pod: Obj) -> None:
        uid = pod["metadata"]["uid"]
        if (task := self._deschedulers.pop(uid, None)) is not None:
            await self._ran[uid].wait()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await super()._let_go(pod)

    async def _exit(self, pod: Obj, code: int) -> None:
        """End a pod whose containers end, or start them again a few times."""
        if pod["spec"]["restartPolicy"] != "Always":
            await self._tell(pod, pods.ended(pod, code, time.time()))
            return
        for _ in range(RESTARTS):
            await asyncio.sleep(1)
            failed = {**pod, "status": pods.restarting(pod, code, time.time())}
            await self._tell(pod, failed["status"])
            status = failed["status"]
            again = pods.running(failed, status["hostIP"], status["podIP"], time.time(), ready=True)
            pod = {**pod, "status": again}
            await self._tell(pod, again)
