"""Records of moves by load say what they expected, and later how wrong that was."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from plimsoll.cluster.watch_events import NodeAdded, PodAdded, PodUpdated
from plimsoll.model.kinds.pod import Pod
from plimsoll.ports.usage import UsageReading
from plimsoll.testing.builders import a_node
from plimsoll.testing.fakes import settled
from rebalancing.scene import POLICY, Scene, a_policy, web

MILLI, MIB = 10**6, 2**20 * 10**9

BY_LOAD = {
    "name": "LowNodeUtilization",
    "args": {
        "thresholds": {"cpu": 20},
        "targetThresholds": {"cpu": 50},
        "metricsUtilization": {"source": "KubernetesMetrics"},
    },
}

#: Thousandths of a core that each pod uses: 75 % of one node, 5 % of the other.
USED = {"bad": {1: 700, 5: 800, 6: 750, 7: 750}, "good": {2: 200}}


def reading(scene: Scene, name: str, cpu_milli: int) -> UsageReading:
    return UsageReading(name, {"cpu": cpu_milli * MILLI, "memory": 100 * MIB}, scene.clock.now())


async def minutes(scene: Scene, used: dict[str, dict[int, int]], count: int = 6) -> None:
    """So many minutes pass; everything is read every fifteen seconds."""
    for _ in range(4 * count):
        scene.meter.node_readings = [reading(scene, name, sum(pods.values())) for name, pods in used.items()]
        scene.meter.pod_readings = [
            reading(scene, f"default/web-{number}", milli)
            for pods in used.values()
            for number, milli in pods.items()
        ]
        await scene.clock.advance(15)
        await settled()


def old_web(number: int, node: str) -> Pod:
    """A pod that has been running since before anything was read."""
    pod = web(number, node)
    status = msgspec.structs.replace(pod.status, start_time=datetime(1970, 1, 1, tzinfo=UTC))
    return msgspec.structs.replace(pod, status=status)


def a_hot_node() -> Scene:
    scene = Scene(places_by_load=True)
    for node, pods in USED.items():
        for number in pods:
            old = old_web(number, node)
            known = number in (1, 2)
            scene.tell(PodUpdated(web(number, node), old) if known else PodAdded(old))
    return scene


async def moved(scene: Scene) -> int:
    """Let the policy move a pod; its number. Pod 9 replaces it on the other node."""
    await minutes(scene, USED)
    await scene.run()
    (name,) = scene.evictor.evicted
    number = int(name.removeprefix("web-"))
    scene.gone(web(number, "bad"))
    late = "2026-06-01T00:00:00Z"
    scene.tell(PodAdded(web(9, created=late)))
    scene.tell(PodUpdated(web(9, created=late), web(9, "good", created=late)))
    await settled()
    return number


def after(number: int, milli: int) -> dict[str, dict[int, int]]:
    """What is used when pod 9 has replaced one, and uses so much."""
    stay = {each: used for each, used in USED["bad"].items() if each != number}
    return {"bad": stay, "good": {**USED["good"], 9: milli}}


def policy(mode: str = "Enforce") -> Any:
    return a_policy(mode, strategies=[BY_LOAD], metricsProviders=[{"source": "KubernetesMetrics"}])


async def test_a_record_says_what_the_move_does_to_the_load_of_both_nodes() -> None:
    """In percent of their room, with what the pod is expected to use and what that rests on."""
    scene = a_hot_node()
    async with scene.running(policy()):
        number = await moved(scene)

        load = scene.record["spec"]["load"]

    milli = USED["bad"][number]
    cpu, memory = load["resources"]
    assert load["basis"] == "Measured"
    assert cpu == {
        "resource": "cpu",
        "expected": f"{milli}m",
        "source": {"beforePercent": 75.0, "afterPercent": pytest.approx((3000 - milli) / 40, abs=0.1)},
        "target": {"beforePercent": 5.0, "afterPercent": pytest.approx((200 + milli) / 40, abs=0.1)},
    }
    assert (memory["resource"], memory["expected"]) == ("memory", str(100 * 2**20))


async def test_the_error_of_the_forecast_is_written_once_the_replacement_has_started_up() -> None:
    """Not in its first minutes, when it uses what it uses to start."""
    scene = a_hot_node()
    async with scene.running(policy()):
        number = await moved(scene)
        assert scene.record["status"]["phase"] == "Settled"
        milli = USED["bad"][number] * 12 // 10
        await minutes(scene, after(number, milli), 3)
        assert "load" not in scene.record["status"]

        await minutes(scene, after(number, milli), 3)

        cpu, memory = scene.record["status"]["load"]["resources"]
        assert cpu == {"resource": "cpu", "used": f"{milli}m", "errorPercent": 20.0}
        assert memory["errorPercent"] == 0.0
        assert scene.record["status"]["phase"] == "Settled"
        assert scene.observer.forecasts == [("cpu", pytest.approx(0.2)), ("memory", 0.0)]


async def test_a_replacement_that_is_not_read_is_waited_for_an_hour() -> None:
    """Then its record stays as it is, whatever is read later."""
    scene = a_hot_node()
    async with scene.running(policy()):
        number = await moved(scene)
        silent = after(number, 0)
        del silent["good"][9]
        await minutes(scene, silent, 61)

        await minutes(scene, after(number, 700), 6)

        assert "load" not in scene.record["status"]


async def test_a_move_by_requests_says_nothing_of_load() -> None:
    """Its strategy did not look at it."""
    scene = Scene()
    async with scene.running(a_policy()):
        await minutes(scene, {"bad": {1: 700}, "good": {2: 200}})
        await scene.run()

        assert "load" not in scene.record["spec"]


async def test_the_status_of_a_run_says_what_nodes_use() -> None:
    """Which are hot, and which are left out because they are not measured."""
    scene = a_hot_node()
    for name in ("third", "fourth"):
        scene.tell(NodeAdded(a_node(name, cpu="4", memory="8Gi")))
    async with scene.running(policy()):
        await minutes(scene, {**USED, "fourth": {}}, 1)
        await minutes(scene, USED, 6)
        await scene.run()

        load = scene.statuses.statuses[POLICY]["lastRun"]["load"]

    cpu, memory = load["resources"]
    assert cpu == {
        "resource": "cpu",
        "meanPercent": 40.0,
        "spreadPoints": 35.0,
        "hottestPercent": 75.0,
        "hottestNode": "bad",
    }
    assert memory["resource"] == "memory"
    assert (load["hotNodes"], load["hotExamples"]) == (1, ["bad"])
    assert load["leftOut"] == [
        {"reason": "NotMeasured", "nodes": 1, "examples": ["third"]},
        {"reason": "Stale", "nodes": 1, "examples": ["fourth"]},
    ]


async def test_a_policy_by_requests_says_nothing_of_load() -> None:
    """Also after one that did: the status of the run before it does not stay."""
    scene = Scene()
    async with scene.running(a_policy()):
        await scene.run()

        assert scene.statuses.statuses[POLICY]["lastRun"]["load"] is None


async def test_hot_seconds_count_from_run_to_run() -> None:
    """Of nodes that the run before found hot, too; a node that two runs did not find so counts nothing."""
    scene = a_hot_node()
    scene.wing.statistics.next_run = lambda _: datetime(2026, 1, 1, tzinfo=UTC)
    async with scene.running(policy("DryRun")):
        seconds = []
        for used in (USED, USED, {**USED, "bad": {1: 100, 5: 100, 6: 100, 7: 100}}, USED):
            await minutes(scene, used, 30)
            await scene.run()
            seconds.append(scene.wing.statistics.figures()[POLICY].hot_s)

    assert seconds == [0.0, 1_800.0, 1_800.0, 1_800.0]
