"""The operator under exactly the rights of deploy/: nothing that it needs is refused, nothing is idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deploy.manifests import grants
from e2e.conftest import define
from e2e.granting import door, kubeconfig_for
from e2e.polling import eventually
from e2e.scene import Scene
from e2e.speaking import speaking
from e2e.stories import LATER, a_prediction, a_stranded_service, a_surge, everything

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import StartDevCluster
    from e2e.operating import Operator

pytestmark = pytest.mark.e2e


async def test_the_enforcing_role_is_enough_and_no_more(
    start_devcluster: StartDevCluster, start_operator: Callable[[Path], Operator], tmp_path: Path
) -> None:
    """Placing, telling why not, preempting, moving, recording, tidying up."""
    cluster = start_devcluster()
    async with (
        speaking(cluster.kubeconfig) as speaker,
        door(cluster.plain_url, grants("enforce")) as entrance,
    ):
        await define(speaker)
        operator = start_operator(kubeconfig_for(tmp_path / "door", entrance.url, cluster.token))

        await everything(await Scene(speaker).begin())

        assert operator.terminate() == 0
    assert entrance.refused == set()
    assert grants("enforce") - entrance.used == LATER


async def test_the_dry_run_role_is_enough_to_predict(
    start_devcluster: StartDevCluster, start_operator: Callable[[Path], Operator], tmp_path: Path
) -> None:
    """And a policy that wants more is refused by the API server, says so, and harms nobody."""
    cluster = start_devcluster()
    async with (
        speaking(cluster.kubeconfig) as speaker,
        door(cluster.plain_url, grants("dry-run")) as entrance,
    ):
        await define(speaker)
        scene = await Scene(speaker).begin()
        operator = start_operator(kubeconfig_for(tmp_path / "door", entrance.url, cluster.token))
        name, old = await a_prediction(scene)
        assert entrance.refused == set()

        await scene.change_policy(name, {"rebalancing": {"mode": "Enforce"}})
        await eventually(scene.phases, lambda phases: "Failed" in phases)

        assert entrance.refused == {("create", "", "pods/eviction")}
        assert await scene.running(app="web") == [old, old]
        assert operator.terminate() == 0


async def test_the_surging_role_is_enough_and_no_more(
    start_devcluster: StartDevCluster, start_operator: Callable[[Path], Operator], tmp_path: Path
) -> None:
    """What it grants beyond the enforcing one is used by a surge that is taken back, all of it."""
    cluster = start_devcluster()
    async with (
        speaking(cluster.kubeconfig) as speaker,
        door(cluster.plain_url, grants("surge")) as entrance,
    ):
        await define(speaker)
        operator = start_operator(kubeconfig_for(tmp_path / "door", entrance.url, cluster.token))

        await a_surge(await Scene(speaker).begin())

        assert operator.terminate() == 0
    assert entrance.refused == set()
    assert grants("surge") - grants("enforce") == {
        (verb, "apps", "deployments") for verb in ("get", "list", "patch")
    }
    assert grants("surge") - grants("enforce") <= entrance.used


async def test_without_the_surging_role_the_policy_says_so(
    start_devcluster: StartDevCluster, start_operator: Callable[[Path], Operator], tmp_path: Path
) -> None:
    """The pod stays, and a condition names what is missing."""
    cluster = start_devcluster()
    async with (
        speaking(cluster.kubeconfig) as speaker,
        door(cluster.plain_url, grants("enforce")) as entrance,
    ):
        await define(speaker)
        scene = await Scene(speaker).begin()
        operator = start_operator(kubeconfig_for(tmp_path / "door", entrance.url, cluster.token))
        name, old = await a_stranded_service(scene)

        condition = await scene.until_condition(name, "Degraded", "True", "SurgeForbidden")

        assert "may not list Deployments" in condition["message"]
        assert entrance.refused == {("list", "apps", "deployments")}
        assert await scene.running(app="web") == [old]
        assert operator.terminate() == 0
