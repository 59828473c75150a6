"""Pods with invalid specs get an event with the reason, and do not delay other pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from e2e.polls import eventually
from e2e.speaker import MERGE

if TYPE_CHECKING:
    from e2e.scene import Obj, Scene

pytestmark = pytest.mark.e2e

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOST = "kubernetes.io/hostname"
EXCUSED = {"labelSelector": {"matchLabels": {"app": "nobody"}}}


def spread(count: int, key: str = "no/such-key-{}") -> list[Obj]:
    """So many constraints, each of its own key."""
    return [
        {
            **EXCUSED,
            "maxSkew": 1,
            "topologyKey": key.format(number),
            "whenUnsatisfiable": "DoNotSchedule",
        }
        for number in range(count)
    ]


def mounting(kind: str, source: Obj) -> list[Obj]:
    """One volume."""
    return [{"name": "data", kind: source}]


#: What is wrong with a pod, and the message about it.
TOLD: dict[str, tuple[Obj, str]] = {
    "no-claim": (
        {"volumes": mounting("persistentVolumeClaim", {"claimName": "nowhere"})},
        'persistentvolumeclaim "nowhere" not found',
    ),
    "unknown-topology-key": (
        {"topologySpreadConstraints": spread(1)},
        "1 node(s) didn't match pod topology spread constraints (missing required label)",
    ),
    "two-hundred-constraints": (
        {"topologySpreadConstraints": spread(200)},
        "1 node(s) didn't match pod topology spread constraints (missing required label)",
    ),
    "five-hundred-terms": (
        {"affinity": {"podAffinity": {REQUIRED: [{**EXCUSED, "topologyKey": HOST}] * 500}}},
        "1 node(s) didn't match pod affinity rules",
    ),
    "unknown-affinity-key": (
        {"affinity": {"podAffinity": {REQUIRED: [{**EXCUSED, "topologyKey": "no/such-key"}]}}},
        "1 node(s) didn't match pod affinity rules",
    ),
    "five-hundred-nodes": (
        {
            "affinity": {
                "nodeAffinity": {
                    REQUIRED: {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": HOST, "operator": "In", "values": [f"nowhere-{number}"]}
                                ]
                            }
                            for number in range(500)
                        ]
                    }
                }
            }
        },
        "node(s) didn't match Pod's node affinity/selector",
    ),
    "too-large": ({"cpu": "9007199254740993"}, "1 Insufficient cpu"),
    "a-petabyte": (
        {
            "containers": [
                {
                    "name": "app",
                    "image": "registry.k8s.io/pause:3.10",
                    "resources": {"requests": {"memory": "1Pi"}},
                }
            ]
        },
        "1 Insufficient memory",
    ),
    "unknown-resource": (
        {
            "containers": [
                {
                    "name": "app",
                    "image": "registry.k8s.io/pause:3.10",
                    "resources": {
                        "requests": {"example.com/dreams": "1"},
                        "limits": {"example.com/dreams": "1"},
                    },
                }
            ]
        },
        "1 Insufficient example.com/dreams",
    ),
}

#: What the API server does not let in; a pod that it does let in gets a message.
REFUSED: dict[str, Obj] = {
    "negative": {"cpu": "-1"},
    "no-quantity": {"cpu": "a lot"},
    "no-class": {"priorityClassName": "no-such-class"},
}


async def until_an_ordinary_one_is_bound(scene: Scene, name: str = "ordinary") -> None:
    """Create a pod that fits while all that is bad waits, and wait for its binding."""
    await scene.pod(name, cpu="1m")
    await scene.until_bound(name)


async def test_each_bad_pod_gets_a_reason_and_no_other_waits(scene: Scene) -> None:
    """An event and a condition with the reason; ordinary pods pass them all."""
    await scene.node("a")
    await scene.scheduling()
    for name, (spec, _) in TOLD.items():
        await scene.pod(name, **spec)

    for number in range(5):
        await until_an_ordinary_one_is_bound(scene, f"ordinary-{number}")

    for name, (_, expected) in TOLD.items():
        condition = await eventually(lambda name=name: scene.condition(name))  # type: ignore[misc] # a lambda that keeps a variable of the loop
        events = await eventually(lambda name=name: scene.events(name, "FailedScheduling"))  # type: ignore[misc] # a lambda that keeps a variable of the loop
        assert expected in condition["message"], name
        reason = "NotReadyForScheduling" if name == "no-claim" else "Unschedulable"
        assert (condition["status"], condition["reason"]) == ("False", reason), name
        assert any(expected in event["note"] for event in events), name
        assert all(event["type"] == "Warning" for event in events)


@pytest.mark.parametrize("name", REFUSED)
async def test_what_the_api_server_refuses_never_arrives(scene: Scene, name: str) -> None:
    """Admission has the first word: nothing is left for a scheduler to stumble over."""
    spec = scene.pod_spec(**REFUSED[name])
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}

    answer = await scene.speaker.request("POST", scene.path("pods"), pod)

    assert answer.status in {400, 403, 422}
    assert await scene.pods() == []


async def test_a_priority_without_a_class_counts_as_it_is(scene: Scene) -> None:
    """The class is deleted after the pod: ``spec.priority`` was resolved at admission, and decides."""
    await scene.node("a", cpu="1")
    await scene.scheduling()
    document: Obj = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": f"{scene.name}-gone"},
        "value": 500,
    }
    await scene.make("/apis/scheduling.k8s.io/v1/priorityclasses", document)
    await scene.pod("low", cpu="700m")
    await scene.until_running(1)
    gated: dict[str, Any] = {"schedulingGates": [{"name": "example.com/later"}]}
    await scene.pod("high", cpu="700m", priorityClassName=f"{scene.name}-gone", **gated)
    path = f"/apis/scheduling.k8s.io/v1/priorityclasses/{scene.name}-gone"
    (await scene.speaker.request("DELETE", path)).accepted()
    change: Any = {"spec": {"schedulingGates": []}}
    (await scene.speaker.request("PATCH", scene.path("pods/high"), change, sends=MERGE)).accepted()

    await scene.until_bound("high")
    assert [pod["metadata"]["name"] for pod in await scene.pods()] == ["high"]


async def test_quantities_of_a_hundred_digits_do_no_harm(scene: Scene) -> None:
    """Refused at admission, or reported; beyond 64 bits a quantity reads as 0, as it does to a kubelet."""
    await scene.node("a")
    await scene.scheduling()
    taken = []
    for number, amount in enumerate(("9" * 100, "1e100", "1n", "1E", "0." + "0" * 90 + "1")):
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"digits-{number}"},
            "spec": scene.pod_spec(cpu=amount),
        }
        answer = await scene.speaker.request("POST", scene.path("pods"), pod)
        taken += [pod["metadata"]["name"]] if answer.status < 300 else []  # type: ignore[index]  # a dict

    await until_an_ordinary_one_is_bound(scene)
    for name in taken:
        await eventually(lambda name=name: scene.condition(name), lambda one: "status" in one)  # type: ignore[misc] # a lambda that keeps a variable of the loop
