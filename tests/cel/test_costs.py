"""Costs of evaluations, and their limit."""

import pytest

from dra_cel import COST_LIMIT, DeviceView, Selector, SelectorError, is_compiled, selector, selectors

DEVICE = DeviceView("gpu.example.com", {f"name{i}": f"{i}" * 60 for i in range(32)}, {"memory": "80Gi"})
SPLIT = 4
TEN = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"


@pytest.mark.parametrize(
    ("expression", "units"),
    [
        ("true", 0),
        ("device.driver == 'x'", 2 + 1),  # variable, field; comparison
        ("device.attributes['gpu.example.com'].name0 == 'x'", 4 + 1),  # variable, field, domain, id
        ("device.driver == 'x' || device.driver == 'y'", 2 * 3),  # || is free
        ("1 in [1, 2, 3]", 3),  # the list's size; a constant list is free
        ("'abcdefghijk' + 'x' == 'y'", 2 + 1),  # 12 characters; one is compared
        ("[1, 2].all(x, x > 0)", 2 * (1 + 2 + 1 + 2) + 1),  # turn, condition, accumulator, comparison; result
        ("[1, 2, 3, 4].all(x, x > 1)", (1 + 2 + 1 + 2) + (1 + 2) + 1),  # ends at the second turn's condition
        ("[device.driver].size() == 1", 10 + 2 + 1 + 1),
        # A search of 1 and a walk of 1, the parts as a list that is built, and its size; the comparison.
        ("'a,b,c'.split(',').size() == 3", SPLIT + 3),
        ("['a', 'b'] == ['a', 'b']", 2 + 1),  # entries; comparison
        ("{'a': 1, 'b': 2} == {'a': 1, 'b': 2}", 2 + 1),
    ],
)
def test_costs_are_counted_as_upstream_counts_them(expression: str, units: int) -> None:
    """One unit a variable, a field, a call; ten a list; a tenth a character."""
    assert Selector(expression).evaluated(DEVICE)[1] == units


def test_a_lower_limit_is_kept() -> None:
    """An evaluation ends when its units are spent."""
    expression = Selector("device.driver == 'x'")

    assert expression.evaluated(DEVICE, limit=3) == (False, 3)
    with pytest.raises(SelectorError, match="operation cancelled: actual cost limit exceeded"):
        expression.evaluated(DEVICE, limit=2)


def bound(first: str, step: str, body: str, times: int = 25) -> str:
    """A value made of itself again and again: ``v`` is the one before."""
    start = f"cel.bind(v0, {first}, "
    for i in range(times):
        start += f"cel.bind(v{i + 1}, {step.replace('v', f'v{i}')}, "
    return start + body.replace("v", f"v{times}") + ")" * (times + 1)


TOO_EXPENSIVE = {
    "loops in loops": "".join(f"{TEN}.all({name}, " for name in "abcdef") + "a + f > 0" + ")" * 6,
    "loops over attributes": "device.attributes.all(d, "
    + "".join(f"device.attributes[d].all({name}, " for name in "abce")
    + "true"
    + ")" * 5,
    "a range": "lists.range(9223372036854775807).size() > 0",
    "strings that double": bound('"xxxxxxxxxxxxxxxx"', "v + v", "size(v) > 0"),
    "lists that double": bound("[1, 2]", "v + v", "size(v) > 0"),
    "lists that share": bound("[1]", "[v, v]", "v == v"),
    "shared lists as text": bound("[1]", "[v, v]", '"%s".format([v]) == ""'),
    "shared lists made flat": bound("[dyn(1)]", "[dyn(v), dyn(v)]", "v.flatten(100).size() > 0"),
    "replacements that grow": bound('"xxxxxxxxxx"', 'v.replace("", v)', "size(v) > 0", times=5),
    "a join": f"lists.range(3000).map(x, '{'x' * 5000}').join(',').size() > 0",
    "distinct": "lists.range(5000).distinct().size() > 0",
    "sets": "sets.contains(lists.range(3000), lists.range(3000))",
    "patterns": f"lists.range(2000).all(x, '{'a' * 3000}'.find('(a*)*b') == '')",
    "long versions": f"lists.range(50000).all(x, !isSemver('1.0.0-{'1.' * 4000}'))",
    "long durations": f"lists.range(50000).all(x, duration('{'1ns' * 3000}') > duration('0s'))",
    "operators without a cost": f"lists.range(100000).all(x, {'||'.join(['false'] * 1000)} || true)",
    "comparisons of long strings": bound(
        '"aaaaaaaaaaaaaaaa"', "v + v", 'lists.range(20000).all(x, v + "b" != v + "c")', times=12
    ),
    "searches of long strings": bound(
        '"aaaaaaaaaaaaaaaa"', "v + v", 'lists.range(100).all(x, v.lastIndexOf("b" + v) == -1)', times=12
    ),
}


@pytest.mark.parametrize("expression", TOO_EXPENSIVE.values(), ids=TOO_EXPENSIVE)
def test_an_expression_that_costs_too_much_ends_with_one_sentence(expression: str) -> None:
    """Whatever it is made of; the suite's memory and time are the witnesses, at a tenth of the limit."""
    found = selector(expression)
    assert found.error == ""

    with pytest.raises(SelectorError) as raised:
        found.evaluated(DEVICE, limit=COST_LIMIT // 10)

    assert str(raised.value) == "CEL runtime error: operation cancelled: actual cost limit exceeded"


def test_the_limit_is_that_of_the_api_server() -> None:
    """An evaluation that says nothing else ends at a million units."""
    found = selector(TOO_EXPENSIVE["loops in loops"])

    with pytest.raises(SelectorError, match="actual cost limit exceeded"):
        found.matches(DEVICE)


TOO_COMPLEX = {
    "10 KiB of parentheses": ("(" * 5000 + "true" + ")" * 5000, "limit: 32"),
    "more than 10 KiB": ("true" + " " * 10240, "the expression has 10244 bytes, at most 10240 are allowed"),
    "brackets": ("[" * 10000, "limit: 32"),
    "fields of fields": ("device" + ".a" * 5000, "Exceeded max recursion depth"),
    "macros that copy": (f"optional.of(1){'.optMap(x, x)' * 30}.hasValue()", "at most 8 calls of optMap"),
    "types that double": (bound("[1]", "{v: v}", "true", times=20), "at most 8 keys of maps may be computed"),
    "repetitions": ("'a'.matches('((a{0,1000}){0,1000}){0,1000}')", "invalid repetition size"),
    "a large pattern": ("'a'.matches('" + r"\\pL{1,500}" * 100 + "')", "pattern too large"),
}


@pytest.mark.parametrize(("expression", "error"), TOO_COMPLEX.values(), ids=TOO_COMPLEX)
def test_an_expression_that_is_too_complex_does_not_compile(expression: str, error: str) -> None:
    """It is refused before the library spends time or memory on it."""
    assert selector(expression).error.startswith("CEL compile error: ")
    assert error in selector(expression).error


@pytest.mark.parametrize(
    "expression",
    [
        "'" + "a" * 3000 + "'.matches('" + "(x+x+)+" * 400 + "y')",
        "!" * 10000 + "true == true",
        "-" * 10000 + "1 == 1",
        " || ".join(["device.driver == 'x'"] * 400) + " || true",
        f"optional.of(1){'.optMap(x, x)' * 8}.hasValue()",
    ],
    ids=["backtracking", "negations", "signs", "alternatives", "eight copies"],
)
def test_a_large_expression_that_is_cheap_is_evaluated(expression: str) -> None:
    """Size alone is no reason to refuse; patterns take linear time."""
    assert isinstance(selector(expression).matches(DEVICE), bool)


def test_compiled_expressions_take_no_more_memory_than_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiled expression takes fifty times as much as its text; the one compiled first goes."""
    kept = selectors._Kept()
    monkeypatch.setattr(selectors, "_kept", kept)
    monkeypatch.setattr(selectors, "KEPT_CHARACTERS", 3 * (selectors.BESIDES + 29))
    expressions = [f'device.driver == "driver{number:04}"' for number in range(5)]
    assert {len(each) for each in expressions} == {29}

    for each in expressions:
        assert selector(each).error == ""
    again = selector(expressions[4])

    assert list(kept.selectors) == expressions[2:]
    assert again is kept.selectors[expressions[4]]
    assert [is_compiled(each) for each in expressions] == [False, False, True, True, True]
