"""HTTP extenders in another process: asked as kube-scheduler asks them, and harmless when they are bad."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from e2e.polls import eventually, throughout
from e2e.served_extenders import Extender, Served, extenders_served, with_extenders

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from e2e.operator_process import Operator
    from e2e.scene import Obj, Scene

pytestmark = pytest.mark.e2e

FILTER: Obj = {"filterVerb": "filter", "nodeCacheCapable": True}


@pytest.fixture(scope="module")
def served(defined: Path) -> Iterator[Served]:
    """The process of all extenders."""
    with extenders_served(defined) as one:
        yield one


@pytest.fixture
def extender(served: Served, scene: Scene) -> Extender:
    """An extender of the scene's own."""
    return Extender(served, scene.name)


async def told(scene: Scene, pod: str) -> Obj:
    """Wait for the condition that says why a pod is not scheduled."""
    return await eventually(lambda: scene.condition(pod), lambda one: one.get("status") == "False")


# -- good extenders ----------------------------------------------------------------------------------


async def test_filter_and_prioritize_with_names(scene: Scene, extender: Extender) -> None:
    """Names of feasible nodes, then a score that outweighs the plugins'; the pod comes with every field."""
    a, b, c = [await scene.node(name) for name in ("a", "b", "c")]
    full = await scene.node("full", cpu="10m")
    await extender.does(filter={"only": [b, c]}, prioritize={"scores": {b: 1, c: 10}})
    more = {"prioritizeVerb": "prioritize", "weight": 100}
    scheduler, _ = await with_extenders(scene, {"urlPrefix": extender.url, **FILTER, **more})
    containers = scene.pod_spec()["containers"]
    containers[0]["env"] = [{"name": "SHAPE", "value": "round"}]

    made = await scene.pod("web", schedulerName=scheduler, containers=containers)

    assert await scene.until_bound("web") == c
    (filtered,), (scored,) = await extender.asked("filter"), await extender.asked("prioritize")
    assert sorted(filtered["NodeNames"]) == [a, b, c]
    assert full not in filtered["NodeNames"]
    assert filtered["Nodes"] is None
    assert sorted(scored["NodeNames"]) == [b, c]
    assert filtered["Pod"]["metadata"]["uid"] == made["metadata"]["uid"]
    assert filtered["Pod"]["spec"]["containers"][0]["env"] == [{"name": "SHAPE", "value": "round"}]
    (event,) = await eventually(lambda: scene.events("web", "Scheduled"))
    assert event["reportingController"] == scheduler


async def test_nodes_are_sent_to_an_extender_that_knows_none(scene: Scene, extender: Extender) -> None:
    """Whole objects there, whole objects back; nothing of our credentials goes along."""
    a, b = [await scene.node(name, labels={"disk": "ssd"}) for name in ("a", "b")]
    await extender.does(filter={"only": [b]})
    scheduler, _ = await with_extenders(scene, {"urlPrefix": extender.url + "/", "filterVerb": "filter"})

    await scene.pod("web", schedulerName=scheduler)

    assert await scene.until_bound("web") == b
    (body,) = await extender.asked("filter")
    assert body["NodeNames"] is None
    nodes = {item["metadata"]["name"]: item for item in body["Nodes"]["items"]}
    assert nodes.keys() == {a, b}
    assert nodes[a]["metadata"]["labels"]["disk"] == "ssd"
    assert nodes[a]["status"]["allocatable"]["cpu"] == "4"
    (headers,) = await extender.headers()
    assert "authorization" not in headers


async def test_a_refusal_is_reported_and_any_event_helps(scene: Scene, extender: Extender) -> None:
    """In the extender's words; a new node is asked about."""
    await scene.node("a")
    await extender.does(filter={"only": []})
    scheduler, _ = await with_extenders(scene, {"urlPrefix": extender.url, **FILTER})

    await scene.pod("web", schedulerName=scheduler)
    condition = await told(scene, "web")
    await extender.does(filter={"only": [f"{scene.name}-b"]})
    b = await scene.node("b")

    assert condition["reason"] == "Unschedulable"
    assert "1 the extender says no" in condition["message"]
    (event, *_) = await eventually(lambda: scene.events("web", "FailedScheduling"))
    assert event["note"] == condition["message"]
    assert await scene.until_bound("web") == b


async def test_an_extender_binds_its_pods(scene: Scene, extender: Extender) -> None:
    """With its own credentials; we write no binding, and see the pod on its node."""
    node = await scene.node("a")
    await extender.does(bind={"bind": None})
    scheduler, _ = await with_extenders(scene, {"urlPrefix": extender.url, "bindVerb": "bind"})

    made = await scene.pod("web", schedulerName=scheduler)

    assert await scene.until_bound("web") == node
    assert await extender.asked("bind") == [
        {"PodName": "web", "PodNamespace": scene.name, "PodUID": made["metadata"]["uid"], "Node": node}
    ]
    assert await eventually(lambda: scene.events("web", "Scheduled"))


async def test_a_binding_that_the_extender_refuses_is_tried_again(scene: Scene, extender: Extender) -> None:
    """Its sentence is reported; the room is free meanwhile."""
    node = await scene.node("a")
    await extender.does(bind={"answer": {"Error": "no licence is free"}})
    scheduler, _ = await with_extenders(scene, {"urlPrefix": extender.url, "bindVerb": "bind"})

    await scene.pod("web", schedulerName=scheduler, cpu="3")
    condition = await told(scene, "web")
    await extender.does(bind={"bind": None})

    assert condition["reason"] == "SchedulerError"
    assert "no licence is free" in condition["message"]
    assert await scene.until_bound("web") == node


async def test_an_ignorable_binder_that_fails_leaves_it_to_us(scene: Scene, extender: Extender) -> None:
    """The default binder binds."""
    node = await scene.node("a")
    await extender.does(bind={"status": 500})
    one = {"urlPrefix": extender.url, "bindVerb": "bind", "ignorable": True}
    scheduler, _ = await with_extenders(scene, one)

    await scene.pod("web", schedulerName=scheduler)

    assert await scene.until_bound("web") == node


async def test_an_extender_spares_victims(scene: Scene, extender: Extender) -> None:
    """Of two nodes with one victim each, preemption would take the other one."""
    high: Obj = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": f"{scene.name}-high"},
        "value": 1000,
    }
    low = {**high, "metadata": {"name": f"{scene.name}-low"}, "value": 10}
    for each in (high, low):
        await scene.make("/apis/scheduling.k8s.io/v1/priorityclasses", each)
    cheap, dear = await scene.node("cheap", cpu="1"), await scene.node("dear", cpu="1")
    await extender.does(preempt={"victims_on": [dear]})
    scheduler, _ = await with_extenders(scene, {"urlPrefix": extender.url, "preemptVerb": "preempt"})
    await scene.scheduling()
    on_dear = {"nodeSelector": {"kubernetes.io/hostname": dear}, "priorityClassName": f"{scene.name}-low"}
    on_cheap = {"nodeSelector": {"kubernetes.io/hostname": cheap}}
    await scene.pod("precious", cpu="700m", **on_dear)  # type: ignore[arg-type] # fields as in the API
    await scene.pod("plain", cpu="700m", **on_cheap)
    await scene.until_running(2)

    await scene.pod("urgent", cpu="700m", schedulerName=scheduler, priorityClassName=f"{scene.name}-high")

    assert await scene.until_bound("urgent") == dear
    (body, *_) = await extender.asked("preempt")
    assert body["NodeNameToVictims"].keys() == {cheap, dear}
    assert [pod["metadata"]["name"] for pod in body["NodeNameToVictims"][cheap]["Pods"]] == ["plain"]
    assert {pod["metadata"]["name"] for pod in await scene.pods()} == {"plain", "urgent"}


async def test_a_managed_resource_is_the_extenders_business(scene: Scene, extender: Extender) -> None:
    """Pods that do not ask for it do not concern it; what it counts, we do not."""
    node = await scene.node("a")
    await extender.does(filter={"only": [node]})
    managed = [{"name": "example.com/slice", "ignoredByScheduler": True}]
    scheduler, _ = await with_extenders(
        scene, {"urlPrefix": extender.url, **FILTER, "managedResources": managed}
    )
    containers = scene.pod_spec()["containers"]
    amount = {"cpu": "100m", "example.com/slice": "1"}
    containers[0]["resources"] = {"requests": amount, "limits": amount}

    await scene.pod("plain", schedulerName=scheduler)
    await scene.until_bound("plain")
    asked_before = await extender.asked("filter")
    await scene.pod("sliced", schedulerName=scheduler, containers=containers)

    assert await scene.until_bound("sliced") == node  # which has no such resource
    assert asked_before == []
    assert len(await extender.asked("filter")) == 1


async def test_https_with_a_ca_of_its_own(scene: Scene, extender: Extender, served: Served) -> None:
    """The CA that the policy names verifies it; without one the system's do, and it is not trusted."""
    node = await scene.node("a")
    await extender.does(filter={"only": [node]})
    known = {"enableHTTPS": True, "tlsConfig": {"caData": served.ca_data}}
    scheduler, _ = await with_extenders(scene, {"urlPrefix": extender.tls_url, **FILTER, **known})
    other, _ = await with_extenders(scene, {"urlPrefix": extender.tls_url, **FILTER}, suffix="unknown")

    await scene.pod("trusting", schedulerName=scheduler)
    await scene.pod("wary", schedulerName=other)

    assert await scene.until_bound("trusting") == node
    condition = await told(scene, "wary")
    assert condition["reason"] == "SchedulerError"
    assert "certificate verify failed" in condition["message"].lower()
    assert len(await extender.asked("filter")) == 1


async def test_an_unusable_certificate_is_refused_with_its_field(scene: Scene, extender: Extender) -> None:
    """Before anything is scheduled with it."""
    one = {"urlPrefix": extender.tls_url, **FILTER, "tlsConfig": {"caData": "bm90aGluZw=="}}
    spec = {"scheduling": {"schedulerName": f"{scene.scheduler}-broken", "extenders": [one]}}
    policy = await scene.policy(spec, "broken")

    condition = await scene.until_condition(policy, "Accepted", "False")

    assert "spec.scheduling.extenders[0].tlsConfig" in condition["message"]
    assert "PEM" in condition["message"]


# -- bad extenders -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        pytest.param({"status": 500}, "code 500", id="500"),
        pytest.param({"raw": "<html>hello</html>"}, "answers what cannot be read", id="garbage"),
        pytest.param({"raw": ""}, "answers what cannot be read", id="nothing"),
        pytest.param({"raw": "[]"}, "answers what cannot be read", id="another-shape"),
        pytest.param({"answer": {"Error": "I am confused"}}, "I am confused", id="an-error-of-its-own"),
        pytest.param(
            {"answer": {"NodeNames": ["elsewhere"]}}, 'a filtered node "elsewhere"', id="wrong-names"
        ),
        pytest.param({"redirect": "/elsewhere/filter"}, "code 307", id="redirect"),
        pytest.param({"huge": 8}, "the answer has more than", id="huge"),
        pytest.param({"trickle": 30}, "no complete answer within 1 s", id="trickle"),
        pytest.param({"hang": 30}, "no complete answer within 1 s", id="hang"),
    ],
)
async def test_a_bad_answer_harms_its_own_pods_only(
    scene: Scene, extender: Extender, program: Obj, sentence: str
) -> None:
    """They get the reason, and are placed once the extender is well; others never notice."""
    node = await scene.node("a")
    await extender.does(filter=program)
    scheduler, policy = await with_extenders(
        scene, {"urlPrefix": extender.url, **FILTER, "httpTimeout": "1s"}
    )
    await scene.scheduling()

    await scene.pod("ours", schedulerName=scheduler)
    await scene.pod("another")

    assert await scene.until_bound("another") == node
    condition = await told(scene, "ours")
    assert condition["reason"] == "SchedulerError"
    assert sentence in condition["message"]
    (event, *_) = await eventually(lambda: scene.events("ours", "FailedScheduling"))
    assert (event["type"], event["reportingController"]) == ("Warning", scheduler)
    assert sentence in event["note"]
    await extender.does(filter={"only": [node]})
    assert await scene.until_bound("ours") == node
    await scene.until_condition(policy, "Degraded", "False")


async def test_many_pods_of_a_hanging_extender_hold_no_other_up(
    scene: Scene, extender: Extender, operator: Operator
) -> None:
    """Three hundred of them, more than all bindings in flight; the others are bound while it hangs."""
    await scene.node("a", allocatable={"pods": "500"})
    await extender.does(filter={"hang": 60}, bind={"hang": 60})
    slow: Obj = {"urlPrefix": extender.url, "httpTimeout": "55s"}
    filtering, _ = await with_extenders(scene, {**slow, **FILTER}, suffix="filtering")
    binding, _ = await with_extenders(scene, {**slow, "bindVerb": "bind"}, suffix="binding")
    await scene.scheduling()
    for number in range(150):
        await scene.pod(f"filtered-{number}", schedulerName=filtering, cpu="1m")
        await scene.pod(f"to-bind-{number}", schedulerName=binding, cpu="1m")
    await extender.until_asked("filter", 16)
    await extender.until_asked("bind", 16)

    for number in range(5):
        await scene.pod(f"other-{number}")

    for number in range(5):
        await scene.until_bound(f"other-{number}")
    assert await scene.node_of("filtered-0") == await scene.node_of("to-bind-0") == ""
    assert len(await extender.asked("filter")) == 16  # so many simultaneously, and none of them has ended


async def test_an_ignorable_extender_that_keeps_failing_is_named_and_skipped(
    scene: Scene, extender: Extender, operator: Operator
) -> None:
    """Pods go on without it, the policy says so, and says when it is over."""
    await scene.node("a")
    await extender.does(filter={"status": 503})
    one = {"urlPrefix": extender.url, **FILTER, "ignorable": True}
    scheduler, policy = await with_extenders(scene, one)

    for number in range(3):
        await scene.pod(f"web-{number}", schedulerName=scheduler)
        await scene.until_bound(f"web-{number}")
    condition = await scene.until_condition(policy, "Degraded", "True", "ExtenderFailed")
    await extender.does(filter={"only": [f"{scene.name}-a"]})
    number = 3

    async def well() -> bool:
        nonlocal number
        number += 1
        await scene.pod(f"web-{number}", schedulerName=scheduler, cpu="10m")
        await scene.until_bound(f"web-{number}")
        return bool(
            operator.metric("plimsoll_scheduler_extender_asks_total", extender=extender.url, result="success")
        )

    await eventually(well)
    await scene.until_condition(policy, "Degraded", "False")

    assert extender.url in condition["message"]
    assert "failed filter with extender" in condition["message"]
    counted = {"extender": extender.url, "point": "filter"}
    assert operator.metric("plimsoll_scheduler_extender_asks_total", **counted, result="error") == 3
    assert operator.metric("plimsoll_scheduler_extender_duration_seconds_count", **counted) >= 4


async def test_an_answer_for_a_pod_that_is_gone_is_dropped(
    scene: Scene, extender: Extender, operator: Operator
) -> None:
    """Its namesake is another pod, and asked about again; nothing breaks."""
    node = await scene.node("a")
    await extender.does(filter={"hang": 1.5})
    scheduler, _ = await with_extenders(scene, {"urlPrefix": extender.url, **FILTER})
    first = await scene.pod("web", schedulerName=scheduler)
    await extender.until_asked("filter")

    await scene.speaker.request("DELETE", scene.path("pods/web"), gracePeriodSeconds="0")
    await extender.does(filter={"only": [node]})
    second = await scene.pod("web", schedulerName=scheduler)

    assert await scene.until_bound("web") == node
    await throughout(lambda: scene.node_of("web"), lambda where: where == node, 2.0)
    assert (await scene.a_pod("web"))["metadata"]["uid"] == second["metadata"]["uid"]
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    assert operator.metric("plimsoll_contained_failures_total", where="scheduling") == 0


async def test_room_that_is_gone_when_the_answer_comes_is_not_given_twice(
    scene: Scene, extender: Extender
) -> None:
    """While an extender thinks, others are placed; its pod is judged by the room that is left."""
    node = await scene.node("a", cpu="1")
    await extender.does(filter={"wait": True})
    patient: Obj = {"urlPrefix": extender.url, **FILTER, "ignorable": True, "httpTimeout": "55s"}
    scheduler, _ = await with_extenders(scene, patient)
    await scene.scheduling()
    await scene.pod("slow", schedulerName=scheduler, cpu="700m")
    await extender.until_asked("filter")

    await scene.pod("fast", cpu="700m")

    assert await scene.until_bound("fast") == node
    await extender.does(filter={"only": [node]})
    condition = await told(scene, "slow")
    assert "1 Insufficient cpu" in condition["message"]
    assert await scene.node_of("slow") == ""
