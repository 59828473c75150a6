"""Targets of devices: slices, classes and claims of others, and expressions about devices."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dra_cel import DeviceView, SelectorError, Version, selector
from fuzzing import specimens
from fuzzing.target import Bound, Broken, Target, kind_of, text_of
from plimsoll.cluster.listed_objects import read_object
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.pod_devices import PodDevices
from plimsoll.devices.requests import MissingClassError
from plimsoll.devices.search_limits import AllocationError
from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import Decision
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.resource_claim import ResourceClaim
from plimsoll.model.kinds.resource_slice import DeviceClass, ResourceSlice
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_node, a_pod

#: The neighbour's driver, which comes before those of others.
NEAR = "a.near"

PROFILE = build_profile(
    ProfileConfig("default-scheduler"),
    Registry(IN_TREE),
    [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()],
)

VIEW = DeviceView(
    "far.example.com",
    {"model": "a100", "index": 3, "ecc": True, "driver": Version("1.2.3"), "b.example.com/x": "y"},
    {"memory": "80Gi", "b.example.com/cores": "7"},
    allow_multiple=True,
)


@dataclass(frozen=True, slots=True)
class _Said:
    """What became of a pod."""

    name: str
    node: str
    message: str


class _Scene:
    """Two nodes, a neighbour's device on the first one, and whatever others wrote."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        for name in ("n1", "n2"):
            self.cluster.set_node(a_node(name))
        self.book = self.cluster.objects.ledger(DeviceBook)
        self.book.is_served = True
        self.scheduler = ProfileScheduler(PROFILE, self.cluster)
        self.given: set[tuple[str, str, str]] = set()
        near = [{"name": name} for name in "ab"]
        self.book.set_slice(_slice("near", NEAR, "n1", near))
        expression = f'device.driver == "{NEAR}"'
        self.book.set_class(_class("near", [{"cel": {"expression": expression}}]))

    def ask(self, name: str, claim: ResourceClaim) -> _Said:
        """Place a pod with that claim, and take what it gets."""
        self.book.set_claim(claim)
        pod = a_pod(name, resourceClaims=[{"name": "c", "resourceClaimName": claim.name}])
        decision = schedule(self.scheduler, self.cluster.templates.info(pod))
        self._judge(decision)
        if decision.node:
            self._take(decision)
        return _Said(name, decision.node, decision.message)

    def _judge(self, decision: Decision) -> None:
        cause = None if decision.error is None else decision.error.__cause__
        if cause is not None and not isinstance(cause, MissingClassError):
            raise cause
        kind_of(decision.message, needed=not decision.node)

    def _take(self, decision: Decision) -> None:
        """Book what was decided: no device a second time."""
        devices = None if decision.state is None else decision.state.find(PodDevices)
        if devices is None:
            raise Broken("a pod with a claim needs no devices")
        row = self.cluster.rows[decision.node]
        for each in devices.bookings(row, self.cluster.nodes[row], lambda: "share"):
            if each.allocation is None:
                continue
            for result in each.allocation.devices.results:
                device = (result.driver, result.pool, result.device)
                if not result.admin_access and result.share_id is None:
                    if device in self.given or device in self.book.taken.whole:
                        raise Broken(f"{device} is handed out twice")
                    self.given.add(device)
            self.book.allocate(each.claim, each.allocation)


def _slice(name: str, driver: str, node: str, devices: Sequence[dict[str, Any]]) -> ResourceSlice:
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "pool": pool, "nodeName": node, "devices": devices}
    return convert(ResourceSlice, {"metadata": {"name": name}, "spec": spec})


def _class(name: str, selectors: Sequence[dict[str, Any]] = ()) -> DeviceClass:
    return convert(DeviceClass, {"metadata": {"name": name}, "spec": {"selectors": selectors}})


def _claim(name: str, asked: dict[str, Any], device_class: str = "near") -> ResourceClaim:
    exactly = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": 1, **asked}
    requests = [{"name": "r", "exactly": exactly}]
    return convert(
        ResourceClaim,
        {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {"devices": {"requests": requests}},
        },
    )


def _read(kind: type, data: bytes) -> tuple[Any, object]:
    """The object as the reflector reads it, and what is wrong with it."""
    value, name, problems = read_object(kind, data)
    kind_of(name, needed=False)
    if value is None and not problems:
        raise Broken("the object is gone without a report")
    return value, tuple(kind_of(each) for each in problems[:2])


def _neighbours(scene: _Scene) -> Iterator[_Said]:
    """Pods that have nothing to do with what others wrote get both devices, and then no third one."""
    for name in ("one", "two", "three"):
        yield scene.ask(name, _claim(name, {}))


def _check_neighbours(scene: _Scene, data: bytes) -> object:
    said = list(_neighbours(scene))
    is_near = b"near" in data or b"\\" in data
    if not is_near and [each.node for each in said] != ["n1", "n1", ""]:
        raise Broken(f"the neighbours are harmed: {said}"[:900])
    return tuple(kind_of(each.message, needed=False) for each in said if each.message)


def slices(data: bytes) -> object:
    """A slice of somebody else: pods of others get their devices, who asks for its own gets one sentence."""
    scene = _Scene()
    found, problems = _read(ResourceSlice, data)
    if found is not None:
        scene.book.set_slice(found)
    scene.book.set_class(_class("any"))
    kinds = [
        scene.ask(name, _claim(name, {"allocationMode": mode, "count": count}, "any")).message
        for name, mode, count in (("all", "All", 1), ("some", "ExactCount", 1), ("many", "ExactCount", 40))
    ]
    # Those three took what they could of the neighbour's devices as well.
    other = _Scene()
    if found is not None:
        other.book.set_slice(found)
    answer = _check_neighbours(other, data)
    if found is not None:
        other.book.remove_slice(found.name)
    return problems, answer, tuple(kind_of(each, needed=False) for each in kinds)


def classes(data: bytes) -> object:
    """A class of somebody else."""
    scene = _Scene()
    found, problems = _read(DeviceClass, data)
    if found is None or found.name == "near":
        return problems
    scene.book.set_class(found)
    said = scene.ask("asks", _claim("asks", {}, found.name))
    scene.book.remove_class(found.name)
    gone = scene.ask("late", _claim("late", {}, found.name))
    if gone.node:
        raise Broken("a class that is gone serves a claim")
    if said.node:
        return problems, "served"
    return problems, kind_of(said.message), _check_neighbours(scene, data)


def claims(data: bytes) -> object:
    """A claim of somebody else, allocated or not."""
    scene = _Scene()
    scene.book.set_class(_class("any"))
    scene.book.set_slice(_slice("far", "far.example.com", "n2", [{"name": f"d{at}"} for at in range(8)]))
    found, problems = _read(ResourceClaim, data)
    if found is None:
        return problems
    said = _Said("", "", "")
    if found.namespace == "default" and found.name:
        said = scene.ask("asks", found)
    else:
        scene.book.set_claim(found)
    answer: object = ()
    if not said.node:
        answer = _check_neighbours(scene, data)
    scene.book.release(found)
    scene.book.remove_claim(found.key)
    if not scene.book.taken.whole.keys() <= scene.given or scene.book.taken.shares:
        raise Broken(f"its devices are not free when it is gone: {scene.book.taken.whole}"[:600])
    return problems, kind_of(said.message, needed=False), answer


def expressions(data: bytes) -> object:
    """An expression: a bool, or one sentence, at a bounded cost."""
    try:
        return selector(text_of(data)).matches(VIEW)
    except SelectorError as error:
        return kind_of(str(AllocationError(f"class far: selector #0: {error}")))


def _slice_seeds() -> list[bytes]:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    base: dict[str, Any] = {"driver": "far.example.com", "pool": pool, "nodeName": "n2"}
    device = {
        "name": "d",
        "attributes": {
            "model": {"string": "x"},
            "index": {"int": 1},
            "ecc": {"bool": True},
            "v": {"version": "1.0.0"},
        },
        "capacity": {
            "memory": {
                "value": "80Gi",
                "requestPolicy": {
                    "default": "1Gi",
                    "validRange": {"min": "1Gi", "max": "80Gi", "step": "1Gi"},
                },
            }
        },
        "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
        "consumesCounters": [{"counterSet": "s", "counters": {"c": {"value": "1"}}}],
    }
    counters = {"sharedCounters": [{"name": "s", "counters": {"c": {"value": "4"}}}]}
    terms = [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
    specs: list[dict[str, Any]] = [
        {**base, "devices": [device]},
        {**base, **counters},
        {**base, **counters, "devices": [device, {**device, "name": "e"}]},
        {
            **base,
            "devices": [{"name": "d", "allowMultipleAllocations": True, "capacity": device["capacity"]}],
        },
        {**base, "nodeName": "", "allNodes": True, "devices": [device]},
        {**base, "nodeName": "", "nodeSelector": {"nodeSelectorTerms": terms}, "devices": [device]},
        {
            **base,
            "nodeName": "",
            "perDeviceNodeSelection": True,
            "devices": [{"name": "d", "nodeName": "n1"}, {"name": "e", "allNodes": True}],
        },
    ]
    made = [json.dumps({"metadata": {"name": "far"}, "spec": each}).encode() for each in specs]
    return [*made, specimens.document(ResourceSlice, name="far")]


def _claim_seeds() -> list[bytes]:
    meta = {"name": "far", "namespace": "default", "uid": "far"}
    exactly = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": 2}
    selectors = [{"cel": {"expression": 'device.attributes["far.example.com"].model == "x"'}}]
    result = {"request": "r", "driver": "far.example.com", "pool": "far", "device": "d0"}
    node = {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]
    }
    status = {
        "allocation": {"devices": {"results": [result, {**result, "device": "d0"}]}, "nodeSelector": node},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
        "devices": [
            {**result, "conditions": [{"type": "Ready", "status": "True"}]},
        ],
    }
    shared = {**result, "shareID": "s", "consumedCapacity": {"memory": "1Gi"}}
    requests: list[dict[str, Any]] = [
        {"name": "r", "exactly": exactly},
        {"name": "r", "exactly": {**exactly, "allocationMode": "All"}},
        {"name": "r", "exactly": {**exactly, "selectors": selectors}},
        {"name": "r", "firstAvailable": [{**exactly, "name": "a", "count": 33}, {**exactly, "name": "b"}]},
        {"name": "r", "exactly": {**exactly, "adminAccess": True, "capacity": {"requests": {"memory": "1"}}}},
    ]
    constraints = [{"matchAttribute": "far.example.com/model"}, {"requests": ["r"], "distinctAttribute": "x"}]
    specs: list[dict[str, Any]] = [{"devices": {"requests": [each]}} for each in requests]
    specs.append({"devices": {"requests": requests[:2], "constraints": constraints}})
    made: list[dict[str, Any]] = [{"metadata": meta, "spec": each} for each in specs]
    made.append({"metadata": meta, "spec": specs[0], "status": status})
    both = {"allocation": {"devices": {"results": [shared, {**shared, "adminAccess": True}]}}}
    made.append({"metadata": {**meta, "namespace": "far"}, "spec": specs[0], "status": both})
    return [*(json.dumps(each).encode() for each in made), specimens.document(ResourceClaim, **meta)]


def _class_seeds() -> list[bytes]:
    texts = ("true", 'device.driver == "far.example.com"', "1", "device.x", 'device.attributes["a"].b == 1')
    made = [
        {"metadata": {"name": "far"}, "spec": {"selectors": [{"cel": {"expression": each}}]}}
        for each in texts
    ]
    made.append({"metadata": {"name": "far"}, "spec": {"extendedResourceName": "far.example.com/gpu"}})
    return [*(json.dumps(each).encode() for each in made), specimens.document(DeviceClass, name="far")]


def _expression_seeds() -> list[bytes]:
    return [
        each.encode()
        for each in (
            'device.attributes["far.example.com"].model == "a100" && device.driver.startsWith("far")',
            'device.capacity["far.example.com"].memory.isGreaterThan(quantity("40Gi"))',
            'device.attributes["far.example.com"].driver.isGreaterThan(semver("1.0.0"))',
            '[1, 2, 3].all(x, x > 0) || {"a": [1]}.exists(k, k == "b")',
            'has(device.attributes["b.example.com"].x) ? device.allowMultipleAllocations : false',
            'device.attributes[?"x"].?y.orValue("z").matches("^[a-z]+$")',
            'cel.bind(m, device.attributes["far.example.com"], m.index + 1 < 5)',
            '"%s-%d".format(["a", 7]) == "a-7" && ip("10.0.0.1").family() == 4',
        )
    ]


_NAMES = (b'"devices":', b'"pool":', b'"n1"', b'"n2"', b'"nodeName":', b'"any"', b'"All"', b'"count":')
_BOUND = Bound(seconds=4.0, seconds_each=2e-5, memory=2**25, memory_each=400.0)

TARGETS = (
    Target(
        "resource-slices",
        "model.kinds.resource_slice, devices.pools",
        "a ResourceSlice of somebody else, and pods that ask for its devices or for others",
        slices,
        _slice_seeds,
        (*_NAMES, b'"sharedCounters":', b'"consumesCounters":', b'"generation":', b'"resourceSliceCount":'),
        _BOUND,
    ),
    Target(
        "device-classes",
        "model.kinds.resource_slice, devices.requests",
        "a DeviceClass of somebody else, until it is deleted",
        classes,
        _class_seeds,
        (b'"selectors":', b'"cel":', b'"expression":', b'"extendedResourceName":', b"device.driver"),
        _BOUND,
    ),
    Target(
        "resource-claims",
        "model.kinds.resource_claim, devices.allocator, devices.taken",
        "a ResourceClaim of somebody else, allocated or not",
        claims,
        _claim_seeds,
        (*_NAMES, b'"status":', b'"allocation":', b'"results":', b'"shareID":', b'"firstAvailable":'),
        _BOUND,
    ),
    Target(
        "device-expressions",
        "dra_cel",
        "selectors of devices in classes and claims",
        expressions,
        _expression_seeds,
        (
            b"device.attributes",
            b"device.capacity",
            b"[?",
            b".?",
            b".all(x, ",
            b".map(x, ",
            b"cel.bind(x, ",
            b"quantity(",
            b"semver(",
            b".matches(",
            b" in ",
            b"&&",
            b"||",
            b"?",
            b":",
        ),
        Bound(seconds=3.0, seconds_each=2e-4, memory=2**25, memory_each=2000.0),
    ),
)
