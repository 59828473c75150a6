"""Laws of values, operators and macros."""

from hypothesis import given
from hypothesis import strategies as st

from dra_cel import DeviceView, SelectorError, Version, selector

NOTHING = DeviceView("d", {}, {})
SMALL = st.integers(-(2**31), 2**31)
NUMBER = st.integers(0, 30)
PART = st.one_of(st.integers(0, 20).map(str), st.text("abz-", min_size=1, max_size=3))
VERSION = st.tuples(NUMBER, NUMBER, NUMBER, st.lists(PART, max_size=3)).map(
    lambda v: f"{v[0]}.{v[1]}.{v[2]}" + (f"-{'.'.join(v[3])}" if v[3] else "")
)
SUFFIX = st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi", "e3"])
AMOUNT = st.tuples(st.integers(-1000, 1000), SUFFIX).map(lambda q: f"{q[0]}{q[1]}")
TRUTH = st.sampled_from(["true", "false", "(1 / 0 == 1)", "device.attributes['d'].a"])


def result(expression: str, device: DeviceView = NOTHING) -> bool | None:
    """The result of an expression, None for an error."""
    try:
        return selector(expression).matches(device)
    except SelectorError:
        return None


@given(SMALL, SMALL.filter(bool))
def test_division_truncates_and_the_rest_has_the_sign_of_the_dividend(a: int, b: int) -> None:
    """The quotient times the divisor and the rest is the dividend, as in Go."""
    assert result(f"({a} / {b}) * {b} + {a} % {b} == {a}")
    assert result(f"{a} / {b} == {int(a / b) if abs(a) < 2**31 else a}") or abs(a) >= 2**31


@given(TRUTH, TRUTH)
def test_the_order_of_operands_makes_no_difference(a: str, b: str) -> None:
    """|| and && absorb errors on either side."""
    assert result(f"{a} || {b}") is result(f"{b} || {a}")
    assert result(f"{a} && {b}") is result(f"{b} && {a}")
    assert result(f"!({a} && {b})") is result(f"!({a}) || !({b})")


@given(st.lists(TRUTH, max_size=4))
def test_macros_are_chains_of_operators(values: list[str]) -> None:
    """``all`` is &&, ``exists`` is ||, with their errors."""
    numbers = f"[{', '.join(str(at) for at in range(len(values)))}]"
    chosen = "false"
    for at, value in enumerate(values):
        chosen = f"(x == {at} ? {value} : {chosen})"

    assert result(f"{numbers}.all(x, {chosen})") is result(" && ".join(["true", *values]))
    assert result(f"{numbers}.exists(x, {chosen})") is result(" || ".join(["false", *values]))


@given(AMOUNT, AMOUNT)
def test_quantities_are_ordered_by_value(a: str, b: str) -> None:
    """What is added can be subtracted; a comparison turns round with its sides."""
    device = DeviceView("d", {}, {"a": a, "b": b})
    one, other = 'device.capacity["d"].a', 'device.capacity["d"].b'

    assert result(f"{one}.add({other}).sub({other}) == {one}", device)
    assert result(f"{one}.compareTo({other}) == -{other}.compareTo({one})", device)
    assert result(f"({one}.compareTo({other}) == 0) == ({one} == {other})", device)
    assert result(f"{one}.isLessThan({other}) == (sign({one}.sub({other})) == -1)", device)


@given(VERSION, VERSION, VERSION)
def test_versions_have_a_total_order(a: str, b: str, c: str) -> None:
    """Antisymmetric and transitive; a pre-release stands before its release."""
    device = DeviceView("d", {"a": Version(a), "b": Version(b), "c": Version(c)}, {})
    bind = 'cel.bind(x, device.attributes["d"], '
    if not result(f'[isSemver("{a}"), isSemver("{b}"), isSemver("{c}")].all(ok, ok)'):
        return

    assert result(f"{bind}x.a.compareTo(x.b) == -x.b.compareTo(x.a))", device)
    assert result(f"{bind}!(x.a.isLessThan(x.b) && x.b.isLessThan(x.c)) || x.a.isLessThan(x.c))", device)
    assert result(f'semver("{a.partition("-")[0]}-0").isLessThan(semver("{a.partition("-")[0]}"))')


@given(st.lists(st.text("ab-", max_size=4), max_size=4))
def test_what_is_joined_can_be_split(parts: list[str]) -> None:
    """Joined by a text that does not occur in the parts."""
    device = DeviceView("d", {f"p{at}": part for at, part in enumerate(parts)}, {})
    values = ", ".join(f'device.attributes["d"].p{at}' for at in range(len(parts)))

    assert result(f'cel.bind(p, [{values}], size(p) == 0 || p.join(",").split(",") == p)', device)
