"""PowerSaving wakes nodes for important pods only, before the pod arrives, and prefers awake nodes."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from plimsoll.framework import ActionType, ClusterEvent, CycleState, EventResource, QueueingHint, Registry
from plimsoll.testing.builders import a_node, a_pod, a_snapshot, the_info
from plimsoll.testing.conformance import FilterPluginConformance, ScorePluginConformance
from plimsoll_power_saving import PowerSaving, PowerSavingArgs

NODES = (a_node("up"), a_node("down", labels={"power": "asleep"}), a_node("busy", labels={"power": "on"}))


def prepared(pod, **args):
    """The plugin, and what it is asked about, after PreFilter."""
    plugin, state, snapshot = PowerSaving(PowerSavingArgs(**args)), CycleState(), a_snapshot(*NODES)
    info = the_info(pod, snapshot)
    assert plugin.pre_filter(state, info, snapshot).is_success
    return plugin, state, info, snapshot


@pytest.mark.parametrize(
    ("priority", "feasible"),
    [
        pytest.param(0, [True, False, True], id="ordinary-pods-let-nodes-sleep"),
        pytest.param(1000, [True, True, True], id="important-pods-may-wake-one"),
    ],
)
def test_only_important_pods_wake_a_node(priority, feasible):
    """Nodes without the label, or with another value, are awake."""
    plugin, state, info, snapshot = prepared(a_pod(priority=priority))

    codes = plugin.filter(state, info, snapshot)

    assert [code == 0 for code in codes] == feasible
    assert all(
        plugin.refusal(int(code), state, info).reasons == ("node(s) were asleep",) for code in codes if code
    )


def test_nodes_that_are_awake_come_first():
    """Even for pods that may wake one."""
    plugin, state, info, snapshot = prepared(a_pod(priority=1000))

    assert plugin.score(state, info, snapshot).tolist() == [100, 0, 100]


@asynccontextmanager
async def a_power_controller(status=200):
    """An HTTP server that wakes nodes, or refuses to; its address and whom it was asked to wake."""
    woken = []

    async def wake(request):
        woken.append(request.match_info["node"])
        return web.Response(status=status)

    app = web.Application()
    app.router.add_post("/wake/{node}", wake)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/wake", woken
    finally:
        await runner.cleanup()


def test_a_sleeping_node_is_woken_before_the_pod_is_bound():
    """A node that is awake needs no waking: PreBind is skipped."""

    async def bound():
        async with a_power_controller() as (url, woken):
            plugin, state, info, _ = prepared(a_pod(priority=1000), wake_url=url)
            awake, asleep = (plugin.pre_bind_preflight(state, info, node) for node in ("up", "down"))
            status = await plugin.pre_bind(state, info, "down")
        return awake.is_skip, asleep.is_success, status.is_success, woken

    assert asyncio.run(bound()) == (True, True, True, ["down"])


def test_a_node_that_does_not_wake_gets_no_pod():
    """A refusal and a controller that is away are errors: the pod is tried again."""

    async def bound():
        async with a_power_controller(status=503) as (url, _):
            plugin, state, info, _ = prepared(a_pod(priority=1000), wake_url=url)
            refused = await plugin.pre_bind(state, info, "down")
        return refused, await plugin.pre_bind(state, info, "down")

    refused, away = asyncio.run(bound())

    assert refused.message == "down does not wake: Service Unavailable"
    assert away.message.startswith("down does not wake: ")


def test_arguments_are_camel_case_and_closed():
    """A typo is an error that names the field."""
    registry = Registry([PowerSaving])

    built = registry.build("PowerSaving", {"wakePriority": 5, "label": "state"}, "args")

    assert built.args == PowerSavingArgs(wake_priority=5, label="state")
    with pytest.raises(Exception, match=r"args\.wakePriorty: .*did you mean wakePriority"):
        registry.build("PowerSaving", {"wakePriorty": 5}, "args")


class TestFilterConformance(FilterPluginConformance):
    """The laws every filter plugin obeys."""

    plugin = PowerSaving(PowerSavingArgs(label="disk", value="ssd"))


class TestScoreConformance(ScorePluginConformance):
    """The laws every score plugin obeys."""

    plugin = PowerSaving(PowerSavingArgs(label="disk", value="ssd"))


@pytest.mark.parametrize(
    ("before", "now", "wakes"),
    [
        pytest.param(None, {}, True, id="new-and-awake"),
        pytest.param(None, {"power": "asleep"}, False, id="new-and-asleep"),
        pytest.param({"power": "asleep"}, {"power": "on"}, True, id="woken"),
        pytest.param({"power": "on"}, {"power": "on", "rack": "1"}, False, id="awake-as-before"),
    ],
)
def test_pods_wake_when_a_node_does(before, now, wakes):
    """Other changes of labels are no reason to try again."""
    plugin = PowerSaving(PowerSavingArgs())
    (registered,) = plugin.events_to_register()
    old = None if before is None else a_node("n", labels=before)
    change = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL, old, a_node("n", labels=now))

    assert registered.covers(change.resource, change.action)
    assert plugin.after_node(the_info(a_pod()), change) is QueueingHint.of(wakes)
