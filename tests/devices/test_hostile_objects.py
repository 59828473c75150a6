"""Hostile slices, classes and claims: one clear sentence each, and the pods of others get their devices.

Objects are read as the reflector reads them. Each test has a neighbour, a node with two devices of another
driver, and pods that ask for those; ``harmless`` asks for one of them at the end.
"""

import json
import time
import tracemalloc
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from devices.builders import a_claim, a_class, exactly
from plimsoll.cluster.listed_objects import read_object
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.pod_devices import PodDevices
from plimsoll.devices.search_limits import LONGEST_MESSAGE
from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome, Decision
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.resource_claim import ResourceClaim
from plimsoll.model.kinds.resource_slice import DeviceClass, ResourceSlice
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_node, a_pod

FAR = "far.example.com"

#: Seconds of CPU that one attempt takes at most, however hostile its claim is.
MOST_CPU_S = 10.0

#: What a rejection ends with.
NO_PREEMPTION = "still not schedulable, preemption: 0/3 nodes are available: 3 Preemption is not helpful"


class Scene:
    """Three nodes: the neighbour's, ``far`` and ``plain``."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        for name in ("near", "far", "plain"):
            self.cluster.set_node(a_node(name))
        self.book = self.cluster.objects.ledger(DeviceBook)
        self.book.is_served = True
        profile = build_profile(
            ProfileConfig("default-scheduler"),
            Registry(IN_TREE),
            [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()],
        )
        self.scheduler = ProfileScheduler(profile, self.cluster)
        self.publish(spec("near", "near.example.com", [{"name": "a"}, {"name": "b"}]))
        for name, driver in (("near", "near.example.com"), ("far", FAR)):
            self.give_class(name, f'device.driver == "{driver}"')
        self._pods = 0

    def publish(self, *specs: dict[str, Any]) -> None:
        """Slices, as they come from the API server."""
        for place, each in enumerate(specs):
            name = f"{each['pool']['name']}-{place}"
            self.book.set_slice(_read(ResourceSlice, {"metadata": {"name": name}, "spec": each}))

    def give_class(self, name: str, expression: str) -> None:
        """A class."""
        selectors = [{"cel": {"expression": expression}}]
        document = {"metadata": {"name": name}, "spec": {"selectors": selectors}}
        self.book.set_class(_read(DeviceClass, document))

    def ask(self, *requests: dict[str, Any], **more: Any) -> Decision:
        """Decide about a pod with a claim for that, as the API server has it."""
        self._pods += 1
        name = f"claim-{self._pods}"
        meta = {"name": name, "namespace": "default", "uid": name}
        devices = {"requests": list(requests), **more}
        claim = _read(ResourceClaim, {"metadata": meta, "spec": {"devices": devices}})
        return self.decide(claim)

    def decide(self, claim: ResourceClaim) -> Decision:
        """Decide about a pod with that claim; what it gets is taken."""
        self.book.set_claim(claim)
        pod = a_pod(f"pod-{claim.name}", resourceClaims=[{"name": "c", "resourceClaimName": claim.name}])
        began = time.process_time()
        decision = schedule(self.scheduler, self.cluster.templates.info(pod))
        assert time.process_time() - began < MOST_CPU_S
        devices = None if decision.state is None else decision.state.find(PodDevices)
        if decision.node and devices is not None:
            row = self.cluster.rows[decision.node]
            for each in devices.bookings(row, self.cluster.nodes[row], lambda: "share"):
                if each.allocation is not None:
                    self.book.allocate(each.claim, each.allocation)
        return decision

    def is_harmless(self) -> bool:
        """Whether the neighbour's next pod gets its device."""
        return self.ask(request("near")).node == "near"


def _read(kind: type, document: dict[str, Any]) -> Any:
    found, _, problems = read_object(kind, json.dumps(document).encode())
    assert found is not None, problems
    return found


def spec(
    node: str, driver: str = FAR, devices: Iterable[dict[str, Any]] = (), pool: str = "", **more: Any
) -> dict[str, Any]:
    """Of a slice."""
    named = {"name": pool or node, "generation": 1, "resourceSliceCount": 1, **more.pop("of", {})}
    place = {"nodeName": node} if node else {"allNodes": True}
    return {"driver": driver, "pool": named, **place, "devices": list(devices), **more}


def request(device_class: str = "far", count: int = 1, expression: str = "", **more: Any) -> dict[str, Any]:
    """A request."""
    selectors = [{"cel": {"expression": expression}}] if expression else []
    return {"name": "r", "exactly": exactly(count, deviceClassName=device_class, selectors=selectors, **more)}


def some(count: int, **more: Any) -> list[dict[str, Any]]:
    """Devices."""
    return [{"name": f"d{number}", **more} for number in range(count)]


# -- slices ----------------------------------------------------------------------------------------------


def test_a_pool_of_ten_thousand_devices_is_searched_once_for_all_nodes() -> None:
    """128 to a slice, as the API server allows; only the last one will do."""
    scene = Scene()
    devices = [{**each, "attributes": {"index": {"int": at}}} for at, each in enumerate(some(10_000))]
    parts = [devices[at : at + 128] for at in range(0, len(devices), 128)]
    of = {"resourceSliceCount": len(parts)}
    scene.publish(*(spec("", pool="wide", devices=part, of=of) for part in parts))

    last = scene.ask(request(expression=f'device.attributes["{FAR}"].index == 9999'))

    assert last.outcome is AttemptOutcome.SCHEDULED
    assert scene.is_harmless()


def test_a_device_takes_a_bounded_amount_of_memory() -> None:
    """Some kilobytes, with what is derived of it."""
    attributes = {f"a{number}": {"string": "x" * 32} for number in range(16)}
    devices = [{**each, "attributes": attributes} for each in some(2_000)]
    tracemalloc.start()
    scene = Scene()
    before = tracemalloc.get_traced_memory()[0]
    scene.publish(spec("", pool="wide", devices=devices))
    scene.ask(request(expression=f'device.attributes["{FAR}"].a0 == "y"'))
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()

    assert taken / len(devices) < 12_000


@pytest.mark.parametrize(
    ("has", "takes", "answer"),
    [
        pytest.param("4", "3", True, id="enough"),
        pytest.param("4", "5", False, id="a-device-larger-than-the-whole"),
        pytest.param("-4", "1", False, id="negative"),
        pytest.param("9223372036854775807", "9223372036854775807", True, id="64-bits"),
        pytest.param("1" + "0" * 30, "1" + "0" * 31, False, id="more-than-64-bits"),
        pytest.param("what", "1", False, id="no-quantity"),
    ],
)
def test_counters_of_any_value_are_compared(has: str, takes: str, answer: bool) -> None:
    """Beyond 64 bits as well; what is no quantity is nothing."""
    scene = Scene()
    consumes = [{"counterSet": "s", "counters": {"c": {"value": takes}}}]
    counters = [{"name": "s", "counters": {"c": {"value": has}}}]
    of = {"resourceSliceCount": 2}
    scene.publish(
        {**spec("far", of=of), "devices": None, "sharedCounters": counters},
        spec("far", devices=some(1, consumesCounters=consumes), of=of),
    )

    decision = scene.ask(request())

    assert (decision.node == "far") is answer
    if not answer:
        assert decision.message.startswith("0/3 nodes are available: 3 cannot allocate all claims. ")
    assert scene.is_harmless()


def test_a_counter_that_devices_consume_below_nothing_gives_none_away() -> None:
    """The API server refuses a device that would return counters; it gives no pod more."""
    scene = Scene()
    sets = [{"name": "s", "counters": {"c": {"value": "1"}}}]
    devices = [
        {"name": "gives", "consumesCounters": [{"counterSet": "s", "counters": {"c": {"value": "-5"}}}]},
        *some(2, consumesCounters=[{"counterSet": "s", "counters": {"c": {"value": "1"}}}]),
    ]
    of = {"resourceSliceCount": 2}
    scene.publish(
        {**spec("far", of=of), "devices": None, "sharedCounters": sets}, spec("far", devices=devices, of=of)
    )

    assert [scene.ask(request()).node for _ in range(3)] == ["far", "far", ""]
    assert scene.is_harmless()


CONTRADICTIONS = [
    pytest.param([spec("far", devices=some(2) + some(2))], "invalid resource pools", id="names-twice"),
    pytest.param(
        [
            spec(
                "far",
                devices=some(1, consumesCounters=[{"counterSet": "none", "counters": {"c": {"value": "1"}}}]),
            )
        ],
        "invalid resource pools",
        id="counters-that-do-not-exist",
    ),
    pytest.param(
        [spec("far", devices=some(1), of={"resourceSliceCount": 3})],
        "cannot allocate all claims",
        id="slices-are-missing",
    ),
    pytest.param(
        [spec("far", devices=some(1), of={"generation": g, "resourceSliceCount": 2}) for g in (1, 2)],
        "cannot allocate all claims",
        id="two-generations",
    ),
    pytest.param(
        [spec("far", devices=some(1), of={"resourceSliceCount": -1})],
        "cannot allocate all claims",
        id="fewer-slices-than-none",
    ),
    pytest.param([{**spec("far"), "nodeName": None}], "cannot allocate all claims", id="for-no-node"),
    pytest.param(
        [
            {
                **spec("far", devices=some(1)),
                "nodeName": None,
                "nodeSelector": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]}
                    ]
                },
            }
        ],
        "cannot allocate all claims",
        id="an-operator-that-does-not-exist",
    ),
    pytest.param(
        [
            {
                **spec("far", devices=some(1)),
                "nodeName": None,
                "nodeSelector": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
                        for name in ("far", "plain")
                    ]
                },
            }
        ],
        "cannot allocate all claims",
        id="two-terms",
    ),
]


@pytest.mark.parametrize(("slices", "reason"), CONTRADICTIONS)
def test_pools_that_contradict_themselves_hand_nothing_out(slices: Sequence[Any], reason: str) -> None:
    """Upstream's sentence for those who ask for their devices."""
    scene = Scene()
    scene.publish(*slices)

    assert reason in scene.ask(request()).message
    assert scene.is_harmless()


def test_attributes_of_kinds_that_are_not_known_do_not_exist() -> None:
    """Lists of a later version of the API; a selector that asks for one says so."""
    scene = Scene()
    scene.publish(
        spec("far", devices=some(1, attributes={"list": {"strings": ["a"]}, "model": {"string": "x"}}))
    )

    asked = scene.ask(request(expression=f'device.attributes["{FAR}"].list == "a"'))

    assert asked.message.endswith("claim default/claim-1: selector #0: CEL runtime error: no such key: list")
    assert scene.ask(request(expression=f'device.attributes["{FAR}"].model == "x"')).node == "far"
    assert scene.is_harmless()


@pytest.mark.parametrize(
    ("attribute", "problem"),
    [
        pytest.param({"version": "not a version"}, "attribute v: parse semantic version", id="version"),
        pytest.param({"version": "1." * 50_000}, "attribute v: parse semantic version", id="gigantic"),
    ],
)
def test_attributes_that_cannot_be_read_fail_for_those_who_look_at_the_device(
    attribute: dict[str, Any], problem: str
) -> None:
    """As upstream; the sentence names the attribute."""
    scene = Scene()
    scene.publish(spec("far", devices=some(1, attributes={"v": attribute})))

    message = scene.ask(request()).message

    assert f"class far: selector #0: CEL runtime error: {problem}" in message
    assert len(message) < 2 * LONGEST_MESSAGE


def test_gigantic_names_make_no_gigantic_sentences() -> None:
    """Of a class, a pool and an expression."""
    scene = Scene()
    long = "x" * 200_000
    scene.publish(spec("far", devices=some(1), pool=long, of={"resourceSliceCount": 2}))
    messages = [
        scene.ask(request(long)).message,
        scene.ask(request(allocationMode="All")).message,
        scene.ask(request("near", expression=f'device.attributes["{long[:9000]}"].x == "a"')).message,
    ]

    assert all(len(each) < 2 * LONGEST_MESSAGE for each in messages)
    assert scene.is_harmless()


# -- expressions -----------------------------------------------------------------------------------------

TEN = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
COSTLY = "".join(f"{TEN}.all({each}, " for each in "abcdef") + "a < 11" + ")" * 6


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        pytest.param("device.nothing", "CEL compile error: ", id="does-not-compile"),
        pytest.param("((((", "CEL compile error: ", id="does-not-parse"),
        pytest.param(COSTLY, "CEL runtime error: operation cancelled: actual cost limit exceeded", id="cost"),
        pytest.param('device.attributes["x"].y', "CEL runtime error: no such key: y", id="runtime"),
        pytest.param("1", "CEL compile error: must evaluate to bool", id="no-bool"),
    ],
)
def test_expressions_that_fail_cost_their_own_pod_an_attempt(expression: str, sentence: str) -> None:
    """A sentence that names claim and selector, within a bounded time on any number of nodes."""
    scene = Scene()
    scene.publish(spec("", pool="wide", devices=some(3_000)))

    message = scene.ask(request(expression=expression)).message

    assert f"claim default/claim-1: selector #0: {sentence}" in message
    assert scene.is_harmless()


def test_a_costly_selector_is_not_evaluated_on_every_node() -> None:
    """Each evaluation fails after a million units; 40 of them would take the loop for a minute."""
    scene = Scene()
    for number in range(40):
        scene.cluster.set_node(a_node(f"n{number}"))
        scene.publish(spec(f"n{number}", devices=some(8)))

    first, again = (scene.ask(request(expression=COSTLY)) for _ in range(2))

    assert "actual cost limit exceeded" in first.message
    assert "actual cost limit exceeded" in again.message
    assert scene.is_harmless()


def test_a_class_that_does_not_compile_is_named() -> None:
    """Pods of other classes do not notice."""
    scene = Scene()
    scene.publish(spec("far", devices=some(1)))
    scene.give_class("broken", "device.")

    assert "class broken: selector #0: CEL compile error: " in scene.ask(request("broken")).message
    assert scene.is_harmless()


def test_a_class_that_is_deleted_in_between_is_missed() -> None:
    """Allocated claims stay; the next ones wait for the class."""
    scene = Scene()
    scene.publish(spec("far", devices=some(2)))
    first = scene.ask(request())
    scene.book.remove_class("far")
    second = scene.ask(request())
    scene.give_class("far", f'device.driver == "{FAR}"')

    assert [first.node, second.node, scene.ask(request()).node] == ["far", "", "far"]
    assert "request r: device class far does not exist. " in second.message
    assert scene.is_harmless()


# -- claims ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "more", "sentence"),
    [
        pytest.param(
            request(allocationMode="Most"),
            {},
            "claim default/claim-1, request r: unsupported count mode Most",
            id="a-mode-of-the-future",
        ),
        pytest.param(
            {"name": "r", "roughly": {}},
            {},
            "resource claim default/claim-1, request r: unknown request type",
            id="a-request-of-the-future",
        ),
        pytest.param(
            {"name": "r", "exactly": exactly(selectors=[{"rego": {}}], deviceClassName="far")},
            {},
            "request r, selector #0: CEL expression empty (unsupported selector type?)",
            id="a-selector-of-the-future",
        ),
        pytest.param(
            request(),
            {"constraints": [{"sameAttribute": "x/y"}]},
            "claim default/claim-1, constraint #0: empty constraint (unsupported constraint type?)",
            id="a-constraint-of-the-future",
        ),
        pytest.param(
            {"name": "r", "exactly": exactly(deviceClassName="")},
            {},
            "request r: unsupported request type",
            id="no-class",
        ),
        pytest.param(
            request(count=2**62),
            {},
            "claim default/claim-1: number of requested devices 4611686018427387904 exceeds the claim limit",
            id="more-than-may-be",
        ),
    ],
)
def test_what_this_version_does_not_know_is_not_guessed(
    asked: dict[str, Any], more: dict[str, Any], sentence: str
) -> None:
    """A claim of a later version of the API gets no device, and its pod upstream's sentence."""
    scene = Scene()
    scene.publish(spec("far", devices=some(4)))

    decision = scene.ask(asked, **more)

    assert not decision.node
    assert sentence in decision.message
    assert scene.is_harmless()


def test_a_negative_count_takes_nothing() -> None:
    """As upstream, where the API server has let it through."""
    scene = Scene()
    scene.publish(spec("far", devices=some(4)))

    assert scene.ask(request(count=-3)).node
    assert not scene.book.taken.whole
    assert scene.is_harmless()


def allocated(name: str, device: str, node: str = "far", **more: Any) -> ResourceClaim:
    """A claim that somebody else has allocated."""
    result = {"request": "r", "driver": FAR, "pool": "far", "device": device, **more}
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    allocation = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": terms}}
    return a_claim(name, status={"allocation": allocation, "reservedFor": []})


def test_an_allocation_of_devices_that_no_slice_has_is_respected() -> None:
    """They count when they are published; the claim itself can be used."""
    scene = Scene()
    scene.publish(spec("far", devices=some(1)))
    scene.book.set_claim(allocated("ghost", "d1"))
    scene.publish(spec("far", devices=some(2)))

    assert [scene.ask(request()).node for _ in range(2)] == ["far", ""]
    assert scene.decide(allocated("ghost", "d1")).node == "far"
    assert scene.is_harmless()


def test_an_allocation_for_a_node_that_does_not_exist_keeps_only_its_pod() -> None:
    """PostFilter may take it back, as upstream."""
    scene = Scene()
    scene.publish(spec("far", devices=some(1)))

    decision = scene.decide(allocated("foreign", "d0", node="elsewhere"))

    assert decision.message.startswith("0/3 nodes are available: 3 resourceclaim not available on the node. ")
    assert scene.is_harmless()


def test_a_device_that_two_claims_have_is_free_when_both_are_gone() -> None:
    """Somebody else wrote both; no claim gets it a third time."""
    scene = Scene()
    scene.publish(spec("far", devices=some(1)))
    for name in ("one", "two"):
        scene.book.set_claim(allocated(name, "d0"))
    nodes = [scene.ask(request()).node]
    for name in ("one", "two"):
        scene.book.remove_claim(f"default/{name}")
        nodes.append(scene.ask(request()).node)

    assert nodes == ["", "", "far"]
    assert scene.is_harmless()


def test_consumed_capacity_that_is_no_quantity_or_below_nothing_frees_nothing() -> None:
    """A share that gives capacity back would let others have more than there is."""
    scene = Scene()
    capacity = {"memory": {"value": "10"}}
    scene.publish(spec("far", devices=some(1, allowMultipleAllocations=True, capacity=capacity)))
    for name, amount in (("odd", "many"), ("below", "-100")):
        scene.book.set_claim(allocated(name, "d0", shareID=name, consumedCapacity={"memory": amount}))

    nodes = [scene.ask(request(capacity={"requests": {"memory": "6"}})).node for _ in range(2)]

    assert nodes == ["far", ""]
    assert scene.is_harmless()


# -- searches --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "constraints"),
    [
        pytest.param(
            [{**request(count=8), "name": f"r{number}"} for number in range(4)],
            [{"matchAttribute": f"{FAR}/pair"}],
            id="no-group-is-large-enough",
        ),
        pytest.param(
            [{**request(), "name": f"r{number}"} for number in range(32)],
            [{"matchAttribute": f"{FAR}/pair"}],
            id="many-requests",
        ),
        pytest.param(
            [{**request(count=16), "name": "a"}, {**request("near", count=3), "name": "b"}],
            [],
            id="the-last-request-fails",
        ),
    ],
)
def test_a_search_without_a_solution_ends(asked: list[dict[str, Any]], constraints: list[Any]) -> None:
    """After a bounded number of steps, with one sentence; and the next attempt does not begin again."""
    scene = Scene()
    devices = [{**each, "attributes": {"pair": {"int": at % 3}}} for at, each in enumerate(some(60))]
    scene.publish(spec("", pool="wide", devices=devices))

    first = scene.ask(*asked, constraints=constraints)
    began = time.process_time()
    again = scene.ask(*asked, constraints=constraints)

    assert time.process_time() - began < 0.5
    assert not first.node
    assert first.message == again.message
    assert "timed out trying to allocate devices" in first.message or "cannot allocate" in first.message
    assert scene.is_harmless()


def test_a_pod_of_many_claims_is_searched_for() -> None:
    """Python's limit of the stack is not the search's."""
    scene = Scene()
    scene.publish(spec("far", devices=some(400)))
    names = [f"c{number}" for number in range(40)]
    for name in names:
        asked = {**request(count=10), "name": "r"}
        scene.book.set_claim(a_claim(name, asked))
    pod = a_pod("pod", resourceClaims=[{"name": name, "resourceClaimName": name} for name in names])

    assert schedule(scene.scheduler, scene.cluster.templates.info(pod)).node == "far"


def test_classes_are_compiled_once() -> None:
    """And a class that is changed counts from then on."""
    scene = Scene()
    scene.publish(spec("far", devices=some(2)))
    nodes = [scene.ask(request()).node]
    scene.book.set_class(a_class("far", selectors=[{"cel": {"expression": "false"}}]))

    assert [*nodes, scene.ask(request()).node] == ["far", ""]
