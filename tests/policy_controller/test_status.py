"""Status writes that fail are retried, unless a newer status replaces them."""

import asyncio
from typing import Any

import pytest

from plimsoll.access.rights import Access
from plimsoll.api.v1alpha1.annotations import OPERATOR
from plimsoll.policy_controller.status import STATUS_RETRIES, KnownPolicy, PolicyStatuses, RetriedStatuses
from plimsoll.ports.writes import LATE_EFFECT_S, WriteOutcome, WriteResult
from plimsoll.testing.fakes import (
    FakeAccessReviewer,
    FakeClock,
    FakeRecorder,
    RememberingObserver,
    settled,
)


class Statuses:
    """Takes statuses, and answers as told, done at last."""

    def __init__(self, *verdicts: Any) -> None:
        self.written: list[Any] = []
        self._verdicts = list(verdicts)

    async def write_status(self, name: str, status: Any) -> WriteResult:
        self.written.append((name, status))
        return WriteResult(self._verdicts.pop(0) if self._verdicts else WriteOutcome.DONE)


class Pausing:
    """A clock whose sleep only lets others run."""

    def __init__(self) -> None:
        self.slept: list[Any] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


@pytest.mark.parametrize("verdict", [WriteOutcome.UNKNOWN, WriteOutcome.BUSY, WriteOutcome.CONFLICT])
async def test_what_was_not_taken_is_written_again(verdict: WriteOutcome) -> None:
    """With growing pauses, until it is taken."""
    statuses, clock = Statuses(verdict, verdict), Pausing()

    answer = await RetriedStatuses(statuses, clock).write_status("a", {"conditions": []})  # type: ignore[arg-type] # a fake has only what is used

    assert answer.is_done
    assert statuses.written == [("a", {"conditions": []})] * 3
    first_s, second_s = STATUS_RETRIES.pauses_s[:2]
    late = [LATE_EFFECT_S] if verdict is WriteOutcome.UNKNOWN else []
    assert clock.slept == [*late, first_s, *late, second_s]


@pytest.mark.parametrize("verdict", [WriteOutcome.GONE, WriteOutcome.REFUSED])
async def test_what_is_refused_is_not_asked_again(verdict: WriteOutcome) -> None:
    """It would be refused again."""
    statuses, clock = Statuses(verdict), Pausing()

    assert (await RetriedStatuses(statuses, clock).write_status("a", {})).verdict is verdict  # type: ignore[arg-type] # a fake has only what is used
    assert clock.slept == []


async def test_a_newer_status_takes_over_the_fields_that_it_has() -> None:
    """What a run has counted is newer than what was counted before it; the rest is still to be written."""
    statuses, clock = Statuses(WriteOutcome.UNKNOWN), FakeClock()
    writer = RetriedStatuses(statuses, clock)
    older = asyncio.ensure_future(writer.write_status("a", {"totals": 1, "next": 1}))
    await settled()
    newer = asyncio.ensure_future(writer.write_status("a", {"totals": 2, "run": 2}))
    await clock.advance(20.0)

    assert statuses.written[1:] == [("a", {"totals": 2, "run": 2}), ("a", {"next": 1})]
    assert [(await each).is_done for each in (older, newer)] == [True, True]
    assert not writer._newest


async def test_statuses_that_wait_for_their_turn_are_left_out_for_the_newest() -> None:
    """Each would take its time where the server gives no answer."""
    statuses, clock = Statuses(*[WriteOutcome.UNKNOWN] * 3), FakeClock()
    writer = RetriedStatuses(statuses, clock)
    sent = [asyncio.ensure_future(writer.write_status("a", {"counts": number})) for number in range(9)]
    await clock.advance(60.0)

    assert [counts["counts"] for _, counts in statuses.written] == [0, 8, 8, 8]
    assert [(await each).verdict for each in sent[:8]] == [WriteOutcome.FENCED] * 8
    assert (await sent[8]).is_done


async def test_a_newer_status_calls_an_older_one_off() -> None:
    """Or the past would overwrite the present."""
    statuses = Statuses(WriteOutcome.UNKNOWN, WriteOutcome.DONE)
    writer = RetriedStatuses(statuses, Pausing())  # type: ignore[arg-type] # a fake has only what is used

    await asyncio.gather(writer.write_status("a", {"counts": 1}), writer.write_status("a", {"counts": 2}))

    assert statuses.written == [("a", {"counts": 1}), ("a", {"counts": 2})]


async def test_a_status_that_takes_effect_late_is_followed_by_the_newest() -> None:
    """The server gave up waiting for etcd, which writes all the same: whatever comes next must come later."""
    statuses, clock = Statuses(WriteOutcome.UNKNOWN), FakeClock()
    writer = RetriedStatuses(statuses, clock)
    older = asyncio.ensure_future(writer.write_status("a", {"counts": 1}))
    await settled()
    newer = asyncio.ensure_future(writer.write_status("a", {"counts": 2}))
    other = asyncio.ensure_future(writer.write_status("b", {"counts": 1}))
    await clock.advance(LATE_EFFECT_S - 0.1)
    assert statuses.written == [("a", {"counts": 1}), ("b", {"counts": 1})]
    await clock.advance(1.0)

    assert statuses.written[2:] == [("a", {"counts": 2})]
    assert [(await each).is_done for each in (older, newer, other)] == [False, True, True]
    assert not writer._turns


async def test_other_fields_and_other_policies_are_no_newer_status() -> None:
    """Each is written for itself."""
    statuses = Statuses(WriteOutcome.UNKNOWN)
    writer = RetriedStatuses(statuses, Pausing())  # type: ignore[arg-type] # a fake has only what is used

    await asyncio.gather(
        writer.write_status("a", {"counts": 1}),
        writer.write_status("a", {"conditions": []}),
        writer.write_status("b", {"counts": 2}),
    )

    assert statuses.written.count(("a", {"counts": 1})) == 2


async def test_it_gives_up_at_last() -> None:
    """The caller receives the failure."""
    statuses = Statuses(*[WriteOutcome.BUSY] * 100)

    answer = await RetriedStatuses(statuses, Pausing()).write_status("a", {})  # type: ignore[arg-type] # a fake has only what is used

    assert answer.verdict is WriteOutcome.BUSY
    assert len(statuses.written) == len(STATUS_RETRIES.pauses_s) + 1


@pytest.mark.parametrize("is_pending", [False, True])
@pytest.mark.parametrize("owner", ["", "a", "b"])
@pytest.mark.parametrize("operator", ["", "a"])
async def test_a_status_is_written_by_its_own_operator_once_rights_are_known(
    is_pending: bool, owner: str, operator: str
) -> None:
    """Once: a second write would say the same."""
    writer, access = Statuses(), Access(FakeAccessReviewer(), FakeClock(), RememberingObserver())
    access.is_pending = is_pending
    statuses = PolicyStatuses(
        writer, FakeRecorder(), access, FakeClock(), RememberingObserver(), (), operator=operator
    )
    metadata = {"name": "p", "uid": "u", "labels": {OPERATOR: owner} if owner else {}}
    known = KnownPolicy("p", "", 1, {"metadata": metadata})

    for _ in range(2):
        await statuses.write(known)

    assert len(writer.written) == (owner == operator and not is_pending)
    access.is_pending = False
    await statuses.write(known)
    assert len(writer.written) == (owner == operator)
