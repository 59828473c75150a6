"""DeviceRows are what a fresh count says, and count only nodes whose devices changed."""

import random

from devices.builders import a_class, a_device, a_slice
from planning.device_worlds import a_made_claim, a_world
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.device_blocks import DeviceBlocks, DeviceGroup, blocks_of
from plimsoll.devices.device_rows import DeviceRows
from plimsoll.framework import Node
from plimsoll.model.columns.cluster import Cluster

NODES = {"a": 2, "b": 4, "c": 0, "d": 4}


class Counting:
    """Free devices, free pairs and all pairs by node, with the names of the nodes that were counted."""

    def __init__(self, cluster: Cluster, *, is_fresh: bool = False) -> None:
        self.is_fresh = is_fresh
        self.book = cluster.objects.ledger(DeviceBook)
        self.asked: list[str] = []
        self.rows = DeviceRows(cluster, self.book, self.count, 3)

    def count(self, node: Node) -> tuple[int, int, int]:
        """Free devices, free pairs, and all pairs."""
        self.asked.append(node.name)
        pools = self.book.slices.pools_of(node)
        free = sum(not self.book.taken.is_consumed(each.id) for pool in pools for each in pool.devices)
        group = DeviceGroup("gpu", 2)
        blocks = DeviceBlocks(group) if self.is_fresh else blocks_of(group, self.book)
        pairs = blocks.on(node, self.book)
        return free, pairs.free, pairs.most


def test_only_nodes_with_changed_devices_are_counted_again() -> None:
    """One claim, one node."""
    cluster = a_world(NODES, [])
    counting = Counting(cluster)
    first = counting.rows.values().tolist()
    counting.asked.clear()

    counting.book.set_claim(a_made_claim("p", "b", ["d0"]))
    second = counting.rows.values().tolist()

    assert first == [[2, 1, 1], [4, 2, 2], [0, 0, 0], [4, 2, 2]]
    assert second == [[2, 1, 1], [3, 1, 2], [0, 0, 0], [4, 2, 2]]
    assert counting.asked == ["b"]


def test_whatever_happens_they_are_what_a_fresh_count_says() -> None:
    """Claims come and go, slices and classes change, the book is copied."""
    rng = random.Random(7)
    cluster = a_world(NODES, [])
    counting = Counting(cluster)
    for step in range(200):
        node = rng.choice(["a", "b", "d"])
        match rng.randrange(8):
            case 0:
                counting.book.remove_claim(f"default/p{rng.randrange(8)}-gpu")
            case 1:
                count = rng.randrange(4, 7)
                counting.book.set_slice(a_slice(node, [a_device(f"d{at}") for at in range(count)]))
            case 2:
                counting.book.set_class(a_class("other" if step % 2 else "gpu"))
            case 3:
                cluster = cluster.fork()
                counting = Counting(cluster)
            case _:
                number = rng.randrange(8)
                counting.book.set_claim(a_made_claim(f"p{number}", node, [f"d{number % 4}"]))
        known = counting.rows.values().tolist()
        assert known == Counting(cluster, is_fresh=True).rows.values().tolist(), step


def test_a_device_that_several_nodes_reach_counts_on_each_of_them() -> None:
    """And is counted again on each."""
    cluster = a_world({"a": 0, "b": 0}, [])
    counting = Counting(cluster)
    counting.book.set_slice(a_slice("", [a_device("d0"), a_device("d1")]))
    before = counting.rows.values().tolist()

    counting.book.set_claim(a_made_claim("p", "shared", ["d0"]))

    assert before == [[2, 1, 1], [2, 1, 1]]
    assert counting.rows.values().tolist() == [[1, 0, 1], [1, 0, 1]]
