"""Reasons of unschedulable pods are written once, with the latest message, at a bounded rate."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from plimsoll.cluster.watch_events import PodDeleted, PodUpdated
from plimsoll.ports.writes import LATE_EFFECT_S, WriteOutcome, WriteResult
from plimsoll.scheduling.conditions import BURST, PER_S, Explanations
from plimsoll.testing.builders import a_pod
from plimsoll.testing.fakes import FakeClock, FakeRecorder, FakeStatuses, RememberingObserver, settled


class Counting(FakeStatuses):
    """Counts writes; answers from a list first."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[Any] = []
        self.answers: list[Any] = []
        self.open = asyncio.Event()
        self.open.set()

    async def write_condition(self, pod: Any, condition: Any) -> Any:
        self.order.append(pod.name)
        await self.open.wait()
        if self.answers:
            return self.answers.pop(0)
        return await super().write_condition(pod, condition)


class Stage:
    def __init__(self) -> None:
        self.clock, self.statuses, self.recorder = FakeClock(), Counting(), FakeRecorder()
        self.gone: set[Any] = set()
        self.explanations = Explanations(
            self.statuses,
            self.recorder,
            self.clock,
            RememberingObserver(),
            is_waiting=lambda uid: uid not in self.gone,
        )

    def explain(self, pod: Any, message: str = "no room", node: Any = None) -> None:
        self.explanations.explain(pod, "Unschedulable", message, node)


@pytest.fixture
async def stage() -> AsyncIterator[Any]:
    one = Stage()
    task = asyncio.ensure_future(one.explanations.run())
    await settled()
    yield one
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_conditions_are_written_at_a_bounded_rate(stage: Stage) -> None:
    """A burst, then so many a second; tried again for the same reason, nothing is written."""
    count = round(BURST + 15 * PER_S)
    pods = [a_pod(f"p{number}") for number in range(count)]
    for pod in pods:
        stage.explain(pod)
    await settled()
    in_burst = len(stage.statuses.order)
    await stage.clock.advance(10)

    assert in_burst <= BURST
    assert abs(len(stage.statuses.order) - (BURST + 10 * PER_S)) <= 10
    await stage.clock.advance(count / PER_S)
    assert len(stage.statuses.order) == count
    for pod in pods:
        stage.explain(pod)
    await stage.clock.advance(count / PER_S)
    assert len(stage.statuses.order) == count


async def test_what_waits_is_replaced_by_what_is_newer(stage: Stage) -> None:
    """Ten attempts while it waits are one write, of the last one's words."""
    for number in range(BURST):
        stage.explain(a_pod(f"other-{number}"))
    await settled()
    for number in range(10):
        stage.explain(a_pod("p"), f"attempt {number}")
    await stage.clock.advance(10)

    assert stage.statuses.order.count("p") == 1
    assert stage.statuses.conditions["p"].message == "attempt 9"


async def test_a_nomination_waits_for_nothing(stage: Stage) -> None:
    """It keeps room: it is written ahead of a thousand others."""
    for number in range(1000):
        stage.explain(a_pod(f"other-{number}"))
    await settled()
    stage.explain(a_pod("high"), node="n1")
    await settled()

    assert stage.statuses.nominated == {"high": "n1"}


async def test_a_nomination_that_waits_is_not_lost_to_newer_words(stage: Stage) -> None:
    """The next attempt leaves the nomination alone; it is still to be written."""
    stage.statuses.answers = [WriteResult(WriteOutcome.UNKNOWN, "no answer")] * 2
    stage.explain(a_pod("p"), "first", node="n1")
    stage.explain(a_pod("p"), "second")
    await stage.clock.advance(5 + 2 * LATE_EFFECT_S)

    assert stage.statuses.nominated == {"p": "n1"}
    assert stage.statuses.conditions["p"].message == "second"


async def test_a_nomination_waits_for_no_lost_one(stage: Stage) -> None:
    """It keeps room, whatever becomes of the nomination of another pod."""
    stage.statuses.answers = [WriteResult(WriteOutcome.UNKNOWN, "no answer")]
    stage.explain(a_pod("p"), node="n1")
    await settled()
    stage.explain(a_pod("q"), node="n2")
    await settled()

    assert stage.statuses.nominated == {"q": "n2"}
    await stage.clock.advance(LATE_EFFECT_S + 1.0)
    assert stage.statuses.nominated == {"p": "n1", "q": "n2"}
    assert not stage.explanations._lost


async def test_a_condition_that_takes_effect_late_is_followed_by_the_newest(stage: Stage) -> None:
    """And a binding of the pod waits for it: a pod on a node would be reported to have none."""
    stage.statuses.answers = [WriteResult(WriteOutcome.UNKNOWN, "no answer")]
    stage.explain(a_pod("p"), "first")
    await settled()
    stage.explain(a_pod("p"), "second")
    binding = asyncio.ensure_future(stage.explanations.end_of_write("uid-default-p"))
    await stage.clock.advance(LATE_EFFECT_S - 0.1)
    assert stage.statuses.order == ["p"]
    assert not binding.done()

    await stage.clock.advance(1.0)
    assert stage.statuses.order == ["p", "p"]
    assert stage.statuses.conditions["p"].message == "second"
    await binding


@pytest.mark.parametrize("verdict", [WriteOutcome.UNKNOWN, WriteOutcome.BUSY, WriteOutcome.CONFLICT])
async def test_a_condition_that_got_no_usable_answer_is_written_again(
    stage: Stage, verdict: WriteOutcome
) -> None:
    """As kube-scheduler retries; the pod may not be tried again for minutes."""
    stage.statuses.answers = [WriteResult(verdict, "later")] * 2
    stage.explain(a_pod("p"))
    await stage.clock.advance(2 + 2 * LATE_EFFECT_S)

    assert stage.statuses.order == ["p"] * 3
    assert stage.statuses.conditions["p"].message == "no room"


async def test_a_condition_that_was_refused_is_written_when_rights_are_back(stage: Stage) -> None:
    """The pods of a gang that does not fit are not tried again; their event was emitted once."""
    stage.statuses.answers = [WriteResult(WriteOutcome.REFUSED, "forbidden")] * 4
    stage.explain(a_pod("p"))
    await stage.clock.advance(60)

    assert stage.statuses.order == ["p"] * 4
    await stage.clock.advance(60)
    assert stage.statuses.order == ["p"] * 5
    assert stage.statuses.conditions["p"].message == "no room"
    assert len(stage.recorder.notes) == 1
    await stage.clock.advance(3600)
    assert stage.statuses.order == ["p"] * 5
    assert stage.explanations._unwritten == {}


async def test_a_refused_nomination_is_written_again_ahead_of_others(stage: Stage) -> None:
    """With the latest words, if the pod was explained again before."""
    stage.statuses.answers = [WriteResult(WriteOutcome.REFUSED, "forbidden")] * 2
    stage.explain(a_pod("p"), "first", node="n1")
    await settled()
    stage.explain(a_pod("p"), "second")
    await stage.clock.advance(5)

    assert stage.statuses.nominated == {"p": "n1"}
    assert stage.statuses.conditions["p"].message == "second"


async def test_refused_conditions_are_written_at_most_every_five_minutes(stage: Stage) -> None:
    """From every five seconds on; a cluster that never allows it is asked rarely."""
    stage.statuses.answers = [WriteResult(WriteOutcome.REFUSED, "forbidden")] * 1000
    stage.explain(a_pod("p"))
    await stage.clock.advance(3600)
    in_an_hour = len(stage.statuses.order)
    await stage.clock.advance(3600)

    assert len(stage.statuses.order) - in_an_hour == 12


@pytest.mark.parametrize("how", ["deleted", "bound", "waits for nothing"])
async def test_a_refused_condition_is_forgotten_with_its_pod(stage: Stage, how: str) -> None:
    """Nothing is kept of a pod that does not wait."""
    pod = a_pod("p")
    stage.statuses.answers = [WriteResult(WriteOutcome.REFUSED, "forbidden")]
    stage.explain(pod)
    await settled()
    if how == "deleted":
        stage.explanations.observe(PodDeleted(pod))
    elif how == "bound":
        stage.explanations.observe(PodUpdated(pod, a_pod("p", node="n1")))
    else:
        stage.gone.add(pod.uid)
    await stage.clock.advance(10)

    assert stage.statuses.order == ["p"]
    assert stage.explanations._unwritten == {}


@pytest.mark.parametrize("verdict", [WriteOutcome.GONE, WriteOutcome.FENCED])
async def test_what_can_never_be_written_is_not_repeated(stage: Stage, verdict: WriteOutcome) -> None:
    """The pod is gone, or another process leads."""
    stage.statuses.answers = [WriteResult(verdict, "no")]
    stage.explain(a_pod("p"))
    await stage.clock.advance(3600)

    assert stage.statuses.order == ["p"]


async def test_nothing_is_written_of_a_pod_that_waits_no_longer(stage: Stage) -> None:
    """Between two attempts it was bound or deleted."""
    stage.statuses.answers = [WriteResult(WriteOutcome.UNKNOWN, "no answer")]
    stage.explain(a_pod("p"))
    await settled()
    stage.gone.add("uid-default-p")
    await stage.clock.advance(2 + LATE_EFFECT_S)

    assert stage.statuses.order == ["p"]


async def test_a_new_generation_is_written_again(stage: Stage) -> None:
    """The condition says of which state of the spec it speaks."""
    stage.explain(a_pod("p", metadata={"generation": 1}))
    await settled()
    stage.explain(a_pod("p", metadata={"generation": 1}))
    await settled()
    stage.explain(a_pod("p", metadata={"generation": 2}))
    await settled()

    assert stage.statuses.order == ["p", "p"]


async def test_words_that_a_late_watch_still_shows_are_written_again(stage: Stage) -> None:
    """An error was written since; tried on what the watch shows, the pod fails as it did before the error."""
    shown = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    late = a_pod("p", status={"phase": "Pending", "conditions": [shown]})
    stage.explanations.explain(late, "SchedulerError", "the answer cannot be read")
    await settled()
    assert stage.statuses.conditions["p"].reason == "SchedulerError"

    stage.explain(late, "no room")
    await settled()
    stage.explain(late, "no room")
    await settled()

    assert stage.statuses.conditions["p"].reason == "Unschedulable"
    assert stage.statuses.order == ["p", "p"]


async def test_words_that_the_pod_shows_are_written_after_others_under_way(stage: Stage) -> None:
    """What is being written takes effect later than what the pod shows, and would stay."""
    shown = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    pod = a_pod("p", status={"phase": "Pending", "conditions": [shown]})
    stage.statuses.open.clear()
    stage.explanations.explain(pod, "SchedulerError", "no right")
    await settled()

    stage.explain(pod, "no room")
    await settled()
    stage.statuses.open.set()
    await settled()

    assert stage.statuses.conditions["p"].reason == "Unschedulable"
    assert stage.statuses.order == ["p", "p"]


async def test_a_nomination_under_way_is_taken_back(stage: Stage) -> None:
    """The pod shows none yet, as the attempt that takes it back wishes."""
    stage.statuses.open.clear()
    stage.explain(a_pod("p"), "room is made", node="n1")
    await settled()

    stage.explain(a_pod("p"), "no room", node="")
    await settled()
    stage.statuses.open.set()
    await settled()

    assert stage.statuses.nominated == {"p": ""}


@pytest.mark.parametrize("is_lost", [True, False])
async def test_no_write_is_under_way_when_the_writers_have_ended(is_lost: bool) -> None:
    """A replica may give its role away and take it again: its bindings would wait for ever."""
    one = Stage()
    sent = asyncio.Event()

    async def write(_pod: Any, _condition: Any) -> WriteResult:
        sent.set()
        if not is_lost:
            await asyncio.Event().wait()
        return WriteResult(WriteOutcome.UNKNOWN, "no answer")

    statuses: Any = one.statuses
    statuses.write_condition = write
    running = asyncio.ensure_future(one.explanations.run())
    one.explain(a_pod("p"))
    await sent.wait()
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running

    assert one.explanations.writing == set()
