"""The search for devices: order, backtracking, limits, and the quirks of upstream."""

from collections.abc import Sequence
from typing import Any

import pytest

from devices.builders import DRIVER, a_book, a_claim, a_device, a_slice, exactly, taken_by
from plimsoll.devices.allocator import Found, Search
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.holds import DeviceHold, are_free
from plimsoll.devices.pools import PooledDevice
from plimsoll.devices.requests import Expression, wanted_claim
from plimsoll.devices.results import allocations
from plimsoll.devices.search_limits import AllocationError, StepLimit, UnusablePoolError
from plimsoll.model.kinds.resource_claim import AllocationResult, ResourceClaim
from plimsoll.scheduling.devices.contested import contested
from plimsoll.testing.builders import a_node


def by_model(expression: Expression, device: PooledDevice, _: StepLimit) -> bool:
    """A selector that is the name of a model; devices without one make it fail."""
    model = device.attribute("gpu.example.com/model")
    if model is None:
        raise AllocationError(f"{expression.where}: CEL runtime error: no such key: model", expression.claim)
    return model == expression.text


def found_on(
    book: DeviceBook, *claims: ResourceClaim, node: str = "n", most_steps: int = 10_000
) -> Found | None:
    """What the claims get on a node."""
    wanted = [wanted_claim(claim, book.classes.get) for claim in claims]
    pools = book.slices.pools_of(a_node(node))
    return Search(wanted, pools, book.taken, by_model, most_steps).run()


def devices(found: Found | None) -> list[list[str]]:
    """Names of the devices, claim by claim."""
    assert found is not None
    return [[each.device.id.device for each in given] for given in found.given]


def model(name: str) -> list[dict[str, Any]]:
    """A selector of a model."""
    return [{"cel": {"expression": name}}]


def a_node_with(*names: str, **more: Any) -> DeviceBook:
    """A book with devices on node ``n``."""
    return a_book([a_slice("n", [a_device(name, **more) for name in names])])


def test_devices_are_taken_in_order() -> None:
    """As they stand in the slice."""
    assert devices(found_on(a_node_with("b", "a", "c"), a_claim())) == [["b"]]


def test_two_claims_share_no_device() -> None:
    """The second takes the next one."""
    assert devices(found_on(a_node_with("a", "b"), a_claim("one"), a_claim("two"))) == [["a"], ["b"]]


def test_what_other_claims_hold_is_not_free() -> None:
    """Also if another scheduler wrote their status."""
    book = a_node_with("a", "b")
    held = allocated(book, a_claim("other"))
    book.taken.add(held)

    assert devices(found_on(book, a_claim())) == [["b"]]


def allocated(book: DeviceBook, claim: ResourceClaim) -> AllocationResult:
    """What a claim gets."""
    found = found_on(book, claim)
    assert found is not None
    return allocations([wanted_claim(claim, book.classes.get)], found, "n", lambda: "share")[0]


def test_an_early_choice_is_given_back() -> None:
    """The first request takes a device that only the second one can use."""
    book = a_book([a_slice("n", [a_device("a", "x"), a_device("b", "y")])])
    any_model = {"name": "any", "exactly": exactly()}
    only_x = {"name": "x", "exactly": exactly(selectors=model("x"))}

    assert devices(found_on(book, a_claim("c", any_model, only_x))) == [["b", "a"]]


def test_without_a_solution_nothing_is_found() -> None:
    """Not an error."""
    assert found_on(a_node_with("a"), a_claim("c", {"name": "r", "exactly": exactly(2)})) is None


def test_a_device_in_use_is_not_evaluated() -> None:
    """An expression that fails on it does no harm."""
    book = a_book([a_slice("n", [a_device("a"), a_device("b", "x")])])
    book.taken.add(allocated(book, a_claim("other")))
    wanted = {"name": "r", "exactly": exactly(selectors=model("x"))}

    assert devices(found_on(book, a_claim("c", wanted))) == [["b"]]


def test_an_expression_that_fails_ends_the_search() -> None:
    """With upstream's sentence."""
    wanted = {"name": "r", "exactly": exactly(selectors=model("x"))}

    with pytest.raises(
        AllocationError, match=r"^claim default/c: selector #0: CEL runtime error: no such key"
    ):
        found_on(a_node_with("a"), a_claim("c", wanted))


def test_all_devices() -> None:
    """In order; none left is no solution, even of none."""
    everything = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
    book = a_node_with("a", "b")

    assert devices(found_on(book, a_claim("c", everything))) == [["a", "b"]]
    assert found_on(a_book([]), a_claim("c", everything)) is None
    book.taken.add(allocated(book, a_claim("other")))
    assert found_on(book, a_claim("c", everything)) is None


def test_all_devices_of_a_pool_that_is_published_in_part() -> None:
    """Their number is not known."""
    everything = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
    book = a_book([a_slice("n", [a_device("a")], slices=2)])

    with pytest.raises(
        UnusablePoolError, match=r"resource pool gpu\.example\.com/n is currently being updated"
    ):
        found_on(book, a_claim("c", everything))


def test_more_than_a_claim_may_have() -> None:
    """Said before the search."""
    with pytest.raises(AllocationError, match="requested devices 33 exceeds the claim limit of 32"):
        found_on(a_node_with("a"), a_claim("c", {"name": "r", "exactly": exactly(33)}))


def test_alternatives_are_tried_in_order() -> None:
    """And the one that was chosen is known."""
    wanted = {
        "name": "r",
        "firstAvailable": [
            {"name": "big", **exactly(selectors=model("y"))},
            {"name": "small", **exactly(selectors=model("x"))},
        ],
    }
    found = found_on(a_book([a_slice("n", [a_device("a", "x")])]), a_claim("c", wanted))

    assert found is not None
    assert found.chosen == {(0, 0): 1}
    assert [each.wanted.name for each in found.given[0]] == ["r/small"]


def test_an_attribute_that_all_share() -> None:
    """The first device that has it decides, until it is given back."""
    numa = [
        {"attributes": {"gpu.example.com/numa": {"int": value}, "model": {"string": "x"}}}
        for value in (0, 1, 1)
    ]
    book = a_book([a_slice("n", [{"name": f"d{at}", **each} for at, each in enumerate(numa)])])
    claim = a_claim(
        "c", {"name": "r", "exactly": exactly(2)}, constraints=[{"matchAttribute": "gpu.example.com/numa"}]
    )

    assert devices(found_on(book, claim)) == [["d1", "d2"]]


@pytest.mark.parametrize(
    ("constraint", "found"),
    [
        ({"matchAttribute": f"{DRIVER}/numa"}, None),
        ({"matchAttribute": f"{DRIVER}/numa", "requests": ["r"]}, ["d0", "d1", "d2"]),
        ({"matchAttribute": f"{DRIVER}/numa", "requests": ["r", "other"]}, None),
        ({"distinctAttribute": f"{DRIVER}/numa"}, ["d0", "d2", "d1"]),
        ({"distinctAttribute": f"{DRIVER}/numa", "requests": ["other"]}, ["d0", "d1", "d2"]),
    ],
)
def test_a_constraint_concerns_the_requests_that_it_names(
    constraint: dict[str, Any], found: list[str] | None
) -> None:
    """Two devices on node 0 and one on node 1; all requests without names."""
    numa = [{"attributes": {f"{DRIVER}/numa": {"int": value}}} for value in (0, 0, 1)]
    book = a_book([a_slice("n", [{"name": f"d{at}", **each} for at, each in enumerate(numa)])])
    requests = [{"name": "r", "exactly": exactly(2)}, {"name": "other", "exactly": exactly()}]

    answer = found_on(book, a_claim("c", *requests, constraints=[constraint]))

    assert (None if answer is None else devices(answer)[0]) == found


def test_distinct_values_are_forgotten_as_upstream_forgets_them() -> None:
    """Of a request only the latest value counts: 1, 2, 1 passes."""
    values = [{"attributes": {"gpu.example.com/numa": {"int": value}}} for value in (1, 2, 1)]
    book = a_book([a_slice("n", [{"name": f"d{at}", **each} for at, each in enumerate(values)])])
    claim = a_claim(
        "c", {"name": "r", "exactly": exactly(3)}, constraints=[{"distinctAttribute": "gpu.example.com/numa"}]
    )

    assert devices(found_on(book, claim)) == [["d0", "d1", "d2"]]


def test_counters_are_shared() -> None:
    """Two halves fill the card; a third one finds nothing left."""
    halves = [
        {
            "name": f"half-{at}",
            "consumesCounters": [{"counterSet": "card", "counters": {"memory": {"value": "40Gi"}}}],
        }
        for at in range(3)
    ]
    counters = [{"name": "card", "counters": {"memory": {"value": "80Gi"}}}]
    slices = [
        a_slice("n", halves, slices=2),
        a_slice("n", [], name="n-counters", slices=2, sharedCounters=counters),
    ]
    book = a_book(slices)

    assert devices(found_on(book, a_claim("c", {"name": "r", "exactly": exactly(2)}))) == [
        ["half-0", "half-1"]
    ]
    assert found_on(book, a_claim("c", {"name": "r", "exactly": exactly(3)})) is None
    book.taken.add(allocated(book, a_claim("other")))
    assert found_on(book, a_claim("c", {"name": "r", "exactly": exactly(2)})) is None


def test_a_tainted_device_needs_a_toleration() -> None:
    """Also with admin access."""
    book = a_book([a_slice("n", [a_device("a", taints=[{"key": "bad", "effect": "NoSchedule"}])])])
    tolerating = exactly(tolerations=[{"key": "bad", "operator": "Exists"}])

    assert found_on(book, a_claim()) is None
    assert found_on(book, a_claim("c", {"name": "r", "exactly": exactly(adminAccess=True)})) is None
    assert devices(found_on(book, a_claim("c", {"name": "r", "exactly": tolerating}))) == [["a"]]


def test_admin_access_ignores_who_uses_a_device() -> None:
    """And takes nothing from others."""
    book = a_node_with("a")
    book.taken.add(allocated(book, a_claim("other")))
    admin = a_claim("c", {"name": "r", "exactly": exactly(adminAccess=True)})

    watching = allocated(book, admin)
    book.taken.add(watching)

    assert [each.admin_access for each in watching.devices.results] == [True]
    assert list(book.taken.whole.values()) == [1]


def test_capacity_is_consumed_in_shares() -> None:
    """As much as the policy says for what is not asked."""
    policy = {"default": "10Gi", "validRange": {"min": "10Gi", "step": "10Gi"}}
    shared = a_device(
        "a",
        allowMultipleAllocations=True,
        capacity={"memory": {"value": "40Gi", "requestPolicy": policy}},
    )
    book = a_book([a_slice("n", [shared])])
    wants = exactly(capacity={"requests": {"memory": "15Gi"}})

    first = allocated(book, a_claim("one", {"name": "r", "exactly": wants}))
    book.taken.add(first)

    assert [each.consumed_capacity for each in first.devices.results] == [{"memory": str(20 * 2**30)}]
    assert devices(found_on(book, a_claim("two", {"name": "r", "exactly": wants}))) == [["a"]]
    book.taken.add(first)
    assert found_on(book, a_claim("three", {"name": "r", "exactly": wants})) is None


@pytest.mark.parametrize("published", ["memory", f"{DRIVER}/memory"])
@pytest.mark.parametrize("written", ["memory", f"{DRIVER}/memory"])
def test_shares_are_added_up_under_any_spelling(published: str, written: str) -> None:
    """A third share is too much: it is found before the binding, however driver and claims write the name."""
    device = a_device("a", allowMultipleAllocations=True, capacity={published: {"value": "2Gi"}})
    result = {"request": "r", "driver": DRIVER, "pool": "n", "device": "a"}
    claims = [
        a_claim(
            name,
            status={
                "allocation": {
                    "devices": {
                        "results": [{**result, "shareID": name, "consumedCapacity": {written: "1Gi"}}]
                    }
                }
            },
        )
        for name in ("one", "two", "three")
    ]

    assert contested(a_book([a_slice("n", [device])], *claims[:2]), claims[0]) == ""
    assert "allocated to" in contested(a_book([a_slice("n", [device])], *claims), claims[0])


def test_a_held_device_that_was_shared_out_is_not_free() -> None:
    """A hold takes it whole."""
    held = allocated(a_node_with("a"), a_claim("mine"))
    shared = a_device("a", allowMultipleAllocations=True)
    share = allocated(a_book([a_slice("n", [shared])]), a_claim("other"))
    hold = DeviceHold("pod", 0, "n", {"default/mine": held})

    assert are_free(taken_by([]), hold)
    assert not are_free(taken_by([share]), hold)


def test_a_search_without_end_ends() -> None:
    """Twenty of twenty-four devices, of which no two may go together: too many ways to try."""
    devices_ = [{"name": f"d{at}", "attributes": {"x/y": {"int": at}}} for at in range(24)]
    claim = a_claim("c", {"name": "r", "exactly": exactly(20)}, {"name": "never", "exactly": exactly(10)})

    with pytest.raises(AllocationError, match="timed out trying to allocate devices"):
        found_on(a_book([a_slice("n", devices_)]), claim, most_steps=5_000)


def test_what_is_taken_is_what_is_added() -> None:
    """Adding and removing allocations leaves nothing behind."""
    book = a_node_with("a", "b")
    held: Sequence[AllocationResult] = [allocated(book, a_claim("one"))]

    taken = taken_by(held)
    taken.remove(held[0])

    assert (taken.whole, taken.shared, taken.shares) == ({}, {}, {})
