"""A move counts for one owner wherever it is looked up: in limits, in its record, and for its replacement."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.cluster.watch_events import PodAdded
from plimsoll.model.names import PolicyName, record_key
from plimsoll.planning.limits import LimitLevel
from plimsoll.planning.moves import Move, workload_of
from plimsoll.planning.populations import Populations
from plimsoll.rebalancing.moves.events import ReplacementSeen
from plimsoll.rebalancing.moves.instructions import FollowReplacement
from plimsoll.rebalancing.moves.sightings import ReplacementSightings
from plimsoll.rebalancing.records.drafts import spec_of
from plimsoll.records.record import recorded_workload
from plimsoll.testing.builders import a_cluster, a_node, a_pod

OTHER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "map", "uid": "map"}
SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs", "controller": True}
NO_CONTROLLER = {"apiVersion": "example.com/v1", "kind": "Database", "name": "db", "uid": "db"}


@pytest.mark.parametrize(
    ("references", "uid"),
    [
        pytest.param([SET, OTHER], "rs", id="controller first"),
        pytest.param([OTHER, SET], "rs", id="controller last"),
        pytest.param([NO_CONTROLLER, OTHER], "db", id="no controller"),
    ],
)
def test_one_owner_counts_everywhere(references: list[dict[str, Any]], uid: str) -> None:
    pods = [a_pod(name, node="n1", metadata={"ownerReferences": references}) for name in ("p", "q")]
    cluster = a_cluster([a_node("n1")], pods)
    pod = cluster.pods[pods[0].uid]
    workload = workload_of(pod)
    move = Move(pod, "S", "why", "n1", "n2", gain=None, ties=1, is_forecast=False, workload=workload)
    spec = spec_of(move, PolicyName("policy"), Mode.ENFORCE)
    sightings = ReplacementSightings()
    sightings.observe_placed(pods)
    sightings.follow(FollowReplacement(record_key(pod.namespace, "record"), spec))
    new = a_pod("new", metadata={"ownerReferences": references})

    assert workload.key == f"{pod.namespace}/{uid}"
    assert recorded_workload(spec) == workload.key
    assert Populations(cluster)(LimitLevel.WORKLOAD, workload.key) == 2
    assert [type(each) for each in sightings.observe(PodAdded(new))] == [ReplacementSeen]
