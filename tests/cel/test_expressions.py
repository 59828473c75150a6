"""Expressions about one device, with their results and errors."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_cel import AttributeValue, DeviceView, SelectorError, Version, selector

ATTRIBUTES: dict[str, AttributeValue] = {
    "model": "a100",
    "index": 3,
    "healthy": True,
    "firmware": Version("2.10.0-rc.1"),
    "uuid": "GPU-945cdae2",
    "resource.kubernetes.io/pcieRoot": "pci0000:01",
}
CAPACITY = {"memory": "80Gi", "cores": "7424", "slice": "2500m"}
DEVICE = DeviceView("gpu.example.com", ATTRIBUTES, CAPACITY)
OWN = 'device.attributes["gpu.example.com"]'
HAS = 'device.capacity["gpu.example.com"]'

TRUE = [
    # The device.
    'device.driver == "gpu.example.com"',
    "!device.allowMultipleAllocations",
    "has(device.driver) && has(device.attributes)",
    'cel.bind(d, device, d.driver.startsWith("gpu"))',
    f'{OWN}.model == "a100"',
    f'{OWN}["model"] in ["a100", "h100"]',
    f'"model" in {OWN} && !("nothing" in {OWN})',
    f"has({OWN}.model) && !has({OWN}.nothing)",
    f'{OWN}.?nothing.orValue("none") == "none"',
    f'{OWN}[?"index"].hasValue()',
    f"{OWN}.healthy",
    'device.attributes[device.driver].model == "a100"',
    'device.attributes["resource.kubernetes.io"].pcieRoot.endsWith("1")',
    # A domain that does not exist is an empty map, which sizes and keys do not show.
    'size(device.attributes["other.example.com"]) == 0',
    '!has(device.attributes["other.example.com"].model)',
    '!("other.example.com" in device.attributes)',
    'size(device.attributes) == 2 && "gpu.example.com" in device.attributes',
    'device.attributes.all(domain, domain != "other.example.com")',
    'device.attributes[?"other.example.com"].hasValue()',
    f"size({OWN}) == 5",
    # Types are those of the run; numbers compare across types, equality of different types is false.
    f"{OWN}.index == 3.0 && {OWN}.index == 3u && {OWN}.index < 3.5",
    f'{OWN}.index != "3"',
    f"{OWN}.model != 3",
    "1 < 1.5 && 2u > 1 && !(1.0 < 1)",
    f"type({OWN}.index) == int && type({OWN}.model) == string",
    # || and && absorb an error of either side.
    f"{OWN}.nothing == 1 || true",
    f"true || {OWN}.nothing == 1",
    f"!({OWN}.nothing == 1 && false)",
    f"!(false && {OWN}.nothing == 1)",
    f"{OWN}.healthy ? true : {OWN}.nothing",
    "[1, 0, 2].exists(x, 6 / x == 3)",
    "![0, 1, 2].all(x, 6 / x > 3)",
    # Quantities.
    f'{HAS}.memory.compareTo(quantity("40Gi")) == 1',
    f'{HAS}.memory == quantity("81920Mi")',
    f'{HAS}.memory.isGreaterThan(quantity("79.9Gi")) && !{HAS}.memory.isLessThan(quantity("1"))',
    f"{HAS}.cores.isInteger() && {HAS}.cores.asInteger() == 7424",
    f"!{HAS}.slice.isInteger() && {HAS}.slice.asApproximateFloat() == 2.5",
    'duration("1h") + duration("30m") == duration("90m")',
    'duration("1h") - duration("30m") == duration("30m")',
    'quantity("9223372036854775807").isInteger() && quantity("-9223372036854775808").isInteger()',
    f'{HAS}.memory.add(quantity("1Gi")).sub(quantity("81Gi")) == quantity("0")',
    f"{HAS}.cores.add(1).sub(25).asInteger() == 7400",
    f"sign({HAS}.cores) == 1 && sign(quantity('-1')) == -1",
    'isQuantity("1.5Ki") && !isQuantity("Ki") && !isQuantity("1 Gi") && !isQuantity("")',
    f'quantity("80Gi") in [{HAS}.memory]',
    f'{OWN}.index != quantity("3")',
    # Versions.
    f'{OWN}.firmware.isLessThan(semver("2.10.0")) && {OWN}.firmware.isGreaterThan(semver("2.9.9"))',
    f"{OWN}.firmware.major() == 2 && {OWN}.firmware.minor() == 10 && {OWN}.firmware.patch() == 0",
    f'{OWN}.firmware == semver("2.10.0-rc.1+build.5")',
    'semver("1.0.0-alpha.2").compareTo(semver("1.0.0-alpha.10")) == -1',
    'semver("1.0.0-alpha.1").isLessThan(semver("1.0.0-alpha.beta"))',
    '!isSemver("v1.0.0") && !isSemver("1.0") && !isSemver("01.0.0") && !isSemver("1.0.0-01")',
    'isSemver("v1.0", true) && semver("v01.2", true) == semver("1.2.0")',
    # Strings.
    f'{OWN}.uuid.split("-")[0] == "GPU" && {OWN}.uuid.substring(4, 6) == "94"',
    f'{OWN}.uuid.find("[0-9]+") == "945" && {OWN}.uuid.findAll("([a-z])+") == ["cdae"]',
    f'{OWN}.uuid.lowerAscii().replace("gpu-", "").size() == 8',
    f'{OWN}.model.matches("^[ah][0-9]+$") && !{OWN}.model.matches("^[0-9]+$")',
    '"äö".size() == 2 && "äö".charAt(1) == "ö" && "tacocat".lastIndexOf("c") == 4',
    '["a", "b"].join("-") == "a-b" && " x ".trim() == "x" && "%s=%d".format([dyn("a"), 1]) == "a=1"',
    '"100%% of %s, %%d" .format(["it"]) == "100% of it, %d"',
    "string(1000000.0) == '1e+06' && string(0.5) == '0.5' && string(true) == 'true'",
    # Lists, sets, macros.
    "[1, 2, 3].map(x, x * 2).sum() == 12 && [3, 1].min() == 1 && [3, 1].max() == 3",
    "[1, 2].isSorted() && [1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2",
    "sets.contains([1, 2], [2]) && sets.intersects([1], [1, 2]) && sets.equivalent([1, 1], [1])",
    "[[1], [2]].flatten() == [1, 2] && lists.range(3).reverse() == [2, 1, 0] && [2, 1].sort() == [1, 2]",
    "[1, 2, 3].filter(x, x > 1) == [2, 3] && [1, 1].distinct() == [1] && [1, 2, 3].slice(1, 2) == [2]",
    "[1, 2].all(i, v, v == i + 1) && {'a': 1}.exists(k, v, k == 'a' && v == 1)",
    "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2} && [5].transformList(i, v, v + i) == [5]",
    "[3, 1, 2].sortBy(x, -x) == [3, 2, 1] && [1, 2].exists_one(x, x == 2)",
    "optional.of(1).optMap(x, x + 1).value() == 2 && !optional.none().hasValue()",
    "{true: 1, false: 2}[true] == 1 && {1: 'a'}[dyn(1u)] == 'a' && {'a': 1}.size() == 1",
    # Other values.
    'duration("1h30m").getMinutes() == 90 && duration("1.5s") > duration("1500us")',
    'timestamp("2026-03-01T00:00:00Z") - duration("24h") == timestamp("2026-02-28T00:00:00Z")',
    'timestamp("2026-03-01T00:30:00Z").getHours("+02:00") == 2',
    'url("https://x.example.com:8443/a?b=c").getPort() == "8443" && !isURL("a b")',
    'ip("10.0.0.1").family() == 4 && cidr("10.0.0.0/8").containsIP("10.1.2.3") && !isIP("10.0.0")',
    'string(cidr("10.1.2.3/8").masked()) == "10.0.0.0/8" && ip.isCanonical("::1")',
    'format.dns1123Label().validate("a-b").hasValue() == false && format.named("uuid").hasValue()',
    'format.dns1123Label().validate("A").value().size() == 1',
    "-7 / 2 == -3 && -7 % 2 == -1 && 7.0 / 2.0 == 3.5 && 0x10 == 16",
    'b"abc" == bytes("abc") && int("7") == 7 && double("1.5") == 1.5 && bool("true") && uint(3) == 3u',
]


@pytest.mark.parametrize("expression", TRUE)
def test_it_matches(expression: str) -> None:
    """An expression that is true of the device, and whose negation is false."""
    assert selector(expression).error == ""

    assert selector(expression).matches(DEVICE)
    assert not selector(f"!({expression})").matches(DEVICE)


RUN_TIME = [
    (f"{OWN}.nothing == 1", "no such key: nothing"),
    ('device.attributes["other.example.com"].model == "x"', "no such key: model"),
    ('device.capacity["other.example.com"].memory.compareTo(quantity("1")) > 0', "no such key: memory"),
    (f'{OWN}.index < "1"', "no such overload"),
    (f"{OWN}.index.sum() == 1", "no such overload: sum(int)"),
    (f"{OWN}.model && true", "no such overload"),
    (f"{OWN}.model ? true : false", "no such overload"),
    (f"false || {OWN}.nothing", "no such key: nothing"),
    (f"{OWN}.nothing || {OWN}.other", "no such key: nothing"),
    ("1 / 0 == 1", "division by zero"),
    ("1 % 0 == 1", "modulus by zero"),
    ("9223372036854775807 + 1 > 0", "integer overflow"),
    ("0u - 1u == 0u", "unsigned integer overflow"),
    ("[1][1] == 1", "index out of bounds: 1"),
    ('quantity("x") == quantity("1")', "quantities must match"),
    (f"{HAS}.slice.asInteger() == 2", "cannot convert value to integer"),
    ('semver("1.0") == semver("1.0.0")', "'1.0' is not a semantic version"),
    (f'semver("1.0.0").isLessThan(dyn({HAS}.cores))', "no such overload"),
    ("optional.none().value() == 1", "optional.none() dereference"),
    ('"abc".substring(5) == ""', "index out of range: 5"),
    (
        f"{OWN}.model.matches(string({OWN}.model) + '(')",
        "Illegal regex: invalid regular expression: missing )",
    ),
    (
        f"{OWN}.index",
        "CEL result of type int could not be converted to bool: unsupported type conversion from",
    ),
]


@pytest.mark.parametrize(("expression", "error"), RUN_TIME)
def test_an_evaluation_fails(expression: str, error: str) -> None:
    """The error names its cause as kube-scheduler does."""
    assert selector(expression).error == ""

    with pytest.raises(SelectorError) as raised:
        selector(expression).matches(DEVICE)

    assert str(raised.value).startswith(f"CEL runtime error: {error}")


COMPILE_TIME = [
    ("", "compilation failed: ERROR: <input>:1:1: Syntax error"),
    (
        'device.attributes["x"',
        "compilation failed: ERROR: <input>:1:22: Syntax error: missing ']' at '<EOF>'",
    ),
    ("device.driver == 1", "found no matching overload for '_==_' applied to '(string, int)'"),
    ("device.driver > 1", "found no matching overload for '_>_' applied to '(string, int)'"),
    (f"{HAS}.memory > 1", "found no matching overload for '_>_'"),
    (f'{HAS}.memory == "80Gi"', "found no matching overload for '_==_'"),
    ("1 == 1.0", "found no matching overload for '_==_' applied to '(int, double)'"),
    ("device.name == 'x'", "undefined field 'name'"),
    ("device.attribute['a'].b", "undefined field 'attribute'"),
    ("unknown(1)", "undeclared reference to 'unknown'"),
    ("math.abs(1) == 1", "undeclared reference to 'math'"),
    ("other == 1", "undeclared reference to 'other'"),
    ("1 + 1", "must evaluate to bool or the unknown type, not int"),
    ("device.driver", "must evaluate to bool or the unknown type, not string"),
    ("[1, 'a'].size() == 2", "expected type 'int' but found 'string'"),
    ("{'a': 1, 'b': 'c'}.size() == 2", "expected type 'int' but found 'string'"),
    (f"{OWN}.model.matches('(')", "invalid matches argument: invalid regular expression"),
    ("duration('x') > duration('1s')", "invalid duration argument: 'x'"),
    ("timestamp('x') > timestamp(0)", "invalid timestamp argument: 'x'"),
    ("Foo{a: 1}.a == 1", "a message such as Foo cannot be created here"),
    ("'\ud800' == 'a'", "the text is not valid Unicode"),
]


@pytest.mark.parametrize(("expression", "error"), COMPILE_TIME)
def test_it_does_not_compile(expression: str, error: str) -> None:
    """What an API server would refuse has an error, and every evaluation raises it."""
    found = selector(expression)

    assert found.error.startswith("CEL compile error: ")
    assert error in found.error
    with pytest.raises(SelectorError) as raised:
        found.matches(DEVICE)
    assert str(raised.value) == found.error


def test_a_selector_is_compiled_once() -> None:
    """The same expression is the same selector."""
    assert selector("true") is selector("true")


def test_values_of_a_device_are_checked_when_they_are_read() -> None:
    """A version or a quantity that the API server would refuse is a sentence, not a crash."""
    for device, error in (
        (DeviceView("d", {"v": Version("1")}, {}), "attribute v: parse semantic version: '1' is not"),
        (DeviceView("d", {"i": 2**63}, {}), "attribute i: the number does not fit 64 bits"),
        (DeviceView("d", {}, {"memory": "much"}), "quantities must match"),
    ):
        with pytest.raises(SelectorError, match=f"^CEL runtime error: {error}"):
            selector("true").matches(device)


def test_names_without_a_domain_belong_to_the_driver() -> None:
    """And a name may be written with the driver's own domain."""
    device = DeviceView("d.example.com", {"d.example.com/a": 1, "b": 2}, {}, allow_multiple=True)

    assert selector('size(device.attributes) == 1 && device.attributes["d.example.com"].a == 1').matches(
        device
    )
    assert selector("device.allowMultipleAllocations").matches(device)


#: Parts of a pattern, with what they become and the value that they take.
PIECES = [
    ("%%", "%", ""),
    ("%s", "x", 'dyn("x")'),
    ("%d", "7", "dyn(7)"),
    ("a", "a", ""),
    (" b%%", " b%", ""),
]


@settings(max_examples=40)
@given(st.lists(st.sampled_from(PIECES), max_size=7))
def test_a_pattern_is_filled_in_piece_by_piece(pieces: list[tuple[str, str, str]]) -> None:
    pattern, expected = ("".join(each) for each in ([one[at] for one in pieces] for at in (0, 1)))
    values = ", ".join(value for *_, value in pieces if value)

    assert selector(f'"{pattern}".format([{values}]) == "{expected}"').matches(DEVICE)
