"""While the replacement of an earlier move is not ready, no further pod of its owner is moved."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plimsoll.api.v1alpha1.eviction import EvictionSpec, EvictionStatus
from plimsoll.cluster.watch_events import PodAdded, PodUpdated
from plimsoll.model.kinds.pod import Pod
from plimsoll.records.history import latest_sent, sent_moves, unready_replacements
from plimsoll.records.record import MOVING, Record
from plimsoll.testing.builders import a_pod
from rebalancing.scene import POLICY, Scene, a_policy, web
from rebalancing.test_reversals import an_earlier_move

SENT = datetime(2026, 1, 1, 12, tzinfo=UTC)
AFTER, BEFORE = SENT + timedelta(seconds=1), SENT - timedelta(seconds=1)


def a_record(phase: str = "Settled", reason: str = "", **spec: Any) -> Record:
    """A move of a pod of the ReplicaSet web, sent at noon."""
    document = {
        "pod": {"namespace": "default", "name": "web-1", "uid": "uid-1"},
        "owner": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web"},
        "policy": "tidy",
        "strategy": "PodLifeTime",
        "mode": "Enforce",
        "reason": "for a test",
        "fromNode": "bad",
        **spec,
    }
    phases = dict.fromkeys(("Evicting", phase))
    status = {
        "phase": phase,
        "reason": reason,
        "transitions": [{"phase": each, "time": SENT.isoformat()} for each in phases],
    }
    return Record(
        "default",
        "web-1-abc",
        EvictionSpec.model_validate(document),
        EvictionStatus.model_validate(status),
        SENT.timestamp(),
    )


def a_sibling(
    created: datetime = AFTER, node: str = "good", namespace: str = "default", **status: Any
) -> Pod:
    """A pod of the owner that is not ready."""
    metadata = {"creationTimestamp": created.isoformat()}
    shown = {"phase": "Pending", **status}
    return a_pod("web-2", namespace=namespace, node=node, metadata=metadata, status=shown)


WAITING = [{"name": "app", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]
CRASHES = [{"name": "app", "restartCount": 9, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]
UNSCHEDULABLE = [
    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes fit"}
]
READY = [{"type": "Ready", "status": "True"}]


@pytest.mark.parametrize(
    ("record", "pod", "why"),
    [
        pytest.param(a_record(), a_sibling(node="", conditions=UNSCHEDULABLE), "0/2 nodes fit", id="pending"),
        pytest.param(a_record(), a_sibling(node=""), "it has no node", id="not seen by a scheduler"),
        pytest.param(a_record(), a_sibling(containerStatuses=WAITING), "ImagePullBackOff", id="image"),
        pytest.param(
            a_record(),
            a_sibling(phase="Running", containerStatuses=CRASHES),
            "CrashLoopBackOff",
            id="was ready once, and crashes",
        ),
        pytest.param(a_record(), a_sibling(phase="Running"), "its phase is Running", id="not ready"),
        pytest.param(a_record("Returned"), a_sibling(node=""), "it has no node", id="returned"),
        pytest.param(
            a_record("Failed", "ReplacementNotRunning"), a_sibling(node=""), "it has no node", id="late"
        ),
        pytest.param(a_record("Failed", "EvictionRefused"), a_sibling(node=""), "", id="nothing was evicted"),
        pytest.param(a_record("Cancelled"), a_sibling(node=""), "", id="cancelled"),
        pytest.param(a_record(strategy="DefaultPreemption"), a_sibling(node=""), "", id="victim"),
        pytest.param(a_record(owner=None), a_sibling(node=""), "", id="without an owner"),
        pytest.param(a_record(), a_sibling(BEFORE, node=""), "", id="older than the move"),
        pytest.param(a_record(), a_sibling(phase="Running", conditions=READY), "", id="ready"),
        pytest.param(a_record(), a_sibling(phase="Succeeded"), "", id="ended"),
        pytest.param(a_record(), a_sibling(namespace="other", node=""), "", id="of another namespace"),
    ],
)
def test_which_pod_is_waited_for(record: Record, pod: Pod, why: str) -> None:
    """Any pod of the owner that was made after the move and is not ready, and why."""
    found = unready_replacements([record], lambda owner: [pod] if owner == "web" else [])

    assert {key: each.why for key, each in found.items()} == ({"default/web": why} if why else {})


def test_the_first_move_counts_however_many_follow() -> None:
    """Its replacement is the oldest pod that is waited for."""
    later = a_record()
    status = later.status.model_copy(
        update={
            "transitions": tuple(
                each.model_copy(update={"time": each.time + timedelta(hours=1)})
                for each in later.status.transitions
            )
        }
    )
    records = [Record("default", "later", later.spec, status, later.created), a_record()]

    (found,) = unready_replacements(records, lambda _: [a_sibling(node="")]).values()

    assert found.record == "default/web-1-abc"
    assert "pod default/web-2 was made after" in found.refusal.message


def test_the_replacement_of_a_move_under_way_is_a_matter_of_the_limits() -> None:
    """Several pods of an owner may move together if the policy allows it."""
    waits = a_sibling(node="")

    assert unready_replacements([a_record()], lambda _: [waits], {waits.uid}) == {}


async def test_its_record_is_kept_and_the_owner_stays_until_it_is_ready() -> None:
    """Whatever the retention of the policy; then the record goes, and the owner's pods move again."""
    scene = Scene()
    late = datetime.fromtimestamp(scene.clock.now() - 500_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    waits = web(5, created=late)
    an_earlier_move(scene, before=600_000.0, policy=POLICY)
    policy = a_policy(records={"ttlSeconds": 60})
    async with scene.running(policy):
        scene.tell(PodAdded(waits))
        await scene.run()
        await scene.wing.retention.tidy()

        assert scene.evictor.evicted == []
        assert any("ReplacementNotReady" in str(each) for each in scene.statuses.statuses.values())
        assert [each["metadata"]["name"] for each in scene.records.documents.values()] == ["web-9-abc"]

        ready = web(5, "good", created=late)
        scene.tell(PodUpdated(waits, ready))
        await scene.wing.retention.tidy()
        assert scene.records.documents == {}
        await scene.run()

    assert scene.evictor.evicted == ["web-1"]


@pytest.mark.parametrize(
    ("phase", "evicted"),
    [
        pytest.param("Running", ["web-5"], id="it crashes"),
        pytest.param("Failed", ["web-5", "web-6"], id="it has ended"),
    ],
)
async def test_a_strategy_that_wants_a_fresh_pod_may_restart_the_replacement(
    phase: str, evicted: list[str]
) -> None:
    """But no other pod of the owner, though that has been restarted as often, before the first has ended."""
    scene = Scene()
    since = datetime.fromtimestamp(scene.clock.now() - 300, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    an_earlier_move(scene, before=600.0, policy=POLICY)
    restarted = {"containerStatuses": [{"name": "app", "restartCount": 200}]}

    def crashing(name: str, node: str, created: str, **status: Any) -> Pod:
        metadata = {"creationTimestamp": created}
        return a_pod(
            name, owner="ReplicaSet/web", node=node, metadata=metadata, status={**restarted, **status}
        )

    sibling = crashing("web-6", "good", "2025-12-31T00:00:00Z", phase="Running", conditions=READY)
    replacement = crashing("web-5", "good", since, phase=phase)
    strategy = {"name": "RemovePodsHavingTooManyRestarts", "args": {"podRestartThreshold": 100}}
    limits = {"perWorkload": "100%"}
    async with scene.running(a_policy(strategies=[strategy], evictor={"minReplicas": 0}, limits=limits)):
        scene.tell(PodAdded(replacement), PodAdded(sibling))
        await scene.run()
        await scene.clock.advance(2)

    assert sorted(scene.evictor.evicted) == evicted


@pytest.mark.parametrize("is_first", [True, False])
def test_of_several_that_wait_the_oldest_is_named(is_first: bool) -> None:
    """Whichever is known first; of equal age the one whose name sorts first."""
    late, first = a_sibling(AFTER + timedelta(seconds=5)), a_sibling(AFTER)
    meta = msgspec.structs.replace(first.metadata, name="web-9", uid="nine")
    oldest = msgspec.structs.replace(first, metadata=meta)
    pods = [oldest, late] if is_first else [late, oldest]

    (found,) = unready_replacements([a_record()], lambda _: pods).values()
    assert found.pod == "default/web-9"


def test_a_move_by_surge_was_sent_when_its_eviction_was() -> None:
    record = a_record()
    later = {"phase": "Evicting", "time": AFTER.isoformat()}
    surging = {"phase": "Surging", "time": SENT.isoformat()}
    status = {"phase": "Evicting", "transitions": [surging, later]}

    assert (
        latest_sent(msgspec.structs.replace(record, status=EvictionStatus.model_validate(status)))
        == AFTER.timestamp()
    )


@given(st.lists(st.sampled_from(["Failed", "Evicting", "Evicted", "Cancelled"]), max_size=5))
@example(["Failed", "Evicting"])
def test_the_moves_under_way_are_those_among_any_others(phases: list[str]) -> None:
    """In the order of their records; those that ended without a replacement do not count."""
    records = [a_record(phase, fromNode=f"n{at}") for at, phase in enumerate(phases)]

    found = [each.nodes for each in sent_moves(records)]

    assert found == [(f"n{at}",) for at, phase in enumerate(phases) if phase in MOVING]
