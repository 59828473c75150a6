"""Pods that may not be bound wait, say why, and are placed when they may."""

import asyncio
import contextlib

from plimsoll.access.rights import BIND, Access
from plimsoll.cluster.watch_events import NodeAdded, PodAdded
from plimsoll.model.columns.cluster import Cluster
from plimsoll.scheduling.rights_gate import RightsGate
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import FakeAccessReviewer, FakeClock, RememberingObserver, settled
from scheduling.test_loop import Stage, our_pod


async def test_pods_wait_for_the_right_to_bind() -> None:
    """Not one binding is sent; one event and no storm; then the right is enough."""
    reviewer = FakeAccessReviewer(BIND)
    clock, observer = FakeClock(), RememberingObserver()
    access = Access(reviewer, clock, observer)
    stage = Stage(access=access)
    await access.review()
    task = asyncio.ensure_future(stage.wing.run())
    try:
        await stage.see(NodeAdded(a_node("n0")))
        await stage.pods(our_pod("a"), our_pod("b"))
        await stage.clock.advance(1000)
        await stage.see(NodeAdded(a_node("n1")))

        assert (stage.binder.sent, stage.queue.depths()["gated"]) == (0, 2)
        notes = [each for each in stage.recorder.notes if each.reason == "FailedScheduling"]
        assert len(notes) == 2
        assert notes[0].text == (
            "the operator may not create pods/binding; apply deploy/enforce (chart: mode: Enforce)"
        )
        assert stage.reason("a") == "SchedulerError"

        reviewer.denied.clear()
        await access.review()
        await settled()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    assert set(stage.binder.bound) == {"default/a", "default/b"}


async def test_a_right_that_is_granted_before_the_work_begins_is_noticed() -> None:
    """A new leader takes pods over while the last review still says no, and the next one says yes."""
    reviewer = FakeAccessReviewer(BIND)
    access = Access(reviewer, FakeClock(), RememberingObserver())
    stage = Stage(access=access)
    await access.review()
    await stage.see(NodeAdded(a_node("n0")))
    await stage.pods(our_pod("a"))
    assert stage.queue.depths()["gated"] == 1

    reviewer.denied.clear()
    await access.review()
    task = asyncio.ensure_future(stage.wing.run())
    try:
        await settled()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    assert set(stage.binder.bound) == {"default/a"}


async def test_it_is_said_again_when_a_policy_serves_the_pods_again() -> None:
    """What was to be said while none did was not said."""
    clock = FakeClock()
    access = Access(FakeAccessReviewer(BIND), clock, RememberingObserver())
    stage = Stage(access=access)
    await access.review()
    task = asyncio.ensure_future(stage.wing.run())
    try:
        schedulers = stage.wing.served.schedulers
        stage.ingestion.apply([PodAdded(our_pod("a"))])
        stage.wing.serve({})
        await settled()
        assert stage.statuses.conditions == {}

        stage.wing.serve(schedulers)
        await settled()

        assert stage.statuses.conditions["a"].reason == "SchedulerError"
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_a_right_in_one_namespace_is_one_for_its_pods_alone() -> None:
    """Whichever pod is judged first, and again after it was placed; both have one name."""
    for spaces in (("mine", "other"), ("other", "mine")):
        reviewer = FakeAccessReviewer(BIND)
        reviewer.granted.add((BIND, "mine"))
        access = Access(reviewer, FakeClock(), RememberingObserver())
        told: list[str] = []
        gate = RightsGate(access, lambda pod, *_, told=told: told.append(pod.namespace))
        pods = [Cluster().templates.info(a_pod("web", namespace=space)) for space in spaces]
        await access.review()
        for _ in range(2):
            for pod in pods:
                gate.gate(pod)
            await access.review()

            assert {pod.namespace: gate.gate(pod).is_success for pod in pods} == {
                "mine": True,
                "other": False,
            }
        assert told.count("other") == 1
