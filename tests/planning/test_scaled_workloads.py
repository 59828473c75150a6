"""Pods of Argo Rollouts and of CloneSets move by one replica more, where nothing else decides on them."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from planning.surge_builders import a_crowded_node, a_replica_set, an_only_pod
from planning.test_surges import around, asked
from plimsoll.model.autoscalers.horizontal_pod_autoscaler import HorizontalPodAutoscaler
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.deployment import Deployment
from plimsoll.model.kinds.scaled_workloads import SCALED
from plimsoll.planning.planners import proven_plan as plan
from plimsoll.planning.surges import Deployments, Surge

OWNERS = {"Rollout": "ReplicaSet/web-1", "CloneSet": "CloneSet/web"}


def an_object(
    kind: str, *, replicas: int = 1, status: Any = None, spec: Any = None, **metadata: Any
) -> Deployment:
    """One of the kind, at rest, as its API returns it."""
    counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas", "readyReplicas"), replicas)
    own: dict[str, Any] = {"observedGeneration": 3}
    if kind == "Rollout":
        own = {"observedGeneration": "3", "phase": "Healthy", "stableRS": "1", "currentPodHash": "1"}
    meta = {"name": "web", "namespace": "default", "uid": f"uid-{kind}/web", "generation": 3, **metadata}
    document = {
        "apiVersion": SCALED[kind].api_version,
        "kind": kind,
        "metadata": meta,
        "spec": {"replicas": replicas, "template": {"spec": {}}, **(spec or {})},
        "status": {**counts, **own, **(status or {})},
    }
    return SCALED[kind].read(msgspec.json.encode(document))


@pytest.mark.parametrize("kind", OWNERS)
@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("protected", [True, False])
def test_its_pod_moves_by_one_more(kind: str, replicas: int, *, protected: bool) -> None:
    """Whether an eviction is forbidden or not; the only one of them has no other way."""
    pod = an_only_pod(node="full", owner=OWNERS[kind])
    cluster = a_crowded_node(pod, a_replica_set(kind=kind))
    found = an_object(kind, replicas=replicas)
    given = replace(around(found), deployments=Deployments({found.uid: found}, autoscaled={}))

    (move,) = plan(asked() if protected else replace(asked(), evictors=()), cluster, given).moves

    assert move.surge == Surge("web", f"uid-{kind}/web", replicas=replicas, kind=kind)


@pytest.mark.parametrize(
    ("kind", "changed", "why"),
    [
        ("Rollout", {"spec": {"paused": True}}, "Rollout web is paused"),
        ("Rollout", {"status": {"phase": "Progressing"}}, "a rollout of Rollout web is under way"),
        ("Rollout", {"status": {"currentPodHash": "2"}}, "a rollout of Rollout web is under way"),
        ("Rollout", {"status": {"observedGeneration": "2"}}, "a rollout of Rollout web is under way"),
        ("Rollout", {"status": {"observedGeneration": "x"}}, "a rollout of Rollout web is under way"),
        ("Rollout", {"status": {"replicas": 2}}, "a rollout of Rollout web is under way"),
        ("CloneSet", {"spec": {"updateStrategy": {"paused": True}}}, "CloneSet web is paused"),
        ("CloneSet", {"status": {"updatedReplicas": 0}}, "a rollout of CloneSet web is under way"),
        ("CloneSet", {"status": {"availableReplicas": 0}}, "a rollout of CloneSet web is under way"),
        (
            "CloneSet",
            {"spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}},
            "CloneSet web gives each pod volumes of its own, which it deletes with the pod",
        ),
        (
            "CloneSet",
            {"spec": {"lifecycle": {"preDelete": {"labelsHandler": {"a": "b"}}}}},
            "CloneSet web has a preDelete hook, which decides when a pod goes",
        ),
        ("CloneSet", {"replicas": 0}, "CloneSet web wants 0 replicas"),
        ("CloneSet", {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "CloneSet web is being deleted"),
    ],
)
def test_the_missing_condition_is_named(kind: str, changed: dict[str, Any], why: str) -> None:
    pod = an_only_pod(node="full", owner=OWNERS[kind])
    found = an_object(kind, **changed)
    given = replace(around(found), deployments=Deployments({found.uid: found}, autoscaled={}))

    (refused,) = plan(asked(), a_crowded_node(pod, a_replica_set(kind=kind)), given).refused

    assert refused.refusal.message.endswith(f"no surge can move it: {why}")


@pytest.mark.parametrize("kind", OWNERS)
def test_who_scales_it_by_itself_is_respected(kind: str) -> None:
    """An autoscaler of the same name that scales another kind is not meant."""
    spec = {"scaleTargetRef": {"apiVersion": SCALED[kind].api_version, "kind": kind, "name": "web"}}
    scaler = convert(
        HorizontalPodAutoscaler, {"metadata": {"name": "w", "namespace": "default"}, "spec": spec}
    )
    found = an_object(kind)
    pod = an_only_pod(node="full", owner=OWNERS[kind])
    cluster = a_crowded_node(pod, a_replica_set(kind=kind))
    seen = []
    for scalers in ({scaler.scaled: scaler.name}, {f"Deployment {found.key}": "w"}):
        given = replace(around(found), deployments=Deployments({found.uid: found}, autoscaled=scalers))
        made = plan(asked(), cluster, given)
        seen += [each.refusal.message.partition("move it: ")[2] for each in made.refused]

    assert seen == [f"HorizontalPodAutoscaler w decides on the replicas of {kind} web"]


def test_a_kind_that_could_not_be_read_is_named() -> None:
    pod = an_only_pod(node="full", owner="CloneSet/web")
    given = replace(
        around(), deployments=Deployments(unread={"CloneSet": "the CloneSets could not be read: no"})
    )

    (refused,) = plan(asked(), a_crowded_node(pod), given).refused

    assert refused.refusal.message.endswith("no surge can move it: the CloneSets could not be read: no")
