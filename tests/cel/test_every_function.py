"""Tries every function of expressions: its cost, and its result against that of plain code."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from dra_cel.calls import _TABLE
from dra_cel.functions.table import Overload
from dra_cel.syntax import UInt
from dra_cel.values import Budget, Duration, EvaluationError, Timestamp

MANY = 1_000_000
#: 20 units to scan.
TEXT = "ab" * 100
LONG_TEXT = "x" * 260


def overload(name: str, args: tuple[Any, ...]) -> Overload:
    """The implementation for arguments of these types."""
    return _TABLE.overloads[name][tuple(map(type, args))]


def made(name: str, *args: Any) -> Any:
    """What a function of one step makes, as an argument of others."""
    return overload(name, args).does(*args)


def called(name: str, *args: Any) -> tuple[Any, int]:
    """The result of a call, or its error, and the units that it takes."""
    found, budget = overload(name, args), Budget(MANY)
    if found.cost is not None or not found.is_metered:
        budget.charge(1 if found.cost is None else found.cost(*args))
    try:
        result = found.does(*([budget] if found.is_metered else []), *args)
    except EvaluationError as error:
        result = f"error: {error}"
    return result, MANY - budget.left


def network(text: str) -> Any:
    return made("cidr", text)


def link(text: str) -> Any:
    return made("url", text)


WEB = "https://user@x.example.com:8443/a%20b?c=d&c=&e=f#g"
LABEL = made("format.dns1123Label")
V4, V6 = network("10.1.2.3/8"), network("fd00::1/64")
LETTERS = ["e", "d", "c", "b", "a"]

COSTS: list[tuple[str, tuple[Any, ...], int]] = [
    # A tenth of a unit a character, rounded up.
    ("_+_", ("a" * 95, "b" * 10), 11),
    ("_+_", (b"a" * 95, b"b" * 10), 11),
    ("string", (b"a" * 95,), 10),
    ("bytes", ("a" * 95,), 10),
    *((name, ("a" * 95, "b" * 15), 2) for name in ("_<_", "_<=_", "_>_", "_>=_")),
    *((name, (b"a" * 95, b"b" * 15), 2) for name in ("_<_", "_<=_", "_>_", "_>=_")),
    # Strings: both, the part, the text; a search again for each 100 characters of what is searched.
    ("contains", (TEXT, "x" * 15), 20 * 2),
    ("startsWith", (TEXT, "x" * 15), 2),
    ("endsWith", (TEXT, "x" * 15), 2),
    *((name, (TEXT, "x" * 99), 20) for name in ("indexOf", "lastIndexOf")),
    *((name, (TEXT, "x" * 100), 20 * 2) for name in ("indexOf", "lastIndexOf")),
    *((name, (TEXT, "x" * 200, 0), 20 * 3) for name in ("indexOf", "lastIndexOf")),
    *((name, (TEXT,), 20) for name in ("lowerAscii", "upperAscii", "trim")),
    ("substring", (TEXT, 1), 20),
    ("substring", (TEXT, 1, 2), 20),
    ("strings.quote", (TEXT,), 2 * 20),
    ("join", (["x" * 30, "y" * 30],), 2 * 60 // 10 + 2),
    ("join", (["x" * 30, "y" * 30], "-" * 10), 2 * 70 // 10 + 2),
    ("join", ([], "-" * 10), 0),
    # The search, the walk, and what it grows by.
    ("replace", ("x" * 20, "x", "yyy"), 2 + 2 + 4),
    ("replace", ("x" * 20, "x", "yyy", 5), 2 + 2 + 1),
    ("replace", ("x" * 20, "x", "yyy", 0), 2 + 2),
    ("replace", ("x" * 20, "x", ""), 2 + 2),
    ("split", ("a,b,c,d,e,f,g,h,i,j", ","), 2 + 2 + 10),
    *(
        ("split", ("a,b,c,d,e,f,g,h,i,j", ",", limit), 2 + 2 + parts)
        for limit, parts in ((3, 3), (0, 0), (99, 10), (-1, 10))
    ),
    ("split", ("abc", ""), 1 + 1 + 3),
    # The pattern; the value, its text and the part that is made of it.
    ("format", ("%s" + "-" * 18, ["x" * 50]), 2 + 1 + 5 + 5),
    ("format", ("%d" + "-" * 18, [12345678901]), 2 + 1 + 2 + 2),
    ("format", ("%s", [["x", None]]), 1 + 1 + (1 + 1) + 1 + 1),
    # Regular expressions: a text, and one more, times a fourth of the pattern.
    ("matches", (TEXT, "[a-z]+"), 21 * 2),
    ("find", (TEXT, "[a-z]+"), 21 * 2),
    ("findAll", (TEXT, "[a-z]+"), 21 * 2 + 200),
    ("findAll", (TEXT, "[a-z]+", 1), 21 * 2 + 200),
    ("validate", (LABEL, TEXT), 1 + 16 * 20),
    # Lists: their elements, those that are made, and eleven for a new list.
    ("_+_", ([1, 2], [3, 4, 5]), 1 + 2 + 3),
    *((name, ([5, 3, 4],), 3) for name in ("isSorted", "min", "max", "sum")),
    ("isSorted", ([LONG_TEXT, "y"],), 2 + 26),
    ("slice", ([5, 3, 4], 1, 3), 11 + 2),
    ("lists.range", (4,), 11 + 4),
    ("reverse", ([5, 3, 4],), 11 + 3),
    ("flatten", ([1, 2, 3],), 11 + 3),
    ("flatten", ([[1], [2, 3]],), 11 + 2 + (11 + 1 + 1) + (11 + 2 + 2)),
    ("flatten", ([[1], 2], 0), 11 + 2),
    ("distinct", ([1, 2, 1],), 11 + 9 * 2),
    ("sort", ([5, 4, 3, 2, 1],), 11 + 25 * 2),
    ("sort", (LETTERS,), 11 + 52),  # 25 * 2.1
    ("sort", ([],), 11),
    ("@sortByAssociatedKeys", ([1, 2, 3, 4, 5], LETTERS), 11 + 52),
    ("sets.contains", ([1, 2, 3], [1, 2]), 1 + 3 * 2),
    ("sets.intersects", ([1, 2, 3], [4, 5]), 1 + 3 * 2),
    ("sets.equivalent", ([1, 2, 3], [1, 2]), 2 * (1 + 3 * 2)),
    # What is read from a text: upstream counts long ones, too, as one unit.
    *((name, ("1" * 95,), 10) for name in ("quantity", "isQuantity", "url", "isURL", "ip", "isIP")),
    *((name, ("1" * 95,), 10) for name in ("cidr", "isCIDR")),
    ("ip.isCanonical", ("::1",), 1),
    ("ip.isCanonical", ("1111:1111:1111::1",), 4),
    *((name, args, 1) for name in ("semver", "isSemver") for args in (("1.0.0",), ("v1", True))),
    *((name, ("1." * 130,), 260) for name in ("semver", "isSemver")),
    ("duration", ("1h",), 1),
    ("duration", ("1ns" * 90,), 270),
    *((name, (link(WEB),), 1) for name in ("getScheme", "getHost", "getHostname", "getPort", "getQuery")),
    ("getQuery", (link(f"/a?{LONG_TEXT}"),), 260),
    # Addresses: a unit for each 32 bits, and two.
    *((name, (V4, other), 3) for name, other in (("containsIP", made("ip", V4)), ("containsCIDR", V4))),
    *((name, (V6, other), 6) for name, other in (("containsIP", made("ip", V6)), ("containsCIDR", V6))),
    ("containsIP", (V4, "10.100.200.100"), 3 + 2),
    ("containsCIDR", (V4, "10.100.200.0/24"), 3 + 2),
]


@pytest.mark.parametrize(
    ("name", "args", "units"), COSTS, ids=lambda given: given if type(given) is str else ""
)
def test_a_call_costs_what_its_arguments_make_of_it(name: str, args: tuple[Any, ...], units: int) -> None:
    """Kubernetes' ``cost.go`` and cel-go's ``runtimecost.go``, with the exceptions that the modules name."""
    assert called(name, *args)[1] == units


def test_every_function_with_a_cost_of_its_own_has_a_case() -> None:
    """All others cost one unit, whatever they are given."""
    tried = {(name, tuple(map(type, args))) for name, args, _ in COSTS}
    own = {
        (name, types)
        for name, overloads in _TABLE.overloads.items()
        for types, each in overloads.items()
        if each.cost is not None or each.is_metered
    }

    assert tried == own


def refused(sentence: str) -> str:
    return f"error: {sentence}"


def index_of(text: str, wanted: str, start: int = 0) -> Any:
    if not wanted:
        return start
    if start not in range(len(text) + 1):
        return refused(f"index out of range: {start}")
    places = [at for at in range(start, len(text)) if text[at : at + len(wanted)] == wanted]
    return min(places, default=-1)


def last_index_of(text: str, wanted: str, start: int | None = None) -> Any:
    last = len(text) if start is None else start
    if not wanted:
        return last
    if last not in range(len(text) + 1):
        return refused(f"index out of range: {last}")
    places = [at for at in range(len(text)) if at <= last and text[at : at + len(wanted)] == wanted]
    return max(places, default=-1)


def char_at(text: str, index: int) -> Any:
    places = dict(enumerate([*text, ""]))
    return places.get(index, refused(f"index out of range: {index}"))


def substring(text: str, start: int, end: int | None = None) -> Any:
    last = len(text) if end is None else end
    outside = [each for each in (start, last) if each not in range(len(text) + 1)]
    if outside:
        return refused(f"index out of range: {outside[0]}")
    if last < start:
        return refused(f"invalid substring range. start: {start}, end: {last}")
    return "".join(letter for at, letter in enumerate(text) if start <= at < last)


def split(text: str, between: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    parts: list[str] = []
    rest = text
    while rest if not between else between in rest:
        if len(parts) + 1 == limit:
            return [*parts, rest]
        at = rest.index(between) if between else 1
        parts.append(rest[:at])
        rest = rest[at + len(between) :]
    return [*parts, rest] if between else parts


def replace(text: str, old: str, new: str, limit: int = -1) -> str:
    places = [] if old else [*range(len(text) + 1)]
    at = 0
    while old and at < len(text):
        if text.startswith(old, at):
            places.append(at)
            at += len(old) - 1
        at += 1
    for place in reversed(places if limit < 0 else places[:limit]):
        text = text[:place] + new + text[place + len(old) :]
    return text


def flatten(values: list[Any], depth: int = 1) -> Any:
    if depth < 0:
        return refused("level must be non-negative")
    for _ in range(depth):
        values = [one for each in values for one in (each if type(each) is list else [each])]
    return values


def sliced(values: list[Any], start: int, end: int) -> Any:
    if min(start, end) < 0:
        return refused(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        return refused(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(values):
        return refused(f"cannot slice({start}, {end}), list is length {len(values)}")
    return [each for at, each in enumerate(values) if start <= at < end]


def extreme(name: str, take: Callable[..., Any]) -> Callable[..., Any]:
    return lambda values: take(values) if values else refused(f"{name} called on empty list")


def parts_of(nanoseconds: int) -> dict[str, int]:
    """The whole units of a duration, towards zero."""
    sign, size = (-1 if nanoseconds < 0 else 1), abs(nanoseconds)
    units = {"getHours": 3_600 * 10**9, "getMinutes": 60 * 10**9, "getSeconds": 10**9}
    return {name: sign * (size // unit) for name, unit in {**units, "getMilliseconds": 10**6}.items()}


TEXTS = ["", "a", "ab", "aba", "abcab", "a-b-"]
PARTS = ["", "a", "b", "ab", "ca", "-"]
PLACES = range(-2, 7)
LISTS = [[], [1], [2, 1], [1, 2, 1], [3, 1, 2], [1, 1, 2, 2]]
NESTED = [[], [1], [[1], 2], [[], [2, [3, [4]]]]]
PLAIN: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    ("charAt", char_at, (TEXTS, PLACES)),
    ("indexOf", index_of, (TEXTS, PARTS)),
    ("indexOf", index_of, (TEXTS, PARTS, PLACES)),
    ("lastIndexOf", last_index_of, (TEXTS, PARTS)),
    ("lastIndexOf", last_index_of, (TEXTS, PARTS, PLACES)),
    ("substring", substring, (TEXTS, PLACES)),
    ("substring", substring, (TEXTS, PLACES, PLACES)),
    ("split", split, (TEXTS, PARTS)),
    ("split", split, (TEXTS, PARTS, PLACES)),
    ("replace", replace, (TEXTS, PARTS, ["", "xy"])),
    ("replace", replace, (TEXTS, PARTS, ["", "xy"], PLACES)),
    ("contains", lambda text, part: index_of(text, part) >= 0, (TEXTS, PARTS)),
    ("slice", sliced, (LISTS, PLACES, PLACES)),
    ("flatten", flatten, (NESTED,)),
    ("flatten", flatten, (NESTED, range(-1, 4))),
    ("reverse", lambda values: [values[-at - 1] for at in range(len(values))], (LISTS,)),
    ("min", extreme("min", min), (LISTS,)),
    ("max", extreme("max", max), (LISTS,)),
    ("isSorted", lambda values: values == sorted(values), (LISTS,)),
    ("distinct", lambda values: list(dict.fromkeys(values)), (LISTS,)),
    ("sort", sorted, (LISTS,)),
    ("sets.contains", lambda one, other: {*other} <= {*one}, (LISTS, LISTS)),
    ("sets.intersects", lambda one, other: bool({*one} & {*other}), (LISTS, LISTS)),
    ("sets.equivalent", lambda one, other: {*one} == {*other}, (LISTS, LISTS)),
]


@pytest.mark.parametrize(
    ("name", "plain", "given"), PLAIN, ids=[f"{name}-{len(given)}" for name, _, given in PLAIN]
)
def test_a_function_returns_what_plain_code_does(
    name: str, plain: Callable[..., Any], given: tuple[Any, ...]
) -> None:
    """For all small arguments, those at and beyond the ends included; errors have the same sentence."""
    for args in itertools.product(*given):
        assert called(name, *args)[0] == plain(*args), args


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("seconds", [0, 59, 60, 3_599, 3_600, 90_061])
def test_the_parts_of_durations_are_whole_units_towards_zero(seconds: int, sign: int) -> None:
    """With half a second more, which counts in milliseconds only."""
    nanoseconds = sign * (seconds * 10**9 + 5 * 10**8)

    for name, whole in parts_of(nanoseconds).items():
        assert called(name, Duration(nanoseconds))[0] == whole


def test_sums_keep_their_kind_and_their_range() -> None:
    """Numbers and durations; a mixture has no sum."""
    assert called("sum", [Duration(1), Duration(2)])[0] == Duration(3)
    assert called("sum", [1.5, 2.0])[0] == 3.5
    assert called("sum", [UInt(1), UInt(2)])[0] == UInt(3)
    assert called("sum", [2**63 - 1, 1])[0] == "error: integer overflow"
    assert called("sum", [UInt(2**64 - 1), UInt(1)])[0] == "error: unsigned integer overflow"
    assert called("sum", [1, 1.0])[0] == "error: no such overload: sum"


#: A Sunday, the 60th day of its year, on which another day begins two hours to the east.
MOMENT = Timestamp(1_772_317_805_678_000_000)
PARTS_OF_A_DATE = {
    "getFullYear": (2026, 2026),
    "getMonth": (1, 2),
    "getDate": (28, 1),
    "getDayOfMonth": (27, 0),
    "getDayOfWeek": (6, 0),
    "getDayOfYear": (58, 59),
    "getHours": (22, 0),
    "getMinutes": (30, 30),
    "getSeconds": (5, 5),
    "getMilliseconds": (678, 678),
}


@pytest.mark.parametrize("name", PARTS_OF_A_DATE)
def test_the_parts_of_a_time_in_two_zones(name: str) -> None:
    """2026-02-28T22:30:05.678Z, a Saturday, is the first of March in +02:00: months and days from 0."""
    here, east = PARTS_OF_A_DATE[name]

    assert (called(name, MOMENT)[0], called(name, MOMENT, "+02:00")[0]) == (here, east)
    assert called(name, MOMENT, "-00:00")[0] == here
