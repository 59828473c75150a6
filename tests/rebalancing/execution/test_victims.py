"""Victims that leave through the Eviction API: on record first, budgets honoured, completed also later."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.cluster.cache import Cache
from plimsoll.cluster.pending_pods import PendingPods
from plimsoll.cluster.watch_events import PodDeleted
from plimsoll.framework import PodInfo
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.workload import PodDisruptionBudget
from plimsoll.model.names import PolicyName
from plimsoll.planning.limits import Limits
from plimsoll.ports.writes import DONE, WriteOutcome, WriteResult
from plimsoll.rebalancing.closed_nodes import ClosedNodes
from plimsoll.rebalancing.execution.believed_records import BelievedRecords
from plimsoll.rebalancing.execution.executor import MoveExecutor, MoveHandlers
from plimsoll.rebalancing.execution.restart import Restart
from plimsoll.rebalancing.execution.victims import VictimEvictions, VictimNeeds
from plimsoll.rebalancing.moves import recovery
from plimsoll.rebalancing.moves.machine import MoveMachine
from plimsoll.rebalancing.moves.outcomes import LEAVING_S
from plimsoll.rebalancing.moves.sightings import facts_of
from plimsoll.rebalancing.moves.state import Surroundings
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.rebalancing.records.unwritten import CATCH_UP_S
from plimsoll.rebalancing.runs.proposals import Approvals
from plimsoll.rebalancing.surges.rollouts import RolloutSurges
from plimsoll.testing.builders import a_node, a_pod, the_info
from plimsoll.testing.fakes import (
    FakeClock,
    FakeEvictor,
    FakeNodeCloser,
    FakeRecorder,
    FakeRecords,
    FakeRollouts,
    RememberingObserver,
    settled,
)
from plimsoll.timing.timer import Timer
from rebalancing.moves.invariants import checked

HIGH, OTHER = (the_info(a_pod(name, priority=10)) for name in ("high", "other"))
BLOCKED = WriteResult(
    WriteOutcome.BLOCKED, "the disruption budget web needs 1 healthy pods", budget="default/web"
)


class Stage:
    """Pods a, b, c on one node; a and b have an owner, c is covered by a budget."""

    def __init__(self, *answers: Any, records: Any = None) -> None:
        self.clock, self.records = FakeClock(), records or FakeRecords()
        self.evictor, self.observer = FakeEvictor(*answers), RememberingObserver()
        self.cache = Cache()
        self.cache.set_node(a_node("n1"))
        self.pods = {name: a_pod(name, node="n1", labels={"app": name}) for name in "abc"}
        for pod in self.pods.values():
            self.cache.set_placed(self.cache.info(pod), "n1")
        self.cache.cluster.objects.budgets["default/web"] = convert(
            PodDisruptionBudget,
            {
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {"selector": {"matchLabels": {"app": "c"}}},
                "status": {"disruptionsAllowed": 1},
            },
        )
        self.keeper = EvictionRecordStore(self.records, self.clock, self.observer)
        self.keeper.is_recovered = True
        self.timer = Timer(self.clock, self.observer)
        self.pending = PendingPods(self.cache)
        closed = ClosedNodes(
            cache=self.cache,
            keeper=self.keeper,
            closer=FakeNodeCloser(),
            strategies=(),
            clock=self.clock,
            observer=self.observer,
        )
        needs = VictimNeeds()
        around = Surroundings(
            pod=lambda uid: None if (found := self.pending.find(uid)) is None else facts_of(found.pod),
            held_up=lambda _: "",
            waits=lambda _: True,
            needless=needs.needless,
            proposed=lambda _: None,
            empties=lambda _: False,
        )
        handlers = MoveHandlers(self.keeper, self.evictor, FakeRecorder(), closed, self.clock)
        self.executor = MoveExecutor(
            checked(MoveMachine(around, (recovery.table(),))),
            self.timer,
            self.clock,
            self.observer,
            sightings=(),
            immediate=handlers.immediate,
            awaited=handlers.awaited,
        )
        self.evictions = VictimEvictions(
            cache=self.cache,
            keeper=self.keeper,
            executor=self.executor,
            needs=needs,
            clock=self.clock,
            observer=self.observer,
        )
        self.is_wanted = True
        self.told: list[Any] = []

    async def evict(self, *names: str, pod: PodInfo = HIGH) -> bool:
        victims = [self.cache.cluster.pods[self.pods[name].uid] for name in names]
        return await self.evictions.evict(
            victims,
            pod,
            PolicyName("gold"),
            lambda: self.is_wanted,
            lambda victim, record: self.told.append((victim.name, record)),
        )

    def gone(self, name: str) -> None:
        """The watch tells that a pod is gone."""
        self.cache.remove_pod(self.pods[name].uid)
        self.executor.observe(PodDeleted(self.pods[name]))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.ensure_future(self.timer.run())
        await settled()
        try:
            yield
            await settled()
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    @property
    def histories(self) -> dict[str, Any]:
        """The phases of each record by the victim's name."""
        return {
            self.records.documents[f"default/{name}"]["spec"]["pod"]["name"]: phases
            for name, phases in self.records.history.items()
        }


@pytest.mark.parametrize("left", ["a", "b", "c"])
async def test_a_victim_that_has_been_evicted_already_spares_no_other(left: str) -> None:
    """Whichever of the three it is: an earlier attempt was cut off behind it."""
    stage = Stage()
    async with stage.running():
        assert await stage.evict(left)
        assert await stage.evict("a", "b", "c")

    assert sorted(stage.evictor.evicted) == ["a", "b", "c"]


async def test_a_victim_is_on_record_before_it_goes() -> None:
    """Who needed the room, and from which node; settled when it has left."""
    stage = Stage()
    stage.evictor.when_done = lambda pod: seen.append(stage.histories[pod.name][-1])
    seen: list[Any] = []

    assert await stage.evict("a")

    assert seen == ["Evicting"]
    (document,) = stage.records.documents.values()
    spec = document["spec"]
    assert (spec["policy"], spec["strategy"], spec["fromNode"]) == ("gold", "DefaultPreemption", "n1")
    assert spec["reason"] == (
        "preempted by pod default/high (uid-default-high) of priority 10, which needs room on n1"
    )
    assert stage.told == [("a", document["metadata"]["name"])]
    async with stage.running():
        stage.gone("a")
    assert stage.histories == {"a": ["Planned", "Evicting", "Evicted", "Settled"]}


async def test_who_may_be_refused_is_asked_first_and_stops_the_rest() -> None:
    """The budget says no: no other pod goes in vain, none is deleted."""
    stage = Stage(BLOCKED)

    assert not await stage.evict("a", "b", "c")

    assert stage.evictor.evicted == []
    assert stage.histories == {"c": ["Planned", "Evicting", "Blocked"]}
    (document,) = stage.records.documents.values()
    assert document["status"]["blockedBy"] == "web"
    assert stage.observer.failures == [("preempting default/c", BLOCKED.message)]


async def test_what_cannot_be_recorded_is_not_done() -> None:
    """Neither when the record cannot be created, nor when its phase cannot be written."""
    stage = Stage()
    stage.records.answer = WriteResult(WriteOutcome.REFUSED, "forbidden")
    assert not await stage.evict("a")
    late = Stage()
    create = late.records.create

    async def then_refuse(document: dict[str, Any]) -> WriteResult:
        answer = await create(document)
        late.records.answer = WriteResult(WriteOutcome.REFUSED, "forbidden")
        return answer

    late.records.create = then_refuse  # type: ignore[method-assign] # replaced for this test
    assert not await late.evict("a")

    assert stage.evictor.evicted == late.evictor.evicted == []


async def test_a_victim_stays_while_an_earlier_record_of_it_is_outdated() -> None:
    """The server's record says Evicting, though a budget refused: another one would be a second open one."""
    stage = Stage(BLOCKED)
    evict = stage.evictor.evict

    async def then_fail(pod: Any) -> WriteResult:
        stage.records.answer = WriteResult(WriteOutcome.REFUSED, "forbidden")
        return await evict(pod)

    stage.evictor.evict = then_fail  # type: ignore[method-assign] # replaced for this test
    assert not await stage.evict("c")
    stage.records.answer, stage.evictor.evict = DONE, evict  # type: ignore[method-assign] # as it was
    assert not await stage.evict("c", pod=OTHER)
    assert list(stage.records.history.values()) == [["Planned", "Evicting"]]

    await stage.clock.advance(CATCH_UP_S)
    await stage.keeper.catch_up()
    assert await stage.evict("c", pod=OTHER)
    assert sorted(stage.records.history.values()) == [
        ["Planned", "Evicting", "Blocked"],
        ["Planned", "Evicting", "Evicted"],
    ]


async def test_no_victim_goes_before_the_records_of_earlier_processes_are_seen_to() -> None:
    """A record written now would be taken for one of theirs, and be cancelled."""
    stage = Stage()
    stage.keeper.is_recovered = False

    assert not await stage.evict("a")
    assert stage.records.documents == {}


async def test_no_victim_goes_for_a_pod_that_waits_no_longer() -> None:
    """It was placed or deleted between two victims."""
    stage = Stage()
    stage.evictor.when_done = lambda _: setattr(stage, "is_wanted", False)

    assert not await stage.evict("a", "b")

    assert stage.evictor.evicted == ["a"]


async def test_a_victim_on_record_stays_if_the_pod_stops_waiting_before_it_goes() -> None:
    """It has waited when its victim was chosen; the record is called off, and another pod gets the room."""
    stage, asked = Stage(), list[bool]()

    def is_wanted() -> bool:
        asked.append(not asked)
        return asked[-1]

    async with stage.running():
        victims = [stage.cache.cluster.pods[stage.pods["a"].uid]]
        assert not await stage.evictions.evict(victims, HIGH, PolicyName("gold"), is_wanted, lambda *_: None)
        assert stage.evictor.evicted == []
        (record,) = stage.keeper.known.values()
        assert record.phase is Phase.CANCELLED
        assert "pod default/high waits for a node no longer" in str(record.status.message)

        assert await stage.evict("a", pod=OTHER)
        assert len(stage.evictor.evicted) == 1


async def test_pods_with_a_victim_in_common_have_it_evicted_once() -> None:
    """Both want room on its node at the same moment: one record, one eviction, and both count on it."""
    stage = Stage()

    assert all(await asyncio.gather(stage.evict("a", "b"), stage.evict("b", "a", pod=OTHER)))

    assert sorted(stage.evictor.evicted) == ["a", "b"]
    assert len(stage.records.documents) == 2
    assert await stage.evict("a"), "the watch does not show yet that it leaves"
    assert len(stage.records.documents) == 2


async def test_a_victim_that_a_budget_keeps_for_one_pod_is_tried_for_the_other() -> None:
    """Each that waits for the answer has an answer of its own."""
    stage = Stage(BLOCKED)

    assert list(await asyncio.gather(stage.evict("c"), stage.evict("c", pod=OTHER))) == [False, True]

    assert sorted(stage.records.history.values()) == [
        ["Planned", "Evicting", "Blocked"],
        ["Planned", "Evicting", "Evicted"],
    ]


async def test_a_lost_answer_is_asked_for_again() -> None:
    """The uid makes that safe."""
    stage = Stage(WriteResult(WriteOutcome.UNKNOWN, "no answer"))
    async with stage.running():
        task = asyncio.ensure_future(stage.evict("a"))
        await stage.clock.advance(1)

        assert await task
    assert stage.histories["a"] == ["Planned", "Evicting", "Evicted"]


async def test_a_victim_that_is_gone_after_a_lost_answer_was_evicted() -> None:
    """The retry finds no pod: the record goes on, and the pod that needed the room is requeued."""
    stage = Stage(WriteResult(WriteOutcome.UNKNOWN, "no answer"), WriteResult(WriteOutcome.GONE, "not found"))
    async with stage.running():
        asking = asyncio.ensure_future(stage.evict("a"))
        await stage.clock.advance(1)

        assert await asking
    assert stage.histories == {"a": ["Planned", "Evicting", "Evicted"]}
    assert [name for name, _ in stage.told] == ["a"]


async def test_a_victim_that_left_before_the_answer_is_settled_after_it() -> None:
    """No outcome overtakes the record."""
    stage = Stage()
    stage.evictor.when_done = lambda pod: stage.gone(pod.name)
    async with stage.running():
        assert await stage.evict("a")

    assert stage.histories["a"] == ["Planned", "Evicting", "Evicted", "Settled"]


async def test_a_victim_that_does_not_leave_fails_its_record() -> None:
    """After its grace period and more."""
    stage = Stage()
    async with stage.running():
        assert await stage.evict("a")
        await stage.clock.advance(LEAVING_S + 61)

    assert stage.histories["a"] == ["Planned", "Evicting", "Evicted", "Failed"]
    (document,) = stage.records.documents.values()
    assert document["status"]["reason"] == "StillThere"


def a_restart(stage: Stage) -> Restart:
    """What goes on with the records of earlier processes."""
    return Restart(
        keeper=stage.keeper,
        executor=stage.executor,
        answer=Approvals(stage.executor).take_over,
        pending=stage.pending,
        believed=BelievedRecords(
            keeper=stage.keeper,
            machine=stage.executor.machine,
            pending=stage.pending,
            standing=stage.evictor.standing,
            configured=lambda _: None,
            defaults=Limits(),
            cluster=stage.cache.cluster,
            recorder=FakeRecorder(),
            observer=RememberingObserver(),
            clock=stage.clock,
        ),
        inspect=RolloutSurges(FakeRollouts(), stage.cache.cluster.objects).inspect,
        clock=stage.clock,
    )


async def test_a_record_that_calls_a_pod_evicted_makes_no_room_by_itself() -> None:
    """Somebody may have written that: the pod that needs the room evicts it."""
    before = Stage()
    assert await before.evict("a")
    stage = Stage(records=before.records)  # the pod still stands, and nothing says that it goes
    async with stage.running():
        await a_restart(stage).recover()
        await stage.clock.advance(1)

        assert await stage.evict("a")

    assert sorted(each[-1] for each in stage.records.history.values()) == ["Evicted", "Failed"]


@pytest.mark.parametrize("has_left", [False, True])
async def test_the_next_process_completes_what_was_evicted(has_left: bool) -> None:
    """Whether the victim left while no process watched, or leaves, which the watch has yet to show."""
    before = Stage()
    assert await before.evict("a")
    stage = Stage(records=before.records)
    stage.evictor.stands = WriteResult(WriteOutcome.GONE, 'pod "a" is about to leave')
    if has_left:
        stage.cache.remove_pod(stage.pods["a"].uid)

    async with stage.running():
        await a_restart(stage).recover()
        if not has_left:
            stage.gone("a")

    assert stage.histories["a"] == ["Planned", "Evicting", "Evicted", "Settled"]
    assert stage.keeper.is_recovered
    assert next(iter(stage.keeper.known.values())).phase is Phase.SETTLED
