"""Numbers of nodes by their devices, kept by row, equal a count of all."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from plimsoll.devices.device_rows import DeviceRows
from plimsoll.devices.pools.pool import PoolKey
from plimsoll.model.kinds.node import Node
from plimsoll.testing.builders import a_cluster, a_node

NODES = st.sampled_from(["n0", "n1", "n2", "n3"])
POOLS = [PoolKey("driver", name) for name in ("a", "b")]


@dataclass
class PlainBook:
    """Pools with the nodes that reach them and a number each, and what has changed since when."""

    reach: dict[PoolKey, set[str]] = field(default_factory=lambda: {each: set() for each in POOLS})
    devices: dict[PoolKey, int] = field(default_factory=lambda: dict.fromkeys(POOLS, 1))
    version: int = 0
    shape_version: int = 0
    changed: list[PoolKey] = field(default_factory=list)

    @property
    def slices(self) -> Any:
        return SimpleNamespace(
            pools_of=lambda node: [SimpleNamespace(key=key) for key in POOLS if node.name in self.reach[key]]
        )

    def changed_pools(self, version: int) -> frozenset[PoolKey] | None:
        return None if version < 0 else frozenset(self.changed[version:])

    def note(self, key: PoolKey) -> None:
        self.changed.append(key)
        self.version += 1


class Rows(RuleBasedStateMachine):
    """Nodes come and go, pools reach others, and their devices change."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster, self.book = a_cluster(), PlainBook()
        self.rows = DeviceRows(self.cluster, self.book, self.numbers, 1)  # type: ignore[arg-type] # a plain one

    def numbers(self, node: Node) -> tuple[int, ...]:
        return (sum(self.book.devices[key] for key in POOLS if node.name in self.book.reach[key]),)

    @rule(name=NODES)
    def a_node_comes(self, name: str) -> None:
        self.cluster.set_node(a_node(name))

    @rule(name=NODES)
    def a_node_goes(self, name: str) -> None:
        self.cluster.remove_node(name)

    @rule(key=st.sampled_from(POOLS), count=st.integers(0, 9))
    def devices_change(self, key: PoolKey, count: int) -> None:
        self.book.devices[key] = count
        self.book.note(key)

    @rule(key=st.sampled_from(POOLS), nodes=st.sets(NODES))
    def a_pool_reaches_others(self, key: PoolKey, nodes: set[str]) -> None:
        self.book.reach[key] = nodes
        self.book.shape_version += 1
        self.book.note(key)

    @invariant()
    def kept_numbers_are_those_of_now(self) -> None:
        found = self.rows.values()
        assert found.tolist() == [list(self.numbers(node)) for node in self.cluster.nodes]


TestRows = Rows.TestCase
TestRows.settings = settings(stateful_step_count=20, suppress_health_check=list(HealthCheck))
