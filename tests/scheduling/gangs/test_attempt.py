"""Gangs in the loop: together or not at all, told why, retried, preempting, permitted."""

import asyncio
import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.reservations import ReservationReason
from plimsoll.cluster.watch_events import (
    NodeAdded,
    NodeDeleted,
    ObjectAdded,
    ObjectDeleted,
    ObjectUpdated,
    PodAdded,
    PodDeleted,
    PodUpdated,
)
from plimsoll.engine.plugin_calls import METER
from plimsoll.framework import SUCCESS, Code, PermitResult, Status, unschedulable
from plimsoll.framework.per_node import NodeFilter
from plimsoll.model.kinds.pod import Pod
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import settled
from scheduling.gangs.gang_scene import a_group, a_member, gang_scene, members
from scheduling.probes import Probe


async def test_a_gang_that_fits_starts_together() -> None:
    """All members are assumed in one turn, and bound."""
    async with gang_scene() as one:
        await one.group(members=3)
        await one.pods(*members(3))

        assert one.bound == ["train-0", "train-1", "train-2"]
        assert one.recorder.said("Scheduled")[0] == "3 members start together"


async def test_the_label_of_scheduler_plugins_is_honoured() -> None:
    """Pods that were written for Coscheduling need no change."""
    async with gang_scene() as one:
        await one.group(members=2)
        await one.pods(a_member("a", label="scheduling.x-k8s.io/pod-group"))
        assert one.bound == []
        await one.pods(a_member("b"))

        assert one.bound == ["a", "b"]


async def test_members_wait_for_their_siblings_and_say_so() -> None:
    """Gated, with a condition that does not change with each arrival; the last one lets all go."""
    async with gang_scene() as one:
        await one.group(members=3)
        await one.pods(*members(2))

        assert one.queue.depths()["gated"] == 2
        assert one.message("train-0") == (
            "0/2 nodes are available: cannot find enough sibling pods of PodGroup default/train, whose "
            "minMember is 3."
        )
        condition = one.group_statuses.statuses["train"]["conditions"][0]
        await one.clock.advance(1)
        condition = one.group_statuses.statuses["train"]["conditions"][0]
        assert condition["message"] == (
            "cannot find enough sibling pods, current pods number: 2, minMember of group: 3"
        )
        await one.pods(a_member("train-2"))
        assert len(one.bound) == 3


async def test_members_say_again_why_they_wait_when_their_policy_is_made_again() -> None:
    """What was to be said while no policy served them was not said."""
    async with gang_scene() as one:
        schedulers = one.wing.served.schedulers
        await one.group(members=3)
        one.ingestion.apply([PodAdded(each) for each in members(2)])
        one.wing.serve({})
        await settled()
        assert one.statuses.conditions == {}

        one.wing.serve(schedulers)
        await settled()

        assert "cannot find enough sibling pods" in one.message("train-0")


async def test_members_wait_for_their_pod_group() -> None:
    """A label that names nothing is no permission to start alone."""
    async with gang_scene() as one:
        await one.pods(*members(2))
        assert "there is no such podgroups.plimsoll.dev" in one.message("train-0")

        await one.group(members=2)

        assert len(one.bound) == 2


async def test_a_gang_that_does_not_fit_takes_nothing() -> None:
    """No member is assumed; all get the same condition; others may have the room."""
    async with gang_scene(nodes=2, cpu="1") as one:
        await one.group(members=5)
        await one.pods(*members(5))

        assert one.bound == []
        assert not one.cache.assumed
        assert {one.message(f"train-{number}") for number in range(5)} == {
            (
                "2 of 5 members fit, 5 must; 3 lack a node: 0/2 nodes are available: 2 Insufficient cpu."
                " 5 members of 1000m cpu each must fit, and the nodes together hold 2 when they are empty."
            )
        }
        await one.clock.advance(1)
        status = one.group_statuses.statuses["train"]
        assert (status["phase"], status["conditions"][0]["status"]) == ("Pending", "False")
        assert status["conditions"][0]["message"] == one.message("train-0")
        await one.pods(a_pod("other", schedulerName="s", cpu="1"))
        assert one.bound == ["other"]


async def test_a_gang_that_does_not_fit_starts_when_room_is_made() -> None:
    """One event wakes the group, and it backs off as one."""
    async with gang_scene(nodes=1, cpu="2") as one:
        await one.group(members=3)
        await one.pods(*members(3))
        assert one.bound == []

        await one.see(NodeAdded(a_node("big", cpu="4")))
        await one.clock.advance(3)

        assert len(one.bound) == 3


async def test_more_members_than_needed_join_as_they_fit() -> None:
    """All-or-nothing is about the start: of five, three must start, four fit, one waits."""
    async with gang_scene(nodes=1, cpu="4") as one:
        await one.group(members=3)
        await one.pods(*members(5))

        assert len(one.bound) == 4
        (waiting,) = {f"train-{number}" for number in range(5)} - set(one.bound)
        assert one.message(waiting) == "0/1 nodes are available: 1 Insufficient cpu."
        await one.see(NodeAdded(a_node("more", cpu="1")))
        await one.clock.advance(3)
        assert len(one.bound) == 5


async def test_two_gangs_that_cannot_both_fit_do_not_share_the_room() -> None:
    """One starts, the other takes nothing."""
    async with gang_scene(nodes=2, cpu="2") as one:
        await one.group("one", 3)
        await one.group("two", 3)
        mixed = itertools.chain.from_iterable(zip(members(3, "one"), members(3, "two"), strict=True))
        await one.pods(*mixed)

        assert one.bound == ["one-0", "one-1", "one-2"]
        assert "1 of 3 members fit, 3 must" in one.message("two-0")


async def test_min_resources_are_asked_first() -> None:
    """The cluster as a whole has not got them: no place is looked for."""
    async with gang_scene(nodes=2, cpu="2") as one:
        await one.group(members=2, minResources={"cpu": "5", "memory": "1Gi"})
        await one.pods(*members(2))

        assert one.bound == []
        assert one.message("train-0") == (
            "0/2 nodes are available: minResources of PodGroup default/train are not free: the cluster lacks "
            "1000m of cpu."
        )
        await one.see(ObjectUpdated(a_group(members=2, minResources={"cpu": "5"}), a_group(members=2)))
        await one.clock.advance(3)
        assert len(one.bound) == 2


async def test_a_smaller_min_member_opens_the_gate() -> None:
    """The PodGroup is mended, and its pods go."""
    async with gang_scene() as one:
        await one.group(members=9)
        await one.pods(*members(2))
        await one.see(ObjectUpdated(a_group(members=9), a_group(members=2)))

        assert len(one.bound) == 2


async def test_a_gang_preempts_as_a_whole() -> None:
    """Every member is nominated, the victims leave, and all start."""
    async with gang_scene(nodes=2, cpu="2") as one:
        low = [a_pod(f"low-{node}", cpu="2", node=node) for node in ("n0", "n1")]
        await one.pods(*low)
        await one.group(members=3)
        await one.pods(*members(3, priority=10))

        assert sorted(one.preemptor.victims) == ["low-n0", "low-n1"]
        assert sorted(filter(None, one.statuses.nominated.values())) == ["n0", "n0", "n1"] or sorted(
            filter(None, one.statuses.nominated.values())
        ) == ["n0", "n1", "n1"]
        assert one.bound == []
        await one.see(*(PodDeleted(pod) for pod in low))
        await one.clock.advance(3)
        assert len(one.bound) == 3


async def test_members_without_a_part_in_a_preemption_wait_and_start_when_there_is_room() -> None:
    """Two must start and get the room of the victim; none of the other three is lost."""
    async with gang_scene(nodes=1, cpu="2") as one:
        low = a_pod("low", cpu="2", node="n0")
        await one.pods(low)
        await one.group(members=2)
        await one.pods(*members(5, priority=10))
        assert one.preemptor.victims == ["low"]
        assert sorted(each.pod.name for each in one.queue) == [f"train-{number}" for number in range(5)]

        await one.see(PodDeleted(low))
        await one.clock.advance(3)
        assert len(one.bound) == 2
        await one.see(NodeAdded(a_node("more", cpu="3")))
        await one.clock.advance(12)
        assert len(one.bound) == 5


async def test_a_member_does_not_preempt_its_sibling() -> None:
    """One of two runs; the other one is more important, and would fit in its place: that starts no gang."""
    async with gang_scene(nodes=1, cpu="1") as one:
        await one.group(members=2)
        await one.pods(a_member("hand", cpu="1", node="n0"), a_member("boss", cpu="1", priority=10))
        await one.clock.advance(60)

        assert one.preemptor.victims == []
        assert "Insufficient cpu" in one.statuses.conditions["boss"].message


async def test_room_that_is_being_made_is_kept_until_the_last_victim_is_gone() -> None:
    """The first victim's room is free before the others': a rival of lower priority does not get it."""
    async with gang_scene(nodes=2, cpu="2") as one:
        low = [a_pod(f"low-{node}", cpu="2", node=node) for node in ("n0", "n1")]
        await one.pods(*low)
        await one.group(members=4)
        gang = members(4, priority=10)
        await one.pods(*gang)
        assert sorted(one.preemptor.victims) == ["low-n0", "low-n1"]
        for pod in gang:
            told = one.statuses.nominated[pod.name]
            await one.see(
                PodUpdated(
                    pod,
                    msgspec.structs.replace(
                        pod, status=msgspec.structs.replace(pod.status, nominated_node_name=told)
                    ),
                )
            )
        leaving = [
            a_pod(
                pod.name,
                cpu="2",
                node=pod.node_name,
                metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"},
                status={
                    "conditions": [
                        {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
                    ]
                },
            )
            for pod in low
        ]
        await one.see(*(PodUpdated(old, new) for old, new in zip(low, leaving, strict=True)))

        await one.see(PodDeleted(leaving[0]))
        await one.clock.advance(5)
        await one.pods(a_pod("rival", schedulerName="s", cpu="1"))
        await one.clock.advance(5)
        assert one.bound == []
        assert len(one.preemptor.victims) == 2

        await one.see(PodDeleted(leaving[1]))
        await one.clock.advance(20)
        assert one.bound == ["train-0", "train-1", "train-2", "train-3"]


async def test_members_keep_the_room_that_one_of_them_preempts_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole gang leaves for one member; its replacements come before that member is tried again."""
    async with gang_scene(nodes=2, cpu="2") as one:
        await one.see(ObjectAdded(a_group("low", members=2)))
        await one.pods(*(a_member(f"low-{node}", "low", cpu="2", node=node) for node in ("n0", "n1")))
        preempt = one.preemptor.preempt

        async def preempted(victim: Pod, scheduler: str) -> WriteResult:
            answer: WriteResult = await preempt(victim, scheduler)
            again = a_pod(f"again-{victim.name}", schedulerName="s", cpu="2")
            await one.see(PodDeleted(victim), PodAdded(again))
            return answer

        monkeypatch.setattr(one.preemptor, "preempt", preempted)
        await one.group(members=2)
        await one.pods(*members(2, cpu="2", priority=10))
        await one.clock.advance(60)

        assert sorted(one.preemptor.victims) == ["low-n0", "low-n1"]
        assert sorted(one.bound) == ["train-0", "train-1"]


async def test_two_preemptors_do_not_share_the_one_member_that_a_gang_can_spare() -> None:
    """The first victim's deletion is not seen yet: for the second preemptor the rest leaves whole."""
    async with gang_scene(nodes=3, cpu="2") as one:
        await one.group("low", members=2)
        await one.pods(*(a_member(f"low-{node}", "low", cpu="2", node=node) for node in ("n0", "n1", "n2")))
        for node in ("n0", "n1"):
            place = {"kubernetes.io/hostname": node}
            await one.pods(
                a_pod(f"urgent-{node}", schedulerName="s", cpu="2", priority=10, node_selector=place)
            )

        assert one.preemptor.victims[0] == "low-n0"
        assert sorted(one.preemptor.victims) == ["low-n0", "low-n1", "low-n2"]


async def test_a_gang_that_lost_its_room_holds_none() -> None:
    """A pod of higher priority was faster; a pod that is nominated no more stands in no other's way."""
    async with gang_scene(nodes=1, cpu="2") as one:
        low = a_pod("low", cpu="2", node="n0")
        await one.pods(low)
        await one.group(members=2)
        await one.pods(*members(2, priority=10))
        assert one.preemptor.victims == ["low"]

        await one.see(PodDeleted(low), PodAdded(a_pod("king", schedulerName="s", cpu="1", priority=100)))
        await one.clock.advance(20)
        await one.pods(a_pod("small", schedulerName="s", cpu="1"))
        await one.clock.advance(20)

        assert one.bound == ["king", "small"]
        assert not one.nominator.by_node


async def test_no_pod_is_preempted_for_a_gang_that_would_not_fit() -> None:
    """Victims would die for nothing."""
    async with gang_scene(nodes=2, cpu="2") as one:
        await one.pods(*(a_pod(f"low-{node}", cpu="2", node=node) for node in ("n0", "n1")))
        await one.group(members=5)
        await one.pods(*members(5, priority=10))

        assert one.preemptor.victims == []
        assert not one.nominator.by_node


async def test_a_member_whose_binding_failed_is_retried_in_its_own_room() -> None:
    """Meanwhile others of no higher priority cannot have it."""
    async with gang_scene(nodes=1, cpu="3") as one:
        failing = iter([True])

        async def before(pod: Pod, _: str) -> None:
            one.binder.answer = WriteResult(
                WriteOutcome.REFUSED if pod.name == "train-1" and next(failing, False) else WriteOutcome.DONE
            )

        one.binder.before = before
        await one.group(members=3)
        await one.pods(*members(3))
        assert one.bound == ["train-0", "train-2"]
        await one.pods(a_pod("rival", schedulerName="s", cpu="1"))
        assert one.bound == ["train-0", "train-2"]

        await one.clock.advance(5)

        assert one.bound == ["train-0", "train-1", "train-2"]
        assert not one.nominator.by_node


@pytest.mark.parametrize("ahead_s", [0.0, -3600.0, 3600.0])
async def test_room_is_held_until_the_time_for_a_start_is_over(
    ahead_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then others may have it, and the PodGroup says who is missing; the wall clock may be set meanwhile."""
    async with gang_scene(nodes=1, cpu="3") as one:

        async def before(pod: Pod, _: str) -> None:
            refused = pod.name == "train-1"
            one.binder.answer = WriteResult(WriteOutcome.REFUSED if refused else WriteOutcome.DONE)

        one.binder.before = before
        await one.group(members=3, scheduleTimeoutSeconds=20)
        gang = members(3)
        await one.pods(*gang)
        monkeypatch.setattr(one.clock, "now", lambda: one.clock.time + ahead_s)
        for pod in gang:
            if pod.name in one.bound:
                bound = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name="n0"))
                await one.see(PodUpdated(pod, bound))
        await one.pods(a_pod("rival", schedulerName="s", cpu="1"))
        await one.clock.advance(10)
        assert "rival" not in one.bound
        assert one.group_statuses.statuses["train"]["phase"] == "Scheduling"

        await one.clock.advance(13)
        await one.pods(a_pod("late", schedulerName="s", cpu="1"))
        await one.clock.advance(1)

        assert {"rival", "late"} & set(one.bound)
        assert one.group_statuses.statuses["train"]["phase"] == "Unknown"
        (said,) = one.recorder.said("StartTimedOut")
        assert said.startswith("2 of 3 members are placed after 20 s; they stay")


@pytest.mark.parametrize("starts", [1, 2, 3])
async def test_each_start_from_nothing_has_its_own_time(starts: int) -> None:
    """A member whose binding fails keeps its room until then, in the last start as in the first."""
    async with gang_scene(nodes=1, cpu="3") as one:

        async def before(pod: Pod, _: str) -> None:
            refused = pod.name == "train-1"
            one.binder.answer = WriteResult(WriteOutcome.REFUSED if refused else WriteOutcome.DONE)

        one.binder.before = before
        await one.group(members=3, scheduleTimeoutSeconds=20)
        for start in range(starts):
            gang = [msgspec.structs.replace(pod) for pod in members(3)]
            await one.pods(*gang)
            assert [each.owner for each in one.book.of_reason(ReservationReason.GANG)] == ["default/train"]
            if start < starts - 1:
                await one.see(*(PodDeleted(pod) for pod in gang))
                one.binder.bound.clear()
                await one.clock.advance(60)
        await one.clock.advance(10)
        assert len(one.book.of_reason(ReservationReason.GANG)) == 1
        await one.clock.advance(30)
        assert not one.book.of_reason(ReservationReason.GANG)


async def test_members_wait_on_permit_for_one_another() -> None:
    """While another plugin holds one of them, none is bound."""
    answers = {"First": {"answers": {}, "timeout": 30.0}}
    async with gang_scene(Probe, args=answers, nodes=1) as one:
        probe = one.profile.permit[-1]
        probe.permit = lambda state, pod, node: _held(is_held=pod.name == "train-1")
        await one.group(members=3)
        await one.pods(*members(3))
        assert one.bound == []
        assert len(one.cache.assumed) == 3

        (held,) = one.wing.cycle.permits
        held.allow("First")
        await one.clock.advance(0)

        assert len(one.bound) == 3


async def test_a_permit_that_is_refused_stops_the_whole_gang() -> None:
    """Its room is free again for others."""
    answers = {"First": {"answers": {}, "timeout": 30.0}}
    async with gang_scene(Probe, args=answers, nodes=1, cpu="3") as one:
        probe = one.profile.permit[-1]
        probe.permit = lambda state, pod, node: _held(is_held=pod.name == "train-1")
        await one.group(members=3)
        await one.pods(*members(3))
        (held,) = one.wing.cycle.permits

        held.reject("First", "not today")
        await one.clock.advance(0)

        assert one.bound == []
        assert not one.cache.assumed
        assert "2 of the 3 members that PodGroup default/train needs were permitted" in one.message("train-0")
        assert "not today" in one.message("train-1")


async def test_a_permit_that_takes_longer_than_the_start_may_stops_the_whole_gang() -> None:
    """ScheduleTimeoutSeconds bounds it, whatever the plugin would wait."""
    async with gang_scene(Probe, args={"First": {"timeout": 600.0}}, nodes=1, cpu="3") as one:
        probe = one.profile.permit[-1]
        probe.permit = lambda state, pod, node: _held(is_held=pod.name == "train-1", timeout=600.0)
        await one.group(members=3, scheduleTimeoutSeconds=5)
        await one.pods(*members(3))
        await one.clock.advance(4)
        assert len(one.cache.assumed) == 3

        probe.permit = lambda state, pod, node: _refused()
        await one.clock.advance(2)

        assert not one.cache.assumed
        assert list(one.wing.cycle.permits) == []


async def test_a_plugin_that_refuses_a_member_immediately_stops_all_in_the_same_turn() -> None:
    """Reserve or Permit say no after the proof: everything is undone before anything is bound."""
    async with gang_scene(Probe, nodes=1, cpu="3") as one:
        probe = one.profile.permit[-1]
        probe.permit = lambda state, pod, node: _refused() if pod.name == "train-2" else _held(is_held=True)
        await one.group(members=3)
        await one.pods(*members(3))

        assert one.bound == []
        assert not one.cache.assumed
        assert list(one.wing.cycle.permits) == []


def _held(*, is_held: bool, timeout: float = 30.0) -> PermitResult:
    return PermitResult(Status(Code.WAIT), timeout) if is_held else PermitResult()


def _refused() -> PermitResult:
    return PermitResult(unschedulable("not today"))


async def test_a_node_that_goes_in_the_middle_is_replaced() -> None:
    """Bindings to it are refused; their pods find another place."""
    async with gang_scene(nodes=2, cpu="2") as one:

        async def before(_: Pod, node: str) -> None:
            gone = node == "n1" and "n1" not in one.cache.cluster.rows
            one.binder.answer = WriteResult(WriteOutcome.REFUSED if gone else WriteOutcome.DONE)
            if node == "n0" and "n1" in one.cache.cluster.rows:
                one.ingestion.apply([NodeDeleted(a_node("n1", cpu="2"))])

        one.binder.before = before
        await one.group(members=4)
        await one.pods(*members(4))
        await one.see(NodeAdded(a_node("n2", cpu="2")))
        await one.clock.advance(20)

        assert len(one.bound) == 4
        assert set(one.binder.bound.values()) <= {"n0", "n1", "n2"}


async def test_phases_follow_the_members() -> None:
    """Pending, Scheduled, Running, Finished, as kubectl shows them."""
    async with gang_scene() as one:
        await one.group(members=2)
        await one.clock.advance(1)
        gang = members(2, owner="Job/train")
        await one.pods(*gang)
        for phase in ("Pending", "Running", "Succeeded"):
            for pod in gang:
                now = msgspec.structs.replace(
                    pod,
                    spec=msgspec.structs.replace(pod.spec, node_name="n0"),
                    status=msgspec.structs.replace(pod.status, phase=phase),
                )
                await one.see(PodUpdated(pod, now))
            await one.clock.advance(1)

        seen = [phase for phase, _ in itertools.groupby(one.group_statuses.phases["train"])]
        assert seen == ["Pending", "PreScheduling", "Scheduled", "Running", "Finished"]
        status = one.group_statuses.statuses["train"]
        assert (status["occupiedBy"], status["succeeded"], status["scheduled"]) == ("default/train", 2, 0)
        assert status["scheduleStartTime"]


async def test_a_lost_status_is_written_again() -> None:
    """After a pause."""
    async with gang_scene() as one:
        one.group_statuses.answer = WriteResult(WriteOutcome.UNKNOWN, "no answer")
        await one.group(members=2)
        await one.clock.advance(1)
        assert not one.group_statuses.statuses
        one.group_statuses.answer = WriteResult(WriteOutcome.DONE)

        await one.clock.advance(5)

        assert one.group_statuses.statuses["train"]["phase"] == "Pending"


async def test_a_deleted_group_gates_its_pods_again() -> None:
    """And nothing is kept of one that is gone with its pods."""
    async with gang_scene(nodes=1, cpu="1") as one:
        await one.group(members=2)
        gang = members(2)
        await one.pods(*gang)
        await one.see(ObjectDeleted(a_group(members=2)))
        await one.see(NodeAdded(a_node("more", cpu="4")))
        await one.clock.advance(12)
        assert one.bound == []

        await one.see(*(PodDeleted(pod) for pod in gang))
        assert list(one.groups) == []


async def test_a_gang_of_several_schedulers_is_placed_by_those_that_are_served() -> None:
    """A member that no profile here serves is not waited for in vain: it counts when it is placed."""
    async with gang_scene() as one:
        await one.group(members=2)
        await one.pods(a_member("ours", cpu="1"))
        theirs = a_pod("theirs", schedulerName="other", labels={"plimsoll.dev/pod-group": "train"})
        await one.pods(theirs)
        assert one.bound == []
        placed = msgspec.structs.replace(theirs, spec=msgspec.structs.replace(theirs.spec, node_name="n0"))
        await one.see(PodUpdated(theirs, placed), NodeAdded(a_node("n9")))
        await one.clock.advance(3)

        assert one.bound == ["ours"]


@given(
    capacities=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    gangs=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 2)), min_size=1, max_size=3),
    order=st.randoms(use_true_random=False),
)
def test_a_gang_is_bound_entirely_or_not_at_all(
    capacities: list[int], gangs: list[tuple[int, ...]], order: Any
) -> None:
    """Without faults, whatever the cluster and in whatever order the pods of several gangs arrive."""

    async def play() -> None:
        async with gang_scene(nodes=0) as one:
            await one.see(*(NodeAdded(a_node(f"n{at}", cpu=cpu)) for at, cpu in enumerate(capacities)))
            pods = []
            for at, (size, priority) in enumerate(gangs):
                await one.group(f"g{at}", size)
                pods += members(size, f"g{at}", priority=priority)
            order.shuffle(pods)
            for pod in pods:
                await one.see(PodAdded(pod))
            await one.clock.advance(40)
            sizes = [sum(name.startswith(f"g{at}-") for name in one.bound) for at in range(len(gangs))]
            assert all(bound in (0, size) for bound, (size, _) in zip(sizes, gangs, strict=True))
            assert sum(sizes) <= sum(capacities)
            assert not one.cache.assumed.keys() - {f"uid-default-{name}" for name in one.bound}

    asyncio.run(play())


@pytest.mark.parametrize("fault", [WriteOutcome.CONFLICT, WriteOutcome.UNKNOWN, WriteOutcome.REFUSED])
async def test_bindings_that_fail_in_the_middle_are_mended(fault: WriteOutcome) -> None:
    """Ten of a hundred members fail once; all hundred are bound in the end, none twice."""
    async with gang_scene(nodes=50, cpu="2") as one:
        failed: set[str] = set()

        async def before(pod: Pod, _: str) -> None:
            fails = int(pod.name.rpartition("-")[2]) % 10 == 0 and pod.name not in failed
            failed.update([pod.name] if fails else [])
            one.binder.answer = WriteResult(fault if fails else WriteOutcome.DONE)

        one.binder.before = before
        await one.group(members=100)
        await one.pods(*members(100))
        await one.clock.advance(20)

        assert len(failed) == 10
        assert len(one.bound) == 100


class Costly(NodeFilter):
    """Takes too much processor time for the members of one group, as the watch of attempts would find."""

    name = "Costly"

    def filter_node(self, state: Any, pod: Any, node: Any) -> Status:
        calls = METER.get()
        if calls is not None and pod.name.startswith("train"):
            calls.budget.spent = calls.budget.attempt
        return unschedulable("too much") if pod.name.startswith("train") else SUCCESS


async def test_a_gang_that_takes_too_much_time_goes_last_and_others_start() -> None:
    """Its members say so and back off together for a minute, then for two."""
    async with gang_scene(Costly) as one:
        await one.group(members=2)
        await one.pods(*members(2))

        for number in range(2):
            condition = one.statuses.conditions[f"train-{number}"]
            assert condition.reason == "SchedulerError"
            assert "the attempt took more than 10 s of processor time" in condition.message
        attempts = []
        for _ in range(4):
            attempts.append({queued.attempts for queued in one.queue})
            await one.clock.advance(59.0)
        assert attempts == [{1}, {1}, {2}, {2}]
        await one.group(name="next", members=2)
        await one.pods(*members(2, "next"))

        assert one.bound == ["next-0", "next-1"]
        assert all("PodGroup default/train" in str(each) for each in one.observer.failures)
        one.observer.failures.clear()


async def test_a_group_that_is_made_again_with_a_smaller_minimum_starts_with_it() -> None:
    """Its members were rejected while another group had the name, and no room has become free."""
    async with gang_scene(nodes=1, cpu="2") as one:
        await one.group(members=3)
        await one.pods(*members(3))
        await one.see(ObjectDeleted(a_group(members=3)))
        await one.clock.advance(12)
        assert one.bound == []

        await one.group(members=2)
        await one.clock.advance(12)

        assert len(one.bound) == 2


async def test_the_kept_room_of_a_deleted_member_helps_others() -> None:
    """Its nomination was never written, so only the book knows what is free now."""
    async with gang_scene(nodes=1, cpu="2") as one:

        async def before(pod: Pod, _: str) -> None:
            refused = pod.name == "train-1"
            one.binder.answer = WriteResult(WriteOutcome.REFUSED if refused else WriteOutcome.DONE)

        one.binder.before = before
        await one.group(members=2)
        gang = members(2)
        await one.pods(*gang)
        await one.pods(a_pod("other", schedulerName="s", cpu="1"))
        assert one.bound == ["train-0"]

        await one.see(PodDeleted(gang[1]))
        await one.clock.advance(12)

        assert one.bound == ["other", "train-0"]
