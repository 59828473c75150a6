"""Moves that wait for a person: proposed once, carried out or called off by an annotation."""

from typing import Any

import pytest

from plimsoll.api.v1alpha1.annotations import APPROVED, STOP
from plimsoll.cluster.watch_events import NodeAdded, NodeUpdated, ObjectAdded, PodAdded, PodUpdated
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.model.kinds.workload import Namespace
from plimsoll.testing.builders import a_node
from plimsoll.testing.fakes import settled
from rebalancing.scene import POLICY, Scene, a_policy, web

OLD = web(1, "bad")
APPROVE = a_policy("Approve")


def annotate(scene: Scene, answer: str | None, key: str | None = None) -> None:
    """Somebody annotates a record, the only one if no key is given."""
    namespace, name = (key or next(iter(scene.keeper.known))).split("/")
    scene.wing.approvals.annotated(namespace, name, {} if answer is None else {APPROVED: answer})


async def test_a_proposal_waits_and_is_made_once() -> None:
    """Several runs, one record, which says what to do; nothing is evicted."""
    scene = Scene()

    async with scene.running(APPROVE):
        await scene.run()
        await scene.clock.advance(5)
        await scene.run()

    assert scene.evictor.evicted == []
    assert scene.phases == [["Planned"]]
    assert scene.record["status"]["reason"] == "AwaitsApproval"
    assert "plimsoll.dev/approved=true" in scene.record["status"]["message"]


async def test_a_yes_carries_the_move_out() -> None:
    """Like any other move, to its verified end."""
    scene = Scene()

    async with scene.running(APPROVE):
        await scene.run()
        annotate(scene, "true")
        await scene.clock.advance(2)
        assert scene.evictor.evicted == ["web-1"]
        scene.gone(OLD)
        waiting = web(3, created="2026-06-01T00:00:00Z")
        scene.tell(PodAdded(waiting))
        scene.tell(PodUpdated(waiting, web(3, "good", created="2026-06-01T00:00:00Z")))
        await settled()

    assert scene.phases == [["Planned", "Evicting", "Evicted", "Settled"]]


async def test_a_no_calls_it_off_permanently() -> None:
    """The same move is not proposed again while the record is kept."""
    scene = Scene()

    async with scene.running(APPROVE):
        await scene.run()
        annotate(scene, "false")
        await scene.clock.advance(2)
        await scene.run()

    assert scene.evictor.evicted == []
    assert scene.phases == [["Planned", "Cancelled"]]
    assert scene.record["status"]["reason"] == "Rejected"


def press(scene: Any, value: Any) -> None:
    """Press the stop button, or release it."""
    namespace = Namespace(metadata=ObjectMeta(name="plimsoll", annotations={STOP: value}))
    scene.tell(ObjectAdded(namespace))


@pytest.mark.parametrize("answer", ["True", "yes", "", None])
async def test_anything_else_is_no_answer(answer: str) -> None:
    """Only what is written exactly counts; an answer that is taken back while it waits does not."""
    scene = Scene()

    async with scene.running(APPROVE):
        await scene.run()
        annotate(scene, answer)
        press(scene, "true")
        annotate(scene, "true")
        annotate(scene, answer)
        press(scene, "false")
        await scene.clock.advance(4)

    assert scene.evictor.evicted == []
    assert scene.phases == [["Planned"]]


async def test_a_yes_that_comes_too_late_moves_nothing() -> None:
    """The move is asked again: the taint is gone by then, and so is the reason to move."""
    scene = Scene()

    async with scene.running(APPROVE):
        await scene.run()
        scene.tell(PodAdded(web(9, "bad")))
        scene.gone(OLD)
        annotate(scene, "true")
        await scene.clock.advance(2)

    assert scene.evictor.evicted == []
    assert scene.record["status"]["reason"] == "Gone"


async def test_a_proposal_that_the_plan_no_longer_holds_is_called_off() -> None:
    """The next run finds a better place elsewhere: the old proposal goes, a new one comes."""
    scene = Scene()

    async with scene.running(APPROVE):
        await scene.run()
        scene.rebalancers.configure([])
        await scene.clock.advance(2)

    assert scene.phases == [["Planned", "Cancelled"]]
    assert scene.record["status"]["reason"] == "PolicyChanged"


async def test_another_target_is_another_proposal() -> None:
    """What a person said yes to is what is done: the target is part of it."""
    scene = Scene()

    async with scene.running(APPROVE):
        await scene.run()
        first = scene.record["spec"]["targetNode"]
        closed = a_node(first, taints=["closed=yes:NoSchedule"])
        scene.tell(NodeUpdated(a_node(first), closed), NodeAdded(a_node("better")))
        await scene.clock.advance(1)
        await scene.run()

    by_phase = {
        record["status"]["phase"]: record["spec"]["targetNode"] for record in scene.records.documents.values()
    }
    assert by_phase == {"Cancelled": first, "Planned": "better"}


@pytest.mark.parametrize("is_answered_before", [False, True])
async def test_a_proposal_outlives_the_process(is_answered_before: bool) -> None:
    """Whichever process asked, the next one heeds the answer as soon as it would propose the same."""
    scene = Scene()
    async with scene.running(APPROVE):
        await scene.run()
    later = Scene(*scene.records.documents.values())
    (key,) = scene.records.documents
    if is_answered_before:
        annotate(later, "true", key)

    async with later.running(APPROVE):
        assert later.keeper.unfinished()
        if not is_answered_before:
            annotate(later, "true", key)
        await later.clock.advance(2)
        before = list(later.evictor.evicted)
        await later.run()
        await later.clock.advance(2)

    assert (before, later.evictor.evicted) == ([], ["web-1"])


@pytest.mark.parametrize(
    "forgery",
    [
        pytest.param({"targetNode": "elsewhere"}, id="target"),
        pytest.param({"strategy": "ConsolidateNodes"}, id="strategy"),
        pytest.param({"directed": True}, id="directed"),
        pytest.param(
            {
                "bundle": {
                    "name": "mine",
                    "position": 1,
                    "moves": 1,
                    "beneficiary": {"namespace": "default", "name": "web-9", "uid": "uid-default-web-9"},
                    "node": "good",
                }
            },
            id="room",
        ),
    ],
)
async def test_a_forged_proposal_is_carried_out_by_no_approval(forgery: dict[str, Any]) -> None:
    """It reserves and closes nothing; the run proposes what it has planned itself, and asks for that."""
    scene = Scene()
    async with scene.running(APPROVE):
        await scene.run()
    (key, forged), *_ = scene.records.documents.items()
    forged["spec"] = {**forged["spec"], **forgery}
    later = Scene(forged)
    later.tell(PodAdded(web(9, phase="Pending")))

    async with later.running(APPROVE):
        annotate(later, "true")
        await later.clock.advance(2)
        reserved, closed = dict(later.nominator.by_node), list(later.closer.done)
        await later.run()
        await later.clock.advance(2)

    assert (reserved, closed, later.closer.done, later.evictor.evicted) == ({}, [], [], [])
    phases = {name: record["status"]["phase"] for name, record in later.records.documents.items()}
    assert phases.pop(key) == "Cancelled"
    assert list(phases.values()) == ["Planned"]


async def test_one_approved_move_of_a_workload_at_a_time() -> None:
    """The second waits until the first one's replacement runs, however soon it was approved."""
    scene = Scene()
    scene.tell(PodAdded(web(4, "bad")))

    async with scene.running(a_policy("Approve", limits={"perWorkload": 5})):
        await scene.run()
        for key in list(scene.keeper.known):
            annotate(scene, "true", key)
        await scene.clock.advance(10)
        assert len(scene.evictor.evicted) == 1
        gone = next(pod for pod in (OLD, web(4, "bad")) if pod.name in scene.evictor.evicted)
        scene.gone(gone)
        waiting = web(5, created="2026-06-01T00:00:00Z")
        scene.tell(PodAdded(waiting))
        scene.tell(PodUpdated(waiting, web(5, "good", created="2026-06-01T00:00:00Z")))
        await scene.clock.advance(4)

    assert len(scene.evictor.evicted) == 2


async def test_the_status_says_that_moves_wait() -> None:
    """A reader of the policy sees that a person must act."""
    scene = Scene()

    async with scene.running(APPROVE):
        await scene.run()

    assert scene.statuses.statuses[POLICY]["lastRun"]["message"] == "1 candidate: 1 waits for approval"
