"""Dominant shares and the division of a cluster among queues."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.toolkit.scheduling.fair_shares import Claim, deserved, deserved_in_tree, dominant_share

TOTAL = {"cpu": 10_000, "memory": 10_000}


def test_the_dominant_share_is_the_largest() -> None:
    """A tenth of the cpu and a fifth of the memory is a fifth; what it has not got counts in none."""
    assert dominant_share({"cpu": 1_000, "memory": 2_000, "gpu": 5}, TOTAL | {"gpu": 0}) == 0.2
    assert dominant_share({}, TOTAL) == 0.0


def test_weights_divide_what_all_want() -> None:
    """Three to one."""
    claims = {"a": Claim({"cpu": 10_000}, weight=3), "b": Claim({"cpu": 10_000}, weight=1)}

    assert deserved(TOTAL, claims) == {"a": {"cpu": 7_500}, "b": {"cpu": 2_500}}


def test_what_one_leaves_goes_to_the_others() -> None:
    """A wants a tenth; b and c share the rest alike."""
    claims = {"a": Claim({"cpu": 1_000}), "b": Claim({"cpu": 9_000}), "c": Claim({"cpu": 9_000})}

    assert deserved(TOTAL, claims) == {"a": {"cpu": 1_000}, "b": {"cpu": 4_500}, "c": {"cpu": 4_500}}


def test_a_capability_is_a_ceiling() -> None:
    """However large the weight."""
    claims = {
        "a": Claim({"cpu": 10_000}, weight=9, capability={"cpu": 2_000}),
        "b": Claim({"cpu": 10_000}),
    }

    assert deserved(TOTAL, claims) == {"a": {"cpu": 2_000}, "b": {"cpu": 8_000}}


@pytest.mark.parametrize(
    ("guarantees", "weights", "cpus"),
    [
        ((6_000, 0), (1, 1), (8_000, 2_000)),  # six, and half of the rest
        ((2_000, 2_000), (2, 1), (6_000, 4_000)),
        ((12_000, 0), (1, 9), (10_000, 0)),  # no more than it demands and there is
        ((12_000, 8_000), (1, 1), (6_000, 4_000)),  # more than there is: in proportion
    ],
)
def test_a_guarantee_comes_first(
    guarantees: tuple[int, int], weights: tuple[int, int], cpus: tuple[int, int]
) -> None:
    """Both want more than all."""
    claims = {
        queue: Claim(
            {"cpu": 12_000 if queue == "a" else 10_000}, weight, guaranteed={"cpu": most} if most else {}
        )
        for queue, weight, most in zip("ab", weights, guarantees, strict=True)
    }

    shares = deserved(TOTAL, claims)

    assert all(abs(shares[queue]["cpu"] - cpu) <= 1 for queue, cpu in zip("ab", cpus, strict=True)), shares


def test_queues_divide_what_their_parent_deserves() -> None:
    """Half for each team; what one queue leaves goes to its sibling first."""
    claims = {
        "one": Claim({"cpu": 10_000}),
        "web": Claim({"cpu": 1_000}),
        "lab": Claim({"cpu": 9_000}),
        "two": Claim({"cpu": 16_000}),
        "train": Claim({"cpu": 8_000}, weight=3),
        "infer": Claim({"cpu": 8_000}),
    }
    children = {"": ["one", "two", "idle"], "one": ["web", "lab"], "two": ["train", "infer"]}

    shares = deserved_in_tree(TOTAL, claims, children)

    assert {queue: amounts["cpu"] for queue, amounts in shares.items()} == {
        "one": 5_000,
        "web": 1_000,
        "lab": 4_000,
        "two": 5_000,
        "train": 3_750,
        "infer": 1_250,
    }


def test_different_resources_are_shared_by_their_dominant_one() -> None:
    """The example of the paper: 9 cpus and 18 GB; tasks of (1 cpu, 4 GB) and of (3 cpus, 1 GB).

    Dominant shares are equal at 2/3: three tasks of the first, two of the second.
    """
    total = {"cpu": 9_000, "memory": 18_000}
    claims = {
        "a": Claim({"cpu": 100 * 1_000, "memory": 100 * 4_000}),
        "b": Claim({"cpu": 100 * 3_000, "memory": 100 * 1_000}),
    }

    assert deserved(total, claims) == {
        "a": {"cpu": 3_000, "memory": 12_000},
        "b": {"cpu": 6_000, "memory": 2_000},
    }


def test_nothing_is_divided_where_there_is_nothing() -> None:
    """No nodes, no claims, no demand."""
    assert deserved({}, {"a": Claim({"cpu": 5})}) == {"a": {}}
    assert deserved(TOTAL, {}) == {}
    assert deserved(TOTAL, {"a": Claim({"cpu": 0})}) == {"a": {}}


AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "gpu"]), st.integers(0, 10**13), max_size=3)
CLAIMS = st.dictionaries(
    st.sampled_from("abcdef"),
    st.builds(Claim, demand=AMOUNTS, weight=st.integers(1, 65_535), capability=AMOUNTS),
    max_size=6,
)


@given(total=AMOUNTS, claims=CLAIMS)
def test_no_queue_gets_too_much(total: dict[str, int], claims: dict[str, Any]) -> None:
    """Never above the cluster, the demand, or the capability; never negative."""
    shares = deserved(total, claims)

    for name, most in total.items():
        assert sum(amounts.get(name, 0) for amounts in shares.values()) <= most
    for queue, amounts in shares.items():
        for name, amount in amounts.items():
            assert 0 <= amount <= claims[queue].demand[name]
            assert amount <= claims[queue].capability.get(name, amount)


@given(total=AMOUNTS, claims=CLAIMS.filter(bool), more=st.integers(1, 1_000), data=st.data())
def test_a_larger_weight_never_means_less(
    total: dict[str, int], claims: dict[str, Any], more: int, data: Any
) -> None:
    """Up to rounding."""
    queue = data.draw(st.sampled_from(sorted(claims)))
    claim = claims[queue]
    heavier = claims | {queue: Claim(claim.demand, claim.weight + more, claim.capability)}

    before, after = deserved(total, claims)[queue], deserved(total, heavier)[queue]

    for name in before:
        assert after[name] >= before[name] - max(2, before[name] * 1e-9)


@given(total=AMOUNTS, claims=CLAIMS)
def test_who_gets_less_than_it_may_wants_something_that_is_used_up(
    total: dict[str, int], claims: dict[str, Any]
) -> None:
    """No room is left idle that somebody who is short could use."""
    shares = deserved(total, claims)

    for queue, amounts in shares.items():
        short = [
            name
            for name, amount in amounts.items()
            if amount
            < min(claims[queue].demand[name], claims[queue].capability.get(name, amount + 1)) * 0.999 - 2
        ]
        if len(short) == len(amounts) and short:
            used_up = [
                name
                for name in amounts
                if sum(each.get(name, 0) for each in shares.values()) >= total[name] * 0.999 - 10
            ]
            at_ceiling = [
                name
                for name, most in claims[queue].capability.items()
                if name in amounts and amounts[name] >= most * 0.999 - 2
            ]
            assert used_up or at_ceiling
