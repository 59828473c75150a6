"""DynamicResources: pods without claims pass, the others are rejected with a reason."""

from collections.abc import Sequence

import pytest

from devices.builders import a_claim, a_device, a_slice, exactly, fill
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.bookings import Booking, DeviceBinder, DevicesPort
from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import Decision
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import (
    SKIP,
    ConfigurationError,
    CycleState,
    Diagnosis,
    PodInfo,
    Registry,
    Rejections,
    Snapshot,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from plimsoll.framework.args import parse_args
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.resource_claim import AllocationResult, ResourceClaim
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.plugins.dynamic_resources import NOT_SERVED, DynamicResources, DynamicResourcesArgs
from plimsoll.testing.builders import a_cluster, a_node, a_pod, a_snapshot, the_info
from plimsoll.testing.conformance import FilterPluginConformance, ScorePluginConformance

PLUGIN = DynamicResources(DynamicResourcesArgs())
REJECTIONS = Rejections({}, Status(), Diagnosis(1))


@pytest.mark.parametrize(
    ("written", "steps"),
    [
        ("10s", 200_000),
        ("500ms", 10_000),
        ("1m0.5s", 1_210_000),
        (".5s", 10_000),
        ("1h", 72_000_000),
        ("5μs", 0),
    ],
)
def test_timeouts_are_durations_as_go_writes_them(written: str, steps: int) -> None:
    """The search gets steps for them."""
    args = parse_args(DynamicResourcesArgs, {"filterTimeout": written, "bindingTimeout": "90s"}, "args")

    assert (args.most_steps, args.binding_timeout_s) == (steps, 90.0)


@pytest.mark.parametrize("written", ["0", "0s"])
def test_without_a_timeout_the_search_takes_as_long_as_it_takes(written: str) -> None:
    """Zero is no limit, as upstream."""
    assert parse_args(DynamicResourcesArgs, {"filterTimeout": written}, "args").most_steps > 10**15


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"filterTimeout": "10 minutes"}, "must be a duration such as 10s, 500ms or 1h30m"),
        ({"filterTimeout": ""}, "must be a duration"),
        ({"filterTimeout": "10"}, "must be a duration"),
        ({"filterTimeout": "-1s"}, "must be zero or positive"),
        ({"bindingTimeout": "999ms"}, "must be at least 1 second"),
        ({"bindingTimeout": "0"}, "must be at least 1 second"),
    ],
)
def test_other_timeouts_are_refused(given: dict[str, str], why: str) -> None:
    """With what upstream's validation says; no text is taken for no time at all."""
    with pytest.raises(ConfigurationError, match=f"args.{next(iter(given))}.*{why}"):
        parse_args(DynamicResourcesArgs, given, "args")


def test_pods_without_claims_are_skipped() -> None:
    """And PostFilter then has nothing to give back, which leaves the rest to preemption."""
    state, pod, snapshot = CycleState(), the_info(a_pod()), a_snapshot(a_node())

    assert PLUGIN.pre_filter(state, pod, snapshot) == SKIP
    assert PLUGIN.post_filter(state, pod, snapshot, REJECTIONS).status == unschedulable(
        "no new claims to deallocate"
    )


def test_pods_with_claims_are_refused_with_a_sentence() -> None:
    """Nothing is allocated here, so nothing is pretended."""
    pod = the_info(a_pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "mine"}]))

    assert PLUGIN.pre_filter(CycleState(), pod, a_snapshot(a_node())) == unresolvable(
        NOT_SERVED, no_node_helps=True
    )


def test_the_message_of_a_pod_with_claims_says_so_and_promises_nothing() -> None:
    """No node is emptied for a pod that no emptying helps."""
    registry = Registry(IN_TREE)
    profile = build_profile(
        ProfileConfig("default-scheduler"), registry, [Enabled(name) for name in DEFAULT_PLUGINS]
    )
    cluster = a_cluster([a_node()])
    pod = a_pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "mine"}])

    decision = schedule(ProfileScheduler(profile, cluster), cluster.templates.info(pod))

    assert decision.message == (
        f"0/1 nodes are available: {NOT_SERVED}. still not schedulable, preemption: "
        "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


def test_a_rejection_ahead_of_its_turn_ends_post_filter() -> None:
    """Upstream fails to find its own state then, and so never preempts."""
    nomination = PLUGIN.post_filter(CycleState(), the_info(a_pod()), a_snapshot(a_node()), REJECTIONS)

    assert nomination.status == error("not found")


class TestFilterConformance(FilterPluginConformance):
    """The laws every filter plugin obeys; no devices are drawn."""

    plugin = PLUGIN
    test_some_nodes_are_refused_and_some_are_not = None  # type: ignore[assignment] # left out


class TestScoreConformance(ScorePluginConformance):
    """The laws every score plugin obeys; no devices are drawn."""

    plugin = PLUGIN
    test_some_nodes_get_other_points_than_others = None  # type: ignore[assignment] # left out


def a_scheduler(*claims: ResourceClaim, devices: int = 1) -> ProfileScheduler:
    """The default profile on two nodes, of which the second one has devices."""
    profile = build_profile(
        ProfileConfig("default-scheduler"),
        Registry(IN_TREE),
        [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()],
    )
    cluster = a_cluster([a_node("plain"), a_node("gpu")])
    slices = [a_slice("gpu", [a_device(f"d{at}") for at in range(devices)])]
    fill(cluster.objects.ledger(DeviceBook), slices, *claims)
    return ProfileScheduler(profile, cluster)


def decided(scheduler: ProfileScheduler, claim: str = "mine", name: str = "pod") -> Decision:
    """The decision about a pod with a claim."""
    pod = a_pod(name, resourceClaims=[{"name": "gpu", "resourceClaimName": claim}])
    return schedule(scheduler, scheduler.cluster.templates.info(pod))


def test_a_pod_goes_where_its_claim_gets_a_device() -> None:
    """And nowhere when the device is promised to another one's claim."""
    scheduler = a_scheduler(a_claim(), a_claim("other"))
    book = scheduler.cluster.objects.ledger(DeviceBook)

    assert decided(scheduler).node == "gpu"

    result = {"request": "r", "driver": "gpu.example.com", "pool": "gpu", "device": "d0"}
    book.allocate(a_claim("other"), convert(AllocationResult, {"devices": {"results": [result]}}))
    assert decided(scheduler, name="late").message == (
        "0/2 nodes are available: 2 cannot allocate all claims. still not schedulable, preemption: "
        "0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )


def allocated(name: str, node: str, **result: object) -> ResourceClaim:
    """A claim whose device can be used from one node only, allocated at the beginning of 2026."""
    device = {"request": "r", "driver": "gpu.example.com", "pool": "elsewhere", "device": "d9", **result}
    names = {"key": "metadata.name", "operator": "In", "values": [node]}
    allocation = {
        "devices": {"results": [device]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [names]}]},
        "allocationTimestamp": "2026-01-01T00:00:00Z",
    }
    return a_claim(name, status={"allocation": allocation})


@pytest.mark.parametrize("claims", [("mine", "other"), ("other", "mine")])
@pytest.mark.parametrize(("node", "chosen"), [("gpu", "gpu"), ("plain", "")])
def test_a_claim_that_waits_for_a_device_hides_none_that_has_one(
    claims: tuple[str, ...], node: str, chosen: str
) -> None:
    """Both must be usable from the node, in whatever order the pod names them."""
    scheduler = a_scheduler(a_claim("mine"), allocated("other", node))
    pod = a_pod(resourceClaims=[{"name": name, "resourceClaimName": name} for name in claims])

    assert schedule(scheduler, scheduler.cluster.templates.info(pod)).node == chosen


@pytest.mark.parametrize(("late_s", "chosen"), [(-1, "gpu"), (1, "")])
def test_a_device_that_is_not_prepared_in_time_is_not_waited_for(late_s: float, chosen: str) -> None:
    """The plugin's bindingTimeout counts from the allocation."""
    scheduler = a_scheduler(allocated("mine", "gpu", bindingConditions=["Attached"]))
    timeout_s = DynamicResourcesArgs().binding_timeout_s
    scheduler.cluster.objects.ledger(DeviceBook).now = 1_767_225_600.0 + timeout_s + late_s

    assert decided(scheduler).node == chosen


def test_pods_of_one_template_and_one_claim_see_the_devices_as_they_are() -> None:
    """Nothing is kept from one attempt to the next that a change of devices has made untrue."""
    scheduler = a_scheduler(a_claim())
    book = scheduler.cluster.objects.ledger(DeviceBook)
    nodes = [decided(scheduler, name="first").node]

    book.remove_slice("gpu-gpu")
    nodes.append(decided(scheduler, name="second").node)
    book.set_slice(a_slice("plain", [a_device("d0")]))
    nodes.append(decided(scheduler, name="third").node)

    assert nodes == ["gpu", "", "plain"]


class BooksNothing(DeviceBinder):
    """A binder that must not be asked to book."""

    def share_id(self) -> str:
        return "share"

    def assume(self, bookings: Sequence[Booking]) -> str:
        raise AssertionError(bookings)

    def forget(self, pod: PodInfo, bookings: Sequence[Booking]) -> None:
        raise AssertionError(bookings)

    async def bind(self, pod: PodInfo, node: str, bookings: Sequence[Booking], timeout_s: float) -> Status:
        raise AssertionError(bookings)


def test_a_device_that_goes_before_reserve_ends_the_attempt() -> None:
    """An extender was asked meanwhile: nothing is booked, and the message names the node."""
    scheduler = a_scheduler(a_claim())
    decision, book = decided(scheduler), scheduler.cluster.objects.ledger(DeviceBook)
    state = decision.state
    assert decision.node == "gpu"
    assert state is not None
    state.write(DevicesPort(Snapshot(scheduler.cluster), BooksNothing()))

    book.set_slice(a_slice("gpu", [a_device("another")]))

    assert PLUGIN.reserve(state, decision.pod, "gpu") == error(
        "a device that was chosen on node gpu is no longer published"
    )


def test_a_failing_selector_ends_the_attempt_only_where_it_matters() -> None:
    """A node that another plugin refuses is not asked, as upstream."""
    wanted = {
        "name": "r",
        "exactly": exactly(selectors=[{"cel": {"expression": 'device.attributes["x"].y == 1'}}]),
    }
    scheduler = a_scheduler(a_claim("mine", wanted))

    assert "selector #0: CEL runtime error: no such key: y" in decided(scheduler).message
    scheduler.cluster.set_node(a_node("gpu", unschedulable=True))
    assert "1 node(s) were unschedulable" in decided(scheduler, name="later").message


def test_a_pod_waits_outside_for_claims_that_do_not_exist() -> None:
    """With upstream's sentence."""
    scheduler = a_scheduler()
    pod = scheduler.cluster.templates.info(
        a_pod(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}])
    )

    status = PLUGIN.pre_enqueue_on(pod, Snapshot(scheduler.cluster))

    assert status == unresolvable('pod "default/pod": ResourceClaim not created yet')


def test_claims_are_searched_for_ahead_where_the_api_server_serves_them() -> None:
    """A part of many nodes at a time; not at all once it serves none."""
    selectors = [{"cel": {"expression": "[1, 2, 3, 4, 5, 6, 7, 8, 9].all(a, a > 0)"}}]
    nodes = [a_node(f"n{number}") for number in range(200)]
    cluster = a_cluster(nodes)
    book = cluster.objects.ledger(DeviceBook)
    slices = [a_slice(node.name, [a_device("d0")]) for node in nodes]
    fill(book, slices, a_claim("mine", {"name": "r", "exactly": exactly(selectors=selectors)}))
    plugin = DynamicResources(DynamicResourcesArgs())
    pod = cluster.templates.info(a_pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "mine"}]))

    assert plugin.prepare(pod, Snapshot(cluster))
    book.serve(is_served=False, why_not="")
    assert not plugin.prepare(pod, Snapshot(cluster))
