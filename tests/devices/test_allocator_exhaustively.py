"""Compares the search for devices with one that tries every choice, on small pools."""

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from devices.builders import DRIVER, a_book, a_claim, a_device, a_slice, exactly
from devices.test_allocator import allocated, found_on, model
from plimsoll.devices.allocator import Found
from plimsoll.devices.requests import MOST_DEVICES

TAINTS = (
    {"key": "bad", "value": "yes", "effect": "NoSchedule"},
    {"key": "hot", "value": "", "effect": "NoExecute"},
    {"key": "old", "value": "yes", "effect": "None"},
)
TOLERATIONS = (
    {"operator": "Exists"},
    {"operator": "Exists", "effect": "NoExecute"},
    {"key": "bad", "operator": "Exists"},
    {"key": "bad", "operator": "Equal", "value": "yes"},
    {"key": "bad", "operator": "Equal", "value": "no"},
    {"key": "hot", "operator": "Equal"},
)


class Card(NamedTuple):
    """A device: what selectors and constraints read of it, and its taints."""

    model: str
    numa: int
    taints: tuple[dict[str, str], ...]


class Wish(NamedTuple):
    """One alternative of a request; a number of 0 means all devices."""

    number: int
    model: str
    tolerations: tuple[dict[str, str], ...]

    @property
    def wire(self) -> dict[str, Any]:
        """As a claim has it."""
        selectors = model(self.model) if self.model else []
        asked = exactly(self.number, selectors=selectors, tolerations=list(self.tolerations))
        if self.number == 0:
            del asked["count"]
            asked["allocationMode"] = "All"
        return asked


class Order(NamedTuple):
    """One claim: its requests, each a tuple of alternatives, and whether all devices share a NUMA node."""

    requests: tuple[tuple[Wish, ...], ...]
    together: bool

    def claim(self, name: str) -> Any:
        """As the API has it."""
        requests = [
            {"name": f"r{at}", "exactly": wishes[0].wire}
            if len(wishes) == 1
            else {
                "name": f"r{at}",
                "firstAvailable": [{"name": f"s{k}", **wish.wire} for k, wish in enumerate(wishes)],
            }
            for at, wishes in enumerate(self.requests)
        ]
        constraints = [{"matchAttribute": f"{DRIVER}/numa"}] if self.together else []
        return a_claim(name, *requests, constraints=constraints)


cards = st.builds(
    Card,
    st.sampled_from("xy"),
    st.integers(0, 1),
    st.lists(st.sampled_from(TAINTS), max_size=1).map(tuple),
)
tolerations = st.lists(st.sampled_from(TOLERATIONS), max_size=1).map(tuple)
wishes = st.builds(Wish, st.sampled_from((1, 1, 2)), st.sampled_from(("", "x", "y")), tolerations)
too_large = st.builds(Wish, st.just(MOST_DEVICES + 1), st.just(""), tolerations)
lists = st.lists(wishes | too_large, min_size=1, max_size=2).flatmap(
    lambda some: st.permutations([*some, Wish(1, "x", ())]).map(tuple)
)
everything = st.builds(Wish, st.just(0), st.sampled_from(("", "x")), tolerations).map(lambda one: (one,))
requests = wishes.map(lambda one: (one,)) | lists
orders = st.builds(Order, st.lists(requests, min_size=1, max_size=2).map(tuple), st.booleans()) | st.builds(
    Order, everything.map(lambda one: (one,)), together=st.just(value=False)
)


def tolerates(toleration: dict[str, str], taint: dict[str, str]) -> bool:
    """By the words of the API: an empty key with Exists matches every taint, an empty effect every effect."""
    return (
        toleration.get("effect", taint["effect"]) == taint["effect"]
        and toleration.get("key", taint["key"]) == taint["key"]
        and (toleration["operator"] == "Exists" or toleration.get("value", "") == taint["value"])
    )


def may_have(wish: Wish, card: Card) -> bool:
    """Whether each taint that keeps pods away is tolerated."""
    return all(
        taint["effect"] == "None" or any(tolerates(each, taint) for each in wish.tolerations)
        for taint in card.taints
    )


def ways(request: tuple[Wish, ...], pool: tuple[Card, ...]) -> Iterator[tuple[int, ...]]:
    """Every choice of devices for one request, in use or not, the preferred ones first."""
    for wish in request:
        fitting = [at for at, card in enumerate(pool) if wish.model in ("", card.model)]
        if wish.number:
            fitting = [at for at in fitting if may_have(wish, pool[at])]
            yield from combinations(fitting, wish.number)
        elif fitting and all(may_have(wish, pool[at]) for at in fitting):
            yield tuple(fitting)


def first_way(
    wanted: tuple[Order, ...], pool: tuple[Card, ...], used: frozenset[int]
) -> list[list[int]] | None:
    """The first choice for all claims in which no device is used twice; None without one."""
    asked = [(at, request) for at, order in enumerate(wanted) for request in order.requests]
    for choice in product(*(list(ways(request, pool)) for _, request in asked)):
        chosen = [device for devices in choice for device in devices]
        if len({*chosen, *used}) < len(chosen) + len(used):
            continue
        given_: list[list[int]] = [[] for _ in wanted]
        for (at, _), devices in zip(asked, choice, strict=True):
            given_[at] += devices
        alike = (len({pool[each].numa for each in some}) <= 1 for some in given_)
        if all(one or not order.together for one, order in zip(alike, wanted, strict=True)):
            return given_
    return None


def places(found: Found | None) -> list[list[int]] | None:
    """The numbers of the devices that were found, claim by claim."""
    return (
        None
        if found is None
        else [[int(each.device.id.device[1:]) for each in given_] for given_ in found.given]
    )


@settings(max_examples=120)
@given(
    pool=st.lists(cards, min_size=1, max_size=4).map(tuple),
    first=orders,
    then=st.lists(orders, min_size=1, max_size=2).map(tuple),
)
def test_what_is_found_is_the_first_of_all_solutions(
    pool: tuple[Card, ...], first: Order, then: tuple[Order, ...]
) -> None:
    """For a claim, for others while that one has its devices, and again after it has given them back."""
    numbered = [
        a_device(
            f"d{at}", card.model, attributes={f"{DRIVER}/numa": {"int": card.numa}}, taints=list(card.taints)
        )
        for at, card in enumerate(pool)
    ]
    book = a_book([a_slice("n", numbered)])
    one, others = first.claim("one"), [each.claim(f"other-{at}") for at, each in enumerate(then)]

    alone = first_way((first,), pool, frozenset())
    assert places(found_on(book, one)) == alone
    if alone is not None:
        held = allocated(book, one)
        book.taken.add(held)
        assert places(found_on(book, *others)) == first_way(then, pool, frozenset(alone[0]))
        book.taken.remove(held)
    assert places(found_on(book, *others)) == first_way(then, pool, frozenset())
    assert places(found_on(book, one)) == alone
