"""Finds the pools that a node reaches, and the nodes that a changed slice concerns.

Source: Kubernetes v1.36, ``dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go``.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from plimsoll.devices.amounts import amounts_of
from plimsoll.devices.by_node import ByNode
from plimsoll.devices.pools.pool import Pool, PooledDevice, PoolKey, PoolState, pool_of
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.resource_slice import (
    Device,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from plimsoll.model.selectors import NodeTermIndex, compile_node_term

#: Number of pools with counters that are judged at a time.
POOLS_A_PART = 200

#: Maximum number of different sets of pools that are kept for nodes that reach the same.
MOST_SHARED = 10_000


class Reach:
    """The nodes that reach a slice or a device: one, those of a selector, all, or none.

    Args:
        place: An object with ``nodeName``, ``nodeSelector`` and ``allNodes``.
    """

    __slots__ = ("_is_everywhere", "_name", "_term")

    def __init__(self, place: ResourceSliceSpec | Device) -> None:
        self._name, self._is_everywhere = place.node_name, place.all_nodes
        self._term: NodeTermIndex | None = None
        selector = place.node_selector
        # Otherwise an allocation could not name its nodes.
        if selector is not None and len(selector.node_selector_terms) == 1:
            self._term = NodeTermIndex(compile_node_term(selector.node_selector_terms[0]))

    def includes(self, node: Node) -> bool:
        """Whether a node reaches it."""
        if self._name:
            return self._name == node.name
        if self._is_everywhere:
            return True
        return self._term is not None and self._term.matches(node.labels, node.name)


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
        """Whether nodes that the slice concerns differ in the devices that they reach."""
        return self._is_per_device

    def reached(self, node: Node) -> bytes | None:
        """What a node reaches of the slice, equal for nodes that reach the same; None if not concerned."""
        if not self._is_per_device:
            return b"" if self._is_everywhere or self._reach.includes(node) else None
        devices = bytes(each.includes(node) for each in self._reaches)
        return devices if self._is_everywhere or any(devices) else None

    @cached_property
    def draws_on(self) -> frozenset[tuple[str, str]]:
        """The counters that its devices consume, by set and counter."""
        drawn: set[tuple[str, str]] = set()
        for device in self.slice.spec.devices:
            for one in device.consumes_counters:
                for name in one.counters:
                    drawn.add((one.counter_set, name))
        return frozenset(drawn)

    def devices(self, node: Node | None) -> tuple[PooledDevice, ...]:
        """All devices; without a node, those with node selectors of their own count as not reached."""
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


class _Judged(NamedTuple):
    """A pool as some nodes see it, without its devices.

    Attributes:
        newest: Slices of the latest generation that concern the nodes, sorted.
        rest: The other slices of that generation.
    """

    state: PoolState
    newest: Sequence[SlicedDevices]
    rest: Sequence[SlicedDevices]


class _Counted(NamedTuple):
    """The counters of some slices, read once for all nodes that see them.

    Attributes:
        offered: By set and counter.
        amounts: The same, with their amounts.
        is_doubled: Whether two sets have one name.
    """

    offered: frozenset[tuple[str, str]]
    amounts: Mapping[tuple[str, str], int]
    is_doubled: bool


class Slices:
    """All slices of the cluster, found by node and by pool.

    Slices of counters concern every node. They are used for nodes that reach devices of their pool; other
    nodes see such a pool only if it is invalid.

    Args:
        slices: In any order.
    """

    def __init__(self, slices: Iterable[ResourceSlice]) -> None:
        self._of_node: dict[str, list[SlicedDevices]] = {}
        self._wide: list[SlicedDevices] = []
        self._counters: dict[PoolKey, list[SlicedDevices]] = {}
        self._of_pool: dict[PoolKey, list[SlicedDevices]] = {}
        self._known: ByNode[tuple[Pool, ...]] = ByNode()
        self._published: dict[PoolKey, Mapping[str, Device]] = {}
        #: by the identities of the slices that the nodes reach, and what they reach of each
        self._shared: dict[tuple[tuple[int, bytes], ...], tuple[Pool, ...]] = {}
        self._one_pool: dict[tuple[int, ...], Pool | None] = {}
        #: by the identities of the slices with counters
        self._counted: dict[tuple[int, ...], _Counted] = {}
        self._troubled: list[Pool] | None = None
        self._states: dict[PoolKey, PoolState | None] = {}  #: of pools with counters, as in :meth:`_trouble`
        for each in slices:
            self._add(SlicedDevices(each))

    def copied(self) -> "Slices":
        """An independent copy."""
        twin = Slices(())
        twin._of_node = {name: list(each) for name, each in self._of_node.items()}
        twin._counters = {key: list(each) for key, each in self._counters.items()}
        twin._of_pool = {key: list(each) for key, each in self._of_pool.items()}
        twin._wide = list(self._wide)
        twin._known, twin._published = self._known.copied(), dict(self._published)
        twin._states = dict(self._states)
        twin._shared, twin._one_pool = dict(self._shared), dict(self._one_pool)
        return twin

    def exchange(self, old: ResourceSlice | None, new: ResourceSlice | None) -> frozenset[str] | None:
        """Replace a published, changed or deleted slice; the names of the nodes concerned, None for all."""
        changed = [each for each in (old, new) if each is not None]
        keys = {pool_of(each) for each in changed}
        before = [self._trouble(key) for key in keys]
        for each in changed:
            self._published.pop(pool_of(each), None)
            self._states.pop(pool_of(each), None)
        if old is not None:
            for held in self._holders(old):
                held[:] = [each for each in held if each.slice.name != old.name]
        if new is not None:
            self._add(SlicedDevices(new))
        self._troubled, self._counted = None, {}
        names = {each.spec.node_name for each in changed}
        everywhere = [each.slice for key in keys for each in self._of_pool[key]]
        if (
            all(_is_local(each) and each.spec.node_name in names for each in (*changed, *everywhere))
            and [self._trouble(key) for key in keys] == before
        ):
            for name in names:
                self._known.pop(name)
            return frozenset(names)
        self._known, self._shared, self._one_pool = ByNode(), {}, {}
        return None

    def _add(self, each: SlicedDevices) -> None:
        for held in self._holders(each.slice):
            held.append(each)

    def _holders(self, each: ResourceSlice) -> tuple[list[SlicedDevices], ...]:
        """The indexes that hold a slice."""
        spec, pool = each.spec, self._of_pool.setdefault(pool_of(each), [])
        if spec.shared_counters and not spec.devices:
            return pool, self._counters.setdefault(pool_of(each), [])
        if spec.node_name and not spec.shared_counters:
            return pool, self._of_node.setdefault(spec.node_name, [])
        return pool, self._wide

    def pools_of(self, node: Node) -> tuple[Pool, ...]:
        """The pools that a node reaches, in the order of allocation.

        Nodes that reach the same slices get the same tuple. Pools without a device for the node are left out
        unless they are invalid.
        """
        found = self._known.find(node)
        if found is None:
            found = self._found(node)
            self._known.put(node, found)
        return found

    def judge_some(self, most: int = POOLS_A_PART) -> bool:
        """Judge ``most`` pools with counters, which all nodes see if invalid; returns whether more are."""
        if self._troubled is not None:
            return False
        left = [key for key in self._counters if key not in self._states]
        for key in left[:most]:
            self._states[key] = self._trouble(key)
        return len(left) > most

    def newest(self, key: PoolKey) -> Sequence[ResourceSlice]:
        """The slices of a pool's latest generation, whatever nodes reach them."""
        slices = sorted((each.slice for each in self._of_pool.get(key, ())), key=lambda each: each.name)
        generation = max((each.spec.pool.generation for each in slices), default=0)
        return [each for each in slices if each.spec.pool.generation == generation]

    def published(self, key: PoolKey) -> Mapping[str, Device]:
        """The devices of a pool's latest generation, keyed by name."""
        known = self._published.get(key)
        if known is None:
            known = {device.name: device for each in self.newest(key) for device in each.spec.devices}
            self._published[key] = known
        return known

    def _found(self, node: Node) -> tuple[Pool, ...]:
        views = [(each, reached) for each in self._wide if (reached := each.reached(node)) is not None]
        wide = [each for each, _ in views]
        near = [each for each in self._of_node.get(node.name, ()) if each.reached(node) is not None]
        if near:
            return self._pools([*near, *wide], node)
        place = tuple((id(each), reached) for each, reached in views)
        shared = self._shared.get(place)
        if shared is None:
            if len(self._shared) >= MOST_SHARED:
                self._shared.clear()
            shared = self._shared[place] = self._pools(wide, node)
        return shared

    def _pools(self, slices: Sequence[SlicedDevices], node: Node) -> tuple[Pool, ...]:
        found: dict[PoolKey, list[SlicedDevices]] = {}
        for each in slices:
            found.setdefault(pool_of(each.slice), []).append(each)
        if self._troubled is None:
            self.judge_some(len(self._counters))
            states = ((key, self._states[key]) for key in self._counters)
            self._troubled = [Pool(key, state, ()) for key, state in states if state is not None]
        pools = [each for each in self._troubled if each.key not in found]
        for key, concerned in found.items():
            pool = self._pool_for(key, [*concerned, *self._counters.get(key, ())], node)
            if pool is not None:
                pools.append(pool)
        pools.sort(key=lambda pool: (pool.waits_to_bind, pool.key))
        return tuple(pools)

    def _pool_for(self, key: PoolKey, slices: Sequence[SlicedDevices], node: Node) -> Pool | None:
        """One pool; nodes that see the same slices share it, unless all are of one node and change alone."""
        if any(each.differs_by_node for each in slices) or all(_is_local(each.slice) for each in slices):
            return self._pool(key, slices, node)
        place = tuple(id(each) for each in slices)
        if place not in self._one_pool:
            self._one_pool[place] = self._pool(key, slices, node)
        return self._one_pool[place]

    def _trouble(self, key: PoolKey) -> PoolState | None:
        """The state of a pool with counters for nodes that reach none of its devices; None if it is valid."""
        slices = self._counters.get(key)
        found = self._judged(key, slices) if slices else None
        return None if found is None or found.state is PoolState.COMPLETE else found.state

    def _pool(self, key: PoolKey, slices: Sequence[SlicedDevices], node: Node | None) -> Pool | None:
        """One pool; None if a newer generation is published elsewhere."""
        found = self._judged(key, slices)
        if found is None:
            return None
        devices = tuple(device for each in found.newest for device in each.devices(node))
        others = tuple(device for each in found.rest for device in each.devices(node))
        return Pool(key, found.state, devices, others, self._counters_of(found.newest).amounts)

    def _counters_of(self, slices: Sequence[SlicedDevices]) -> _Counted:
        """The counters of slices that are held; slices of counters are large, and nodes are many."""
        place = tuple(id(each) for each in slices if each.slice.spec.shared_counters)
        known = self._counted.get(place)
        if known is None:
            sets = [one for each in slices for one in each.slice.spec.shared_counters]
            amounts = {
                (one.name, name): amount for one in sets for name, amount in amounts_of(one.counters).items()
            }
            is_doubled = len({one.name for one in sets}) < len(sets)
            known = self._counted[place] = _Counted(frozenset(amounts), amounts, is_doubled)
        return known

    def _judged(self, key: PoolKey, slices: Sequence[SlicedDevices]) -> _Judged | None:
        """A pool without its devices; None if a newer generation is published elsewhere."""
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
        names = {each.slice.name for each in newest}
        rest = [each for each in same if each.slice.name not in names] if left_out else []
        if state is PoolState.COMPLETE and _is_invalid(newest, rest, self._counters_of(newest)):
            state = PoolState.INVALID
        return _Judged(state, newest, rest)


def _is_local(each: ResourceSlice) -> bool:
    """Whether only one node reaches its devices."""
    spec = each.spec
    return (
        bool(spec.node_name)
        and not spec.per_device_node_selection
        and not (spec.shared_counters and spec.devices)
    )


def _pool_of(each: SlicedDevices) -> ResourcePool:
    return each.slice.spec.pool


def _is_invalid(newest: Sequence[SlicedDevices], others: Sequence[SlicedDevices], counted: _Counted) -> bool:
    names = [device.name for each in newest for device in each.slice.spec.devices]
    if len(set(names)) < len(names) or counted.is_doubled:
        return True
    return any(not each.draws_on <= counted.offered for each in (*newest, *others))
