"""Quantities: every accepted form, exactly, and one sentence for the rest."""

import time
import tracemalloc
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from model.upstream_quantity import Quantity
from plimsoll.model.quantity import MAX_INT64, Amount, QuantityError, milli, nanos, units

SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(1000),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "Ki": Fraction(1024),
    "Mi": Fraction(1024**2),
    "Gi": Fraction(1024**3),
    "e3": Fraction(1000),
    "E-2": Fraction(1, 100),
    "e+1": Fraction(10),
}


@pytest.mark.parametrize(
    ("quantity", "thousandths", "whole"),
    [
        ("1500m", 1500, 2),
        ("1.5", 1500, 2),
        ("15e-1", 1500, 2),
        ("1500u", 2, 1),
        ("1Gi", 1024**3 * 1000, 1024**3),
        ("0.5Ki", 512_000, 512),
        ("1E", 0, 10**18),
        ("1e3", 10**6, 1000),
        ("333M", 333 * 10**9, 333 * 10**6),
        ("+100m", 100, 1),
        ("-1.5", -1500, -2),
        (".5", 500, 1),
        ("1.", 1000, 1),
        ("0.1n", 1, 1),
        ("9223372036854775807", 0, MAX_INT64),
        ("9007199254740993", 9007199254740993000, 9007199254740993),
        ("16Ei", 0, MAX_INT64),
        ("10E", 0, 0),
        (2, 2000, 2),
        (1.5, 1500, 2),
        (" 1\n", 1000, 1),
        ("1e1002", 0, 0),
        ("1e-1002", 1, 1),
        ("1" + "0" * 300, 0, 0),
        ("0." + "0" * 400 + "1", 1, 1),
        ("18446744073709551617", 1000, 1),
        ("18446744073709551615", 0, 0),
        ("1e9223372036854775807", 100, 1),
    ],
)
def test_reads_every_accepted_form(quantity: str | float, thousandths: int, whole: int) -> None:
    """Suffixes, exponents, signs, fractions and plain numbers all mean what the API means by them."""
    assert (milli(quantity), units(quantity)) == (thousandths, whole)


@pytest.mark.parametrize(
    "text",
    ["", " ", "1 Gi", "1gi", "1e", "abc", "1.2.3", "--1", "1KI", "NaN", "1_000", "1e" + "9" * 19, True],
)
def test_refuses_what_is_no_quantity(text: str | bool) -> None:
    """The error repeats the text and says what is allowed."""
    with pytest.raises(QuantityError, match="is not a quantity: a number with an optional suffix is allowed"):
        nanos(text)


@given(st.integers(0, 10**9), st.integers(0, 10**6 - 1), st.sampled_from(sorted(SUFFIXES)))
def test_rounds_up_and_never_down(whole: int, fraction: int, suffix: str) -> None:
    """An integer unit is the smallest that covers the exact value."""
    exact = (whole + Fraction(fraction, 10**6)) * SUFFIXES[suffix]

    result = milli(f"{whole}.{fraction:06d}{suffix}")

    assert Fraction(result - 1, 1000) < exact <= Fraction(result, 1000) or exact > Fraction(MAX_INT64, 1000)


@given(
    st.integers(0, 10**400) | st.integers(0, 10**22),
    st.just("") | st.from_regex(r"\.[0-9]{1,40}", fullmatch=True),
    st.sampled_from([*"numkMGTPE", "", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"])
    | st.integers(-500, 500).map("e{}".format),
)
def test_reads_each_number_as_upstream_does(whole: int, fraction: str, suffix: str) -> None:
    """Also what does not fit 64 bits; only where upstream's value turns negative it is 0."""
    text = f"{whole}{fraction}{suffix}"
    upstream = Quantity.parse(text)

    assert (milli(text), units(text)) == (max(upstream.value(-3), 0), max(upstream.value(0), 0))


@pytest.mark.parametrize(
    "text",
    [
        "1e1000000000",
        "-1e2147483647",
        "1e-2000000000",
        "7" * 1_400_000,
        "7" * 1_400_000 + "Ei",
        "0." + "7" * 1_400_000 + "Ki",
        "0." + "0" * 1_400_000 + "1",
        "1e" + "0" * 1_400_000 + "5",
    ],
)
def test_no_text_costs_more_than_its_length(text: str) -> None:
    """Whatever fits into an object of the API server is read soon, and in little memory."""
    tracemalloc.start()
    began = time.process_time()

    milli(text), units(text), nanos(text)

    took, (_, peak) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert took < 5.0
    assert peak < 10 * len(text) + 100_000


@given(st.integers(0, 10**1005), st.integers(0, 10**1005))
def test_numbers_too_long_to_be_kept_are_ordered_by_their_length(one: int, two: int) -> None:
    """And what follows from their lowest 64 bits stays."""
    assert units(str(one)) == max((one + 2**63) % 2**64 - 2**63, 0) or one <= MAX_INT64
    if len(str(one)) < len(str(two)):
        assert nanos(str(one)) < nanos(str(two))


def test_an_error_repeats_the_beginning_of_a_text() -> None:
    """A log line of a megabyte is of no use."""
    with pytest.raises(QuantityError) as raised:
        nanos("x" * 10**6)

    assert len(str(raised.value)) < 300


EDGES = st.sampled_from([MAX_INT64, -MAX_INT64, MAX_INT64 // 2, MAX_INT64 // 2 + 1, -MAX_INT64 // 2, 1, -1])


@example(MAX_INT64 - 1, 1, 0)
@given(st.one_of(EDGES, st.integers(-MAX_INT64, MAX_INT64)), EDGES, st.integers(0, 3))
def test_a_sum_is_short_as_long_as_it_and_its_parts_fit(one: int, two: int, apart: int) -> None:
    """In the smaller of both units."""
    other = two // 10**apart or 1
    found = Amount(one * 10**9, 0, one) + Amount(other * 10 ** (9 + apart), apart, other)

    parts = [one, other * 10**apart, one + other * 10**apart]
    fits = all(abs(each) <= MAX_INT64 for each in parts)
    if one:
        assert (found.nanos, found.exponent) == (parts[2] * 10**9, 0)
        assert found.value == (parts[2] if fits else None)
