"""The operator under exactly the rights of deploy/: nothing that it needs is refused, nothing is idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deploy.manifests import grants
from e2e.polling import eventually
from e2e.stories import LATER, a_prediction, a_stranded_service, a_surge, everything

if TYPE_CHECKING:
    from e2e.conftest import StartGuarded

pytestmark = pytest.mark.e2e


async def test_the_enforcing_role_is_enough_and_no_more(guarded: StartGuarded) -> None:
    """Placing, telling why not, preempting, moving, recording, tidying up."""
    async with guarded("enforce") as (scene, entrance, operator):
        await everything(scene)

        assert operator.terminate() == 0
    assert entrance.refused == set()
    assert grants("enforce") - entrance.used == LATER


async def test_the_dry_run_role_is_enough_to_predict(guarded: StartGuarded) -> None:
    """And a policy that wants more is refused by the API server, says so, and harms nobody."""
    async with guarded("dry-run") as (scene, entrance, operator):
        name, old = await a_prediction(scene)
        assert entrance.refused == set()

        await scene.change_policy(name, {"rebalancing": {"mode": "Enforce"}})
        await eventually(scene.phases, lambda phases: "Failed" in phases)

        assert entrance.refused == {("create", "", "pods/eviction")}
        assert await scene.running(app="web") == [old, old]
        assert operator.terminate() == 0


async def test_the_surging_role_is_enough_and_no_more(guarded: StartGuarded) -> None:
    """What it grants beyond the enforcing one is used by a surge that is taken back, all of it."""
    async with guarded("surge") as (scene, entrance, operator):
        await a_surge(scene)

        assert operator.terminate() == 0
    assert entrance.refused == set()
    assert grants("surge") - grants("enforce") == {
        (verb, "apps", "deployments") for verb in ("get", "list", "patch")
    }
    assert grants("surge") - grants("enforce") <= entrance.used


async def test_without_the_surging_role_the_policy_says_so(guarded: StartGuarded) -> None:
    """The pod stays, and a condition names what is missing."""
    async with guarded("enforce") as (scene, entrance, operator):
        name, old = await a_stranded_service(scene)

        condition = await scene.until_condition(name, "Degraded", "True", "SurgeForbidden")

        assert "may not list Deployments" in condition["message"]
        assert entrance.refused == {("list", "apps", "deployments")}
        assert await scene.running(app="web") == [old]
        assert operator.terminate() == 0
