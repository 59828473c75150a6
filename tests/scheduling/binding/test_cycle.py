"""The binding cycle: order of plugins, and reverts after a rejection."""

from typing import Any

import pytest

from engine.toys import ALL
from plimsoll.cluster.cache import Cache
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.framework import Code, CycleState, PluginError, Registry, Status, error, unschedulable
from plimsoll.plugins.default_binder import DefaultBinder
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.scheduling.binding.cycle import BindingAttempt, BindingCycle
from plimsoll.scheduling.binding.volume_claims import ClaimBinder
from plimsoll.testing.builders import a_pod, the_info
from plimsoll.testing.fakes import FakeBinder, FakeClock, FakeRecorder, FakeStatuses, FakeVolumes
from scheduling.binding.devices import a_device_binder
from scheduling.probes import SKIP, Probe, ProbeArgs, Second


class Failures(Observer):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def plugin_failed(self, plugin: str, point: str, problem: str, trace: str = "") -> None:
        self.seen.append((plugin, point, problem))


class Stage:
    """A binding cycle, its fakes, and one attempt with the plugins First and Second."""

    def __init__(self, first: Any, second: Any) -> None:
        self.log: list[str] = []
        self.binder, self.statuses, self.failures = FakeBinder(), FakeStatuses(), Failures()
        self.cycle = BindingCycle(
            self.binder,
            self.statuses,
            ClaimBinder(Cache(), FakeVolumes(), FakeClock()),
            a_device_binder(),
            FakeClock(),
            self.failures,
            FakeRecorder(),
        )
        probes = {"First": first, "Second": second}

        def built(kind: type[Probe] | type[Second]) -> type[Probe] | type[Second]:
            made = type(
                kind.__name__, (kind,), {"__init__": lambda plugin, args: self._set_up(plugin, probes)}
            )
            made.name = kind.name  # type: ignore[attr-defined] # known to exist in this test
            return made

        registry = Registry([*ALL, DefaultBinder, built(Probe), built(Second)])  # type: ignore[list-item] # a fake has only what is used
        profile = build_profile(
            ProfileConfig("s"),
            registry,
            [Enabled(name) for name in ("Fifo", "First", "Second", "DefaultBinder")],
        )
        self.attempt = BindingAttempt(the_info(a_pod("p")), "n1", profile, CycleState())

    def _set_up(self, plugin: Any, probes: Any) -> None:
        plugin.args = ProbeArgs(answers=probes[plugin.name])
        plugin.log = self.log


async def carried_out(stage: Stage) -> Status:
    """The whole way, as the scheduling loop goes it; the status at its end."""
    status = stage.cycle.begin(stage.attempt)
    if status.is_success:
        status = await stage.cycle.finish(stage.attempt)
    if not status.is_success and status.code is not Code.WAIT:
        stage.cycle.undo(stage.attempt)
    return status


async def test_all_points_are_called_in_order() -> None:
    """Reserve, Permit and the preflight of all, then PreBind of all, one Bind, PostBind of all."""
    stage = Stage({}, {})

    status = await carried_out(stage)

    assert status.is_success
    assert stage.log == [
        *("reserve:First", "reserve:Second", "permit:First", "permit:Second"),
        *("preflight:First", "preflight:Second", "preBind:First", "preBind:Second"),
        *("bind:First", "postBind:First", "postBind:Second"),
    ]
    assert stage.binder.bound == {"default/p": "n1"}


NO = unschedulable("no")
UNDONE = ["unreserve:Second", "unreserve:First"]


@pytest.mark.parametrize(
    ("first", "asked"),
    [
        pytest.param({"reserve": NO}, ["reserve:First"], id="reserve"),
        pytest.param({"permit": NO}, ["reserve:First", "reserve:Second", "permit:First"], id="permit"),
        pytest.param(
            {"preflight": NO},
            ["reserve:First", "reserve:Second", "permit:First", "permit:Second", "preflight:First"],
            id="preflight",
        ),
    ],
)
async def test_a_refusal_undoes_every_reservation_backwards(first: dict[str, Any], asked: list[str]) -> None:
    """Also what was never reserved; nothing is bound, and the status bears the plugin's name."""
    stage = Stage(first, {})

    status = await carried_out(stage)

    assert (status.code, status.plugin) == (Code.UNSCHEDULABLE, "First")
    assert stage.log == asked + UNDONE
    assert not stage.binder.bound


@pytest.mark.parametrize(
    ("point", "label"),
    [pytest.param("preBind", "PreBind", id="pre-bind"), pytest.param("bind", "Bind", id="bind")],
)
async def test_an_error_on_the_way_undoes_it_too(point: str, label: str) -> None:
    """The sentence says which plugin failed at which point."""
    stage = Stage({point: error("the server is away")}, {})

    status = await carried_out(stage)

    assert status.code is Code.ERROR
    assert status.message == f'running {label} plugin "First": the server is away'
    assert stage.log[-2:] == UNDONE


@pytest.mark.parametrize("point", ["reserve", "permit", "preflight", "preBind", "bind"])
@pytest.mark.parametrize(
    "answer", [pytest.param(ZeroDivisionError("oops"), id="raises"), pytest.param("yes", id="nonsense")]
)
async def test_a_plugin_that_breaks_fails_its_own_attempt(point: str, answer: Any) -> None:
    """It is named and told to the observer; what was reserved is given back."""
    stage = Stage({point: answer}, {})

    status = await carried_out(stage)

    assert (status.code, status.plugin) == (Code.ERROR, "First")
    assert [plugin for plugin, _, _ in stage.failures.seen] == ["First"]
    assert stage.log[-2:] == UNDONE


async def test_unreserve_and_post_bind_may_break_without_consequence() -> None:
    """The others run nevertheless."""
    stage = Stage({"unreserve": RuntimeError("1")}, {"unreserve": RuntimeError("2"), "reserve": NO})
    bound = Stage({"postBind": RuntimeError("3")}, {})

    refused, done = await carried_out(stage), await carried_out(bound)

    assert refused.code is Code.UNSCHEDULABLE
    assert stage.log[-2:] == UNDONE
    assert len(stage.failures.seen) == 2
    assert done.is_success
    assert bound.log[-1] == "postBind:Second"


async def test_prebind_runs_only_where_the_preflight_announced_work() -> None:
    """Where no plugin has work to do, no nomination is written either."""
    some, none = Stage({"preflight": SKIP}, {}), Stage({"preflight": SKIP}, {"preflight": SKIP})

    await carried_out(some)
    await carried_out(none)

    assert "preBind:First" not in some.log
    assert "preBind:Second" in some.log
    assert some.statuses.nominated == {"p": "n1"}
    assert none.statuses.nominated == {}


async def test_bind_plugins_are_asked_until_one_does_not_skip() -> None:
    """DefaultBinder, last in the list, binds what the others leave to it."""
    stage = Stage({"bind": SKIP}, {"bind": SKIP})

    status = await carried_out(stage)

    assert status.is_success
    assert stage.binder.bound == {"default/p": "n1"}


async def test_the_api_servers_refusal_is_kept() -> None:
    """Its verdict decides what becomes of the pod."""
    stage = Stage({}, {})
    stage.binder.answer = WriteResult(WriteOutcome.CONFLICT, "somebody was faster")

    status = await carried_out(stage)

    assert status.message == 'running Bind plugin "First": somebody was faster'
    assert stage.attempt.answer is stage.binder.answer


async def test_a_pod_waits_for_each_plugin_that_says_so() -> None:
    """Each WAIT is one holder; nothing is bound before they allow it."""
    stage = Stage({"permit": Status(Code.WAIT)}, {"permit": Status(Code.WAIT)})

    status = await carried_out(stage)

    assert status.code is Code.WAIT
    assert dict(stage.attempt.held.holders) == {"First": 10.0, "Second": 10.0}
    assert not stage.binder.bound


def test_plugin_errors_read_as_upstream_words_them() -> None:
    """The point's name begins with a capital."""
    assert str(PluginError("X", "preBind", "y")) == 'running PreBind plugin "X": y'
    assert str(PluginError("X", "filter", "y")) == 'running "X" filter plugin: y'
