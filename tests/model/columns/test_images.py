"""Image states follow the nodes that come, change and go."""

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.model.columns import images as image_tables
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.images import ImageTable
from plimsoll.model.columns.node_rows import FEW, NodeRows
from plimsoll.model.kinds.node import ContainerImage, Node
from plimsoll.testing.builders import a_cluster, a_node

IMAGES = st.lists(st.sampled_from(["a:1", "b:1", "c:1"]), unique=True)
NAMES = st.sampled_from(["n0", "n1", "n2", "n3"])


def with_images(name: str, images: list[str], size: int = 10) -> Node:
    return a_node(name, status={"images": [{"names": [image], "sizeBytes": size} for image in images]})


def holders(cluster: Cluster) -> dict[str, Any]:
    found = {image: cluster.image(image) for image in ("a:1", "b:1", "c:1")}
    return {
        image: {cluster.nodes[row].name for row in state.rows}
        for image, state in found.items()
        if state is not None
    }


@given(st.lists(st.tuples(NAMES, st.none() | IMAGES), max_size=20))
def test_the_table_equals_one_made_from_the_nodes(steps: list[tuple[str, list[str] | None]]) -> None:
    """After any sequence of nodes set and removed, each image has exactly the nodes that report it."""
    cluster = a_cluster()
    cluster.image("a:1")
    expected: dict[Any, Any] = {}
    for name, images in steps:
        if images is None:
            cluster.remove_node(name)
            expected.pop(name, None)
        else:
            cluster.set_node(with_images(name, images))
            expected[name] = images

    reported = {image for images in expected.values() for image in images}
    assert holders(cluster) == {
        image: {name for name, images in expected.items() if image in images} for image in reported
    }


def test_the_size_is_the_first_reporters() -> None:
    """As upstream keeps it, until no node has the image."""
    cluster = a_cluster([with_images("n1", ["a:1"], size=10), with_images("n2", ["a:1"], size=20)])

    assert cluster.image("a:1").size_bytes == 10
    assert cluster.image("unknown") is None


def test_a_fork_has_its_own_table() -> None:
    """Neither side sees what the other changes."""
    cluster = a_cluster([with_images("n1", ["a:1"]), with_images("n2", ["a:1"])])
    cluster.image("a:1")
    fork = cluster.fork()

    fork.remove_node("n1")
    cluster.set_node(with_images("n2", ["b:1"]))

    assert holders(fork) == {"a:1": {"n2"}}
    assert holders(cluster) == {"a:1": {"n1"}, "b:1": {"n2"}}


REPORTED = st.tuples(
    st.lists(st.sampled_from(["a:1", "b:1", "c:1"]), min_size=1, max_size=3), st.integers(1, 3)
)


@given(st.lists(st.lists(REPORTED, max_size=4), max_size=6), st.sampled_from([0, 2, 50_000]))
def test_a_table_made_from_all_nodes_is_the_one_made_node_by_node(
    nodes: list[list[tuple[list[str], int]]], most: int
) -> None:
    """Sizes too: of several the first node's counts, also where nodes share images, and with many images."""
    made = [[ContainerImage(names=tuple(names), size_bytes=size) for names, size in each] for each in nodes]
    made += made[::-1]  # the same images again
    whole, one_by_one = ImageTable(), ImageTable()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(image_tables, "MOST_IMAGES", most)
        whole.add_all(made)
    for row, each in enumerate(made):
        one_by_one.add(row, each)

    for name in ("a:1", "b:1", "c:1"):
        here, there = whole.find(name), one_by_one.find(name)
        assert (here is None) is (there is None)
        if here is not None and there is not None:
            assert (here.size_bytes, list(here.rows)) == (there.size_bytes, list(there.rows))


@pytest.mark.parametrize("sizes", [(), (3,), (0, 5), (60, 60), (FEW, 1), (150, 3, 150)])
def test_rows_may_be_added_together(sizes: tuple[int, ...]) -> None:
    chance = Random(str(sizes))
    parts = [chance.choices(range(300), k=size) for size in sizes]
    more = chance.randrange(300)

    rows = NodeRows()
    for part in parts:
        rows.add_all(np.array(part, dtype=np.intp))
    expected = {row for part in parts for row in part}
    assert (len(rows), list(rows)) == (len(expected), sorted(expected))

    rows.add(more)
    rows.discard(0)
    assert set(rows) == (expected | {more}) - {0}


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 200)), max_size=300), st.sampled_from([FEW, 4 * FEW]))
def test_rows_are_a_set_of_rows(steps: list[tuple[bool, int]], most: int) -> None:
    """While they are few, when they have become many, and in a copy that goes its own way."""
    rows, expected = NodeRows(), set[int]()
    for is_added, row in [(True, each) for each in range(0, most, 2)] + steps:
        (rows.add if is_added else rows.discard)(row)
        (expected.add if is_added else expected.discard)(row)
    twin = rows.copy()
    twin.add(1000)
    twin.discard(0)

    assert rows.array().tolist() == sorted(expected)
    assert len(rows) == len(expected)
    assert set(twin) == expected - {0} | {1000}
