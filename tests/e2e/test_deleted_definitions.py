"""Custom resource definitions that are deleted under a running operator, and created again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from e2e.conftest import DEFINITIONS, define, documents
from e2e.polls import eventually
from e2e.speaker import speaking

if TYPE_CHECKING:
    from collections.abc import Callable

    from e2e.operator_process import Operator
    from e2e.speaker import Speaker
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,  # an operator on a cluster of its own, from its start to its end
]

POLICIES = "/apis/plimsoll.dev/v1alpha1/schedulingpolicies"
PODS = "/api/v1/namespaces/default/pods"


def a_policy() -> dict[str, Any]:
    """One that serves a scheduler name."""
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "SchedulingPolicy",
        "metadata": {"name": "serve"},
        "spec": {"scheduling": {"schedulerName": "plimsoll"}},
    }


async def add_pod(speaker: Speaker, name: str) -> None:
    """A pod that waits for the operator."""
    spec = {"schedulerName": "plimsoll", "containers": [{"name": "main", "image": "app:1"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    (await speaker.request("POST", PODS, pod)).accepted()


async def says(operator: Operator, sentence: str) -> bool:
    """Whether its log has a sentence."""
    return sentence in operator.said()


async def is_placed(speaker: Speaker, name: str) -> bool:
    """Whether it has a node."""
    return "nodeName" in (await speaker.request("GET", f"{PODS}/{name}")).accepted()["spec"]


async def test_the_operator_outlives_its_definitions(
    start_roadstead: StartRoadstead, start_operator: Callable[..., Operator]
) -> None:
    """Its watches of them fail; what it says is what to do, and it goes on when that is done."""
    cluster = start_roadstead(nodes=1)
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        operator = start_operator(cluster.kubeconfig)
        operator.until_ready()
        (await speaker.request("POST", POLICIES, a_policy())).accepted()
        await add_pod(speaker, "before")
        await eventually(lambda: is_placed(speaker, "before"))

        for definition in documents("crds"):
            name = definition["metadata"]["name"]
            (await speaker.request("DELETE", f"{DEFINITIONS}/{name}")).accepted()
        await eventually(lambda: says(operator, "does not serve resources"))
        await define(speaker)
        (await speaker.request("POST", POLICIES, a_policy())).accepted()
        operator.until_ready()

    assert operator.terminate() == 0, operator.said()
