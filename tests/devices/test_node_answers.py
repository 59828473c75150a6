"""NodeAnswers: only nodes where something changed are searched again, with the results of a new search."""

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from devices.builders import DRIVER, a_book, a_claim, a_device, a_slice, exactly
from dra_cel import selectors as kept_selectors
from plimsoll.devices import cel, node_answers
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.node_answers import FAILED, FEW, FREE, NOT_FREE, NodeAnswers, expressions_of
from plimsoll.devices.pools import PoolKey
from plimsoll.devices.requests import wanted_claim
from plimsoll.devices.results import allocations
from plimsoll.devices.selectors import is_selected
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.resource_claim import AllocationResult, ResourceClaim
from plimsoll.model.kinds.resource_slice import ResourceSlice
from plimsoll.testing.builders import a_node

NODES = [a_node(name) for name in ("n0", "n1", "n2")]
#: Takes 50 steps.
SLOW = "[1, 2, 3, 4, 5, 6, 7, 8, 9].all(a, [1, 2, 3, 4].all(b, a + b > 0))"
EVERY = np.ones(3, dtype=np.bool_)


def a_cluster() -> DeviceBook:
    """Three nodes, two devices on each."""
    return a_book([a_slice(node.name, [a_device("a"), a_device("b")]) for node in NODES])


def asked(answers: NodeAnswers, book: DeviceBook, claim: ResourceClaim | None = None) -> list[int]:
    """The codes of the nodes, for one claim."""
    wanted = [wanted_claim(claim or a_claim(), book.classes.get)]
    answers.renew(wanted, NODES, 0, book, EVERY)
    codes: list[int] = answers.codes.tolist()
    return codes


def allocate(answers: NodeAnswers, book: DeviceBook, name: str, row: int) -> None:
    """Give a claim what a node answered."""
    claim = a_claim(name)
    kept = answers.answer(row).found
    assert kept is not None
    wanted = [wanted_claim(claim, book.classes.get)]
    found = kept.found(wanted, book.slices.pools_of(NODES[row]))
    assert found is not None
    book.allocate(claim, allocations(wanted, found, NODES[row].name, lambda: "share")[0])


def an_allocation(pool: str, device: str) -> AllocationResult:
    """One device."""
    result = {"request": "r", "driver": DRIVER, "pool": pool, "device": device}
    return convert(AllocationResult, {"devices": {"results": [result]}})


def test_one_node_is_asked_again() -> None:
    """That on which devices were taken; when none is left there, it is refused."""
    book, answers = a_cluster(), NodeAnswers(is_selected, 1_000)

    assert asked(answers, book) == [FREE] * 3
    allocate(answers, book, "one", 1)
    assert asked(answers, book) == [FREE] * 3
    assert answers.searches == 4
    allocate(answers, book, "two", 1)
    assert asked(answers, book) == [FREE, NOT_FREE, FREE]
    assert answers.searches == 5


def test_devices_that_come_back_are_free() -> None:
    """A decision that was not carried out gives them back."""
    book, answers = a_cluster(), NodeAnswers(is_selected, 1_000)
    asked(answers, book)
    for name in ("one", "two"):
        allocate(answers, book, name, 0)
        asked(answers, book)

    book.release(a_claim("two"))

    assert asked(answers, book) == [FREE] * 3


def test_another_slice_is_seen() -> None:
    """A node that had nothing publishes a device."""
    book, answers = a_book([]), NodeAnswers(is_selected, 1_000)
    assert asked(answers, book) == [NOT_FREE] * 3

    book.set_slice(a_slice("n2", [a_device("a")]))

    assert asked(answers, book) == [NOT_FREE, NOT_FREE, FREE]


def test_a_selector_that_fails_names_the_claim_that_asks() -> None:
    """The same search for a claim of another name has another sentence."""
    book, answers = a_cluster(), NodeAnswers(is_selected, 1_000)
    wanted = {
        "name": "r",
        "exactly": exactly(selectors=[{"cel": {"expression": 'device.attributes["x"].y == 1'}}]),
    }
    errors = []
    for name in ("one", "two"):
        assert asked(answers, book, a_claim(name, wanted)) == [FAILED] * 3
        errors.append(answers.answer(0).failure([wanted_claim(a_claim(name, wanted), book.classes.get)]))

    assert errors == [
        f"claim default/{name}: selector #0: CEL runtime error: no such key: y" for name in ("one", "two")
    ]


def test_a_search_that_takes_too_long_is_made_once() -> None:
    """The nodes behind are not searched: the attempt ends with an error."""
    devices = [a_device(f"d{at}") for at in range(24)]
    book = a_book([a_slice(node.name, devices) for node in NODES])
    claim = a_claim("c", {"name": "r", "exactly": exactly(20)}, {"name": "never", "exactly": exactly(10)})
    answers = NodeAnswers(is_selected, 2_000)

    assert asked(answers, book, claim) == [FAILED] * 3
    assert answers.searches == 1
    assert answers.answer(0).error == "node n0: timed out trying to allocate devices"


def test_a_copy_and_its_original_do_not_see_each_others_changes() -> None:
    """They share what was answered before; of different changes with one number, each knows its own."""
    book, answers = a_cluster(), NodeAnswers(is_selected, 1_000)
    asked(answers, book)
    copy, twin = book.copied(), answers.copied()
    for name in ("one", "two"):
        allocate(answers, book, name, 0)
        allocate(twin, copy, name, 2)
        asked(answers, book)
        asked(twin, copy)

    assert asked(answers, book) == [NOT_FREE, FREE, FREE]
    assert asked(twin, copy) == [FREE, FREE, NOT_FREE]
    assert twin.searches == answers.searches == 3 + 2


def test_a_copy_on_nodes_in_another_order_asks_them_again() -> None:
    """Rows of another cluster are other nodes."""
    book, answers = a_book([a_slice("n0", [a_device("a")])]), NodeAnswers(is_selected, 1_000)
    assert asked(answers, book) == [FREE, NOT_FREE, NOT_FREE]
    twin = answers.copied()

    twin.renew([wanted_claim(a_claim(), book.classes.get)], NODES[::-1], 0, book.copied(), EVERY)

    assert twin.codes.tolist() == [NOT_FREE, NOT_FREE, FREE]


def test_a_claim_that_takes_too_long_is_not_searched_for_again() -> None:
    """As long as nothing changed on that node; then it is, once."""
    devices = [a_device(f"d{at}") for at in range(24)]
    book = a_book([a_slice(node.name, devices) for node in NODES])
    claim = a_claim("c", {"name": "r", "exactly": exactly(20)}, {"name": "never", "exactly": exactly(10)})
    answers = NodeAnswers(is_selected, 2_000)
    for _ in range(3):
        asked(answers, book, claim)
    book.allocate(a_claim("other"), an_allocation("n0", "d0"))

    assert answers.searches == 1
    assert asked(answers, book, claim) == [FAILED] * 3
    assert answers.searches == 2


def test_nodes_behind_one_that_takes_too_long_are_left_alone_until_it_changes() -> None:
    """Each attempt took their answers down again; now they are asked when that node has another answer."""
    devices = [a_device(f"d{at}") for at in range(24)]
    slices = [a_slice("n0", devices), a_slice("n1", [a_device("a")]), a_slice("n2", [])]
    book, answers = a_book(slices), NodeAnswers(is_selected, 2_000)
    claim = a_claim("c", {"name": "r", "exactly": exactly(20)}, {"name": "never", "exactly": exactly(10)})
    first = asked(answers, book, claim)
    kept = answers.answer(2)

    again = asked(answers, book, claim)
    is_kept = answers.answer(2) is kept
    book.set_slice(a_slice("n0", []))

    assert (first, again) == ([FAILED] * 3, [FAILED] * 3)
    assert is_kept
    assert asked(answers, book, claim) == [NOT_FREE] * 3
    assert answers.searches == 1 + 3


MANY = [a_node(f"m{number}") for number in range(200)]


def parted(answers: NodeAnswers, book: DeviceBook, claim: ResourceClaim | None = None) -> int:
    """Ask many nodes in parts; how many there were."""
    wanted, parts = [wanted_claim(claim or a_claim(), book.classes.get)], 1
    while answers.renew_part(wanted, MANY, 0, book, np.ones(len(MANY), dtype=np.bool_)):
        parts += 1
    return parts


def test_parts_answer_like_the_whole() -> None:
    """Each is short; what they leave is little, and what they have answered is not asked again."""
    devices = [a_device("d0"), a_device("d1")]
    book = a_book([a_slice(node.name, devices[: 1 + at % 2]) for at, node in enumerate(MANY)])
    whole, answers = NodeAnswers(is_selected, 1_000), NodeAnswers(is_selected, 1_000)
    claim = a_claim("c", {"name": "r", "exactly": exactly(2, selectors=[{"cel": {"expression": SLOW}}])})
    wanted, every = [wanted_claim(claim, book.classes.get)], np.ones(len(MANY), dtype=np.bool_)
    whole.renew(wanted, MANY, 0, book, every)

    parts = parted(answers, book, claim)
    by_parts = answers.searches
    answers.renew(wanted, MANY, 0, book, every)

    assert parts > 3
    assert by_parts >= len(MANY) - FEW
    assert answers.searches == len(MANY)
    assert answers.codes.tolist() == whole.codes.tolist()


def test_parts_share_the_steps_of_one_attempt() -> None:
    """A claim that is hard everywhere is given up after as many steps as without parts."""
    book = a_book([a_slice(node.name, [a_device(f"d{at}") for at in range(10)]) for node in MANY])
    claim = a_claim("c", {"name": "r", "exactly": exactly(5)}, {"name": "never", "exactly": exactly(6)})
    wanted, every = [wanted_claim(claim, book.classes.get)], np.ones(len(MANY), dtype=np.bool_)
    whole, answers = NodeAnswers(is_selected, 10_000), NodeAnswers(is_selected, 10_000)
    whole.renew(wanted, MANY, 0, book, every)

    parted(answers, book, claim)
    answers.renew(wanted, MANY, 0, book, every)

    assert 0 < whole.searches < len(MANY)
    assert answers.searches == whole.searches
    assert answers.codes.tolist() == whole.codes.tolist()


def test_parts_end_with_a_search_that_takes_too_long() -> None:
    """The attempt says so."""
    book = a_book([a_slice(node.name, [a_device(f"d{at}") for at in range(24)]) for node in MANY])
    claim = a_claim("c", {"name": "r", "exactly": exactly(20)}, {"name": "never", "exactly": exactly(10)})
    answers = NodeAnswers(is_selected, 2_000)

    assert parted(answers, book, claim) == 1
    answers.renew([wanted_claim(claim, book.classes.get)], MANY, 0, book, np.ones(len(MANY), dtype=np.bool_))
    assert answers.searches == 1
    assert answers.codes.tolist() == [FAILED] * len(MANY)


def test_nodes_that_reach_the_same_devices_are_asked_once() -> None:
    """A pool that all nodes reach, with one of its devices taken after the other."""
    book = a_book([a_slice("", [a_device("a"), a_device("b")])])
    answers = NodeAnswers(is_selected, 1_000)
    codes = []
    for name in ("one", "two", "three"):
        codes.append(asked(answers, book))
        if codes[-1][0] == FREE:
            allocate(answers, book, name, 0)

    assert codes == [[FREE] * 3, [FREE] * 3, [NOT_FREE] * 3]
    assert answers.searches == 3


COUNTERS = [{"name": "s", "counters": {"memory": {"value": "4"}}}]
SOME = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "DoesNotExist"}]}]}
EACH: dict[str, Any] = {"nodeName": "", "perDeviceNodeSelection": True}


@pytest.mark.parametrize(
    ("published", "codes", "searches"),
    [
        pytest.param(a_slice("", [a_device("a")]), [FREE] * 3, 1, id="all-nodes"),
        pytest.param(
            a_slice("", [a_device("a")], allNodes=False, nodeSelector=SOME), [FREE] * 3, 1, id="selected"
        ),
        pytest.param(
            a_slice("n0", [a_device("a")], sharedCounters=COUNTERS), [FREE] * 3, 1, id="counters-and-devices"
        ),
        pytest.param(
            a_slice("n0", [a_device("a", nodeSelector=SOME)], **EACH), [FREE] * 3, 1, id="a-device-selects"
        ),
        pytest.param(
            a_slice("n0", [a_device("a", nodeName="n0"), a_device("b", nodeName="n2")], **EACH),
            [FREE, NOT_FREE, FREE],
            3,
            id="devices-of-two-nodes",
        ),
        pytest.param(
            a_slice("n0", [a_device("a", nodeName="n0")], sharedCounters=COUNTERS, **EACH),
            [FREE, NOT_FREE, NOT_FREE],
            2,
            id="counters-and-a-device-of-one-node",
        ),
    ],
)
def test_nodes_are_asked_once_for_what_they_reach_of_a_slice(
    published: ResourceSlice, codes: list[int], searches: int
) -> None:
    """One slice, however it says which nodes reach it, is not searched for each of 5,000 nodes."""
    answers = NodeAnswers(is_selected, 1_000)

    assert asked(answers, a_book([published])) == codes
    assert answers.searches == searches


def test_a_slice_of_one_node_concerns_that_node_alone() -> None:
    """A driver that publishes its devices again costs one search, and the node gets them."""
    book, answers = a_cluster(), NodeAnswers(is_selected, 1_000)
    asked(answers, book)

    book.set_slice(a_slice("n1", [a_device("a", taints=[{"key": "k", "effect": "NoSchedule"}])]))
    tainted = asked(answers, book)
    book.remove_slice("n1-gpu")
    book.set_slice(a_slice("n1", [a_device("c")]))

    assert tainted == [FREE, NOT_FREE, FREE]
    assert asked(answers, book) == [FREE] * 3
    assert answers.searches == 3 + 2


def test_a_driver_that_renames_its_pool_leaves_nothing_behind() -> None:
    """Neither where the pools of before are remembered, nor where a copy remembers them."""
    book, answers = a_cluster(), NodeAnswers(is_selected, 1_000)
    asked(answers, book)
    before = answers.copied()

    for number in range(5):
        book.remove_slice("n1-gpu")
        asked(answers, book)
        pool = {"name": f"pool-{number}", "generation": 1, "resourceSliceCount": 1}
        book.set_slice(a_slice("n1", [a_device("a")], pool=pool))
        assert asked(answers, book) == [FREE] * 3
    allocate(answers, book, "one", 1)
    twin = answers.copied()

    assert asked(answers, book) == asked(twin, book) == [FREE, NOT_FREE, FREE]
    assert {len(known) for each in (answers, twin) for known in (each._rows_below, each._rows_of)} == {3, 0}
    assert before.rows_of([PoolKey(DRIVER, "n1")]) == {1}
    assert answers.rows_of([PoolKey(DRIVER, "n1")]) == set()


def test_nodes_that_leave_a_pool_cost_no_more_than_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each was looked for among all that were left; some stay, and some come back."""
    looked_at = 0

    def counted(code: str, rows: Sequence[int] = ()) -> "array[int]":
        nonlocal looked_at
        looked_at += len(rows)
        return array(code, rows)

    monkeypatch.setattr(node_answers, "array", counted)
    selector = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "Exists"}]}]}
    slice_ = a_slice("", [a_device("a")], name="of-racks", allNodes=False, nodeSelector=selector)
    book, answers, count = a_book([slice_]), NodeAnswers(is_selected, 1_000), 400
    pool = PoolKey(DRIVER, slice_.spec.pool.name)
    inside = [a_node(f"n{row}", labels={"rack": "r"}) for row in range(count)]
    outside = [a_node(f"n{row}") for row in range(count)]
    claims, every = [wanted_claim(a_claim(), book.classes.get)], np.ones(count, dtype=np.bool_)

    def reaching(nodes: list[Node]) -> set[int]:
        answers.renew(claims, nodes, object(), book, every)
        return set(answers.rows_of([pool]))

    assert reaching(inside) == set(range(count))
    twin = answers.copied()
    assert reaching(inside[:9] + outside[9:]) == set(range(9))
    assert reaching(inside[:9] + outside[9:20] + inside[20:]) == {*range(9), *range(20, count)}
    assert reaching(outside) == set()
    assert set(twin.rows_of([pool])) == set(range(count))
    assert looked_at < 4 * count


def test_a_copy_keeps_the_slices_that_it_was_made_with() -> None:
    """What is published later is seen by the book that heard of it."""
    book = a_cluster()
    asked(NodeAnswers(is_selected, 1_000), book)
    copy = book.copied()

    book.set_slice(a_slice("n1", []))
    copy.set_slice(a_slice("n2", []))

    assert asked(NodeAnswers(is_selected, 1_000), book) == [FREE, NOT_FREE, FREE]
    assert asked(NodeAnswers(is_selected, 1_000), copy) == [FREE, FREE, NOT_FREE]


def test_nodes_that_each_take_long_share_the_steps_of_an_attempt() -> None:
    """None of them takes too long by itself, all of them together do."""
    book = a_book([a_slice(node.name, [a_device(f"d{at}") for at in range(20)]) for node in MANY])
    claim = a_claim("c", {"name": "r", "exactly": exactly(20, selectors=[{"cel": {"expression": SLOW}}])})
    answers = NodeAnswers(is_selected, 5_000)

    answers.renew([wanted_claim(claim, book.classes.get)], MANY, 0, book, np.ones(len(MANY), dtype=np.bool_))

    assert 1 < answers.searches < len(MANY)
    assert answers.codes.tolist() == [FREE] * answers.searches + [FAILED] * (len(MANY) - answers.searches)


def a_long_claim(name: str) -> ResourceClaim:
    """Seven expressions that no other claim has, with 588 characters in all if its name has four."""
    expressions = [f'device.driver != "{name}{"x" * 60}{number}"' for number in range(7)]
    selectors = [{"cel": {"expression": each}} for each in expressions]
    return a_claim(name, {"name": "r", "exactly": exactly(selectors=selectors)})


@pytest.fixture
def few_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt compiles three expressions of a long claim, and one such claim is kept compiled."""
    monkeypatch.setattr(cel, "COMPILED", 260)
    monkeypatch.setattr(cel, "MOST", 700)
    monkeypatch.setattr(kept_selectors, "KEPT_CHARACTERS", 300)


@pytest.mark.usefixtures("few_are_compiled")
def test_long_expressions_are_compiled_in_several_attempts() -> None:
    """Compiling all of a claim's would hold up the pods of others for seconds."""
    claim = a_long_claim("long")
    book, answers = a_cluster(), NodeAnswers(is_selected, 1_000)

    codes, said = [], []
    for _ in range(4):
        codes.append(asked(answers, book, claim))
        said.append(answers.answer(0).error)

    assert codes == [[FAILED] * 3, [FAILED] * 3, [FREE] * 3, [FREE] * 3]
    assert said[0] == (
        "of the 588 characters of CEL in the selectors of the pod's claims 252 are compiled;"
        " the next attempts compile the others"
    )
    assert answers.searches == 3
    assert asked(NodeAnswers(is_selected, 1_000), book, claim) == [FREE] * 3


@pytest.mark.usefixtures("few_are_compiled")
def test_long_claims_of_several_pods_are_compiled_one_after_the_other() -> None:
    """Each pushed out what was compiled for the others, and no such pod ever started."""
    book, waiting, started = a_cluster(), [a_long_claim(name) for name in ("one", "two", "three")], []

    for _ in range(9):
        for claim in list(waiting):
            if asked(NodeAnswers(is_selected, 1_000), book, claim)[0] == FREE:
                waiting.remove(claim)
                started.append(claim.name)

    assert started == ["one", "two", "three"]


@pytest.mark.usefixtures("few_are_compiled")
@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_pod_that_does_not_ask_again_keeps_no_other_from_its_turn(is_deleted: bool) -> None:
    book, mine, gone = a_cluster(), a_long_claim(f"min{is_deleted:d}"), a_long_claim(f"gon{is_deleted:d}")
    book.set_claim(gone)
    asked(NodeAnswers(is_selected, 1_000), book, gone)
    answers = NodeAnswers(is_selected, 1_000)
    asked(answers, book, mine)
    assert answers.answer(0).error.endswith("which are compiled after those of another pod")

    if is_deleted:
        book.remove_claim(gone.key)
    else:
        book.now += cel.PATIENCE_S

    assert [asked(answers, book, mine)[0] for _ in range(3)] == [FAILED, FAILED, FREE]


@pytest.mark.usefixtures("few_are_compiled")
def test_what_was_compiled_for_a_long_claim_goes_with_it() -> None:
    book, claim = a_cluster(), a_long_claim("goes")
    book.set_claim(claim)
    texts = set(expressions_of([wanted_claim(claim, book.classes.get)]))
    for _ in range(2):
        asked(NodeAnswers(is_selected, 1_000), book, claim)
    assert not cel.is_too_much(texts)

    book.remove_claim(claim.key)

    assert cel.is_too_much(texts)


@pytest.mark.usefixtures("few_are_compiled")
def test_a_pod_with_more_expressions_than_are_compiled_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cel, "MOST", 500)
    book, answers = a_cluster(), NodeAnswers(is_selected, 1_000)

    assert [asked(answers, book, a_long_claim("more")) for _ in range(9)] == [[FAILED] * 3] * 9
    assert answers.answer(2).error == (
        "the selectors of the pod's claims and of their classes have 588 characters of CEL, and at most 500"
        " are compiled for a pod"
    )
