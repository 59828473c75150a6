"""PreBind: side by side where plugins say so, called off as a whole."""

import asyncio
import contextlib
from types import SimpleNamespace
from typing import Any, cast

import pytest

from plimsoll.cluster.cache import Cache
from plimsoll.cluster.watch_events import PodDeleted, PodUpdated
from plimsoll.framework import SUCCESS, Code, CycleState, PluginError, error, unschedulable
from plimsoll.ports.observer import Observer
from plimsoll.scheduling.binding.cycle import BindingCycle
from plimsoll.scheduling.binding.plugin_waits import GIVEN_UP_AFTER_S, SAID_AFTER_S, TO_END_S
from plimsoll.scheduling.binding.volume_claims import ClaimBinder
from plimsoll.testing.builders import a_pod, the_info
from plimsoll.testing.fakes import FakeBinder, FakeClock, FakeRecorder, FakeVolumes, settled
from scheduling.binding.devices import a_device_binder


class Work:
    """A PreBind plugin that waits for the test to say how it ends."""

    def __init__(self, name: Any, log: Any) -> None:
        self.name, self.log = name, log
        self.end = asyncio.get_running_loop().create_future()

    async def pre_bind(self, state: Any, pod: Any, node: str) -> Any:
        self.log.append(f"begin {self.name}")
        try:
            answer = await self.end
        except asyncio.CancelledError:
            self.log.append(f"cancel {self.name}")
            raise
        self.log.append(f"end {self.name}")
        if isinstance(answer, Exception):
            raise answer
        return answer


class Stage:
    """Plugins a, B, C, d: capitals are parallel."""

    def __init__(self, names: Any) -> None:
        self.log: list[str] = []
        self.works = {name: Work(name, self.log) for name in names}
        parallel = {name for name in names if name.isupper()}
        self.clock = clock = FakeClock()
        self.recorder = FakeRecorder()
        volumes = ClaimBinder(Cache(), FakeVolumes(), clock)
        devices = a_device_binder(clock=clock)
        self.cycle = BindingCycle(
            FakeBinder(), cast("Any", self), volumes, devices, clock, Observer(), self.recorder
        )
        self.attempt: Any = SimpleNamespace(
            pod=the_info(a_pod("p")),
            node="n1",
            state=CycleState(),
            works=list(self.works.values()),
            nominated=False,
            profile=SimpleNamespace(scheduler_name="s", capabilities=SimpleNamespace(parallel=parallel)),
        )
        self.task = asyncio.ensure_future(self.cycle._pre_bind(cast("Any", self.attempt)))

    async def nominate(self, pod: Any, node: Any) -> None:
        self.log.append("announce")

    async def end(self, name: str, answer: Any = SUCCESS) -> None:
        self.works[name].end.set_result(answer)
        await settled()

    def call_off(self) -> Any:
        return self.cycle.call_off(self.attempt.pod.uid, "DefaultPreemption", "preempted")


async def test_neighbours_that_are_parallel_run_side_by_side() -> None:
    """The others wait for their turn."""
    stage = Stage("aBCd")
    await settled()
    assert stage.log == ["announce", "begin a"]

    await stage.end("a")
    assert stage.log[-2:] == ["begin B", "begin C"]
    await stage.end("C")
    assert "begin d" not in stage.log
    await stage.end("B")
    await stage.end("d")

    assert (await stage.task).is_success
    assert not stage.call_off()


async def test_the_first_refusal_calls_its_neighbours_off() -> None:
    """And those after it never begin."""
    stage = Stage("BCd")
    await settled()
    await stage.end("C", error("no volume"))

    status = await stage.task
    assert (status.plugin, status.message) == ("C", 'running PreBind plugin "C": no volume')
    assert stage.log[-2:] == ["end C", "cancel B"]


async def test_a_plugin_that_raises_is_named_and_calls_its_neighbours_off() -> None:
    """What it raised is the caller's to report."""
    stage = Stage("BC")
    await settled()
    await stage.end("B", ZeroDivisionError("oops"))

    with pytest.raises(PluginError, match='running PreBind plugin "B"'):
        await stage.task
    assert stage.log[-1] == "cancel C"


async def test_a_pod_that_is_called_off_is_not_bound() -> None:
    """A plugin that works for it is cancelled, and has ended before anything is undone."""
    stage = Stage("aB")
    await settled()

    assert stage.call_off()
    assert stage.call_off()
    status = await stage.task
    assert (status.code, status.reasons, status.plugin) == (
        Code.UNSCHEDULABLE,
        ("preempted",),
        "DefaultPreemption",
    )
    assert stage.log == ["announce", "begin a", "cancel a"]
    assert not stage.call_off()


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("end", ["deleted", "Succeeded", "Failed"])
async def test_a_pod_that_ends_meanwhile_is_called_off(end: str, times: int) -> None:
    """However it ends, and also if shown twice; a mere update and other pods change nothing."""
    stage = Stage("aB")
    await settled()
    pod = stage.attempt.pod.pod
    other = a_pod("other", status={"phase": "Failed"})
    stage.cycle.observe(PodUpdated(pod, a_pod("p", labels={"new": ""})))
    stage.cycle.observe(PodUpdated(other, other))
    stage.cycle.observe(PodDeleted(a_pod("p", uid="the-one-before")))
    await settled()
    assert not stage.task.done()

    for _ in range(times):
        ended = a_pod("p", status={"phase": end})
        stage.cycle.observe(PodDeleted(pod) if end == "deleted" else PodUpdated(pod, ended))

    await settled()
    assert stage.task.done()
    assert stage.task.result().reasons == ("removed",)
    assert stage.log[-1] == "cancel a"


async def test_called_off_between_the_last_plugin_and_the_binding() -> None:
    """The plugin ends well in the very moment: the pod is not bound all the same."""
    stage = Stage("a")
    await settled()
    stage.works["a"].end.set_result(SUCCESS)
    stage.call_off()

    assert (await stage.task).is_rejected


async def test_a_refusal_counts_as_a_rejection() -> None:
    """A plugin that says unschedulable makes the pod wait for an event, not for back-off alone."""
    stage = Stage("a")
    await settled()
    await stage.end("a", unschedulable("not here"))

    status = await stage.task
    assert (status.is_rejected, status.plugin) == (True, "a")


async def test_an_attempt_that_is_cancelled_cancels_its_plugins() -> None:
    """The loop ends: nothing runs on."""
    stage = Stage("BC")
    await settled()
    stage.task.cancel()
    await settled()

    assert stage.task.cancelled()
    assert stage.log[-2:] == ["cancel B", "cancel C"] or stage.log[-2:] == ["cancel C", "cancel B"]
    assert not stage.call_off()


async def test_a_plugin_that_does_not_return_is_said_on_the_pod_and_given_up() -> None:
    """The event names the plugin that has not returned, and its end is a failure of that plugin."""
    stage = Stage("BC")
    await settled()
    await stage.end("B")

    await stage.clock.advance(SAID_AFTER_S)
    (said,) = stage.recorder.said("PluginIsSlow")
    assert said.startswith('PreBind plugin "C" has not returned for 30s; the pod waits for it')
    assert said.endswith("with its room on n1 taken, at most 15m0s")
    assert not stage.task.done()

    await stage.clock.advance(GIVEN_UP_AFTER_S - SAID_AFTER_S)
    with pytest.raises(PluginError, match='running PreBind plugin "C": has not returned within 15m0s'):
        await stage.task
    assert stage.log[-1] == "cancel C"
    assert len(stage.recorder.notes) == 1


async def test_a_plugin_that_ignores_its_cancellation_holds_up_its_pod_for_a_while_only() -> None:
    """The pod is tried again, although the call never ends."""
    stage = Stage("a")

    async def stubborn(*_: Any) -> Any:
        for _again in range(2):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

    stage.works["a"].pre_bind = stubborn  # type: ignore[method-assign, assignment] # for this test
    await settled()
    stage.call_off()
    await settled()
    assert not stage.task.done()

    await stage.clock.advance(TO_END_S)

    assert (await stage.task).is_rejected
