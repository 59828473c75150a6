"""Pools of devices: which devices a node reaches, in the order in which they are handed out.

Source: Kubernetes v1.36, ``dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from plimsoll.devices.amounts import Amounts, amounts_of
from plimsoll.devices.cel.device_view import DeviceView
from plimsoll.model.kinds.devices.resource_slice import AttributeValue, Device, ResourceSlice
from plimsoll.model.kinds.node import Node
from plimsoll.model.selectors import NodeSelector, compile_node_matcher


class DeviceID(NamedTuple):
    """The name of a device in the cluster."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        """As in messages."""
        return "/".join(self)


class PoolKey(NamedTuple):
    """The name of a pool in the cluster."""

    driver: str
    name: str


class PoolState(Enum):
    """Whether devices of a pool may be handed out."""

    COMPLETE = "complete"
    INCOMPLETE = "currently being updated"
    INVALID = "currently invalid"


@dataclass(frozen=True, slots=True, eq=False)
class PooledDevice:
    """A device that a node may reach.

    Attributes:
        id: Its name.
        device: As published.
        slice: Where it stands.
        is_reached: Whether the node that the pools are of reaches it: known after its selectors were asked.
        attributes: With their names as written.
        capacity: What it has.
        consumes: What it takes of the pool's counters, by set and counter.
        view: What selectors see of it; it reads its values once.
    """

    id: DeviceID
    device: Device
    slice: ResourceSlice
    is_reached: bool
    attributes: Mapping[str, AttributeValue]
    capacity: Amounts
    consumes: Mapping[tuple[str, str], int]
    view: DeviceView

    def attribute(self, name: str) -> AttributeValue | None:
        """The attribute of that full name; of the driver's own domain also without it."""
        found = self.attributes.get(name)
        if found is None:
            domain, _, short = name.partition("/")
            if domain == self.id.driver:
                found = self.attributes.get(short)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """A pool as one node sees it.

    Attributes:
        key: Its name.
        state: Whether its devices may be handed out.
        devices: Those of the slices that concern the node, in order.
        others: Devices of its other slices, which consume counters as well; empty where none was left out.
        counters: What its sets of counters have, by set and counter.
    """

    key: PoolKey
    state: PoolState
    devices: tuple[PooledDevice, ...]
    others: tuple[PooledDevice, ...] = ()
    counters: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def waits_to_bind(self) -> bool:
        """Whether some device must be prepared before a pod is bound."""
        return any(each.device.binding_conditions for each in self.devices)


class Slices:
    """All slices of the cluster, found by node and by pool; never changed once made.

    Args:
        slices: In any order.
    """

    def __init__(self, slices: Iterable[ResourceSlice]) -> None:
        self._of_node: dict[str, list[ResourceSlice]] = {}
        self._wide: list[ResourceSlice] = []
        self._of_pool: dict[PoolKey, list[ResourceSlice]] = {}
        self._pooled: dict[str, tuple[PooledDevice, ...]] = {}
        self._known: dict[str, tuple[Node, tuple[Pool, ...]]] = {}
        for each in sorted(slices, key=lambda each: each.name):
            spec = each.spec
            if spec.node_name and not spec.shared_counters:
                self._of_node.setdefault(spec.node_name, []).append(each)
            else:
                self._wide.append(each)
            self._of_pool.setdefault(PoolKey(spec.driver, spec.pool.name), []).append(each)

    def pools_of(self, node: Node) -> tuple[Pool, ...]:
        """The pools that a node reaches, in the order in which their devices are handed out."""
        known = self._known.get(node.name)
        if known is None or known[0] is not node:
            known = self._known[node.name] = node, self._found(node)
        return known[1]

    def _found(self, node: Node) -> tuple[Pool, ...]:
        found: dict[PoolKey, list[ResourceSlice]] = {}
        for each in (*self._of_node.get(node.name, ()), *self._wide):
            if _concerns(each, node):
                found.setdefault(PoolKey(each.spec.driver, each.spec.pool.name), []).append(each)
        pools = [pool for key, slices in found.items() if (pool := self._pool(key, slices, node)) is not None]
        pools.sort(key=lambda pool: (pool.waits_to_bind, pool.key))
        return tuple(pools)

    def _pool(self, key: PoolKey, slices: Sequence[ResourceSlice], node: Node) -> Pool | None:
        """One pool; None where a newer generation is published elsewhere."""
        generation = max(each.spec.pool.generation for each in slices)
        newest = sorted(
            (each for each in slices if each.spec.pool.generation == generation), key=lambda each: each.name
        )
        state, left_out = PoolState.COMPLETE, False
        if all(each.spec.pool.resource_slice_count != len(newest) for each in newest):
            everywhere = self._of_pool[key]
            if any(each.spec.pool.generation > generation for each in everywhere):
                return None
            same = [each for each in everywhere if each.spec.pool.generation == generation]
            left_out = len(same) > len(newest)
            if all(each.spec.pool.resource_slice_count != len(same) for each in same):
                state = PoolState.INCOMPLETE
        else:
            same = newest
        counters = {
            (one.name, name): amount
            for each in newest
            for one in each.spec.shared_counters
            for name, amount in amounts_of(one.counters).items()
        }
        devices = tuple(device for each in newest for device in self._devices(each, node))
        others: tuple[PooledDevice, ...] = ()
        if left_out:
            names = {each.name for each in newest}
            others = tuple(d for each in same if each.name not in names for d in self._devices(each, node))
        if state is PoolState.COMPLETE and _is_invalid(newest, devices, others, counters):
            state = PoolState.INVALID
        return Pool(key, state, devices, others, counters)

    def _devices(self, each: ResourceSlice, node: Node) -> tuple[PooledDevice, ...]:
        if not each.spec.per_device_node_selection:
            known = self._pooled.get(each.name)
            if known is None:
                known = tuple(_pooled(each, device, is_reached=True) for device in each.spec.devices)
                self._pooled[each.name] = known
            return known
        return tuple(_pooled(each, device, is_reached=_reaches(device, node)) for device in each.spec.devices)


def _pooled(each: ResourceSlice, device: Device, *, is_reached: bool) -> PooledDevice:
    attributes = {
        name: value for name, attribute in device.attributes.items() if (value := attribute.value) is not None
    }
    return PooledDevice(
        DeviceID(each.spec.driver, each.spec.pool.name, device.name),
        device,
        each,
        is_reached,
        attributes,
        amounts_of(device.capacity),
        {
            (one.counter_set, name): amount
            for one in device.consumes_counters
            for name, amount in amounts_of(one.counters).items()
        },
        DeviceView(
            each.spec.driver,
            attributes,
            {name: str(has.value) for name, has in device.capacity.items()},
            device.allow_multiple_allocations,
        ),
    )


def _concerns(each: ResourceSlice, node: Node) -> bool:
    spec = each.spec
    if spec.shared_counters:
        return True
    if spec.per_device_node_selection:
        return any(_reaches(device, node) for device in spec.devices)
    return _selects(spec.node_name, spec.node_selector, node, is_everywhere=spec.all_nodes)


def _reaches(device: Device, node: Node) -> bool:
    return _selects(device.node_name, device.node_selector, node, is_everywhere=device.all_nodes)


def _selects(name: str, selector: NodeSelector | None, node: Node, *, is_everywhere: bool) -> bool:
    if name:
        return name == node.name
    if is_everywhere:
        return True
    return selector is not None and selects(selector, node)


def selects(selector: NodeSelector, node: Node) -> bool:
    """Whether a node selector selects a node."""
    return compile_node_matcher({}, selector).matches(node.labels, node.name)


def _is_invalid(
    newest: Sequence[ResourceSlice],
    devices: Sequence[PooledDevice],
    others: Sequence[PooledDevice],
    counters: Mapping[tuple[str, str], int],
) -> bool:
    names = [each.id for each in devices]
    sets = [one.name for each in newest for one in each.spec.shared_counters]
    if len(set(names)) < len(names) or len(set(sets)) < len(sets):
        return True
    return any(not each.consumes.keys() <= counters.keys() for each in (*devices, *others))
