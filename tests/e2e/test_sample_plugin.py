"""A plugin from another package, as docs/writing-a-plugin.md walks through it: installed, named, obeyed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from aiohttp import web

from e2e.conftest import define
from e2e.polls import eventually
from e2e.scene import POLICIES, Scene
from e2e.speaker import speaking

if TYPE_CHECKING:
    from collections.abc import Callable

    from e2e.operator_process import Operator
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = pytest.mark.e2e

SAMPLE = Path(__file__).parents[2] / "examples" / "sample-plugin"


def install(target: Path) -> None:
    """Install the sample into a folder, as pip installs it into an environment."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    command += ["--no-deps", "--no-build-isolation", "--target", str(target), str(SAMPLE)]
    subprocess.run(command, check=True, timeout=300)


def install_broken(target: Path) -> None:
    """A package whose plugins cannot be used: one cannot be imported, one takes a name of ours."""
    (target / "broken_plugins.py").write_text(
        "from plimsoll.framework import NoArgs\n\n\n"
        "class Thief:\n    name = 'NodeName'\n    permit = None\n    args_model = NoArgs\n"
    )
    metadata = target / "broken_plugins-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-plugins\nVersion: 0.1\n")
    (metadata / "entry_points.txt").write_text(
        "[plimsoll.plugins]\nAbsent = not_there:Absent\nThief = broken_plugins:Thief\n"
    )


class PowerController:
    """An HTTP server that wakes nodes; it notes whom, and whether the pod had come already."""

    def __init__(self, scene: Scene) -> None:
        self.woken: list[tuple[str, str]] = []
        self._scene = scene

    async def wake(self, request: web.Request) -> web.Response:
        """Answer after a look at the pod."""
        node = request.match_info["node"]
        self.woken.append((node, await self._scene.node_of("important")))
        return web.Response()

    async def start(self) -> tuple[web.AppRunner, str]:
        """Listen; the runner to be cleaned up, and the address."""
        app = web.Application()
        app.router.add_post("/wake/{node}", self.wake)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return runner, f"http://127.0.0.1:{runner.addresses[0][1]}/wake"


async def test_a_pod_is_placed_by_a_plugin_of_another_package(
    tmp_path: Path, start_roadstead: StartRoadstead, start_operator: Callable[..., Operator]
) -> None:
    """Ordinary pods let nodes sleep, an important one wakes one first; broken packages are named, no more."""
    environment = tmp_path / "environment"
    install(environment)
    install_broken(environment)
    cluster = start_roadstead()
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        scene = await Scene(speaker, "power").begin()
        controller = PowerController(scene)
        runner, url = await controller.start()
        operator = start_operator(cluster.kubeconfig, PYTHONPATH=str(environment)).until_ready()
        policy, pod = yaml.safe_load_all((SAMPLE / "manifest.yaml").read_text(encoding="utf-8"))
        policy["spec"]["scheduling"]["pluginConfig"][0]["args"]["wakeUrl"] = url
        await scene.make(POLICIES, policy)
        asleep = await scene.node("asleep", cpu="64", labels={"power": "asleep"})
        awake = await scene.node("awake", cpu="1")

        await scene.until_condition("power-saving", "Ready", "True")
        pod["metadata"]["namespace"] = scene.name
        await scene.make(scene.path("pods"), pod)
        assert await scene.until_bound("ordinary") == awake
        assert controller.woken == []

        await important(scene, pod, cpu="2", priority=0)
        refused = await eventually(lambda: scene.condition("important"), lambda one: one.get("message"))
        assert refused["message"].startswith(
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were asleep."
        )
        await speaker.request("DELETE", scene.path("pods/important"))

        await important(scene, pod, cpu="2", priority=1000)
        assert await scene.until_bound("important") == asleep
        assert controller.woken == [(asleep, "")]

        enabled = [{"name": "Absent"}, {"name": "Thief"}]
        scheduling = {"schedulerName": "absent", "plugins": {"filter": {"enabled": enabled}}}
        await scene.make(
            POLICIES, {**policy, "metadata": {"name": "absent"}, "spec": {"scheduling": scheduling}}
        )
        degraded = await scene.until_condition("absent", "Degraded", "True")
        await scene.until_condition("power-saving", "Degraded", "False")
        assert "Absent of broken-plugins 0.1" in degraded["message"]
        assert "No module named 'not_there'" in degraded["message"]
        assert 'the name "NodeName" is taken by plimsoll.plugins.node_name' in degraded["message"]
        assert operator.metric("plimsoll_scheduler_plugin_failures_total", extension_point="Load") == 2
        await runner.cleanup()


async def important(scene: Scene, like: dict[str, Any], *, cpu: str, priority: int) -> None:
    """Create the pod ``important``, once a former one is gone."""
    await eventually(
        lambda: scene.speaker.request("GET", scene.path("pods/important")),
        lambda answer: answer.status == 404,
    )
    spec = {**like["spec"], "containers": [{**like["spec"]["containers"][0]}]}
    spec["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    if priority:
        classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
        document = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "important"},
            "value": priority,
        }
        await scene.make(classes, document)
        spec["priorityClassName"] = "important"
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "important"}, "spec": spec}
    await scene.make(scene.path("pods"), document)
