"""Access reviews, and the status of policies that lack rights."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from plimsoll.access.rights import (
    BIND,
    EVICT,
    MISSING_S,
    NAMESPACES,
    RECORD,
    REVIEW_S,
    SPACING_S,
    SURGE,
    TAINT,
    Access,
    Part,
    Right,
    needs_of,
    told,
)
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.testing.fakes import FakeAccessReviewer, FakeClock, RememberingObserver, settled
from rebalancing.scene import POLICY, Scene, a_policy


class Desk:
    """Somebody who reviews."""

    def __init__(self, *denied: Any) -> None:
        self.clock, self.reviewer = FakeClock(), FakeAccessReviewer(*denied)
        self.observer = RememberingObserver()
        self.access = Access(self.reviewer, self.clock, self.observer)

    @property
    def changes(self) -> int:
        """How often rights have changed."""
        return self.access.changed.count

    @asynccontextmanager
    async def reviewing(self) -> AsyncIterator[None]:
        """Review until the end of the test."""
        task = asyncio.create_task(self.access.run())
        await settled()
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_a_missing_right_is_named_with_the_manifest_that_grants_it() -> None:
    """In words that a person can act on."""
    desk = Desk(EVICT)
    await desk.access.review()

    assert desk.access.obstacle(a_policy(), Part.REBALANCING) == (
        "no pod is moved: the operator may not create pods/eviction;"
        " apply deploy/enforce (chart: mode: Enforce)"
    )
    assert desk.access.trouble(a_policy()).startswith("the operator may not create pods/eviction")
    assert desk.access.trouble(a_policy("DryRun")) == ""


async def test_rights_are_reviewed_again_while_some_are_missing() -> None:
    """A granted right is noticed within half a minute, without a restart."""
    desk = Desk(EVICT)
    async with desk.reviewing():
        assert not desk.access.allows(EVICT)
        desk.reviewer.denied.clear()
        desk.reviewer.asked.clear()
        await desk.clock.advance(MISSING_S)

    assert desk.access.allows(EVICT)
    assert desk.reviewer.asked == [(EVICT, "")], "what is allowed is not asked about twice a minute"
    assert desk.changes == 2


async def test_everything_is_reviewed_hourly() -> None:
    """A right that was taken away is noticed, though nothing used it."""
    desk = Desk()
    async with desk.reviewing():
        desk.reviewer.denied.add(BIND)
        await desk.clock.advance(REVIEW_S - 1)
        assert desk.access.allows(BIND)
        await desk.clock.advance(1)

    assert not desk.access.allows(BIND)


async def test_a_refusal_is_a_reason_to_look() -> None:
    """Once in half a minute, however many there are."""
    desk = Desk()
    async with desk.reviewing():
        desk.reviewer.denied.add(EVICT)
        desk.reviewer.asked.clear()
        for _ in range(100):
            desk.access.request_answered("POST", 403, 0.01)
        await desk.clock.advance(SPACING_S)

    assert not desk.access.allows(EVICT)
    assert desk.reviewer.asked.count((EVICT, "")) == 1


async def test_a_changed_policy_is_a_reason_to_look() -> None:
    """It may need what was never reviewed since the rights have changed."""
    desk = Desk()
    async with desk.reviewing():
        desk.reviewer.denied.add(EVICT)
        desk.access.look_again()
        await desk.clock.advance(1)

    assert not desk.access.allows(EVICT)


async def test_no_answer_changes_nothing() -> None:
    """Neither at the start nor later."""
    desk = Desk(EVICT)
    desk.reviewer.is_silent = True
    await desk.access.review()
    assert desk.access.allows(EVICT)

    async with desk.reviewing():
        desk.reviewer.is_silent = False
        await desk.clock.advance(MISSING_S)
        assert not desk.access.allows(EVICT), "it is asked again soon"
        desk.reviewer.is_silent = True
        await desk.clock.advance(MISSING_S)

    assert not desk.access.allows(EVICT)


async def test_a_right_may_be_granted_in_one_namespace() -> None:
    """A RoleBinding in the only namespace of the scope is enough; where it is missing, that is said."""
    desk = Desk(EVICT)
    desk.reviewer.granted = {(EVICT, "team-a")}
    here, both = (narrow(a_policy(), *names) for names in (("team-a",), ("team-a", "team-b")))
    async with desk.reviewing():
        assert desk.access.obstacle(here, Part.REBALANCING)
        assert desk.access.obstacle(both, Part.REBALANCING)
        await desk.clock.advance(1)

        assert desk.access.obstacle(here, Part.REBALANCING) == ""
        assert desk.access.obstacle(both, Part.REBALANCING)
        assert desk.access.obstacle(a_policy(), Part.REBALANCING)
        assert desk.access.allows(EVICT, "team-a")
        assert not desk.access.allows(EVICT, "team-b")

        desk.reviewer.granted.add((EVICT, "team-b"))
        desk.reviewer.asked.clear()
        await desk.clock.advance(MISSING_S)
        assert desk.access.obstacle(both, Part.REBALANCING) == "", "a later grant is noticed as soon"
        assert desk.reviewer.asked == [(EVICT, ""), (EVICT, "team-b")]


def narrow(policy: SchedulingPolicy, *namespaces: str) -> SchedulingPolicy:
    """The same for some namespaces."""
    document = policy.model_dump(mode="json", by_alias=True, exclude_none=True)
    document["spec"]["scope"] = {"namespaces": {"include": list(namespaces)}}
    return SchedulingPolicy.model_validate(document)


@pytest.mark.parametrize(
    ("rebalancing", "essential", "further"),
    [
        pytest.param({"mode": "DryRun"}, {*RECORD}, set(), id="dry run"),
        pytest.param({"mode": "Approve"}, {*RECORD, EVICT}, set(), id="approve"),
        pytest.param({"mode": "Enforce"}, {*RECORD, EVICT}, set(), id="enforce"),
        pytest.param({"surge": True}, {*RECORD, EVICT}, {SURGE}, id="surge"),
        pytest.param(
            {"strategies": [{"name": "RemoveFailedPods"}, {"name": "ConsolidateNodes"}]},
            {*RECORD, EVICT},
            {*TAINT},
            id="closing nodes",
        ),
    ],
)
def test_what_a_mode_needs(rebalancing: dict[str, Any], essential: set[Right], further: set[Right]) -> None:
    """Without the essential rights nothing works, without the others something is missing."""
    needs = list(needs_of(a_policy(**{"mode": "Enforce", **rebalancing})))

    assert {right for need in needs if need.is_essential for right in need.rights} == essential
    assert further <= {right for need in needs if not need.is_essential for right in need.rights}


# -- rebalancing -------------------------------------------------------------------------------------


async def test_no_eviction_is_tried_that_is_not_allowed() -> None:
    """No record is written either; the plan says how many moves wait for the right."""
    scene = Scene()
    scene.reviewer.denied = {EVICT}
    await scene.access.review()

    async with scene.running(a_policy()):
        await scene.run()
        await scene.run()
        refused = scene.statuses.statuses[POLICY]["counts"]["refused"]
        assert [each["message"] for each in refused] == [
            f"no pod is moved: {told([EVICT])}",
        ]
        assert (scene.evictor.evicted, scene.records.documents) == ([], {})

        scene.reviewer.denied = set()
        await scene.access.review()
        await scene.run()

    assert scene.evictor.evicted == ["web-1"]


async def test_missing_rights_refuse_what_a_dry_run_predicts_and_keep_its_predictions() -> None:
    """As many candidates are considered; the predictions go when the right has come and the policy runs."""
    scene = Scene()
    scene.rebalancers.retain_predictions({POLICY})
    async with scene.running(a_policy("DryRun")):
        await scene.run()
        predicted = dict(scene.records.documents)
        foreseen = scene.statuses.statuses[POLICY]["counts"]["considered"]
        scene.reviewer.denied = {EVICT}
        await scene.access.review()
        scene.rebalancers.adopt(a_policy())
        await scene.run()
        counts = scene.statuses.statuses[POLICY]["counts"]

    assert predicted
    assert scene.records.documents == predicted
    assert (counts["considered"], counts["planned"], counts["evicted"]) == (foreseen, 0, 0)
    assert [(each["reason"], each["count"]) for each in counts["refused"]] == [("NotAllowed", len(predicted))]


async def test_rights_that_arrive_start_a_run_of_the_policies_that_lacked_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At the first review, which is due within twenty seconds; rights that no policy lacked start none."""
    scene = Scene()
    hastened: list[str] = []
    monkeypatch.setattr(scene.rebalancers.timetable, "hasten", lambda name, _: hastened.append(name))
    scene.reviewer.denied = {EVICT}
    await scene.access.review()
    reviews = asyncio.create_task(scene.access.run())
    async with scene.running(a_policy()):
        await scene.run()
        scene.rebalancers._running = True  # the timetable has a clock of its own
        scene.reviewer.denied = {TAINT[0]}
        await scene.clock.advance(20)
        first = list(hastened)
        scene.reviewer.denied = set()
        await scene.clock.advance(20)
    reviews.cancel()

    assert (first, hastened) == ([POLICY], [POLICY])


async def test_nothing_is_evicted_that_could_not_be_placed_again() -> None:
    """Where policies serve scheduler names, evicting without binding would only take pods away."""
    scene = Scene()
    scene.reviewer.denied = {BIND}
    await scene.access.review()
    scene.access.places_pods = True

    async with scene.running(a_policy()):
        await scene.run()

    assert scene.evictor.evicted == []


async def test_answers_to_proposals_wait_for_the_right() -> None:
    """They are carried out when it is granted, not lost."""
    scene = Scene()
    async with scene.running(a_policy("Approve")):
        await scene.run()
        metadata = scene.record["metadata"]
        scene.reviewer.denied = {EVICT}
        await scene.access.review()
        scene.wing.approvals.annotated(
            metadata["namespace"], metadata["name"], {"plimsoll.dev/approved": "true"}
        )
        await scene.clock.advance(10)
        assert scene.phases == [["Planned"]]

        scene.reviewer.denied = set()
        await scene.access.review()
        await scene.clock.advance(5)

    assert scene.evictor.evicted == ["web-1"]


async def test_refused_evictions_are_failed_moves() -> None:
    """Of one owner the next try comes later; rights that are granted make up for it."""
    scene = Scene()
    scene.evictor.answers = [WriteResult(WriteOutcome.REFUSED, "pods is forbidden")]

    async with scene.running(a_policy()):
        await scene.run()
        assert scene.record["status"]["reason"] == "EvictionRefused"
        await scene.run()
        (refused,) = scene.statuses.statuses[POLICY]["counts"]["refused"]
        assert refused["reason"] == "HeldBack"
        assert "was refused by the API server" in refused["message"]

        await scene.clock.advance(1)
        scene.reviewer.denied = {EVICT}
        await scene.access.review()
        scene.reviewer.denied = set()
        await scene.access.review()
        await scene.run()

    assert scene.evictor.evicted == ["web-1"]


async def test_a_namespace_without_an_answer_keeps_the_one_it_had() -> None:
    """No answer is no refusal; the right is used there as before."""
    desk = Desk(EVICT)
    desk.reviewer.granted = {(EVICT, "team-a")}
    async with desk.reviewing():
        assert not desk.access.allows(EVICT, "team-a")
        await desk.clock.advance(1)
        assert desk.access.allows(EVICT, "team-a")
        desk.reviewer.is_silent = True
        await desk.clock.advance(REVIEW_S)

        assert len([each for each in desk.reviewer.asked if each == (EVICT, "team-a")]) > 1
        assert desk.access.allows(EVICT, "team-a")


async def test_a_right_is_reviewed_in_so_many_namespaces_at_most() -> None:
    """Each is a request; a right that is needed in more is granted for all, or not used in the others."""
    desk = Desk(EVICT)
    desk.reviewer.granted = {(EVICT, f"n{number}") for number in range(NAMESPACES + 2)}
    async with desk.reviewing():
        for _ in range(2):
            for number in range(NAMESPACES + 2):
                desk.access.allows(EVICT, f"n{number}")
            await desk.clock.advance(1)

        assert [desk.access.allows(EVICT, f"n{number}") for number in range(NAMESPACES + 2)] == [
            *[True] * NAMESPACES,
            *[False] * 2,
        ]


async def test_a_first_review_that_breaks_is_reported_and_holds_nothing_up() -> None:
    """The operator begins its work; a right that was never reviewed counts as allowed."""
    desk = Desk()

    async def breaks(*_: object) -> None:
        raise RuntimeError("odd")

    desk.access.review = breaks  # type: ignore[method-assign, assignment] # replaced for this test
    await desk.access.begin()

    assert desk.observer.failures == [("reviewing the operator's rights", "RuntimeError('odd')")]
    assert not desk.access.is_pending


@pytest.mark.parametrize("first", [True, False])
async def test_a_review_that_breaks_is_reported_and_followed_by_others(first: bool) -> None:
    """The first one or a later one: the work begins and goes on all the same."""
    reviewer, observer, clock = FakeAccessReviewer(BIND), RememberingObserver(), FakeClock()
    access = Access(reviewer, clock, observer)
    access.is_pending = True
    broken: Any = None
    whole, reviewer.review = reviewer.review, broken if first else reviewer.review  # type: ignore[method-assign] # a fault

    await access.begin()

    assert not access.is_pending
    assert access.allows(BIND) is first
    reviewer.review = broken  # type: ignore[method-assign] # a fault
    task = asyncio.ensure_future(access.run())
    await clock.advance(REVIEW_S)
    await settled()
    said = [each for each in observer.failures if "reviewing the operator's rights" in str(each)]
    assert len(said) >= 1 + first
    assert not task.done()
    reviewer.review = whole  # type: ignore[method-assign] # mended
    await clock.advance(REVIEW_S)
    await settled()
    assert not access.allows(BIND)
    task.cancel()
