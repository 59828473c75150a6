"""Each overlay, and the chart with each set of values, runs as installed.

Applied to a development cluster, first as a dry run of the server's. Then the operator is started as the
Deployment in the cluster says, in as many processes and with its options, under the rights that its roles and
bindings give to its service account, and does its first work. With the widest rights the whole story is
played: what it needs must be allowed, and what is allowed must be used. test_least_privilege.py plays it for
each role, and tests/deploy compares what the chart and the overlays grant.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from deploy.manifests import (
    CHART,
    CRDS_CHART,
    NAME,
    OVERLAYS,
    VALUES,
    Obj,
    operators_grants,
    parsed,
    rendered,
    run,
    templated,
)
from e2e.conftest import define
from e2e.door import Door, door, kubeconfig_for
from e2e.rbac import Rights
from e2e.scene import Scene
from e2e.speaker import speaking
from e2e.stories import LATER, OF_OTHER_KINDS, a_surge, everything

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from e2e.operator_process import Operator
    from roadstead.clients import RunningCluster
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,  # each has a cluster of its own
]

APPLYING = ("apply", "--server-side", "--validate=strict")


def applied(text: str, kubeconfig: Path) -> None:
    """Apply manifests as a user does, once the server says that it would take them."""
    config = f"--kubeconfig={kubeconfig}"
    namespaces = [f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAME}}}\n"]
    run(
        "kubectl", *APPLYING, config, "-f-", given="---\n".join(namespaces)
    )  # what a dry run makes is not there
    run("kubectl", *APPLYING, "--dry-run=server", config, "-f-", given=text)
    run("kubectl", *APPLYING, config, "-f-", given=text)


def installed(values: str, kubeconfig: Path) -> None:
    """Install the chart as a user does; with the default values, the server says first that it would."""
    chosen = ["--values", str(CHART / "ci" / values)] if values else []
    where = ["--namespace", NAME, "--create-namespace", "--kubeconfig", str(kubeconfig)]
    if "alone" in values:  # brings no definitions
        run("helm", "install", f"{NAME}-crds", str(CRDS_CHART), *where)
    if not values:
        run("helm", "install", NAME, str(CHART), *where, "--dry-run=server")
    run("helm", "install", NAME, str(CHART), *where, *chosen)


async def play(
    cluster: RunningCluster, start: Callable[..., Operator], folder: Path, *, acts: bool, whole: bool = False
) -> Door:
    """Start what the cluster's Deployment says, under its service account's rights; the door they used.

    Args:
        cluster: Where it is installed.
        start: Starts a process.
        folder: For the kubeconfig.
        acts: Whether it may bind pods.
        whole: Play the whole story; the operator may surge.
    """
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        found = await speaker.request("GET", f"/apis/apps/v1/namespaces/{NAME}/deployments")
        (deployment,) = found.accepted()["items"]
        spec: Obj = deployment["spec"]["template"]["spec"]
        command, *options = spec["containers"][0]["args"]
        assert command == "run"
        if "--leader-elect=false" not in options:
            options.append(f"--leader-elect-resource-namespace={NAME}")  # a pod knows its own
        rights = await Rights.read(speaker, NAME, spec["serviceAccountName"])
        path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
        async with door(cluster.plain_url, rights) as entrance:
            entrance.policies = (await speaker.request("GET", path)).accepted()["items"]
            entrance.user = f"system:serviceaccount:{NAME}:{spec['serviceAccountName']}"
            config = kubeconfig_for(folder / "door", entrance.url, cluster.token)
            operators = [start(config, *options) for _ in range(deployment["spec"]["replicas"])]
            scene = await Scene(speaker).begin()
            await (everything(scene) if whole else its_first_work(scene, acts=acts))
            if whole:
                await a_surge(await Scene(speaker).begin())
            for operator in operators:
                if "leader election lost" in operator.said():  # a kubelet would start it again
                    operator.start()
                await asyncio.to_thread(operator.until_ready)
            stopped = await asyncio.gather(*(operator.stop() for operator in operators))
            assert set(stopped) == {0}, [operator.said()[-4000:] for operator in operators]

        assert entrance.refused == set()
        assert entrance.denied == []
        return entrance


async def its_first_work(scene: Scene, *, acts: bool) -> None:
    """Bind a pod, or make a plan."""
    if not acts:
        await scene.runs(await scene.policy(scene.rebalancing("RemoveDuplicates", mode="DryRun")), 1)
        return
    await scene.node("a")
    await scene.scheduling()
    await scene.pod("first")
    await scene.until_bound("first")


@pytest.mark.parametrize("overlay", OVERLAYS)
async def test_an_overlay_runs_with_what_it_installs(
    overlay: str,
    start_roadstead: StartRoadstead,
    start_operator: Callable[..., Operator],
    tmp_path: Path,
) -> None:
    """As kubectl apply -k does."""
    cluster = start_roadstead()
    applied(rendered(overlay), cluster.kubeconfig)

    await play(cluster, start_operator, tmp_path, acts=overlay != "dry-run")


@pytest.mark.parametrize("values", VALUES)
async def test_the_chart_runs_with_what_it_installs(
    values: str,
    start_roadstead: StartRoadstead,
    start_operator: Callable[..., Operator],
    tmp_path: Path,
) -> None:
    """As helm install does."""
    cluster = start_roadstead(pod_groups=True)
    installed(values, cluster.kubeconfig)

    whole = values == "surge-values.yaml"
    entrance = await play(cluster, start_operator, tmp_path, acts=bool(values), whole=whole)

    if whole:
        granted = operators_grants(parsed(templated(values)))
        assert entrance.admitted == {"nodes", "deployments", "deployments/scale"}
        assert granted - entrance.used == LATER | OF_OTHER_KINDS
