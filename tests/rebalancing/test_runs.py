"""Results of runs in the status, totals over all runs, and outdated predictions."""

import asyncio
from collections.abc import Callable
from typing import Any

from plimsoll.cluster.watch_events import PodAdded
from plimsoll.planning.moves import EvictionPlan
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.runs import degraded_reasons, predictions
from plimsoll.rebalancing.runs.scope_review import ScopeReview
from plimsoll.testing.fakes import settled
from rebalancing.scene import POLICY, Scene, a_policy, web


async def contained(scene: Scene) -> None:
    """One run as the timetable begins it."""
    await scene.runs.fall_due(POLICY)
    await settled()


def status(scene: Scene) -> dict[str, Any]:
    """The policy's status."""
    return scene.statuses.statuses[POLICY]


async def test_a_run_that_breaks_off_is_reported() -> None:
    """In the status with what broke it, in a reason, to the observer; and no longer once a run ends well."""
    scene = Scene()
    compute = scene.computer.compute

    async def breaks(_: Callable[..., Any]) -> None:
        scene.clock.ahead_s -= 3600.0  # the wall clock is set back meanwhile
        raise ZeroDivisionError("a plugin's")

    async with scene.running(a_policy()):
        await contained(scene)
        scene.computer.compute = breaks  # type: ignore[method-assign] # replaced for this test
        await contained(scene)
        last = status(scene)["lastRun"]
        assert last["result"] == "Crashed"
        assert last["message"] == 'the run broke off: ZeroDivisionError("a plugin\'s")'
        assert status(scene)["counts"] is None, "those were of another run"
        assert last["completionTime"] >= last["startTime"]
        assert list(scene.rebalancers.troubles(POLICY)) == ["RunFailed"]

        scene.computer.compute = compute  # type: ignore[method-assign] # replaced for this test
        await contained(scene)
        assert status(scene)["lastRun"]["result"] == "Succeeded"
        assert scene.rebalancers.troubles(POLICY) == {}
    assert [result for _, result, _ in scene.observer.runs] == ["succeeded", "crashed", "succeeded"]


async def test_runs_that_are_skipped_are_reported() -> None:
    """One that goes on for more than a minute while others are due."""
    scene = Scene()
    goes_on = asyncio.Event()
    compute = scene.computer.compute

    async def slow(function: Callable[..., Any]) -> EvictionPlan | ScopeReview:
        await goes_on.wait()
        return await compute(function)

    scene.computer.compute = slow  # type: ignore[method-assign] # replaced for this test
    async with scene.running(a_policy()):
        running = asyncio.create_task(scene.runs.fall_due(POLICY))
        await settled()
        scene.runs.skip(POLICY)
        await scene.clock.advance(degraded_reasons.OVERDUE_S)
        assert list(map(list, scene.troubled)) == [["RunOverdue"]]
        goes_on.set()
        await running
        await settled()
        assert scene.troubled[-1] == {}
    assert [result for _, result, _ in scene.observer.runs] == ["skipped", "succeeded"]


async def test_the_first_of_two_policies_to_be_overdue_is_reported_in_time() -> None:
    """Nothing happens at that moment; the other one is overdue half a minute later."""
    scene = Scene()
    goes_on = asyncio.Event()

    async def slow(_: Callable[..., Any]) -> None:
        await goes_on.wait()

    scene.computer.compute = slow  # type: ignore[method-assign] # replaced for this test
    policy = a_policy()
    later = policy.model_copy(update={"metadata": policy.metadata.model_copy(update={"name": "later"})})
    async with scene.running(policy):
        scene.rebalancers.adopt(later)
        running = []
        for name in (POLICY, "later"):
            running.append(asyncio.create_task(scene.runs.fall_due(name)))
            await settled()
            scene.runs.skip(name)
            await scene.clock.advance(degraded_reasons.OVERDUE_S / 2)
        assert list(scene.troubled[-1]) == ["RunOverdue"]
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def test_what_was_planned_and_not_evicted_is_not_told_as_moved() -> None:
    """The message counts what the server took."""
    scene = Scene()
    scene.evictor.answers = [WriteResult(WriteOutcome.REFUSED, "no")]

    async with scene.running(a_policy()):
        await contained(scene)

    assert status(scene)["lastRun"]["message"] == "1 candidate: 0 of 1 planned moved"


async def test_totals_are_of_all_runs_and_outlive_the_process() -> None:
    """By the records that are kept."""
    scene = Scene()
    async with scene.running(a_policy()):
        await contained(scene)
        scene.gone(web(1))
        scene.tell(PodAdded(web(3, "good", created="2027-01-01T00:00:00Z")))
        await settled()
        await contained(scene)
        assert status(scene)["counts"]["evicted"] == 0, "the last run had nothing to do"
        assert (status(scene)["totals"]["moved"], status(scene)["totals"]["failed"]) == (1, 0)

    later = Scene(*scene.records.documents.values())
    later.rebalancers.adopt(a_policy())
    async with later.running(a_policy()):
        assert status(later) == {"totals": status(scene)["totals"]}, "before any run"


async def test_totals_of_a_policy_that_rebalances_no_longer_are_true() -> None:
    """Its proposals are cancelled when it is suspended, and moves under way end later."""
    scene = Scene()
    async with scene.running(a_policy("Approve")):
        await scene.run()
        assert status(scene)["totals"]["open"] == 1
        scene.rebalancers.drop(POLICY)
        await settled()
        assert scene.phases == [["Planned", "Cancelled"]]

        assert status(scene)["totals"]["open"] == 0


async def test_totals_of_a_policy_whose_runs_are_forgotten_are_true() -> None:
    """Nothing is open then, and nothing says that the status has other numbers."""
    scene = Scene()
    async with scene.running():
        scene.rebalancers.configure([a_policy("Approve")])
        await scene.run()
        assert status(scene)["totals"]["open"] == 1
        scene.rebalancers.configure([])
        await settled()
        assert scene.phases == [["Planned", "Cancelled"]]

        assert status(scene)["totals"]["open"] == 0


async def test_totals_of_a_policy_that_this_process_never_ran_are_true() -> None:
    """Its spec was made unusable while a proposal waited, and then the process ended."""
    scene = Scene()
    async with scene.running(a_policy("Approve")):
        await scene.run()

    later = Scene(*scene.records.documents.values())
    async with later.running():
        assert status(later)["totals"]["open"] == 1


async def test_proposals_of_a_policy_that_went_while_no_operator_ran_are_called_off() -> None:
    """As those of one that goes later; an approval would have no effect."""
    scene = Scene()
    async with scene.running(a_policy("Approve")):
        await scene.run()

    kept, gone = Scene(*scene.records.documents.values()), Scene(*scene.records.documents.values())
    for later, policy in ((kept, a_policy("Approve")), (gone, None)):
        async with later.running(policy):
            later.rebalancers.all_known()
            await settled()

    assert (kept.phases, gone.phases) == ([], [["Cancelled"]])
    assert status(gone)["totals"]["open"] == 0


async def test_records_that_people_delete_are_counted_no_more() -> None:
    """Without waiting for the next run, which may be a day away."""
    scene = Scene()
    async with scene.running(a_policy("Approve")):
        await scene.run()
        (key,) = scene.keeper.known
        scene.keeper.forget(*key.split("/"))
        await settled()

        assert status(scene)["totals"]["open"] == 0


async def predicted(scene: Scene) -> None:
    """Make predictions."""
    await scene.run()
    assert [document["status"]["phase"] for document in scene.records.documents.values()] == ["Predicted"]


async def test_predictions_go_with_their_policy() -> None:
    """Soon, not with their retention of days."""
    scene = Scene()
    scene.rebalancers.retain_predictions({POLICY})
    async with scene.running(a_policy("DryRun")):
        await predicted(scene)
        scene.rebalancers.retain_predictions(set())
        await settled()

    assert scene.records.documents == {}


async def test_predictions_of_a_policy_that_went_meanwhile_go() -> None:
    """It was deleted while no operator ran; one that is reported late is given time."""
    scene = Scene()
    scene.rebalancers.retain_predictions({POLICY})
    async with scene.running(a_policy("DryRun")):
        await predicted(scene)

    late, gone = (Scene(*scene.records.documents.values()) for _ in range(2))
    async with late.running(), gone.running():
        await late.clock.advance(predictions.STARTING_S - 1)
        late.rebalancers.retain_predictions({POLICY})
        await late.clock.advance(600)
        await gone.clock.advance(predictions.STARTING_S + 1)
    assert late.records.documents
    assert gone.records.documents == {}


async def test_a_prediction_of_an_earlier_process_that_is_outdated_is_remembered_by_nothing() -> None:
    """The watch of records may be down while it is deleted, such as when their definition was away."""
    scene = Scene()
    scene.rebalancers.retain_predictions({POLICY})
    async with scene.running(a_policy("DryRun")):
        await predicted(scene)

    later = Scene(*scene.records.documents.values())
    async with later.running():
        assert list(later.wing.executor.machine.moves) == list(later.records.documents)
        await later.clock.advance(predictions.STARTING_S + 1)

    assert later.records.documents == {}
    assert not later.wing.executor.machine.moves


async def test_records_of_moves_stay() -> None:
    """They are history, whatever the policy does now."""
    scene = Scene()
    scene.rebalancers.retain_predictions({POLICY})
    async with scene.running(a_policy()):
        await scene.run()
        scene.rebalancers.retain_predictions(set())
        await scene.clock.advance(600)

    assert len(scene.records.documents) == 1
