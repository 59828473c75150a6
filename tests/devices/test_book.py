"""DeviceBook: in any order of events it agrees with allocated claims and decisions in flight."""

from collections.abc import Mapping
from sys import getrefcount
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from devices.builders import DRIVER, a_book, a_claim, a_class, a_device, a_slice, taken_by
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.holds import DeviceHold
from plimsoll.devices.pools import DeviceID
from plimsoll.model.decoding import convert
from plimsoll.model.heavy_objects import HEAVY_BYTES
from plimsoll.model.kinds.resource_claim import AllocationResult
from plimsoll.testing.builders import a_pod


def allocation(device: str, **more: Any) -> AllocationResult:
    """One device of node ``n``."""
    result = {"request": "r", "driver": DRIVER, "pool": "n", "device": device, **more}
    return convert(AllocationResult, {"devices": {"results": [result]}})


def written(name: str, device: str) -> Any:
    """A claim whose status says that it has a device."""
    result = {"request": "r", "driver": DRIVER, "pool": "n", "device": device}
    return a_claim(name, status={"allocation": {"devices": {"results": [result]}}})


def test_a_decision_counts_until_it_is_written_and_after() -> None:
    """Once, not twice; and a claim that is gone has nothing."""
    book, a = a_book([]), DeviceID(DRIVER, "n", "a")

    book.set_claim(a_claim())
    book.allocate(a_claim(), allocation("a"))
    assert book.taken.whole == {a: 1}
    book.set_claim(written("mine", "a"))
    book.release(a_claim())
    assert book.taken.whole == {a: 1}
    book.remove_claim("default/mine")
    assert book.taken.whole == {}


def test_an_old_state_of_a_claim_frees_nothing_that_is_in_flight() -> None:
    """The watch is behind the decision."""
    book = a_book([])
    book.allocate(a_claim(), allocation("a"))

    book.set_claim(a_claim())

    assert len(book.taken.whole) == 1


def test_a_claim_of_the_same_name_is_another_one() -> None:
    """What the former had is free."""
    book = a_book([])
    book.set_claim(written("mine", "a"))

    book.set_claim(
        convert(type(a_claim()), {"metadata": {"name": "mine", "namespace": "default", "uid": "new"}})
    )

    assert book.taken.whole == {}


def test_a_hold_is_open_to_its_pod_to_higher_priorities_and_to_who_shares_the_claim() -> None:
    """To others of its priority nothing of it is; who shares one of two claims gets that one."""
    book = a_book([])
    book.set_claim(a_claim("mine"))
    given = {f"default/{each}": allocation(each) for each in ("mine", "other")}
    hold = DeviceHold("uid-default-p", 5, "n", given, {})
    book.hold(hold)

    def found(name: str, priority: int, *claims: str) -> list[list[str]]:
        named = [{"name": each, "resourceClaimName": each} for each in claims]
        pod = a_pod(name, priority=priority, resourceClaims=named)
        return [sorted(each.given) for each in book.open_to(pod)]

    both = [["default/mine", "default/other"]]
    assert found("p", 0) == both
    assert found("q", 6) == both
    assert found("q", 5) == []
    assert found("q", 4, "third") == []
    assert found("q", 5, "mine", "third") == [["default/mine"]]


def test_of_two_classes_for_one_resource_the_newer_counts() -> None:
    """And each has its own implicit name."""
    old = a_class("old", extendedResourceName="x.com/gpu")
    new = convert(
        type(old),
        {
            "metadata": {"name": "new", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"extendedResourceName": "x.com/gpu"},
        },
    )
    book = a_book([], classes=[old, new])

    found = [
        book.class_of_resource(name)
        for name in ("x.com/gpu", "deviceclass.resource.kubernetes.io/old", "x.com/other")
    ]

    assert [each and each.name for each in found] == ["new", "old", None]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("allocate", "release", "write", "unwrite", "remove", "copy", "hold", "drop")),
            st.sampled_from(("one", "two", "three")),
            st.sampled_from(("a", "b")),
        ),
        max_size=30,
    )
)
def test_what_is_taken_equals_a_recount(events: list[tuple[str, str, str]]) -> None:
    """After any sequence of events, also in a copy; and a copy's changes are its own."""
    book = a_book([a_slice("n", [a_device("a"), a_device("b")])])
    for event, name, device in events:
        match event:
            case "allocate":
                book.allocate(a_claim(name), allocation(device))
            case "release":
                book.release(a_claim(name))
            case "write":
                book.set_claim(written(name, device))
            case "unwrite":
                book.set_claim(a_claim(name))
            case "remove":
                book.remove_claim(f"default/{name}")
            case "hold":
                book.hold(DeviceHold(name, 0, "n", {"default/x": allocation(device)}))
            case "drop":
                book.drop(name)
            case _:
                before, copy = dict(book.taken.whole), book.copied()
                copy.allocate(a_claim("copy"), allocation(device))
                copy.drop(name)
                assert book.taken.whole == before
                assert copy.taken.whole == recounted(copy)
        assert book.taken.whole == recounted(book)


def recounted(book: DeviceBook) -> Mapping[DeviceID, int]:
    """What the claims and the decisions say, added up."""
    said = {claim.uid: claim.status.allocation for claim in book.claims.values()} | book.in_flight
    held = [each for hold in book.holds.values() for each in hold.given.values()]
    return taken_by([*held, *(each for each in said.values() if each is not None)]).whole


def test_a_large_claim_that_has_gone_is_kept_by_no_layer_and_no_search() -> None:
    """Copies of the book share layers, and a search in parts keeps what it has found."""
    book = a_book([])
    name = "mine" * HEAVY_BYTES
    claim = written(name, "a")
    book.set_claim(claim)
    searched = DeviceBook()
    book.kept_for("pod", [claim.key], "shape", lambda: searched)
    before = getrefcount(searched)
    book.copied()
    held = getrefcount(claim)

    book.remove_claim(claim.key)

    assert getrefcount(claim) < held
    assert getrefcount(searched) < before
