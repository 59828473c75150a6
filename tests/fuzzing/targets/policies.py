"""Targets of our own kinds, and of whole clusters: policies, Eviction records, one object among others."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import yaml

from fuzzing import specimens
from fuzzing.target import Bound, Broken, Target, kind_of
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cli.clusters import catalogue
from plimsoll.cluster.watched_resources import WATCHED
from plimsoll.inspection.catalogue import Catalogue, RebalancingJudge, SchedulingJudge
from plimsoll.inspection.explanations.node import explain_node
from plimsoll.inspection.explanations.pod import explain_pod
from plimsoll.inspection.plans.plans import plan_of
from plimsoll.inspection.state import ClusterState
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.policies.conditions import scheduler_name_of, written_conditions
from plimsoll.policies.judgement import PolicyChecks, divide
from plimsoll.ports.observer import Observer
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.snapshots.content import SnapshotContent
from plimsoll.testing.fakes import FakeClock, FakeRecords

ROOT = Path(__file__).parents[3]
NOW = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)


@cache
def _catalogue() -> Catalogue:
    return catalogue()


def policy(data: bytes) -> object:
    """A policy as the API server has it, past what its schema checks: accepted, or refused in a sentence."""
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        return "no JSON"
    if not isinstance(document, dict):
        return "no object"
    known = _catalogue()
    checks = PolicyChecks(SchedulingJudge(known), RebalancingJudge(known, ClusterObjects(), NOW))
    verdict = checks.judge(document)
    if verdict.crash is not None:
        raise Broken(f"a plugin of ours breaks: {verdict.crash!r}"[:600]) from verdict.crash
    scheduler_name_of(verdict.policy, document)
    for each in written_conditions(document):
        each.model_dump_json()
    if verdict.policy is None:
        return kind_of(verdict.sentence)
    again = SchedulingPolicy.model_validate(verdict.policy.to_wire())
    if again.spec != verdict.policy.spec:
        raise Broken("written and read again it is another one")
    divide([(verdict.policy, verdict.order)])
    spec = verdict.policy.spec
    return spec.scheduling is None, spec.rebalancing is None, verdict.order[0]


class _Told(Observer):
    def object_skipped(self, resource: str, name: str, problem: str) -> None:
        kind_of(problem)
        kind_of(name, needed=False)


def record(data: bytes) -> object:
    """Eviction records, also those that somebody else wrote."""
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        return "no JSON"
    if not isinstance(document, dict):
        return "no object"
    store = EvictionRecordStore(FakeRecords(), FakeClock(), _Told())
    store.notice(document)
    for each in store.known.values():
        if not math.isfinite(each.created):
            raise Broken(f"a record of {each.created}")
    phases = [(str(each.phase), each.is_finished, each.is_forecast) for each in store.known.values()]
    for name in store.policies():
        store.of_policy(name)
    return tuple(phases)


def cluster(data: bytes) -> object:
    """A hostile object among neighbours, mirrored, planned and explained: they come through.

    The first byte says of which kind it is.
    """
    resource = WATCHED[data[0] % len(WATCHED) if data else 0]
    objects: dict[str, list[bytes]] = {name: list(found) for name, found in _neighbours().items()}
    objects.setdefault(resource.name, []).append(data[1:])
    state = ClusterState.of(SnapshotContent(1e9, "test", objects), None, _catalogue())
    broken = [each for each in state.objects.skipped if not each.resource]
    if broken:
        raise Broken(f"it breaks the mirror: {broken[0].name}: {broken[0].problem}"[:600])
    kinds = [kind_of(each.problem) for each in state.objects.skipped[:3]]
    if b"near" not in data and b"n1" not in data and b"\\" not in data:
        found = state.cluster.pods.get("a")
        if found is None or state.objects.cache.node_of("a") != "n1" or found.requests.get("cpu") != 100:
            raise Broken("a neighbour is not where it is")
    if kinds and "left out" not in state.objects.skipped[0].problem:
        return resource.name, tuple(kinds)  # it is not there, and the neighbours alone are no news
    explained = explain_pod(state, "near", "pending")
    explain_node(state, "n1").model_dump_json()
    plans = plan_of(state)
    plans.model_dump_json()
    explained.model_dump_json()
    for sentence in explained.summary:
        kind_of(sentence)
    return resource.name, tuple(kinds), len(plans.policies), kind_of(explained.summary[0])


@cache
def _neighbours() -> dict[str, tuple[bytes, ...]]:
    """Nodes, a pod on one, a pending one, policies of all kinds."""
    room = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    nodes = [
        {
            "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name, "zone": name}},
            "status": {
                "allocatable": room,
                "capacity": room,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        for name in ("n1", "n2")
    ]
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs", "controller": True}

    def pod(name: str, phase: str, **spec: Any) -> dict[str, Any]:
        return {
            "metadata": {
                "name": name, "namespace": "near", "uid": name, "labels": {"app": "near"},
                "ownerReferences": [owner], "creationTimestamp": "2001-01-01T00:00:00Z",
            },
            "spec": {"schedulerName": "plimsoll", "containers": [container], **spec},
            "status": {"phase": phase},
        }  # fmt: skip

    spread = {
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "near"}},
    }  # fmt: skip
    pods = [
        pod("a", "Running", nodeName="n1", topologySpreadConstraints=[spread]),
        pod("b", "Running", nodeName="n1", topologySpreadConstraints=[spread]),
        pod("pending", "Pending", topologySpreadConstraints=[spread]),
    ]
    policies = [yaml.safe_load((ROOT / "examples" / name).read_bytes()) for name in EXAMPLES]
    found = {"nodes": nodes, "pods": pods, "schedulingpolicies": policies}
    return {name: tuple(map(orjson.dumps, documents)) for name, documents in found.items()}


EXAMPLES = ("scheduler.yaml", "rebalance-dry-run.yaml", "rebalance-enforce.yaml")


#: Annotations that decisions heed.
ANNOTATIONS = tuple(
    b'"annotations":{"%b":"' % key
    for key in (
        b"plimsoll.dev/evict",
        b"plimsoll.dev/surged",
        b"plimsoll.dev/stop",
        b"plimsoll.dev/replay-seconds",
        b"descheduler.alpha.kubernetes.io/evict",
        b"controller.kubernetes.io/pod-deletion-cost",
        b"storage.alpha.kubernetes.io/migrated-plugins",
        b"volume.kubernetes.io/selected-node",
        b"volume.beta.kubernetes.io/storage-class",
        b"kubernetes.io/config.mirror",
    )
)


def policy_documents() -> list[bytes]:
    texts = [*ROOT.glob("examples/*.yaml"), *ROOT.glob("tests/migration/cases/*.expected.yaml")]
    documents = [each for path in texts for each in yaml.safe_load_all(path.read_bytes())]
    return [
        orjson.dumps(each)
        for each in documents
        if isinstance(each, dict) and each.get("kind") == "SchedulingPolicy"
    ]


def _records() -> list[bytes]:
    spec = {
        "pod": {"namespace": "b", "name": "a", "uid": "u"}, "policy": "p", "strategy": "s", "mode": "Enforce",
        "planner": "Proven", "reason": "r", "fromNode": "n", "targetNode": "m",
        "owner": {"kind": "ReplicaSet", "name": "x", "uid": "y"},
        "bundle": {"name": "c", "moves": 2, "position": 1},
    }  # fmt: skip
    transition = {"phase": "Evicting", "time": "2026-01-01T00:00:00Z", "reason": "R", "message": "m"}
    document = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Eviction",
        "metadata": {"name": "r", "namespace": "b", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": spec,
        "status": {"phase": "Evicting", "reason": "R", "transitions": [transition]},
    }
    return [
        orjson.dumps(document),
        orjson.dumps({**document, "spec": {**spec, "bundle": None, "owner": None}}),
    ]


def _objects() -> list[bytes]:
    far = {"name": "x", "namespace": "far", "uid": "x"}
    return [bytes([number]) + specimens.document(each.kind, **far) for number, each in enumerate(WATCHED)] + [
        bytes([number]) + specimens.document(each.kind) for number, each in enumerate(WATCHED)
    ]


TARGETS = (
    Target(
        "policies",
        "policies.judgement, inspection.catalogue, api.v1alpha1",
        "SchedulingPolicies past the schema of their definition",
        policy,
        policy_documents,
        (
            b'"scheduling":{',
            b'"rebalancing":{',
            b'"strategies":[',
            b'"args":{',
            b'"windows":[',
            b'"cron":"* * * * *"',
        ),
        Bound(seconds=1.0, seconds_each=1e-4, memory=2**24, memory_each=1000.0),
    ),
    Target(
        "records",
        "rebalancing.records",
        "Eviction records, also those that others wrote or edited",
        record,
        _records,
        (b'"status":{', b'"phase":"Completed"', b'"transitions":[', b'"metadata":{'),
    ),
    Target(
        "cluster",
        "cluster.ingestion, model.columns, plugins, strategies, planning, inspection",
        "one object of any kind in a cluster that is mirrored, planned and explained",
        cluster,
        _objects,
        (*ANNOTATIONS, b'"nodeName":"n2"', b'"uid":"x"', b'"app":"near2"', b'"topologyKey":"zone"'),
        Bound(seconds=2.0, seconds_each=1e-4, memory=2**25, memory_each=2000.0),
    ),
)
