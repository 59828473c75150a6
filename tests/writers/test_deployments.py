"""Deployments are read on demand, and marked at the version that was read."""

from typing import Any

import pytest

from kube.scripted_server import ToldServer
from planning.surge_builders import a_deployment
from plimsoll.kube.session.session import Session
from plimsoll.model.kinds.deployment import DELETION_COST, LEAST_COST, SURGED, WANTED_GONE
from plimsoll.ports.writes import WriteOutcome
from plimsoll.writers.deployments import DeploymentRollouts, PodCosts


def document(name: str, replicas: int = 1, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}, "creationTimestamp": None}, "spec": {"x": [1]}}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "7"},
        "spec": {"replicas": replicas, "template": template, **spec},
    }


async def test_they_are_listed_page_by_page(told: tuple[ToldServer, Session]) -> None:
    """The token of one page asks for the next; templates are kept where one pod is wanted."""
    server, session = told
    server.then({"metadata": {"continue": "more"}, "items": [document("one"), document("two", 2)]})
    server.then({"metadata": {}, "items": [document("three")]})

    answer, found = await DeploymentRollouts(session).list()

    assert answer.is_done
    assert [each.metadata.name for each in found] == ["one", "two", "three"]
    assert [bool(each.spec.template) for each in found] == [True, False, True]
    paths = [path for _, path, _, _ in server.requests]
    assert paths == [
        "/apis/apps/v1/deployments?limit=500",
        "/apis/apps/v1/deployments?limit=500&continue=more",
    ]


@pytest.mark.parametrize(
    ("status", "verdict"),
    [(403, WriteOutcome.REFUSED), (410, WriteOutcome.GONE), (500, WriteOutcome.UNKNOWN)],
)
async def test_half_a_list_is_a_failure(
    told: tuple[ToldServer, Session], status: int, verdict: WriteOutcome
) -> None:
    """What fails on a later page fails the whole."""
    server, session = told
    server.then({"metadata": {"continue": "more"}, "items": [document("one")]})
    server.then({"kind": "Status", "message": "no"}, status)

    answer, found = await DeploymentRollouts(session).list()

    assert (answer.verdict, found) == (verdict, ())


async def test_one_is_read_with_what_a_surge_asks(told: tuple[ToldServer, Session]) -> None:
    """Strategy in both forms, the deadline, the template; a missing one is gone."""
    server, session = told
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}}
    server.then(document("web", strategy=rolling, progressDeadlineSeconds=60, paused=None))
    server.then({"kind": "Status", "message": "no"}, 404)
    rollouts = DeploymentRollouts(session)

    _, found = await rollouts.read("default", "web")
    answer, missing = await rollouts.read("default", "web")

    assert found.bounds() == (1, 0)
    assert found.spec.progress_deadline_seconds == 60
    assert found.surged is None
    assert (answer.verdict, missing) == (WriteOutcome.GONE, None)
    assert server.requests[0][1] == "/apis/apps/v1/namespaces/default/deployments/web"


@pytest.mark.parametrize("mark", ["record from node", None])
async def test_a_mark_is_written_at_the_version_that_was_read(
    told: tuple[ToldServer, Session], mark: str | None
) -> None:
    """One annotation of the template; null takes it away."""
    server, session = told
    server.then({})
    server.then({"kind": "Status", "reason": "Conflict", "message": "modified"}, 409)
    deployment = a_deployment(metadata={"resourceVersion": "7"})
    rollouts = DeploymentRollouts(session)

    first, second = await rollouts.mark(deployment, mark), await rollouts.mark(deployment, mark)

    assert (first.verdict, second.verdict) == (WriteOutcome.DONE, WriteOutcome.CONFLICT)
    method, path, body, request = server.requests[0]
    assert (method, path) == ("PATCH", "/apis/apps/v1/namespaces/default/deployments/web")
    assert request.headers["Content-Type"] == "application/merge-patch+json"
    assert body == {
        "metadata": {"uid": "uid-Deployment/web", "resourceVersion": "7"},
        "spec": {"template": {"metadata": {"annotations": {SURGED: mark}}}},
    }


async def test_other_kinds_are_read_where_they_are_served(told: tuple[ToldServer, Session]) -> None:
    """A kind that is missing has no objects, and one that may not be read is named; the rest is there."""
    server, session = told
    given = {"metadata": {"name": "web", "namespace": "default", "uid": "u"}, "spec": {"replicas": 2}}
    rollouts = DeploymentRollouts(session)
    seen = []
    for answers in (
        [({"metadata": {}, "items": [given]}, 200)] * 2,
        [({"kind": "Status", "message": "no"}, 404)] * 2,
        [({"kind": "Status", "message": "forbidden"}, 403)] * 2,
    ):
        for body, status in answers:
            server.then(body, status)
        found, unread = await rollouts.others()
        seen.append((sorted(each.kind for each in found), sorted(unread)))
    server.then({"kind": "Status", "message": "no"}, 404)
    answer, _ = await rollouts.read("default", "web", "CloneSet")

    assert seen == [
        (["CloneSet", "Rollout"], []),
        ([], ["CloneSet", "Rollout"]),
        ([], ["CloneSet", "Rollout"]),
    ]
    assert "could not be read" in unread["CloneSet"]
    assert answer.verdict is WriteOutcome.GONE
    assert {path for _, path, _, _ in server.requests} == {
        "/apis/argoproj.io/v1alpha1/rollouts?limit=500",
        "/apis/apps.kruise.io/v1alpha1/clonesets?limit=500",
        "/apis/apps.kruise.io/v1alpha1/namespaces/default/clonesets/web",
    }


async def test_replicas_are_written_through_the_subresource_at_the_version_that_was_read(
    told: tuple[ToldServer, Session],
) -> None:
    """By a field manager of the caller's choice."""
    server, session = told
    server.then({})
    server.then({"kind": "Status", "reason": "Conflict", "message": "modified"}, 409)
    deployment = a_deployment(metadata={"resourceVersion": "7"})
    rollouts = DeploymentRollouts(session)

    answers = [await rollouts.scale(deployment, 3, "surge") for _ in range(2)]

    assert [each.verdict for each in answers] == [WriteOutcome.DONE, WriteOutcome.CONFLICT]
    method, path, body, _ = server.requests[0]
    assert (method, path) == (
        "PATCH",
        "/apis/apps/v1/namespaces/default/deployments/web/scale?fieldManager=surge",
    )
    assert body == {
        "metadata": {"uid": "uid-Deployment/web", "resourceVersion": "7"},
        "spec": {"replicas": 3},
    }


@pytest.mark.parametrize("namespace", ["", "shop"])
async def test_autoscalers_are_those_of_a_namespace_or_all(
    told: tuple[ToldServer, Session], namespace: str
) -> None:
    """By what they scale."""
    server, session = told
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    scaler = {"metadata": {"name": "h", "namespace": "shop"}, "spec": {"scaleTargetRef": reference}}
    server.then({"metadata": {}, "items": [scaler]})

    answer, found = await DeploymentRollouts(session).autoscaled(namespace)

    assert answer.is_done
    assert found == {"Deployment shop/web": "h"}
    ((_, path, _, _),) = server.requests
    place = f"namespaces/{namespace}/" if namespace else ""
    assert path == f"/apis/autoscaling/v2/{place}horizontalpodautoscalers?limit=500"


@pytest.mark.parametrize(
    ("policy", "annotations"),
    [("tidy", {"annotations": {DELETION_COST: LEAST_COST, WANTED_GONE: "tidy"}}), ("", {})],
)
async def test_a_cost_is_applied_to_one_pod_and_taken_away_without_force(
    told: tuple[ToldServer, Session], policy: str, annotations: dict[str, Any]
) -> None:
    """By a manager of its own: what it no longer applies goes, and what others own is a conflict."""
    server, session = told
    server.then({})

    answer = await PodCosts(session).want_gone("shop", "web-1", "u1", policy)

    assert answer.is_done
    ((verb, path, body, _),) = server.requests
    assert (verb, path) == (
        "PATCH",
        "/api/v1/namespaces/shop/pods/web-1/status?fieldManager=plimsoll-wanted-gone",
    )
    assert body["metadata"] == {"name": "web-1", "namespace": "shop", "uid": "u1", **annotations}
