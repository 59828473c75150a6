"""Bundles at work: pods of one owner leave one after the other, and proposals are approved together."""

import asyncio
from typing import Any

import pytest

from plimsoll.cluster.watch_events import NodeAdded, ObjectDeleted, PodAdded, PodDeleted, PodUpdated
from plimsoll.model.kinds.pod import Pod
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.closed_nodes import KEPT_S
from plimsoll.rebalancing.moves.outcomes import PATIENCE_S
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import settled
from rebalancing.moves.test_approving import annotate
from rebalancing.scene import POLICY, Scene, a_policy
from rebalancing.test_closed_nodes import EMPTYING, Consolidation, of
from rebalancing.test_missed_deletions import shown
from rebalancing.test_rooms import BIG, MAKES_ROOM, crowded, on, small

FREE = {"total": "100%", "perNode": "100%", "perNamespace": "100%", "perWorkload": "100%"}


class Siblings(Consolidation):
    """On the little used node: two pods of one owner and one of another."""

    def __init__(self, *documents: Any) -> None:
        super().__init__(*documents)
        self.made = 2
        self.tell(PodDeleted(of("job", "idle")), PodAdded(of("api", "idle", "2")))
        self.tell(PodAdded(of("web", "idle", cpu="100m")))

    def follows(self, app: str, *, node: str = "busy", ready: bool = True) -> Pod:
        """The latest evicted pod of an owner is gone, and its replacement runs."""
        gone = next(name for name in reversed(self.evictor.evicted) if name.startswith(app))
        self.tell(PodDeleted(of(app, "idle", gone.removeprefix(f"{app}-"))))
        self.made += 1
        waiting, there = of(app, "", str(self.made), "Pending"), of(app, node, str(self.made))
        if not ready:
            there = a_pod(
                there.name, owner=f"ReplicaSet/{app}", cpu="200m", node=node, status={"phase": "Running"}
            )
        self.tell(PodAdded(waiting), PodUpdated(waiting, there))
        return there

    def becomes_ready(self, app: str, pod: Any, node: str = "busy") -> None:
        """The replacement's probe passes."""
        self.tell(PodUpdated(pod, of(app, node, str(self.made))))

    def held(self) -> list[str]:
        """Whose places are kept on the other node."""
        return sorted(pod.name for pod in self.nominator.by_node.get("busy", {}).values())


def ends(scene: Scene) -> list[str]:
    """How far each record has come."""
    return sorted(phases[-1] for phases in scene.phases)


# -- one after the other ---------------------------------------------------------------------------------


async def test_the_second_pod_of_an_owner_goes_when_the_first_one_s_replacement_is_ready() -> None:
    """The default limits hold; the node stays closed, and the place of the second is kept meanwhile."""
    scene = Siblings()

    async with scene.running(a_policy(**EMPTYING)):  # type: ignore[arg-type] # fields as in the API
        await scene.run()
        first = list(scene.evictor.evicted)
        kept = scene.held()
        replacement = scene.follows("api", ready=False)
        await scene.clock.advance(60)
        await scene.run()
        waited = list(scene.evictor.evicted)
        scene.becomes_ready("api", replacement)
        await scene.clock.advance(3)
        assert sorted(scene.evictor.evicted) == ["api-1", "api-2", "web-1"]
        assert scene.statuses.statuses[POLICY]["counts"]["evicted"] <= 3
        scene.follows("api")
        scene.follows("web")
        await settled()
        assert ends(scene) == ["Settled"] * 3
        await scene.clock.advance(KEPT_S - 30)
        assert scene.closer.done == [("close", "idle")]
        await scene.clock.advance(60)

    assert sorted(first) == sorted(waited)
    assert len([name for name in first if name.startswith("api")]) == 1
    assert len(kept) == 3, "of the two that left, and of the one that waits"
    assert scene.closer.done == [("close", "idle"), ("reopen", "idle")]
    assert scene.held() == []


async def test_what_waits_holds_up_no_other_run() -> None:
    """The run ends while a pod waits for its turn."""
    scene = Siblings()

    async with scene.running(a_policy(**EMPTYING)):  # type: ignore[arg-type] # fields as in the API
        await scene.run()
        await scene.run()

    assert "completionTime" in scene.statuses.statuses[POLICY]["lastRun"]


async def test_what_waits_counts_as_sent_within_the_minute() -> None:
    """Two went and one will: a later run sends none beyond the three that a minute may see."""
    scene = Siblings()
    strategies = [{"name": "ConsolidateNodes"}, {"name": "RemovePodsViolatingNodeTaints"}]
    policy = a_policy(strategies=strategies, evictor={"minReplicas": 1}, limits={"perMinute": 3})

    async with scene.running(policy):
        await scene.run()
        assert len(scene.evictor.evicted) == 2
        scene.tell(NodeAdded(a_node("bad", taints=["broken=yes:NoSchedule"])), PodAdded(of("late", "bad")))
        await scene.run()
        told = scene.statuses.statuses[POLICY]["counts"]["refused"]
        await scene.clock.advance(61)
        await scene.run()

    assert "RateLimit" in {each["reason"] for each in told}
    assert scene.evictor.evicted[2:] == ["late-1"]


@pytest.mark.parametrize("what", ["never-ready", "comes-back", "budget", "policy-gone", "stopped-by-restart"])
async def test_the_rest_stays_when_its_turn_never_comes(what: str) -> None:
    """The node is opened, the place is anybody's, and nothing further is evicted."""
    scene = Siblings()

    async with scene.running(a_policy(**EMPTYING)):  # type: ignore[arg-type] # fields as in the API
        await scene.run()
        before = sorted(scene.evictor.evicted)
        if what == "never-ready":
            scene.follows("api", ready=False)
            await scene.clock.advance(PATIENCE_S + 20)
        elif what == "comes-back":
            scene.follows("api", node="idle")
        elif what == "budget":
            scene.evictor.answers = [WriteResult(WriteOutcome.BLOCKED, "no", "default/api")]
            scene.follows("api")
        elif what == "policy-gone":
            scene.rebalancers.configure([])
        if what != "stopped-by-restart":
            await scene.clock.advance(5)
            assert scene.closer.done == [("close", "idle"), ("reopen", "idle")]
            (left,) = {"api-1", "api-2"} - set(before)
            assert left not in scene.held()
            assert sorted(scene.evictor.evicted) == before
    if what == "stopped-by-restart":
        later = Siblings(*scene.records.documents.values())
        later.told("close", "idle")
        later.evictor.evicted = list(before)
        async with later.running():
            later.follows("api")
            later.follows("web")
            await later.clock.advance(30)

        assert later.evictor.evicted == before
        assert later.closer.done == [("reopen", "idle")]


async def test_a_pod_that_has_left_by_itself_is_passed_over() -> None:
    """Its owner was scaled down while it waited: the node is empty all the same."""
    scene = Siblings()

    async with scene.running(a_policy(**EMPTYING)):  # type: ignore[arg-type] # fields as in the API
        await scene.run()
        (left,) = {"api-1", "api-2"} - set(scene.evictor.evicted)
        scene.tell(PodDeleted(of("api", "idle", left[-1])))
        scene.follows("api")
        scene.follows("web")
        await scene.clock.advance(5)

    assert left not in scene.evictor.evicted
    assert scene.closer.done == [("close", "idle")]
    assert ends(scene) == ["Settled", "Settled"]


# -- proposals ---------------------------------------------------------------------------------------------


async def test_a_bundle_waits_until_all_of_it_is_approved_and_goes_as_without_asking() -> None:
    """The records say that they go together; the node is closed, pods of one owner go one by one."""
    scene = Siblings()

    async with scene.running(a_policy("Approve", **EMPTYING)):  # type: ignore[arg-type] # fields as in the API
        await scene.run()
        keys = sorted(scene.keeper.known)
        specs = [record["spec"]["bundle"] for record in scene.records.documents.values()]
        messages = [record["status"]["message"] for record in scene.records.documents.values()]
        labels = {
            record["metadata"]["labels"]["plimsoll.dev/bundle"] for record in scene.records.documents.values()
        }
        for key in keys[1:]:
            annotate(scene, "true", key)
        await scene.clock.advance(10)
        await scene.run()
        early = list(scene.evictor.evicted), list(scene.closer.done), ends(scene)
        annotate(scene, "true", keys[0])
        await scene.clock.advance(3)
        assert scene.closer.done == [("close", "idle")]
        assert len(scene.evictor.evicted) == 2
        await scene.run()
        scene.follows("api")
        scene.follows("web")
        await scene.clock.advance(3)
        scene.follows("api")
        await scene.clock.advance(3)

    assert early == ([], [], ["Planned"] * 3)
    assert sorted(each["position"] for each in specs) == [1, 2, 3]
    assert {(each["name"], each["moves"]) for each in specs} == {(specs[0]["name"], 3)}
    assert labels == {specs[0]["name"]}
    assert all("of 3 that are made all or none" in message for message in messages)
    assert ends(scene) == ["Settled"] * 3
    assert scene.closer.done == [("close", "idle")]


async def test_a_bundle_whose_records_are_still_being_written_has_lost_none() -> None:
    """It is judged when the creation of each has been answered."""
    scene = Siblings()
    create = scene.records.create

    async def slowly(document: dict[str, Any]) -> WriteResult:
        answer = await create(document)
        await scene.clock.sleep(5)
        return answer

    scene.records.create = slowly  # type: ignore[assignment, method-assign] # replaced for this test

    async with scene.running(a_policy("Approve", **EMPTYING)):  # type: ignore[arg-type] # fields as in the API
        run = asyncio.create_task(scene.run())
        await scene.clock.advance(3)
        assert len(scene.records.documents) == 3, "and no answer to the creation is here"
        await scene.clock.advance(20)
        await run

    assert ends(scene) == ["Planned"] * 3


async def test_a_no_to_one_is_a_no_to_all() -> None:
    """And the bundle is not proposed again, nor half of it."""
    scene = Siblings()

    async with scene.running(a_policy("Approve", **EMPTYING)):  # type: ignore[arg-type] # fields as in the API
        await scene.run()
        first, *others = sorted(scene.keeper.known)
        for key in others:
            annotate(scene, "true", key)
        annotate(scene, "false", first)
        await scene.clock.advance(5)
        await scene.run()

    assert scene.evictor.evicted == []
    assert ends(scene) == ["Cancelled"] * 3
    reasons = sorted(record["status"]["reason"] for record in scene.records.documents.values())
    assert reasons == ["NotAll", "NotAll", "Rejected"]


async def test_a_no_while_the_others_go_keeps_the_rest() -> None:
    """Its turn has not come yet: it stays, and the node is opened."""
    scene = Siblings()

    async with scene.running(a_policy("Approve", **EMPTYING)):  # type: ignore[arg-type] # fields as in the API
        await scene.run()
        for key in scene.keeper.known:
            annotate(scene, "true", key)
        await scene.clock.advance(3)
        went = list(scene.evictor.evicted)
        (left,) = (key for key, record in scene.keeper.known.items() if record.phase == "Planned")
        annotate(scene, "false", left)
        await scene.clock.advance(5)

    assert scene.evictor.evicted == went
    assert len(went) == 2
    assert scene.closer.done == [("close", "idle"), ("reopen", "idle")]
    assert scene.keeper.known[left].status.reason == "Rejected"


async def test_a_bundle_of_which_a_record_was_deleted_is_not_carried_out() -> None:
    """Half of it would go for nothing; the next run proposes it afresh."""
    scene = Siblings()

    async with scene.running(a_policy("Approve", **EMPTYING)):  # type: ignore[arg-type] # fields as in the API
        await scene.run()
        first, *others = sorted(scene.keeper.known)
        deleted = scene.records.documents[first]
        await scene.records.delete(*first.split("/"))
        scene.records.history.pop(first.split("/")[1])
        scene.wing.take_records([ObjectDeleted(shown(deleted))])
        for key in others:
            annotate(scene, "true", key)
        await scene.clock.advance(5)
        assert (scene.evictor.evicted, scene.closer.done) == ([], [])
        assert ends(scene).count("Cancelled") == 2
        await scene.clock.advance(1)
        await scene.run()

    assert ends(scene).count("Planned") == 3


async def test_a_bundle_approved_goes_on_in_the_next_process_or_not_at_all() -> None:
    """Approved by halves before the restart, it waits; begun before the restart, the rest stays."""
    scene = Siblings()
    async with scene.running(a_policy("Approve", **EMPTYING)):  # type: ignore[arg-type] # fields as in the API
        await scene.run()
    later = Siblings(*scene.records.documents.values())

    async with later.running(a_policy("Approve", **EMPTYING)):  # type: ignore[arg-type] # fields as in the API
        for key in later.keeper.known:
            annotate(later, "true", key)
        await later.run()
        await later.clock.advance(3)
        assert len(later.evictor.evicted) == 2
    last = Siblings(*later.records.documents.values())
    last.told("close", "idle")
    last.evictor.evicted = list(later.evictor.evicted)

    async with last.running(a_policy("Approve", **EMPTYING)):  # type: ignore[arg-type] # fields as in the API
        for key in last.keeper.known:
            annotate(last, "true", key)
        last.follows("api")
        last.follows("web")
        await last.clock.advance(30)

    assert last.evictor.evicted == later.evictor.evicted
    assert last.closer.done == [("reopen", "idle")]


async def test_room_is_kept_for_a_pending_pod_when_its_moves_are_approved() -> None:
    """Nothing is kept while people think; then it is as without asking."""
    scene = crowded()
    policy = a_policy("Approve", limits=FREE, evictor={"minReplicas": 0}, **MAKES_ROOM)  # type: ignore[arg-type] # fields as in the API

    async with scene.running(policy):
        await scene.run()
        (spec, _) = (record["spec"]["bundle"] for record in scene.records.documents.values())
        thinking = on(scene, "large")
        for key in scene.keeper.known:
            annotate(scene, "true", key)
        await scene.clock.advance(3)
        kept = on(scene, "large")
        scene.tell(PodDeleted(small("s0", "large")), PodDeleted(small("s1", "large")))
        handed_over = on(scene, "large")

    assert (spec["beneficiary"]["name"], spec["node"]) == ("big", "large")
    assert thinking == {}
    assert scene.evictor.evicted == ["s0", "s1"]
    assert list(kept.values()) == ["big"]
    assert handed_over == {BIG.uid: "big"}


async def test_no_pod_moves_for_one_that_is_gone() -> None:
    """It was deleted while people thought."""
    scene = crowded()
    policy = a_policy("Approve", limits=FREE, evictor={"minReplicas": 0}, **MAKES_ROOM)  # type: ignore[arg-type] # fields as in the API

    async with scene.running(policy):
        await scene.run()
        scene.tell(PodDeleted(BIG))
        for key in scene.keeper.known:
            annotate(scene, "true", key)
        await scene.clock.advance(3)

    assert scene.evictor.evicted == []
    assert ends(scene) == ["Cancelled", "Cancelled"]
