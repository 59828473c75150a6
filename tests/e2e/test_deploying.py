"""Each overlay, and the chart with each set of values, runs as installed.

Applied to a development cluster, first as a dry run of the server's. Then the operator is started as the
Deployment in the cluster says, in as many processes and with its options, under the rights that its roles and
bindings give to its service account. What it needs must be allowed, and what is allowed must be used.
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
from e2e.door import door, kubeconfig_for
from e2e.rbac import Rights
from e2e.scene import Scene
from e2e.speaker import speaking
from e2e.stories import LATER, LATER_IN_A_DRY_RUN, a_prediction, a_surge, everything

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from e2e.operator_process import Operator
    from roadstead.clients import RunningCluster
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,  # each has a cluster of its own, and plays a story through
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
    """Install the chart as a user does, once the server says that it would take it."""
    chosen = ["--values", str(CHART / "ci" / values)] if values else []
    where = ["--namespace", NAME, "--create-namespace", "--kubeconfig", str(kubeconfig)]
    if "alone" in values:  # brings no definitions
        run("helm", "install", f"{NAME}-crds", str(CRDS_CHART), *where)
    run("helm", "install", NAME, str(CHART), *where, *chosen, "--dry-run=server")
    run("helm", "install", NAME, str(CHART), *where, *chosen)


async def play(cluster: RunningCluster, start: Callable[..., Operator], folder: Path, granted: set) -> None:  # type: ignore[type-arg] # known in this test
    """Start what the cluster's Deployment says, under its service account's rights; play the story."""
    acts = ("create", "", "pods/binding") in granted
    surges = ("patch", "apps", "deployments") in granted
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
            await (everything if acts else a_prediction)(scene)
            if surges:
                await a_surge(await Scene(speaker).begin())
            for operator in operators:
                if "leader election lost" in operator.said():  # a kubelet would start it again
                    operator.start()
                await asyncio.to_thread(operator.until_ready)
            stopped = await asyncio.gather(*(operator.stop() for operator in operators))
            assert set(stopped) == {0}, [operator.said()[-4000:] for operator in operators]

        assert entrance.refused == set()
        assert entrance.denied == []
        assert entrance.admitted == ({"nodes"} if acts else set()) | ({"deployments"} if surges else set())
        assert granted - entrance.used == (LATER if acts else LATER_IN_A_DRY_RUN)


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

    await play(cluster, start_operator, tmp_path, operators_grants(parsed(rendered(overlay))))


@pytest.mark.parametrize("values", VALUES)
async def test_the_chart_runs_with_what_it_installs(
    values: str,
    start_roadstead: StartRoadstead,
    start_operator: Callable[..., Operator],
    tmp_path: Path,
) -> None:
    """As helm install does."""
    cluster = start_roadstead()
    installed(values, cluster.kubeconfig)

    await play(cluster, start_operator, tmp_path, operators_grants(parsed(templated(values))))
