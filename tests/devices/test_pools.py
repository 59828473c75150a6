"""Pools of a node: slices of counters concern every node, and cost only those that reach their devices."""

from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Any

import numpy as np
import pytest

from devices.builders import a_book, a_claim, a_device, a_slice, exactly
from plimsoll.devices.amounts import amounts_of
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.node_answers import NodeAnswers
from plimsoll.devices.pools import PoolState, pool_of, slices
from plimsoll.devices.requests import wanted_claim
from plimsoll.devices.selectors import is_selected
from plimsoll.model.kinds.resource_slice import ResourceSlice
from plimsoll.testing.builders import a_node

NODES = ("n0", "n1", "n2")


def counters(node: str, **pool: object) -> ResourceSlice:
    """The counters of a node's pool."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 2, **pool}
    sets = [{"name": "s", "counters": {"memory": {"value": "4"}}}]
    return a_slice(node, [], name=f"{node}-counters", sharedCounters=sets, pool=pool)


def parts(node: str, counter: str = "memory") -> ResourceSlice:
    """Two devices that consume them."""
    consumed = [{"counterSet": "s", "counters": {counter: {"value": "3"}}}]
    return a_slice(node, [a_device(name, consumesCounters=consumed) for name in "ab"], slices=2)


def states(book: DeviceBook, node: str) -> list[tuple[str, PoolState, int]]:
    """Pools that the node looks at, with their state and number of devices."""
    return [(pool.key.name, pool.state, len(pool.devices)) for pool in book.slices.pools_of(a_node(node))]


def test_a_node_does_not_look_at_counters_of_others() -> None:
    """Of 5,000 nodes that are partitioned it would look at 5,000 pools."""
    book = a_book([each for node in NODES for each in (counters(node), parts(node))])

    assert [states(book, node) for node in NODES] == [[(node, PoolState.COMPLETE, 2)] for node in NODES]


@pytest.mark.parametrize(
    ("broken", "state"),
    [
        pytest.param(parts("n0", counter="cores"), PoolState.INVALID, id="a-counter-that-does-not-exist"),
        pytest.param(counters("n0", resourceSliceCount=3), PoolState.INCOMPLETE, id="a-slice-is-missing"),
    ],
)
def test_a_pool_with_counters_that_is_not_complete_concerns_every_node(
    broken: ResourceSlice, state: PoolState
) -> None:
    """As upstream: requests for all devices fail there, too."""
    slices = {each.name: each for node in NODES for each in (counters(node), parts(node))}
    if state is PoolState.INCOMPLETE:
        del slices["n0-gpu"]
    slices[broken.name] = broken
    book = a_book(list(slices.values()))

    assert states(book, "n1") == [("n0", state, 0), ("n1", PoolState.COMPLETE, 2)]


def test_nodes_share_what_all_of_them_reach() -> None:
    """A pool of 10,000 devices is kept once."""
    book = a_book([a_slice("", [a_device("a")], name="everywhere"), a_slice("n0", [a_device("b")])])
    found = {node: book.slices.pools_of(a_node(node)) for node in NODES}

    assert found["n1"] is found["n2"]
    assert found["n0"][-1] is found["n1"][0]
    assert [pool.key.name for pool in found["n0"]] == ["n0", "shared"]


def a_story(random: Random) -> Iterator[ResourceSlice | str]:
    """Slices that are published, and names of those that are deleted: local, wide, with counters, torn."""
    while True:
        node, generation = random.choice(NODES), random.choice((1, 1, 2))
        pool = {"name": random.choice((node, "n0", "shared")), "generation": generation}
        count = {"resourceSliceCount": random.choice((1, 2))}
        match random.randrange(6):
            case 0:
                yield random.choice(("n0-gpu", "n1-gpu", "wide", "n0-counters", "each"))
            case 1:
                yield a_slice("", [a_device("w")], name="wide", pool={**pool, **count})
            case 2:
                yield counters(node, **pool, **count)
            case 3:
                yield parts(node, random.choice(("memory", "cores")))
            case 4:
                devices = [a_device(name, nodeName=random.choice(NODES)) for name in "xy"]
                yield a_slice(
                    node,
                    devices,
                    name="each",
                    nodeName="",
                    perDeviceNodeSelection=True,
                    pool={**pool, **count},
                )
            case _:
                yield a_slice(node, [a_device(random.choice("abc"))], pool={**pool, **count})


def reaches(each: ResourceSlice, node: str) -> bool:
    """Whether a node reaches devices of a slice."""
    spec = each.spec
    if spec.per_device_node_selection:
        return any(device.node_name == node for device in spec.devices)
    return bool(spec.devices) and (spec.all_nodes or spec.node_name == node)


def judged(seen: list[ResourceSlice], everywhere: list[ResourceSlice]) -> tuple[PoolState, int] | None:
    """State and number of devices of a pool, of which a node sees some slices; None if it is out of date."""
    latest = max(each.spec.pool.generation for each in seen)
    newest = [each for each in seen if each.spec.pool.generation == latest]
    devices = [device for each in newest for device in each.spec.devices]
    same = newest
    if len(newest) not in [each.spec.pool.resource_slice_count for each in newest]:
        if any(each.spec.pool.generation > latest for each in everywhere):
            return None
        same = [each for each in everywhere if each.spec.pool.generation == latest]
        if len(same) not in [each.spec.pool.resource_slice_count for each in same]:
            return PoolState.INCOMPLETE, len(devices)
    sets = [one for each in newest for one in each.spec.shared_counters]
    offered = {(one.name, name) for one in sets for name in one.counters}
    drawn = {
        (one.counter_set, name)
        for each in same
        for device in each.spec.devices
        for one in device.consumes_counters
        for name in one.counters
    }
    names = [device.name for device in devices]
    is_sound = len({*names}) == len(names) and len({one.name for one in sets}) == len(sets)
    return (PoolState.COMPLETE if is_sound and drawn <= offered else PoolState.INVALID), len(devices)


def plain_states(published: dict[str, ResourceSlice], node: str) -> list[tuple[str, PoolState, int]]:
    """What :func:`states` is to say, from a list of all slices."""
    found = []
    for key in sorted({pool_of(each) for each in published.values()}):
        everywhere = [each for each in published.values() if pool_of(each) == key]
        near = [each for each in everywhere if reaches(each, node)]
        seen = [*near, *(each for each in everywhere if each.spec.shared_counters)]
        verdict = judged(seen, everywhere) if seen else None
        if verdict is not None and (near or verdict[0] is not PoolState.COMPLETE):
            found.append((key.name, verdict[0], verdict[1] if near else 0))
    return found


@pytest.mark.parametrize("seed", range(30))
def test_slices_that_change_one_by_one_are_those_that_were_published(seed: int) -> None:
    """After each change every node sees what a list of all slices says, and a book that begins with them."""
    book, nodes = a_book([]), [a_node(name) for name in NODES]
    published: dict[str, ResourceSlice] = {}
    wanted = [wanted_claim(a_claim("c", {"name": "r", "exactly": exactly()}), book.classes.get)]
    answers = NodeAnswers(is_selected, 1_000)
    for change in islice(a_story(Random(seed)), 40):
        if isinstance(change, str):
            published.pop(change, None)
            book.remove_slice(change)
        else:
            published[change.name] = change
            book.set_slice(change)
        fresh = a_book(list(published.values()))
        assert [states(book, node) for node in NODES] == [states(fresh, node) for node in NODES]
        assert [states(book, node) for node in NODES] == [plain_states(published, node) for node in NODES]
        for key in {pool_of(each) for each in published.values()}:
            assert book.slices.published(key) == fresh.slices.published(key)
        again = NodeAnswers(is_selected, 1_000)
        for one, its in ((answers, book), (again, fresh)):
            one.renew(wanted, nodes, 0, its, np.ones(3, dtype=np.bool_))
        assert answers.codes.tolist() == again.codes.tolist()


def test_the_counters_of_a_pool_are_read_once_for_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of counters may be large, and nodes are many; others are read when they are published."""
    reads: list[int] = []

    def read(counters: Any) -> Any:
        reads.append(len(counters))
        return amounts_of(counters)

    monkeypatch.setattr(slices, "amounts_of", read)
    pool = {"name": "shared", "resourceSliceCount": 4}
    drawn = [{"counterSet": "s", "counters": {"memory": {"value": "3"}}}]
    book = a_book(
        [
            counters("n0", **pool),
            *(
                a_slice(
                    node, [a_device(node, consumesCounters=drawn)], slices=4, pool={**pool, "generation": 1}
                )
                for node in NODES
            ),
        ]
    )

    for _ in range(2):
        assert [states(book, node) for node in NODES] == [[("shared", PoolState.COMPLETE, 1)]] * 3
    assert len(reads) == 1

    book.slices.exchange(counters("n0", **pool), counters("n0", **pool))
    assert states(book, "n0") == [("shared", PoolState.COMPLETE, 1)]
    assert len(reads) == 2
