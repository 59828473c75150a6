"""A replayed day on the development cluster: its metrics API answers with what a series of usage says.

Every sample of a series is five minutes of the day; they follow one another as fast as the operator reads.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from e2e.polls import eventually
from e2e.scene import FINISHED, LABEL, Obj, Scene
from e2e.speaker import MERGE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from e2e.operator_process import Operator

#: A simulated kubelet runs the pods, and the development cluster tells what they use by this annotation.
KUBELET, USAGE = "roadstead.test/kubelet", "roadstead.test/usage"

#: Milli-cores that a node has, and percent of them above which it is over-used, and up to which under-used.
ROOM, HIGH, LOW = 4_000, 60, 40

MEASURED = "plimsoll_load_source_requests_total"


def by_load() -> Obj:
    """LowNodeUtilization by the metrics API."""
    return {
        "name": "LowNodeUtilization",
        "args": {
            "thresholds": {"cpu": LOW},
            "targetThresholds": {"cpu": HIGH},
            "metricsUtilization": {"source": "KubernetesMetrics"},
        },
    }


async def a_measured_node(scene: Scene, suffix: str, **spec: bool) -> str:
    """A node of four cores with a simulated kubelet, whose usage is served; ``spec`` is further fields."""
    name = f"{scene.name}-{suffix}"
    room = {"cpu": f"{ROOM}m", "memory": "16Gi", "pods": "50"}
    node: Obj = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, LABEL: scene.name},
            "annotations": {KUBELET: "simulated"},
        },
        "spec": spec,
        "status": {"capacity": room, "allocatable": room},
    }
    await scene.make("/api/v1/nodes", node)
    return name


def placing(scene: Scene, *plugins: str) -> Obj:
    """A policy's spec that places the scene's pods by these score plugins, too."""
    enabled = [{"name": name, "weight": 3} for name in plugins]
    return {"scheduling": {"schedulerName": scene.scheduler, "plugins": {"score": {"enabled": enabled}}}}


@dataclass(frozen=True, slots=True)
class ReplayedLoad:
    """Workloads of one pod each, which use what their series say.

    Attributes:
        series: Milli-cores by sample, keyed by workload.
        operator: Who reads them.
    """

    scene: Scene
    series: Mapping[str, Sequence[int]]
    operator: Operator

    async def begin(self, workloads: Sequence[str], node: str) -> None:
        """Start these workloads, which may run anywhere, while this node is the only one that is open."""
        for name in workloads:
            template: Obj = {
                "metadata": {"labels": {"app": name}, "annotations": {USAGE: self._use(name, 0)}},
                "spec": self.scene.pod_spec(),
            }
            document: Obj = {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name},
                "spec": {"selector": {"matchLabels": {"app": name}}, "template": template},
            }
            await self.scene.make(self.scene.path("deployments", "/apis/apps/v1"), document)
            assert await self.scene.until_running(1, app=name) == [node]

    def _use(self, name: str, sample: int) -> str:
        return f"cpu={self.series[name][sample]}m,memory=100Mi"

    async def go_to(self, sample: int) -> None:
        """Let all pods use what they use at this sample, and wait until the operator has read it."""
        changes = [self._tell(pod, sample) for pod in await self.scene.pods()]
        await asyncio.gather(*changes)
        before = self.read

        async def read() -> float:
            return self.read

        await eventually(read, lambda now: now >= before + 3)  # the second one has begun since

    async def _tell(self, pod: Obj, sample: int) -> None:
        meta = pod["metadata"]
        change = {"metadata": {"annotations": {USAGE: self._use(meta["labels"]["app"], sample)}}}
        path = self.scene.path(f"pods/{meta['name']}")
        await self.scene.speaker.request("PATCH", path, change, sends=MERGE)  # it may be gone

    @property
    def read(self) -> float:
        """How often the operator has read the metrics API."""
        return self.operator.metric(MEASURED, source="KubernetesMetrics", result="answered")

    async def shares(self) -> dict[str, float]:
        """Percent of their cpu that nodes use, keyed by name, as the metrics API says."""
        items = await self.scene.items("/apis/metrics.k8s.io/v1beta1/nodes")
        return {
            each["metadata"]["name"]: 100 * int(each["usage"]["cpu"][:-1]) / 10**6 / ROOM for each in items
        }

    async def hot(self) -> list[str]:
        """The nodes over the line."""
        return sorted(name for name, share in (await self.shares()).items() if share > HIGH)

    async def until_rest(self) -> list[Obj]:
        """Wait until no node is over the line, and no move under way; the records."""

        async def now() -> tuple[list[str], list[Obj]]:
            return await self.hot(), await self.scene.records()

        def rests(found: tuple[list[str], list[Obj]]) -> bool:
            hot, records = found
            return not hot and all(each.get("status", {}).get("phase") in FINISHED for each in records)

        return (await eventually(now, rests))[1]
