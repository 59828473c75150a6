"""Objects at and beyond every limit do not affect others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from e2e.conftest import DEFINITIONS, define
from e2e.polls import eventually
from e2e.scene import LABEL, POLICIES, Scene
from e2e.speaker import MERGE, speaking

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from e2e.operator_process import Operator
    from e2e.scene import Obj
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = [
    pytest.mark.e2e,
    # Large bodies are the point here.
    pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning"),
]

MIB = 1024 * 1024

#: Requests that no node has room for, or that are nearly nothing.
ABSURD = ["9223372036854775807", "1e18", "1E", "1n", "0.0000001", "0", "-0", "1m", "999999999999Ti"]


async def goes_on(scene: Scene, name: str = "after") -> None:
    """An ordinary pod is placed."""
    await scene.pod(name)
    await scene.until_bound(name)


async def test_pods_as_large_as_can_be_are_placed(scene: Scene) -> None:
    """A mebibyte of environment, annotations and labels at their limits, a thousand tolerations."""
    await scene.node("a")
    await scene.scheduling()
    spec = scene.pod_spec(
        tolerations=[{"key": f"key-{number}", "operator": "Exists"} for number in range(1000)]
    )
    spec["containers"][0]["env"] = [{"name": "LARGE", "value": "x" * (MIB - 250_000)}]
    metadata = {
        "name": "x" * 253,
        "labels": {f"{'p' * 60}.example/{'k' * 60}{number}": "v" * 63 for number in range(50)},
        "annotations": {"example.com/large": "y" * 250_000, "example.com/unicode": "\u2028\ud7ff💥" * 50},
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    await scene.make(scene.path("pods"), pod)

    await scene.until_bound(metadata["name"])


async def test_names_that_no_node_has_cost_others_nothing(scene: Scene, operator: Operator) -> None:
    """Thousands of extended resources of amount 0 fit everywhere; the next pod is placed."""
    await scene.node("a")
    await scene.scheduling()
    for first in (0, 2000):
        amounts = {f"x{number}.example.com/r": "0" for number in range(first, first + 2000)}
        spec = scene.pod_spec()
        spec["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
        metadata = {"name": f"names-{first}"}

        await scene.make(
            scene.path("pods"), {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        )

        await scene.until_bound(metadata["name"])
        await goes_on(scene, f"after-{first}")
    assert operator.ask("/healthz")[0] == 200


async def test_annotations_past_their_limit_are_refused_or_borne(scene: Scene) -> None:
    """Whatever the API server lets through does not stop the next pod."""
    await scene.node("a")
    await scene.scheduling()
    for size in (1, 4):
        name = f"large-{size}"
        metadata = {"name": name, "annotations": {"example.com/large": "y" * size * MIB}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": scene.pod_spec()}

        answer = await scene.speaker.request("POST", scene.path("pods"), pod)

        if answer.status < 300:
            await scene.until_bound(name)
        else:
            assert answer.status in {413, 422}, answer
    await goes_on(scene)


async def test_absurd_requests_wait_and_others_pass(scene: Scene) -> None:
    """Quantities beyond 64 bits, below one thousandth, with every suffix."""
    await scene.node("a")
    await scene.scheduling()
    taken = []
    for number, amount in enumerate(ABSURD):
        for resource in ("cpu", "memory", "example.com/widget"):
            name = f"absurd-{number}-{resource[:3]}"
            spec = scene.pod_spec()
            spec["containers"][0]["resources"] = {
                "requests": {resource: amount},
                "limits": {resource: amount},
            }
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
            answer = await scene.speaker.request("POST", scene.path("pods"), pod)
            taken += [name] if answer.status < 300 else []

    await goes_on(scene)

    async def unanswered() -> list[str]:
        return [
            pod["metadata"]["name"]
            for pod in await scene.pods()
            if not any(each["type"] == "PodScheduled" for each in pod["status"].get("conditions", ()))
        ]

    assert len(taken) >= 10
    await eventually(unanswered, lambda names: names == [])


@pytest.mark.parametrize("amount", ["1e1002", "9" * 300])
async def test_a_pod_does_not_hide_behind_an_absurd_amount(scene: Scene, amount: str) -> None:
    """Six of eight cores and an absurd disk: the cores count, and no other pod gets them."""
    node = await scene.node("a", cpu="8", runs_pods=False)
    await scene.scheduling()

    def asking(cpu: str, disk: str) -> Obj:
        spec = scene.pod_spec(cpu=cpu)
        spec["containers"][0]["resources"]["requests"]["ephemeral-storage"] = disk
        return spec

    await scene.pod("placed", **asking("6", amount), nodeName=node)
    for name, disk in (("plain", "0"), ("hiding", amount)):
        await scene.pod(name, **asking("6", disk))
    await scene.pod("after", cpu="1")

    await scene.until_bound("after")
    for name in ("plain", "hiding"):
        condition = await eventually(lambda name=name: scene.condition(name))  # type: ignore[misc] # a lambda that keeps a variable of the loop
        events = await eventually(lambda name=name: scene.events(name, "FailedScheduling"))  # type: ignore[misc] # a lambda that keeps a variable of the loop
        assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
        assert "1 Insufficient cpu" in condition["message"]
        assert "1 Insufficient cpu" in events[0]["note"]
    assert [pod["metadata"]["name"] for pod in await scene.pods() if pod["spec"].get("nodeName")] == [
        "after",
        "placed",
    ]


async def test_nodes_without_or_with_absurd_status_are_passed_over(scene: Scene) -> None:
    """No status, nothing allocatable, more than 64 bits of it, thousands of taints and labels."""
    hostile: list[Obj] = [
        {},
        {"status": {}},
        {"status": {"allocatable": {}}},
        {"status": {"allocatable": {"cpu": "0", "memory": "0", "pods": "0"}}},
        {"status": {"allocatable": {"cpu": "1e18", "memory": "999999999Ei", "pods": "9223372036854775807"}}},
        {"spec": {"taints": [{"key": f"t{n}", "effect": "NoSchedule"} for n in range(1000)]}},
        {"spec": {"podCIDR": "10.0.0.0/24"}, "status": {"images": [{"names": [], "sizeBytes": 2**62}] * 50}},
    ]
    await scene.scheduling()
    for number, more in enumerate(hostile):
        metadata = {"name": f"{scene.name}-hostile-{number}", "labels": {LABEL: f"{scene.name}-hostile"}}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, **more}
        answer = await scene.speaker.request("POST", "/api/v1/nodes", node)
        if answer.status < 300:
            scene.remember(f"/api/v1/nodes/{metadata['name']}")
            if status := more.get("status"):
                path = f"/api/v1/nodes/{metadata['name']}/status"
                await scene.speaker.request("PATCH", path, {"status": status}, sends=MERGE)
    await scene.node("good")

    await goes_on(scene)


async def test_a_node_that_disappears_and_comes_back_is_used_again(scene: Scene) -> None:
    """Also with pods that still name it."""
    node = await scene.node("a")
    await scene.scheduling()
    await goes_on(scene, "before")
    await scene.speaker.request("DELETE", f"/api/v1/nodes/{node}")
    await scene.pod("between")
    assert await eventually(lambda: scene.condition("between"))

    await scene.node("a")

    assert await scene.until_bound("between") == node
    await goes_on(scene)


async def test_contradictory_pods_get_a_reason_and_others_pass(scene: Scene) -> None:
    """Unknown nodes, empty terms, selectors of nothing, thousands of affinity terms."""
    await scene.node("a")
    await scene.scheduling()
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    term = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "no/such-key"}
    specs: list[dict[str, Any]] = [
        {"nodeSelector": {LABEL: scene.name, "no-such-label": "x"}},
        {"affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": [{}]}}}},
        {"affinity": {"podAffinity": {required: [term] * 100}}},
        {"affinity": {"podAntiAffinity": {required: [{**term, "labelSelector": None}]}}},
        {"affinity": {"nodeAffinity": {}, "podAffinity": {}, "podAntiAffinity": {}}},
        {
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "no/such", "whenUnsatisfiable": "DoNotSchedule"}
            ]
        },
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "no-such-claim"}}]},
        {"priority": 2147483647, "priorityClassName": "no-such-class"},
        {"schedulingGates": [{"name": f"example.com/gate-{number}"} for number in range(60)]},
    ]
    for number, more in enumerate(specs):
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"odd-{number}"},
            "spec": scene.pod_spec(**more),
        }
        await scene.speaker.request("POST", scene.path("pods"), pod)

    await goes_on(scene)

    assert (await eventually(lambda: scene.condition("odd-0")))["reason"] == "Unschedulable"


async def test_policies_past_validation_are_refused_one_by_one(
    start_roadstead: StartRoadstead, start_operator: Callable[[Path], Operator]
) -> None:
    """With a schema that lets everything pass: each is judged, or left out, and the good one serves."""
    cluster = start_roadstead()
    forced: list[Any] = [
        "text",
        7,
        [],
        {"unknown": True},
        {"scheduling": "plimsoll"},
        {"scheduling": {"schedulerName": ["a"]}},
        {"scheduling": {"schedulerName": "x" * 10_000}},
        {"scheduling": {"schedulerName": "a", "plugins": {"score": {"enabled": [{"name": None}]}}}},
        {"rebalancing": {"strategies": [{"name": "RemoveDuplicates", "args": "none"}]}},
        {"rebalancing": {"schedule": {"cron": "* * * * * * *"}}},
        {"rebalancing": {"schedule": {"cron": "0 0 30 2 *"}}},
        {"rebalancing": {"schedule": {"intervalSeconds": -1}}},
        {"rebalancing": {"limits": {"total": "-5%"}}},
        {"rebalancing": {"limits": {"total": 10**30}}},
        {"scope": {"podSelector": {"matchExpressions": [{"key": "", "operator": "Sideways"}]}}},
        {"scope": {"priorityThreshold": {"value": 1e300}}},
        {
            "rebalancing": {
                "strategies": [{"name": "LowNodeUtilization", "args": {"thresholds": {"cpu": "x"}}}]
            }
        },
    ]
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        await tolerate_anything(speaker)
        scene = await Scene(speaker).begin()
        for number, spec in enumerate(forced):
            await scene.policy(spec, f"bad-{number}")
        statuses: list[Any] = [
            "text",
            {"conditions": "none"},
            {"conditions": [7]},
            {"observedGeneration": {}},
        ]
        for number, status in enumerate(statuses):
            name = await scene.policy({"scheduling": {"schedulerName": f"s{number}"}}, f"odd-{number}")
            path = f"{POLICIES}/{name}/status"
            (await speaker.request("PATCH", path, {"status": status}, sends=MERGE)).accepted()
        operator = start_operator(cluster.kubeconfig)
        await scene.node("a")
        await scene.scheduling()
        await goes_on(scene)

        for number, spec in enumerate(forced):
            condition = await scene.until_condition(f"{scene.name}-bad-{number}", "Accepted", "False")
            assert "spec" in condition["message"], (spec, condition)
            assert len(condition["message"]) < 4096
        for number in range(len(statuses)):
            await scene.until_condition(f"{scene.name}-odd-{number}", "Ready", "True", "Serving")
    assert await operator.stop() == 0


async def test_records_past_validation_do_not_stop_a_restart(
    start_roadstead: StartRoadstead, start_operator: Callable[[Path], Operator]
) -> None:
    """Somebody else's junk among the records is left alone, and moves go on."""
    cluster = start_roadstead()
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        await tolerate_anything(speaker)
        scene = await Scene(speaker).begin()
        kind = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "Eviction"}
        junk: list[Any] = ["text", None, {}, {"pod": "web"}, {"pod": {"uid": 7}, "mode": "Sometimes"}]
        for number, spec in enumerate(junk):
            record = {**kind, "metadata": {"name": f"junk-{number}"}, "spec": spec}
            (await speaker.request("POST", scene.records_path, record)).accepted()
        operator = start_operator(cluster.kubeconfig).until_ready()
        await scene.node("old")
        await scene.scheduling()
        await scene.deployment("web", 2)
        await scene.node("new")
        await scene.policy(scene.rebalancing("RemoveDuplicates"))

        await eventually(lambda: scene.running(app="web"), lambda nodes: len(set(nodes)) == 2)
    assert await operator.stop() == 0


async def tolerate_anything(speaker: Any) -> None:
    """Replace the schemas of our kinds by ones that take everything, as an old or broken install may."""
    for kind in ("schedulingpolicies", "evictions"):
        path = f"{DEFINITIONS}/{kind}.plimsoll.dev"
        definition = (await speaker.request("GET", path)).accepted()
        open_schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        for version in definition["spec"]["versions"]:
            version["schema"] = {"openAPIV3Schema": open_schema}
            version.pop("selectableFields", None)
            version.pop("additionalPrinterColumns", None)
        (await speaker.request("PUT", path, definition)).accepted()
    await asyncio.sleep(0.2)
