"""A new leader believes, reserves and counts no more of records that a user wrote than their pods show."""

from typing import Any

import pytest

from plimsoll.cluster.watch_events import NodeAdded, PodAdded
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import RememberingObserver
from rebalancing.scene import POLICY, Scene, a_policy, status_of, web
from rebalancing.test_holding import held, left_by_an_earlier_process

BUSY = WriteResult(WriteOutcome.BUSY, "the pod could not be read")


def forged(pod: str = "web-1", suffix: str = "abc", *, node: str = "good", **changes: Any) -> dict[str, Any]:
    """A record that says that a pod was evicted; ``changes`` are of metadata, spec or status."""
    record = left_by_an_earlier_process(pod, targetNode=node)
    record["metadata"] |= {"name": f"{pod}-{suffix}", "uid": f"uid-record-{pod}-{suffix}"}
    for part, fields in changes.items():
        record[part] = {**record[part], **fields}
    return record


def evicted_at(moment: str) -> dict[str, Any]:
    """A status that says when the pod was evicted."""
    return {"transitions": [{"phase": "Evicted", "time": moment}]}


LANDED = {"phase": "Settled", "replacement": {"name": "db-1", "uid": "uid-other-db-1", "node": "good"}}


@pytest.mark.parametrize(
    ("record", "why"),
    [
        pytest.param(
            forged(metadata={"namespace": "other"}),
            "the record is in namespace other, and its pod in default",
            id="namespace",
        ),
        pytest.param(
            forged(metadata={"name": "db-1-abc"}),
            "the record's name is not one of a record about pod web-1",
            id="name",
        ),
        pytest.param(
            forged(spec={"pod": {"namespace": "default", "name": "web-1", "uid": "uid-default-web-2"}}),
            "the uid of its pod is that of pod default/web-2",
            id="uid",
        ),
        pytest.param(
            forged(spec={"fromNode": "good", "targetNode": "bad"}),
            "its pod is on node bad, and not on good",
            id="node",
        ),
        pytest.param(forged(spec={"mode": "DryRun"}), "it is a prediction, and Evicted", id="prediction"),
        pytest.param(
            forged(status=LANDED),
            "its replacement is pod other/db-1, in another namespace",
            id="replacement",
        ),
    ],
)
async def test_a_record_that_the_cluster_contradicts_is_refused_with_an_event(
    record: dict[str, Any], why: str
) -> None:
    """It is left as it is, and the store does not know it, so that it counts in nothing."""
    scene = Scene(record)
    scene.tell(PodAdded(a_pod("db-1", namespace="other", node="good", status=status_of("good"))))

    async with scene.running(a_policy()):
        await scene.clock.advance(25)
        known, reserved = dict(scene.keeper.known), held(scene)

    assert (known, reserved, scene.records.history) == ({}, {}, {})
    assert scene.recorder.said("RecordRefused") == [f"the record is ignored: {why}"]
    (note, *_) = scene.recorder.notes
    assert (note.regarding["kind"], note.regarding["uid"]) == ("Eviction", record["metadata"]["uid"])
    assert note.is_warning
    assert scene.observer.skipped[0] == (
        f"{record['metadata']['namespace']}/{record['metadata']['name']}",
        why,
    )


@pytest.mark.parametrize("given", [{}, {"status": evicted_at("2999-01-01T00:00:00Z")}])
async def test_an_evicted_pod_that_runs_is_not_believed_and_counts_in_no_limit(given: dict[str, Any]) -> None:
    """Its record ends, with an event; the policy has all its evictions of the minute, and moves the pod."""
    scene = Scene(forged(**given))

    async with scene.running(a_policy(limits={"perMinute": 1})):
        reserved = held(scene)
        await scene.run()

    story = "the record says that the pod was evicted, and the pod stays on bad"
    assert reserved == {}
    assert scene.recorder.said("RecordRefused") == [story]
    assert scene.records.history["web-1-abc"] == ["Failed"]
    assert scene.evictor.evicted == ["web-1"]


async def test_a_pod_that_leaves_before_the_watch_shows_it_is_believed() -> None:
    """The record was read after the pods were, from a leader that was deposed meanwhile."""
    scene = Scene(forged())
    scene.evictor.stands = WriteResult(WriteOutcome.GONE, "about to leave")

    async with scene.running():
        reserved = held(scene)

    assert list(reserved) == ["good"]
    assert scene.recorder.notes == []


async def test_a_pod_that_cannot_be_read_is_read_again() -> None:
    """A server that is busy at a change of the leader does not end a move."""
    scene = Scene(forged())
    scene.evictor.stands = BUSY

    async with scene.running():
        scene.evictor.stands = WriteResult(WriteOutcome.GONE, "about to leave")
        await scene.clock.advance(1)
        reserved = held(scene)

    assert list(reserved) == ["good"]


async def test_of_several_records_about_one_pod_the_oldest_counts() -> None:
    """However many there are, each with another target: one room is reserved."""
    documents = [
        forged(
            suffix=f"{number:02}",
            node=f"n{number}",
            metadata={"creationTimestamp": f"2026-01-01T00:00:{number:02}Z"},
        )
        for number in range(30)
    ]
    scene = Scene(*reversed(documents))
    scene.leaving(web(1, "bad"))

    async with scene.running():
        reserved = held(scene)

    assert list(reserved) == ["n0"]
    story = "the record is ignored: record default/web-1-00 says the same of its pod"
    assert scene.recorder.said("RecordRefused")[:29] == [story] * 29


async def test_a_late_record_about_a_pod_that_is_being_moved_is_refused() -> None:
    """A deposed leader cannot have written it: its own record was read at the start."""
    scene = Scene(forged())
    scene.leaving(web(1, "bad"))

    async with scene.running():
        scene.records.documents["default/web-1-late"] = forged(suffix="late", node="n9")
        await scene.clock.advance(25)
        reserved = held(scene)

    assert list(reserved) == ["good"]
    assert len(scene.recorder.said("RecordRefused")) == 1


@pytest.mark.parametrize("is_known", [False, True], ids=["policy-not-known-yet", "policy-known"])
async def test_no_more_is_reserved_than_the_policy_allows(is_known: bool) -> None:
    """Of pods that are gone nothing is known; three of one workload leave together, one room is reserved."""
    scene = Scene(*(forged(f"web-{number}", "abc", node=f"n{number}") for number in (4, 5, 6)))
    if is_known:
        scene.rebalancers.adopt(a_policy())

    async with scene.running():
        reserved = held(scene)
        followed = len(scene.wing.executor.machine.open)

    assert list(reserved) == ["n4"]
    assert followed == 3
    assert scene.recorder.said("RecordRefused") == [
        f"its target n{number} is not reserved: policy {POLICY} allows at most 1 eviction"
        " of ReplicaSet default/web"
        for number in (5, 6)
    ]


async def test_as_much_is_reserved_as_the_policy_allows() -> None:
    """What is under way when the leader changes goes on as before."""
    scene = Scene(*(forged(f"web-{number}", "abc", node=f"n{number}") for number in (4, 5, 6)))
    scene.rebalancers.adopt(a_policy(limits={"perWorkload": 3, "perNode": 3}))

    async with scene.running():
        reserved = held(scene)

    assert list(reserved) == ["n4", "n5", "n6"]
    assert scene.recorder.notes == []


async def test_invented_policies_share_one_limit() -> None:
    """Else each name would be a limit of its own."""
    documents = [
        forged(
            f"w{number}-1", "abc", node=f"n{number}",
            spec={"policy": f"p{number}", "fromNode": f"m{number}",
                  "pod": {"namespace": "default", "name": f"w{number}-1", "uid": f"uid-{number}"},
                  "owner": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"w{number}",
                            "uid": f"uid-ReplicaSet/w{number}"}},
        )
        for number in range(9)
    ]  # fmt: skip
    scene = Scene(*documents)
    for number in range(9):
        scene.tell(
            PodAdded(
                a_pod(f"w{number}-2", owner=f"ReplicaSet/w{number}", node="good", status=status_of("good"))
            )
        )

    async with scene.running():
        reserved = held(scene)

    assert len(reserved) == 5, "the default for one namespace"


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({}, id="under-way"),
        pytest.param({"phase": "Failed", "reason": "NoReplacement"}, id="fruitless"),
    ],
)
async def test_a_record_of_another_namespace_is_not_about_this_ones_workload(status: dict[str, Any]) -> None:
    """It names the uid of the owner, as a pod may; the limit per workload and its pauses are another's."""
    record = forged("evil-1", metadata={"namespace": "other"}, status=status)
    record["spec"]["pod"] |= {"namespace": "other", "uid": "uid-other-evil-1"}
    scene = Scene(record)

    async with scene.running(a_policy()):
        assert list(scene.keeper.known) == ["other/evil-1-abc"]
        await scene.run()

    assert scene.evictor.evicted == ["web-1"]


async def test_the_size_of_what_is_reserved_is_that_of_a_pod_that_runs() -> None:
    """A pending pod of the workload may request any amount, as no node has given it."""
    scene = Scene(forged("web-4"))
    scene.gone(web(1, "bad"))
    scene.gone(web(2, "good"))
    scene.tell(
        NodeAdded(a_node("n1")),
        PodAdded(a_pod("web-8", owner="ReplicaSet/web", cpu="3", status=status_of(""))),
        PodAdded(
            a_pod("web-9", owner="ReplicaSet/web", cpu="3", node="n1", status=status_of("n1", "Pending"))
        ),
    )

    async with scene.running():
        before = held(scene)

    assert before == {}


async def test_ten_thousand_refused_records_are_no_flood_of_events() -> None:
    """The log and the metric of skipped objects have all of them."""
    scene = Scene(*(forged(suffix=str(number), spec={"fromNode": "good"}) for number in range(300)))

    async with scene.running():
        events = len(scene.recorder.notes)

    assert isinstance(scene.observer, RememberingObserver)
    assert (events, len(scene.observer.skipped)) == (100, 300)
