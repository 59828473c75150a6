"""Every pod that the API server accepts is ingested and counts as in kube-scheduler.

The development cluster's API is the judge of what is accepted; what it stores is what comes in here.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from cluster.invariants import check_cache
from model.upstream_quantity import Quantity, requests, value_of
from plimsoll.cluster.watch_events import NodeAdded, ObjectAdded, PodAdded, PodUpdated
from plimsoll.model.decoding import decode
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.workload import PodDisruptionBudget
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.toolkit.scheduling.disruption_budgets import DisruptionBudgets
from roadstead.assembly import built_in_api
from roadstead.kubelets.nodes import make_node
from roadstead.schemas import fields
from roadstead.schemas.schemas import MismatchError
from roadstead.values.status_errors import StatusError
from scheduling.test_ingesting import Scene

MAX_INT64 = 2**63 - 1
RESOURCES = ("cpu", "memory", "ephemeral-storage", "example.com/device")
SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]

#: A node that has some of each resource.
ANY_NODE = a_node("n1", allocatable={"ephemeral-storage": "1Gi", "example.com/device": "1"})

digits = st.one_of(
    st.integers(0, 10**4).map(str),
    st.integers(0, 2**70).map(str),
    st.sampled_from([str(2**63), str(2**64), str(2**64 + 7), "0" * 20 + "1", "9" * 300, "1" * 301]),
)
fractions = st.one_of(st.just(""), st.just("."), st.from_regex(r"\.[0-9]{1,30}", fullmatch=True))
exponents = st.integers(-400, 400) | st.sampled_from([1002, -1002, 3000, 19, 18, 16, 15, 9999])
powers = st.builds("{}{}".format, st.sampled_from("eE"), exponents)
quantities = st.builds(
    "{}{}{}{}{}{}".format,
    st.sampled_from(["", "", " ", "\t"]),
    st.sampled_from(["", "+"]),
    digits,
    fractions,
    st.sampled_from(SUFFIXES) | powers,
    st.sampled_from(["", " \n"]),
)
amounts = st.dictionaries(st.sampled_from(RESOURCES), quantities, max_size=4)


@st.composite  # type: ignore[arg-type] # a fake has only what is used
def pods(draw: Callable[..., Any], **spec: Any) -> dict[str, Any]:
    """A pod with containers, init containers and overhead; what is extended has a limit, as it must."""

    def container(name: str, **more: Any) -> dict[str, Any]:
        taken = draw(amounts)
        limits = {resource: amount for resource, amount in taken.items() if "/" in resource}
        return {"name": name, "image": "app:1", "resources": {"requests": taken, "limits": limits}, **more}

    inits = draw(st.lists(st.booleans(), max_size=2))
    metadata = {"name": "pod", "namespace": "default"}
    return {
        "metadata": metadata,
        "spec": {
            "containers": [container(f"c{number}") for number in range(draw(st.integers(1, 3)))],
            "initContainers": [
                container(f"i{number}", **({"restartPolicy": "Always"} if stays else {}))
                for number, stays in enumerate(inits)
            ],
            "overhead": draw(amounts),
            **spec,
        },
    }


def stored(resource: str, model: str, obj: dict[str, Any], status: dict[str, Any] | None = None) -> Any:
    """What the API server makes of an object; None when it does not accept it."""
    api = built_in_api()
    schema = fields.struct(model)
    try:
        created = api.create(resource, schema.taken(obj, []))
        if status is not None:
            told = schema.taken({**created, "status": status}, [])
            created = api.update_status(resource, told)
    except (StatusError, MismatchError):
        event("refused")
        return None
    event("accepted")
    return json.loads(json.dumps(created))


def read(
    kind: type[Pod] | type[Node] | type[PodDisruptionBudget], obj: dict[str, Any]
) -> Pod | Node | PodDisruptionBudget:
    """The object as a watch tells it."""
    return decode(kind, json.dumps(obj).encode())


def counted(scene: Scene, row: int = 0) -> dict[str, int]:
    """What is taken of a node, by resource."""
    cluster = scene.cache.cluster
    amounts = cluster.requested[row].tolist()
    return {name: amounts[cluster.axis_of(name)] for name in cluster.resources}


def bounded(amount: int) -> int:
    """A sum of ours stays in its bounds where upstream's turns negative."""
    return min(max(0, amount), MAX_INT64)


@given(pods(nodeName="n1"))
def test_each_accepted_pod_on_a_node_counts_as_upstream_counts_it(pod: dict[str, Any]) -> None:
    """Sums that overflow included; below zero, where upstream gives room away, it counts as nothing."""
    accepted = stored("pods", "V1Pod", pod)
    if accepted is None:
        return
    scene = Scene()

    scene.tell(NodeAdded(ANY_NODE), PodAdded(read(Pod, accepted)))  # type: ignore[arg-type] # a fake has only what is used

    expected = {name: bounded(amount) for name, amount in requests(accepted).items()}
    assert scene.observer.skipped == []
    assert counted(scene) == dict.fromkeys(RESOURCES, 0) | expected | {"pods": 1}
    check_cache(scene.cache)


@given(pods(nodeName="n1"), amounts, amounts)
def test_what_was_granted_counts_as_upstream_counts_it(
    pod: dict[str, Any], granted: dict[str, Any], allocated: dict[str, Any]
) -> None:
    """A status of any amounts: the largest of wanted, granted and allocated."""
    status = {"name": "c0", "image": "app:1", "imageID": "", "ready": True, "restartCount": 0}
    status |= {"resources": {"requests": granted}, "allocatedResources": allocated}
    accepted = stored("pods", "V1Pod", pod, {"phase": "Running", "containerStatuses": [status]})
    if accepted is None:
        return
    scene = Scene()

    scene.tell(NodeAdded(ANY_NODE), PodAdded(read(Pod, accepted)))  # type: ignore[arg-type] # a fake has only what is used

    expected = {name: bounded(amount) for name, amount in requests(accepted).items()}
    assert {name: counted(scene)[name] for name in expected} == expected


@given(pods(schedulerName="ours"))
def test_each_accepted_pod_without_a_node_is_queued(pod: dict[str, Any]) -> None:
    """It is tried, so that it gets its condition and event when it fits nowhere."""
    accepted = stored("pods", "V1Pod", pod)
    if accepted is None:
        return
    scene = Scene()

    scene.tell(NodeAdded(ANY_NODE), PodAdded(read(Pod, accepted)))  # type: ignore[arg-type] # a fake has only what is used

    assert scene.active == ["pod"]
    assert scene.observer.skipped == []


@given(amounts)
def test_each_accepted_node_offers_what_upstream_reads(allocatable: dict[str, Any]) -> None:
    """An amount without end of one resource takes no other along."""
    accepted = stored(
        "nodes", "V1Node", make_node("n1"), {"allocatable": allocatable, "capacity": allocatable}
    )
    if accepted is None:
        return
    scene = Scene()

    scene.tell(NodeAdded(read(Node, accepted)))  # type: ignore[arg-type] # a fake has only what is used

    cluster = scene.cache.cluster
    offered = (accepted["status"].get("allocatable") or {}).items()
    expected = {name: bounded(value_of(name, Quantity.parse(text))) for name, text in offered}
    axes = {name: cluster.axis_of(name) for name in expected}
    assert all(axes[name] is not None for name, amount in expected.items() if amount)
    assert {
        name: cluster.allocatable[0, axis] if axis is not None else 0 for name, axis in axes.items()
    } == expected
    assert scene.observer.skipped == []


@given(
    st.sampled_from(["minAvailable", "maxUnavailable"]),
    st.one_of(st.integers(0, 2**31 - 1), st.integers(0, 10**40).map("{}%".format)),
    st.integers(0, 2**31 - 1),
)
def test_each_accepted_budget_holds(field: str, amount: int | str, allowed: int) -> None:
    """Whatever share it names, the disruptions that its status allows count."""
    budget = {
        "metadata": {"name": "wall", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, field: amount},
    }
    status = {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    accepted = stored("poddisruptionbudgets.policy", "V1PodDisruptionBudget", budget, status)
    if accepted is None:
        return
    scene = Scene()

    scene.tell(ObjectAdded(read(PodDisruptionBudget, accepted)))

    pod = scene.cache.info(a_pod(labels={"app": "web"}))
    assert scene.observer.skipped == []
    assert DisruptionBudgets(scene.cache.cluster.objects).violating([pod]) == [allowed == 0]


@pytest.mark.parametrize("amount", ["1e1002", "9" * 300, "0." + "0" * 400 + "1"])
def test_one_odd_amount_takes_no_other_along(amount: str) -> None:
    """The attack: six cores that did not count because of a disk that could not be read."""
    scene = Scene()
    pod = a_pod("big", node="n1", cpu="6")
    odd = read(
        Pod, {**_plain(pod), "spec": {**_plain(pod)["spec"], "overhead": {"ephemeral-storage": amount}}}
    )

    scene.tell(NodeAdded(a_node("n1")), PodAdded(odd), PodUpdated(odd, odd))  # type: ignore[arg-type] # a fake has only what is used

    assert counted(scene)["cpu"] == 6000


def _plain(pod: Pod) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": pod.spec.containers[0].resources.requests}}
    metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    return {"metadata": metadata, "spec": {"nodeName": pod.node_name, "containers": [container]}}
