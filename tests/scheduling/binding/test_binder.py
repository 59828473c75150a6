"""A binding ends in certainty: bound, bound elsewhere, not bound, or gone."""

import asyncio
from typing import Any

import pytest

from plimsoll.model.kinds.pod import Pod
from plimsoll.ports.writes import LATE_EFFECT_S, WriteOutcome, WriteResult
from plimsoll.scheduling.binding.binder import BINDING_RETRIES, ConfirmedBinder
from plimsoll.testing.builders import a_pod
from plimsoll.testing.fakes import FakeBinder, FakeClock, settled

LOST = WriteResult(WriteOutcome.UNKNOWN, "no answer")
BUSY = WriteResult(WriteOutcome.BUSY, "too many requests", retry_after_s=3)


class Stage:
    def __init__(self, *answers: Any) -> None:
        self.clock, self.binder = FakeClock(), FakeBinder()
        self.binder.answers = list(answers)
        self.pod = a_pod("p")
        self.task: Any = None

    async def begin(self) -> Any:
        self.task = asyncio.ensure_future(ConfirmedBinder(self.binder, self.clock).bind(self.pod, "n1"))
        await settled()
        return self

    async def ends(self, within_s: Any = 30.0) -> Any:
        await self.clock.advance(within_s)
        assert self.task.done()
        return self.task.result()


@pytest.mark.parametrize("verdict", [WriteOutcome.CONFLICT, WriteOutcome.GONE, WriteOutcome.REFUSED])
async def test_a_clear_answer_is_final(verdict: WriteOutcome) -> None:
    """Sent once, and handed on as it is."""
    stage = await Stage(WriteResult(verdict, "no")).begin()

    assert (await stage.ends(0)).verdict is verdict
    assert stage.binder.sent == 1


async def test_a_lost_answer_to_a_binding_that_happened() -> None:
    """It is read back, not sent again."""
    stage = Stage()
    stage.binder.deaf = 1
    await stage.begin()

    assert (await stage.ends(0)).is_done
    assert stage.binder.sent == 1


async def test_a_lost_answer_to_a_binding_that_did_not_happen() -> None:
    """It is sent again."""
    stage = await Stage(LOST).begin()

    assert (await stage.ends()).is_done
    assert (stage.binder.sent, stage.binder.bound) == (2, {"default/p": "n1"})


@pytest.mark.parametrize("verdict", [WriteOutcome.REFUSED, WriteOutcome.BUSY])
async def test_a_lost_binding_may_take_effect_while_the_next_one_is_refused(verdict: WriteOutcome) -> None:
    """The server gave up waiting for etcd, which writes all the same: the room is taken."""
    stage = await Stage(LOST, *[WriteResult(verdict, "no")] * 5).begin()

    async def late() -> None:
        await stage.clock.sleep(4.9)
        stage.binder.bound["default/p"] = "n1"

    taking_effect = asyncio.ensure_future(late())
    assert (await stage.ends(10.0)).is_done
    await taking_effect


async def test_each_lost_binding_has_its_time() -> None:
    """The second one was sent later."""
    stage = await Stage(LOST, LOST, WriteResult(WriteOutcome.REFUSED, "no")).begin()

    await stage.clock.advance(0.2 + LATE_EFFECT_S - 0.1)
    assert not stage.task.done()
    assert (await stage.ends(0.2)).verdict is WriteOutcome.REFUSED


async def test_a_binding_that_an_extender_may_have_sent_has_its_time() -> None:
    """The extender gave no answer, and our own binding was refused."""
    stage = Stage(WriteResult(WriteOutcome.REFUSED, "no"))
    binding = ConfirmedBinder(stage.binder, stage.clock).bind(stage.pod, "n1", is_open=True)
    stage.task = asyncio.ensure_future(binding)
    await stage.clock.advance(4.0)
    stage.binder.bound["default/p"] = "n1"

    assert (await stage.ends(1.1)).is_done


async def test_a_lost_binding_that_never_takes_effect_ends_as_the_next_one() -> None:
    """The room is for others after the time in which it may be taken."""
    stage = await Stage(LOST, WriteResult(WriteOutcome.REFUSED, "no")).begin()

    await stage.clock.advance(4.9)
    assert not stage.task.done()
    assert await stage.ends(0.2) == WriteResult(WriteOutcome.REFUSED, "no")


async def test_a_lost_answer_to_a_pod_that_somebody_else_bound() -> None:
    """The room on our node is not needed."""
    stage = Stage(LOST)
    stage.binder.bound["default/p"] = "n9"
    await stage.begin()

    assert (await stage.ends(0)).verdict is WriteOutcome.CONFLICT
    lost = Stage(LOST)

    async def meanwhile(*_: str | Pod) -> None:
        if lost.binder.sent == 2:
            lost.binder.bound["default/p"] = "n9"

    lost.binder.before = meanwhile
    await lost.begin()
    answer = await lost.ends()
    assert (answer.verdict, answer.message) == (WriteOutcome.CONFLICT, "the pod is on n9")


@pytest.mark.parametrize(("there", "is_done"), [("n1", True), ("n9", False)])
async def test_a_conflict_may_be_with_our_own_binding(there: str, is_done: bool) -> None:
    """A proxy sent the request twice, and the answer to the second one came back."""
    stage = Stage(WriteResult(WriteOutcome.CONFLICT, "already assigned"))
    stage.binder.bound["default/p"] = there
    await stage.begin()

    answer = await stage.ends(0)
    assert (answer.is_done, answer.verdict is WriteOutcome.CONFLICT) == (is_done, not is_done)
    assert stage.binder.sent == 1


async def test_a_conflict_after_a_lost_answer_may_be_our_own_binding() -> None:
    """The first one was slow, not lost: the second finds the pod bound, where we wanted it."""
    stage = Stage(LOST)

    async def late(pod: Pod, node: str) -> None:
        if stage.binder.sent == 2:
            stage.binder.bound["default/p"] = "n1"

    stage.binder.before = late
    await stage.begin()

    assert (await stage.ends()).is_done


async def test_the_room_stays_taken_until_the_server_answers() -> None:
    """The server is away for an hour; then it knows that the pod is bound."""
    stage = Stage()
    stage.binder.deaf = 1
    stage.binder.looks = [LOST] * 100
    await stage.begin()

    await stage.clock.advance(60)
    assert not stage.task.done()
    assert (await stage.ends(3600)).is_done
    assert stage.binder.sent == 1


async def test_the_room_stays_taken_while_the_pod_may_not_be_read() -> None:
    """Somebody took the right to list pods away for a while: the pod is bound all the same."""
    stage = Stage()
    stage.binder.deaf = 1
    stage.binder.looks = [WriteResult(WriteOutcome.REFUSED, "forbidden")] * 20
    await stage.begin()

    await stage.clock.advance(60)
    assert not stage.task.done()
    assert (await stage.ends(600)).is_done
    assert stage.binder.sent == 1


async def test_a_pod_deleted_meanwhile_is_gone() -> None:
    """There is nothing to bind."""
    stage = Stage(LOST)
    stage.binder.looks = [WriteResult(WriteOutcome.GONE, 'pods "p" not found')]
    await stage.begin()

    assert (await stage.ends(0)).verdict is WriteOutcome.GONE


async def test_a_busy_server_is_asked_again_when_it_says() -> None:
    """The room stays taken; three seconds it said."""
    stage = await Stage(BUSY).begin()

    await stage.clock.advance(2.9)
    assert stage.binder.sent == 1
    assert (await stage.ends(0.2)).is_done


async def test_a_server_that_stays_busy_is_left_in_peace() -> None:
    """After some attempts the pod backs off, and its room is for others."""
    stage = await Stage(*[BUSY] * 10).begin()

    assert (await stage.ends()).verdict is WriteOutcome.BUSY
    assert stage.binder.sent == 1 + len(BINDING_RETRIES.pauses_s)
