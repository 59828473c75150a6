"""The status of PodGroups is written again in a later round when a write was lost."""

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.cluster.pod_groups import Groups
from plimsoll.cluster.watch_events import (
    ObjectAdded,
    ObjectDeleted,
    ObjectUpdated,
    PodAdded,
    PodDeleted,
    PodUpdated,
)
from plimsoll.framework import Pod
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod_group import GROUP_LABEL, PodGroup
from plimsoll.ports.writes import LATE_EFFECT_S, WriteOutcome, WriteResult
from plimsoll.scheduling.gangs.status import GroupReports
from plimsoll.testing.builders import a_pod
from plimsoll.testing.fakes import FakeClock, RememberingObserver, settled
from scheduling.gangs.gang_scene import FakeGroupStatuses, a_group


class Writer(FakeGroupStatuses):
    """Notes when each write was made, in seconds from the start."""

    def __init__(self, clock: Any) -> None:
        super().__init__()
        self.clock, self.began = clock, clock.monotonic()
        self.written_s: list[Any] = []

    async def write_status(self, namespace: str, name: str, status: Any) -> WriteResult:
        assert namespace == "default"
        self.written_s.append(round(self.clock.monotonic() - self.began, 3))
        return await super().write_status(namespace, name, status)


@pytest.mark.parametrize("verdict", [WriteOutcome.UNKNOWN, WriteOutcome.BUSY])
async def test_rounds_that_lose_a_write_are_further_and_further_apart(verdict: WriteOutcome) -> None:
    """0.4 s, doubled up to a minute; the first round that loses nothing ends that.

    A write whose answer was lost may take effect late, and must not follow the next one.
    """
    clock, groups = FakeClock(), Groups()
    writer = Writer(clock)
    reports = GroupReports(groups, writer, clock, RememberingObserver())
    groups.observe(ObjectAdded(a_group()))
    reports.touch("default/train")
    writer.answer = WriteResult(verdict, "no answer")
    task = asyncio.ensure_future(reports.run())
    await settled()

    for _ in range(200):
        await clock.advance(1)
    pauses_s = [round(b - a, 3) for a, b in zip(writer.written_s, writer.written_s[1:], strict=False)]
    doubled = [0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 60.0]
    least_s = LATE_EFFECT_S if verdict is WriteOutcome.UNKNOWN else 0.0
    assert pauses_s[:8] == [max(least_s, pause_s) for pause_s in doubled][:8]

    writer.answer = WriteResult(WriteOutcome.DONE)
    await clock.advance(60)
    assert writer.phases == {"train": ["Pending"]}
    writer.answer = WriteResult(WriteOutcome.BUSY)
    reports.touch("default/train")
    await clock.advance(1)
    assert round(writer.written_s[-1] - writer.written_s[-2], 3) == 0.4
    task.cancel()


@pytest.mark.parametrize(
    ("verdict", "told"),
    [(WriteOutcome.FENCED, []), (WriteOutcome.REFUSED, [("status of PodGroup default/train", "no")])],
)
async def test_a_status_that_a_deposed_leader_does_not_send_is_no_failure(
    verdict: WriteOutcome, told: list[tuple[str, str]]
) -> None:
    """The next leader writes it; a refusal is one."""
    clock, groups, observer = FakeClock(), Groups(), RememberingObserver()
    writer = FakeGroupStatuses()
    writer.answer = WriteResult(verdict, "no")
    reports = GroupReports(groups, writer, clock, observer)
    groups.observe(ObjectAdded(a_group()))
    reports.touch("default/train")
    task = asyncio.ensure_future(reports.run())
    await clock.advance(1)

    assert observer.failures == told
    task.cancel()


@pytest.mark.parametrize(("others", "written"), [((), 1), (("blue",), 0), (("green",), 1)])
async def test_the_status_of_a_group_is_written_by_the_operator_of_its_pods(
    others: tuple[str, ...], written: int
) -> None:
    """What another one serves has another one's answer to why it waits."""
    clock, groups = FakeClock(), Groups()
    writer = Writer(clock)
    reports = GroupReports(groups, writer, clock, RememberingObserver())
    reports.others = others
    groups.observe(ObjectAdded(a_group()))
    groups.observe(PodAdded(a_pod("one", schedulerName="blue", labels={GROUP_LABEL: "train"})))
    reports.touch("default/train")
    task = asyncio.ensure_future(reports.run())
    await clock.advance(1)

    assert len(writer.written_s) == written
    task.cancel()


@pytest.mark.parametrize("is_seen_gone", [True, False])
async def test_a_group_that_is_made_again_under_its_name_has_a_status(is_seen_gone: bool) -> None:
    """The same status as the one before within the same second, whether or not a round came between."""
    clock, groups = FakeClock(), Groups()
    writer = Writer(clock)
    reports = GroupReports(groups, writer, clock, RememberingObserver())
    task = asyncio.ensure_future(reports.run())
    for number in range(2):
        made = a_group()
        metadata = msgspec.structs.replace(made.metadata, uid=f"uid-{number}")
        made = msgspec.structs.replace(made, metadata=metadata)
        groups.observe(ObjectAdded(made))
        for _ in range(2):  # the second time there is nothing to write
            reports.touch("default/train")
            await clock.advance(0.21)
        assert writer.phases == {"train": ["Pending"] * (number + 1)}
        groups.observe(ObjectDeleted(made))
        if is_seen_gone and number == 0:
            reports.touch("default/train")
            await clock.advance(0.01)
    task.cancel()


class Server(FakeGroupStatuses):
    """Carries a write out or not, whatever it answers, and shows the group as it is then."""

    def __init__(self, groups: Groups) -> None:
        super().__init__()
        self.groups, self.shown = groups, a_group()
        self.next: list[tuple[WriteOutcome, bool]] = []

    async def write_status(self, namespace: str, name: str, status: Any) -> WriteResult:
        verdict, is_carried_out = self.next.pop(0) if self.next else (WriteOutcome.DONE, True)
        if is_carried_out:
            before, self.shown = self.shown, convert_with(status)
            self.groups.observe(ObjectUpdated(before, self.shown))
        return WriteResult(verdict, "no")


def convert_with(status: Any) -> PodGroup:
    """The group with a status."""
    metadata = {"name": "train", "namespace": "default", "uid": "uid-train"}
    return convert(PodGroup, {"metadata": metadata, "spec": {"minMember": 2}, "status": status})


ANSWERS = st.sampled_from(
    [
        (WriteOutcome.DONE, True),
        (WriteOutcome.UNKNOWN, True),
        (WriteOutcome.UNKNOWN, False),
        (WriteOutcome.BUSY, False),
    ]
)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from("abc"), ANSWERS, st.sampled_from((0.0, 1.0, 40.0))), max_size=8))
def test_the_server_has_the_latest_status_whatever_became_of_those_before(story: list[Any]) -> None:
    """Members come, get nodes and go, and come again; a write without an answer may have been carried out."""

    async def played() -> None:
        clock, groups = FakeClock(), Groups()
        server = Server(groups)
        reports = GroupReports(groups, server, clock, RememberingObserver())
        server.shown = convert_with({})
        groups.observe(ObjectAdded(server.shown))
        task = asyncio.ensure_future(reports.run())
        members: dict[str, Pod] = {}
        for name, answer, pause_s in story:
            server.next = [answer]
            labels = {GROUP_LABEL: "train"}
            if name not in members:
                members[name] = a_pod(name, labels=labels)
                groups.observe(PodAdded(members[name]))
            elif not members[name].node_name:
                before, members[name] = members[name], a_pod(name, labels=labels, node="n1")
                groups.observe(PodUpdated(before, members[name]))
            else:
                groups.observe(PodDeleted(members.pop(name)))
            reports.touch("default/train")
            await clock.advance(pause_s)
        server.next = []
        await clock.advance(200)
        placed = sum(bool(each.node_name) for each in members.values())
        if story:
            assert server.shown.status.scheduled == placed
            phase = "Running" if placed >= 2 else "Scheduling" if placed else "Waits"
            waits = "PreScheduling" if len(members) >= 2 else "Pending"
            assert server.shown.status.phase == (waits if phase == "Waits" else phase)
        task.cancel()

    asyncio.run(played())
