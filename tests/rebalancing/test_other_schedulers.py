"""Pods of schedulers that no policy serves are moved only where a policy names these schedulers."""

from typing import Any

import pytest

from plimsoll.cluster.watch_events import NodeAdded, PodAdded, PodUpdated
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import settled
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
    scene.wing.serve({}, scene.forecasts)

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
    totals = scene.statuses.statuses[POLICY]["totals"]
    hits = sum(node in ("good", "equal") for node in landed)
    assert (totals["forecasts"], totals["forecastHits"]) == (len(landed), hits)
    assert totals["forecastHitPercent"] == (100 * hits // len(landed) if len(landed) >= 10 else None)


async def test_the_record_of_a_forecast_names_nodes_that_were_as_good() -> None:
    """Another scheduler may choose any of them; the record of a proven move names none."""
    scene = a_scene()
    scene.tell(*(NodeAdded(a_node(name)) for name in ("even", "free")), NodeAdded(a_node("odd", cpu="1")))

    async with scene.running(a_policy(scope=STRANGE)):
        await scene.run()

    specs = {each["spec"]["pod"]["name"]: each["spec"] for each in scene.records.documents.values()}
    chosen = [specs["theirs-1"]["targetNode"], *specs["theirs-1"]["equalTargets"]]
    assert sorted(chosen) == ["even", "free"]
    assert "equalTargets" not in specs["web-1"]


@pytest.mark.parametrize(
    ("landed", "landing"), [("even", "expected"), ("free", "equal"), ("odd", "other"), ("bad", "other")]
)
async def test_where_a_replacement_landed_is_counted(landed: str, landing: str) -> None:
    """On the node that was expected, on one that scored as much, or on another, such as its own again."""
    scene = a_scene()
    nodes = [a_node(name) for name in ("even", "free")]
    scene.tell(*map(NodeAdded, nodes), NodeAdded(a_node("odd", cpu="1")))
    late: dict[str, Any] = {"metadata": {"creationTimestamp": "2026-06-01T00:00:00Z"}}

    def theirs(name: str, node: str, **fields: Any) -> Any:
        status = status_of(node) if node else None
        spec: dict[str, Any] = {"schedulerName": "strange"}
        return a_pod(name, node=node, owner="ReplicaSet/theirs", cpu="100m", status=status, **spec, **fields)

    async with scene.running(a_policy(scope=STRANGE, limits={"perNode": 1})):
        await scene.run()
        spec = scene.record["spec"]
        names = {"even": spec["targetNode"], "free": spec["equalTargets"][0]}
        scene.gone(theirs("theirs-1", "bad"))
        scene.tell(PodAdded(theirs("theirs-3", "", **late)))
        scene.tell(
            PodUpdated(theirs("theirs-3", "", **late), theirs("theirs-3", names.get(landed, landed), **late))
        )
        await settled()

    assert scene.observer.landings == [(POLICY, landing)]
