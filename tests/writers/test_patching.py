"""The condition PodScheduled of unschedulable pods."""

from typing import Any

from kube.scripted_server import ToldServer
from plimsoll.kube.session.session import Session
from plimsoll.model.kinds.pod import Pod
from plimsoll.ports.pod_writes import ConditionUpdate
from plimsoll.testing.builders import a_pod
from plimsoll.testing.fakes import FakeClock
from plimsoll.writers.pods import PodStatusPatcher


async def written(told: tuple[ToldServer, Session], pod: Pod, condition: ConditionUpdate) -> Any:
    """What is sent."""
    server, session = told
    server.then({})
    await PodStatusPatcher(session, FakeClock()).write_condition(pod, condition)
    _, path, body, request = server.requests[0]
    assert path == "/api/v1/namespaces/default/pods/pod/status"
    assert request.headers["Content-Type"] == "application/strategic-merge-patch+json"
    return body


async def test_the_condition_is_merged_by_its_type(told: tuple[ToldServer, Session]) -> None:
    """For this very pod (by uid), with the generation that was judged."""
    pod = a_pod(uid="u1", metadata={"generation": 4})

    body = await written(
        told, pod, ConditionUpdate("Unschedulable", "0/1 nodes are available: 1 node(s) full.")
    )

    assert body["metadata"] == {"uid": "u1"}
    (condition,) = body["status"]["conditions"]
    assert condition == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available: 1 node(s) full.",
        "lastTransitionTime": "1970-03-11T10:40:00Z",
        "observedGeneration": 4,
    }
    assert "nominatedNodeName" not in body["status"]


async def test_the_transition_time_moves_only_with_the_status(told: tuple[ToldServer, Session]) -> None:
    """A new reason is no transition: users see since when the pod waits."""
    pod = a_pod(status={"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Other"}]})

    body = await written(told, pod, ConditionUpdate("Unschedulable", "full"))

    assert "lastTransitionTime" not in body["status"]["conditions"][0]


async def test_an_empty_nomination_is_removed(told: tuple[ToldServer, Session]) -> None:
    """Null in a merge patch."""
    body = await written(told, a_pod(), ConditionUpdate("Unschedulable", "full", nominated_node=""))

    assert body["status"]["nominatedNodeName"] is None
