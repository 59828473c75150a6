"""Policies are judged, change, stop and go, each without disturbing the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from e2e.polls import eventually, throughout
from e2e.scene import POLICIES

if TYPE_CHECKING:
    from e2e.operator_process import Operator
    from e2e.scene import Obj, Scene

pytestmark = pytest.mark.e2e

LEAST = {"scoringStrategy": {"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 1}]}}
MOST = {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}}


def only_fit(scheduler: str, args: Obj) -> Obj:
    """A profile whose scores come from NodeResourcesFit alone."""
    return {
        "schedulerName": scheduler,
        "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": args}],
    }


#: What the API server takes and only the operator can judge; with the path that it must name.
BAD: list[Any] = [
    pytest.param(
        {"scheduling": {"schedulerName": "x", "plugins": {"score": {"enabled": [{"name": "NoSuch"}]}}}},
        "spec.scheduling.plugins.score.enabled[0].name",
        "NoSuch",
        id="unknown plugin",
    ),
    pytest.param(
        {
            "scheduling": {
                "schedulerName": "x",
                "pluginConfig": [
                    {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "Sideways"}}}
                ],
            }
        },
        "spec.scheduling.pluginConfig[0].args.scoringStrategy.type",
        "LeastAllocated",
        id="bad plugin args",
    ),
    pytest.param(
        {
            "scheduling": {
                "schedulerName": "x",
                "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrateggy": {}}}],
            }
        },
        "spec.scheduling.pluginConfig[0].args.scoringStrateggy",
        "",
        id="misspelt plugin args",
    ),
    pytest.param(
        {"rebalancing": {"strategies": [{"name": "RemoveDuplicates"}, {"name": "RemoveDuplicate"}]}},
        "spec.rebalancing.strategies[1].name",
        "RemoveDuplicates",
        id="unknown strategy",
    ),
    pytest.param(
        {
            "rebalancing": {
                "strategies": [{"name": "LowNodeUtilization", "args": {"thresholds": {"cpu": 200}}}]
            }
        },
        "spec.rebalancing.strategies[0].args",
        "100",
        id="bad strategy args",
    ),
    pytest.param(
        {"rebalancing": {"schedule": {"cron": "0 2 * * *", "timeZone": "Mars/Olympus"}}},
        "spec.rebalancing.schedule",
        "Mars/Olympus",
        id="unknown time zone",
    ),
    pytest.param(
        {"rebalancing": {"evictor": {"nodeSelector": "a in"}}},
        "spec.rebalancing.evictor.nodeSelector",
        "",
        id="bad selector",
    ),
]


@pytest.mark.parametrize(("spec", "path", "says"), BAD)
async def test_what_only_the_operator_can_judge_is_refused_with_its_path(
    spec: Obj, path: str, says: str, scene: Scene
) -> None:
    """Accepted=False names the field and what is allowed; the neighbour goes on placing pods."""
    node = await scene.node("a")
    await scene.scheduling()
    bad = await scene.policy(spec, "bad")

    accepted = await scene.until_condition(bad, "Accepted", "False")
    ready = await scene.until_condition(bad, "Ready", "False")
    await scene.pod("web")

    assert accepted["message"].startswith(f"{path}: "), accepted["message"]
    assert says in accepted["message"]
    assert "Value error" not in accepted["message"]
    assert accepted["reason"] == ready["reason"] == "InvalidConfiguration"
    assert await scene.until_bound("web") == node


async def test_the_older_of_two_policies_keeps_its_scheduler_name(scene: Scene) -> None:
    """The other one reports whose it is, and takes over when that one goes."""
    await scene.node("a")
    older = await scene.scheduling()
    younger = await scene.policy({"scheduling": {"schedulerName": scene.scheduler}}, "younger")

    lost = await scene.until_condition(younger, "Accepted", "False", "SchedulerNameTaken")
    await scene.until_condition(older, "Accepted", "True")
    await scene.speaker.request("DELETE", f"{POLICIES}/{older}")
    await scene.until_condition(younger, "Ready", "True")
    await scene.pod("web")

    assert lost["message"].startswith("spec.scheduling.schedulerName: ")
    assert older in lost["message"]
    await scene.until_bound("web")


async def test_a_changed_profile_decides_the_next_pod(scene: Scene) -> None:
    """No restart: the same name first spreads, then packs."""
    for suffix in ("a", "b"):
        await scene.node(suffix)
    name = await scene.policy({"scheduling": only_fit(scene.scheduler, LEAST)})
    await scene.until_condition(name, "Ready", "True")
    await scene.pod("first", cpu="1")
    first = await scene.until_bound("first")
    await scene.pod("spread", cpu="500m")
    spread = await scene.until_bound("spread")

    await scene.change_policy(name, {"scheduling": only_fit(scene.scheduler, MOST)})
    await scene.until_condition(name, "Ready", "True")
    await scene.pod("packed", cpu="500m")

    assert first != spread
    assert await scene.until_bound("packed") == first


async def test_a_bad_change_leaves_the_last_good_state_serving(scene: Scene) -> None:
    """And mending it is enough."""
    await scene.node("a")
    name = await scene.scheduling()
    await scene.change_policy(
        name, {"scheduling": {"plugins": {"filter": {"enabled": [{"name": "NoSuch"}]}}}}
    )
    refused = await scene.until_condition(name, "Accepted", "False")

    await scene.pod("meanwhile")
    await scene.until_bound("meanwhile")
    await scene.change_policy(name, {"scheduling": {"plugins": None}})

    assert "last accepted state goes on" in refused["message"]
    assert (await scene.until_condition(name, "Accepted", "True"))["reason"] == "Valid"
    await scene.until_condition(name, "Ready", "True", "Serving")


async def test_a_deleted_policy_places_no_pod(scene: Scene) -> None:
    """Its pods wait for somebody else."""
    await scene.node("a")
    name = await scene.scheduling()
    await scene.pod("before")
    await scene.until_bound("before")

    await scene.speaker.request("DELETE", f"{POLICIES}/{name}")
    marker = await scene.policy({}, "marker")
    await scene.until_condition(marker, "Ready", "True")
    await scene.pod("after")

    await throughout(lambda: scene.node_of("after"), lambda node: node == "", 0.5)


async def test_suspension_holds_everything_and_its_end_resumes(scene: Scene) -> None:
    """Neither placing nor moving, and the condition says so."""
    node = await scene.node("a")
    name = await scene.scheduling()
    await scene.change_policy(name, {"suspend": True})
    await scene.until_condition(name, "Ready", "False", "Suspended")
    await scene.pod("web")
    await throughout(lambda: scene.node_of("web"), lambda found: found == "", 0.5)

    await scene.change_policy(name, {"suspend": False})

    assert await scene.until_bound("web") == node
    await scene.until_condition(name, "Ready", "True", "Serving")


async def test_an_empty_policy_is_accepted_and_harmless(scene: Scene) -> None:
    """`spec: {}` asks for nothing."""
    name = await scene.policy({})

    ready = await scene.until_condition(name, "Ready", "True")
    degraded = await scene.until_condition(name, "Degraded", "False")

    assert ready["message"] == "the spec asks for nothing"
    assert degraded["reason"] == "AsExpected"
    assert (await scene.policy_status(name))["observedGeneration"] == 1


async def test_a_status_is_not_written_again_and_again(scene: Scene, operator: Operator) -> None:
    """What says nothing new is no write."""
    name = await scene.scheduling()

    async def version() -> str:
        found = (await scene.speaker.request("GET", f"{POLICIES}/{name}")).accepted()
        return str(found["metadata"]["resourceVersion"])

    written = await version()
    other = await scene.policy({}, "other")
    await scene.until_condition(other, "Ready", "True")
    await eventually(lambda: scene.policy_status(other))

    assert await version() == written
