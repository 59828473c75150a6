"""Pods of schedulers that no policy serves are moved only where a policy names these schedulers."""

from typing import Any

import pytest

from plimsoll.cluster.watch_events import NodeAdded, PodAdded
from plimsoll.testing.builders import a_node, a_pod
from rebalancing.scene import POLICY, Scene, a_policy, status_of
from rebalancing.test_controller import a_record

STRANGE = {"otherSchedulers": ["strange"]}


def a_scene(*documents: Any) -> Scene:
    """Two pods of another scheduler, one of them on the node whose taint it does not tolerate."""
    scene = Scene(*documents)
    for name, node in (("theirs-1", "bad"), ("theirs-2", "good")):
        scene.tell(
            PodAdded(
                a_pod(
                    name,
                    node=node,
                    owner="ReplicaSet/theirs",
                    cpu="100m",
                    schedulerName="strange",
                    status=status_of(node),
                )
            )
        )
    return scene


@pytest.mark.parametrize(
    ("planner", "scope", "evicted"),
    [
        ("Proven", {}, ["web-1"]),
        ("Optimal", {}, ["web-1"]),
        ("Upstream", {}, ["web-1"]),
        ("Proven", {"otherSchedulers": ["default-scheduler"]}, ["web-1"]),
        ("Proven", STRANGE, ["theirs-1", "web-1"]),
        ("Upstream", STRANGE, ["theirs-1", "web-1"]),
        ("Optimal", STRANGE, ["web-1"]),  # it directs each replacement, and these cannot be directed
    ],
)
async def test_they_move_only_when_the_policy_names_their_scheduler(
    planner: str, scope: dict[str, Any], evicted: list[str]
) -> None:
    """For every planner."""
    scene = a_scene()

    async with scene.running(a_policy(planner=planner, scope=scope)):
        await scene.run()

    assert sorted(scene.evictor.evicted) == evicted


async def test_the_refusal_says_what_to_do() -> None:
    """The scheduler's name, and the field that would allow the move."""
    scene = a_scene()

    async with scene.running(a_policy()):
        await scene.run()

    refused = {
        each["reason"]: each["message"] for each in scene.statuses.statuses[POLICY]["counts"]["refused"]
    }
    assert refused["OtherScheduler"] == (
        'scheduler "strange" places the pod: no policy serves it, and spec.scope.otherSchedulers does not'
        " name it"
    )


async def test_they_stay_when_the_policy_that_served_them_is_gone() -> None:
    """No policy serves its pods then."""
    scene = Scene()
    scene.wing.serve({})

    async with scene.running(a_policy()):
        await scene.run()

    assert scene.evictor.evicted == []


async def test_a_move_of_theirs_is_a_forecast_on_record() -> None:
    """Nothing vouches for the target, and it is not held."""
    scene = a_scene()

    async with scene.running(a_policy(scope=STRANGE, limits={"perNode": 1})):
        await scene.run()

    (record,) = scene.records.documents.values()
    assert record["spec"]["pod"]["name"] == "theirs-1"
    assert record["spec"]["forecast"] is True
    assert scene.nominator.by_node == {}


def forecasts(*landed: str) -> list[dict[str, Any]]:
    """Records of moves of another workload, expected on good or equal, by where the replacements went."""
    found = []
    for number, node in enumerate(landed):
        record = a_record(
            "Settled", replacement={"name": f"db-{number}", "uid": f"db-{number}", "node": node}
        )
        record["metadata"]["name"] = f"web-1-{number}"
        record["spec"] |= {"forecast": True, "equalTargets": ["equal"]}
        record["spec"]["owner"] = {**record["spec"]["owner"], "name": "db", "uid": "uid-db"}
        record["status"]["transitions"] = [{"phase": "Settled", "time": f"2026-01-01T00:00:{number:02}Z"}]
        found.append(record)
    return found


@pytest.mark.parametrize(
    ("landed", "least", "evicted"),
    [
        pytest.param(["good"] * 3 + ["equal"] * 2 + ["else"] * 5, 50, ["theirs-1", "web-1"], id="enough"),
        pytest.param(["good"] * 3 + ["equal"] * 2 + ["else"] * 5, 51, ["web-1"], id="too-few"),
        pytest.param(["else"] * 9, 51, ["theirs-1", "web-1"], id="nine-say-nothing"),
        pytest.param(["else"] * 10, None, ["theirs-1", "web-1"], id="nothing-required"),
    ],
)
async def test_forecasts_that_do_not_come_true_keep_pods_of_others(
    landed: list[str], least: int | None, evicted: list[str]
) -> None:
    """Those of our own schedulers go on; a node that was as good as the expected one is a hit."""
    scene = a_scene(*forecasts(*landed))
    more: dict[str, Any] = {} if least is None else {"minimumForecastHitPercent": least}

    async with scene.running(a_policy(scope=STRANGE, **more)):
        await scene.run()

    assert sorted(scene.evictor.evicted) == evicted
    refused = scene.statuses.statuses[POLICY]["counts"]["refused"]
    said = [each["message"] for each in refused if each["reason"] == "ForecastsMiss"]
    sentence = (
        "of 10 replacements that other schedulers placed, 5 went to the expected node or one as good, fewer"
        " than 51%; such pods stay until the records of misses have expired"
    )
    assert said == ([] if "theirs-1" in evicted else [sentence])


async def test_the_record_of_a_forecast_names_nodes_that_were_as_good() -> None:
    """Another scheduler may choose any of them; the record of a proven move names none."""
    scene = a_scene()
    scene.tell(*(NodeAdded(a_node(name)) for name in ("even", "free")), NodeAdded(a_node("odd", cpu="1")))

    async with scene.running(a_policy(scope=STRANGE)):
        await scene.run()

    specs = {each["spec"]["pod"]["name"]: each["spec"] for each in scene.records.documents.values()}
    chosen = [specs["theirs-1"]["targetNode"], *specs["theirs-1"]["equalTargets"]]
    assert sorted(chosen) == ["even", "free"]
    assert specs["web-1"]["equalTargets"] == []
