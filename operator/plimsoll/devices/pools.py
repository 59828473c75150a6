"""Pools of devices: which devices a node reaches, in the order in which they are handed out.

Source: Kubernetes v1.36, ``dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from plimsoll.devices.amounts import Amounts, amounts_of
from plimsoll.devices.cel.device_view import DeviceView
from plimsoll.model.kinds.devices.resource_slice import (
    AttributeValue,
    Device,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from plimsoll.model.kinds.node import Node
from plimsoll.model.selectors import NodeMatcher, compile_node_matcher


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


class PooledDevice:
    """A device that a node may reach; what it is made of is read when it is first looked at.

    Attributes:
        id: Its name.
        device: As published.
        slice: Where it stands.
        is_reached: Whether the node that the pools are of reaches it: known after its selectors were asked.
    """

    __slots__ = ("_attributes", "_capacity", "_consumes", "_view", "device", "id", "is_reached", "slice")

    def __init__(self, published: ResourceSlice, device: Device, *, is_reached: bool) -> None:
        spec = published.spec
        self.id = DeviceID(spec.driver, spec.pool.name, device.name)
        self.device = device
        self.slice = published
        self.is_reached = is_reached
        self._attributes: Mapping[str, AttributeValue] | None = None
        self._capacity: Amounts | None = None
        self._consumes: Mapping[tuple[str, str], int] | None = None if device.consumes_counters else {}
        self._view: DeviceView | None = None

    @property
    def attributes(self) -> Mapping[str, AttributeValue]:
        """With their names as written."""
        if self._attributes is None:
            self._attributes = {
                name: value
                for name, attribute in self.device.attributes.items()
                if (value := attribute.value) is not None
            }
        return self._attributes

    @property
    def capacity(self) -> Amounts:
        """What it has."""
        if self._capacity is None:
            self._capacity = amounts_of(self.device.capacity)
        return self._capacity

    @property
    def consumes(self) -> Mapping[tuple[str, str], int]:
        """What it takes of the pool's counters, by set and counter."""
        if self._consumes is None:
            self._consumes = {
                (one.counter_set, name): max(0, amount)
                for one in self.device.consumes_counters
                for name, amount in amounts_of(one.counters).items()
            }
        return self._consumes

    @property
    def view(self) -> DeviceView:
        """What selectors see of it; it reads its values once."""
        if self._view is None:
            self._view = DeviceView(
                self.id.driver,
                self.attributes,
                {name: str(has.value) for name, has in self.device.capacity.items()},
                self.device.allow_multiple_allocations,
            )
        return self._view

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


class Reach:
    """Which nodes reach a slice or a device: one, those of a selector, all, or none.

    Args:
        place: With ``nodeName``, ``nodeSelector`` and ``allNodes``.
    """

    __slots__ = ("_is_everywhere", "_matcher", "_name")

    def __init__(self, place: ResourceSliceSpec | Device) -> None:
        self._name, self._is_everywhere = place.node_name, place.all_nodes
        self._matcher: NodeMatcher | None = None
        selector = place.node_selector
        # With another number of terms an allocation could not name its nodes.
        if selector is not None and len(selector.node_selector_terms) == 1:
            self._matcher = compile_node_matcher({}, selector)

    def includes(self, node: Node) -> bool:
        """Whether a node reaches it."""
        if self._name:
            return self._name == node.name
        if self._is_everywhere:
            return True
        return self._matcher is not None and self._matcher.matches(node.labels, node.name)


class SlicedDevices:
    """The devices of one slice, as nodes see them.

    Args:
        published: The slice.
    """

    def __init__(self, published: ResourceSlice) -> None:
        self.slice = published
        spec = published.spec
        self._is_per_device = spec.per_device_node_selection
        self._is_everywhere = bool(spec.shared_counters)
        self._reach = Reach(spec)
        self._reaches = [Reach(each) for each in spec.devices] if self._is_per_device else []
        self._near: tuple[PooledDevice, ...] | None = None
        self._far: tuple[PooledDevice, ...] = ()

    @property
    def differs_by_node(self) -> bool:
        """Whether the next node sees something else of it, or nothing."""
        return self._is_per_device or bool(self.slice.spec.node_name)

    def concerns(self, node: Node) -> bool:
        """Whether the slice is one of the node's."""
        if self._is_everywhere:
            return True
        if self._is_per_device:
            return any(each.includes(node) for each in self._reaches)
        return self._reach.includes(node)

    @cached_property
    def draws_on(self) -> frozenset[tuple[str, str]]:
        """The counters that its devices consume, by set and counter."""
        consumed = (one for device in self.slice.spec.devices for one in device.consumes_counters)
        return frozenset((one.counter_set, name) for one in consumed for name in one.counters)

    def devices(self, node: Node | None) -> tuple[PooledDevice, ...]:
        """All devices; without a node none of those that select their nodes is reached."""
        if self._near is None:
            listed = self.slice.spec.devices
            self._near = tuple(PooledDevice(self.slice, each, is_reached=True) for each in listed)
            if self._is_per_device:
                self._far = tuple(PooledDevice(self.slice, each, is_reached=False) for each in listed)
        if not self._is_per_device:
            return self._near
        if node is None:
            return self._far
        return tuple(
            near if reach.includes(node) else far
            for near, far, reach in zip(self._near, self._far, self._reaches, strict=True)
        )


class Slices:
    """All slices of the cluster, found by node and by pool; never changed once made.

    Slices of counters concern every node. They are looked at for nodes that reach devices of their pool; the
    rest of the nodes see such a pool only where something is wrong with it.

    Args:
        slices: In any order.
    """

    def __init__(self, slices: Iterable[ResourceSlice]) -> None:
        self._of_node: dict[str, list[SlicedDevices]] = {}
        self._wide: list[SlicedDevices] = []
        self._counters: dict[PoolKey, list[SlicedDevices]] = {}
        self._of_pool: dict[PoolKey, list[SlicedDevices]] = {}
        self._known: dict[str, tuple[Node, tuple[Pool, ...]]] = {}
        self._published: dict[PoolKey, Mapping[str, Device]] = {}
        #: by the identities of what the nodes reach
        self._shared: dict[tuple[int, ...], tuple[Pool, ...]] = {}
        self._one_pool: dict[tuple[int, ...], Pool | None] = {}
        for published in sorted(slices, key=lambda each: each.name):
            spec, each = published.spec, SlicedDevices(published)
            key = PoolKey(spec.driver, spec.pool.name)
            if spec.shared_counters and not spec.devices:
                self._counters.setdefault(key, []).append(each)
            elif spec.node_name and not spec.shared_counters:
                self._of_node.setdefault(spec.node_name, []).append(each)
            else:
                self._wide.append(each)
            self._of_pool.setdefault(key, []).append(each)

    def pools_of(self, node: Node) -> tuple[Pool, ...]:
        """The pools that a node reaches, in the order in which their devices are handed out.

        Nodes that reach the same get the same tuple. Pools without a device that the node could be given are
        left out as long as nothing is wrong with them.
        """
        known = self._known.get(node.name)
        if known is None or known[0] is not node:
            known = self._known[node.name] = node, self._found(node)
        return known[1]

    def newest(self, key: PoolKey) -> Sequence[ResourceSlice]:
        """The slices of the latest generation of a pool, whatever nodes reach them."""
        slices = [each.slice for each in self._of_pool.get(key, ())]
        generation = max((each.spec.pool.generation for each in slices), default=0)
        return [each for each in slices if each.spec.pool.generation == generation]

    def published(self, key: PoolKey) -> Mapping[str, Device]:
        """The devices of the latest generation of a pool, keyed by name."""
        known = self._published.get(key)
        if known is None:
            known = {device.name: device for each in self.newest(key) for device in each.spec.devices}
            self._published[key] = known
        return known

    def _found(self, node: Node) -> tuple[Pool, ...]:
        wide = [each for each in self._wide if each.concerns(node)]
        near = [each for each in self._of_node.get(node.name, ()) if each.concerns(node)]
        if near or any(each.differs_by_node for each in wide):
            return self._pools([*near, *wide], node)
        place = tuple(id(each) for each in wide)
        shared = self._shared.get(place)
        if shared is None:
            shared = self._shared[place] = self._pools(wide, node)
        return shared

    def _pools(self, slices: Sequence[SlicedDevices], node: Node) -> tuple[Pool, ...]:
        found: dict[PoolKey, list[SlicedDevices]] = {}
        for each in slices:
            spec = each.slice.spec
            found.setdefault(PoolKey(spec.driver, spec.pool.name), []).append(each)
        pools = [each for each in self._troubled if each.key not in found]
        for key, concerned in found.items():
            pool = self._pool_for(key, [*concerned, *self._counters.get(key, ())], node)
            if pool is not None:
                pools.append(pool)
        pools.sort(key=lambda pool: (pool.waits_to_bind, pool.key))
        return tuple(pools)

    def _pool_for(self, key: PoolKey, slices: Sequence[SlicedDevices], node: Node) -> Pool | None:
        """One pool, the same for all nodes that see the same of it."""
        if any(each.differs_by_node for each in slices):
            return self._pool(key, slices, node)
        place = tuple(id(each) for each in slices)
        if place not in self._one_pool:
            self._one_pool[place] = self._pool(key, slices, node)
        return self._one_pool[place]

    @cached_property
    def _troubled(self) -> Sequence[Pool]:
        """Pools with counters that are not complete, as nodes see them that reach none of their devices."""
        pools = (self._pool(key, slices, None) for key, slices in self._counters.items())
        return [each for each in pools if each is not None and each.state is not PoolState.COMPLETE]

    def _pool(self, key: PoolKey, slices: Sequence[SlicedDevices], node: Node | None) -> Pool | None:
        """One pool; None where a newer generation is published elsewhere."""
        generation = max(_pool_of(each).generation for each in slices)
        newest = sorted(
            (each for each in slices if _pool_of(each).generation == generation),
            key=lambda each: each.slice.name,
        )
        state, left_out = PoolState.COMPLETE, False
        if all(_pool_of(each).resource_slice_count != len(newest) for each in newest):
            everywhere = self._of_pool[key]
            if any(_pool_of(each).generation > generation for each in everywhere):
                return None
            same = [each for each in everywhere if _pool_of(each).generation == generation]
            left_out = len(same) > len(newest)
            if all(_pool_of(each).resource_slice_count != len(same) for each in same):
                state = PoolState.INCOMPLETE
        else:
            same = newest
        counters = {
            (one.name, name): amount
            for each in newest
            for one in each.slice.spec.shared_counters
            for name, amount in amounts_of(one.counters).items()
        }
        names = {each.slice.name for each in newest}
        rest = [each for each in same if each.slice.name not in names] if left_out else []
        if state is PoolState.COMPLETE and _is_invalid(newest, rest, counters):
            state = PoolState.INVALID
        devices = tuple(device for each in newest for device in each.devices(node))
        others = tuple(device for each in rest for device in each.devices(node))
        return Pool(key, state, devices, others, counters)


def _pool_of(each: SlicedDevices) -> ResourcePool:
    return each.slice.spec.pool


def _is_invalid(
    newest: Sequence[SlicedDevices],
    others: Sequence[SlicedDevices],
    counters: Mapping[tuple[str, str], int],
) -> bool:
    names = [device.name for each in newest for device in each.slice.spec.devices]
    sets = [one.name for each in newest for one in each.slice.spec.shared_counters]
    if len(set(names)) < len(names) or len(set(sets)) < len(sets):
        return True
    return any(not each.draws_on <= counters.keys() for each in (*newest, *others))
