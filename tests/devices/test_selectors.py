"""Answers that alike devices share are those that each of them gives by itself."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.builders import DRIVER, a_slice
from dra_cel import compiler, selector
from dra_cel.reads import KnownReads, reads_of
from dra_cel.selectors import _kept as kept_selectors
from dra_cel.syntax import Tree
from plimsoll.devices import selectors
from plimsoll.devices.pools import PooledDevice
from plimsoll.devices.selectors import answer_of, evaluated

OWN, OTHER = f'device.attributes["{DRIVER}"]', 'device.attributes["b.example.com"]'
HAS = f'device.capacity["{DRIVER}"]'

#: Expressions, and what they read: None for what may be anything.
READS = {
    f'device.driver == "{DRIVER}"': set(),
    "device.allowMultipleAllocations": set(),
    f'{OWN}.model == "a100"': {("attributes", DRIVER, "model")},
    f'{OWN}["model"] != "a100"': {("attributes", DRIVER, "model")},
    f"has({OWN}.model)": {("attributes", DRIVER, "model")},
    f'{OWN}.?model.orValue("none") == "none"': {("attributes", DRIVER, "model")},
    f'{OWN}[?"index"].hasValue()': {("attributes", DRIVER, "index")},
    f"{OWN}.index / {OTHER}.index > 0": {
        ("attributes", DRIVER, "index"),
        ("attributes", "b.example.com", "index"),
    },
    f'{OWN}.version.isGreaterThan(semver("1.0.0"))': {("attributes", DRIVER, "version")},
    f'{HAS}.memory.compareTo(quantity("40Gi")) >= 0': {("capacity", DRIVER, "memory")},
    f'cel.bind(d, {OWN}, d.model == "a100" && d.index > 1)': {
        ("attributes", DRIVER, "model"),
        ("attributes", DRIVER, "index"),
    },
    f"[1, 2].exists(x, x == {OWN}.index)": {("attributes", DRIVER, "index")},
    f"cel.bind(d, {OWN}, [1, 2].all(x, d.index == x))": {("attributes", DRIVER, "index")},
    f'cel.bind(d, {OWN}, "model" in d)': None,
    f"cel.bind(d, {OWN}, cel.bind(d, {OTHER}, d.index > 0))": None,
    f'cel.bind(d, device, d.driver == "{DRIVER}")': None,
    f'"model" in {OWN}': None,
    f"size({OWN}) > 2": None,
    f"{OWN}.exists(name, name.startsWith('m'))": None,
    f"{OWN} == {OTHER}": None,
    'device.attributes[device.driver].model == "a100"': None,
    f'{OWN}["mod" + "el"] == "a100"': None,
    '"b.example.com" in device.attributes': None,
    f'device.attributes[?"{DRIVER}"].hasValue()': None,
    "[device].exists(device, true)": None,
}

VALUES: Mapping[str, st.SearchStrategy[dict[str, Any]]] = {
    "model": st.sampled_from([{"string": "a100"}, {"string": "h200"}, {"bool": True}, {}]),
    "index": st.sampled_from([{"int": 0}, {"int": 1}, {"int": 2}, {"bool": True}, {"string": "1"}]),
    "version": st.sampled_from([{"version": "1.2.3"}, {"version": "0.1.0"}, {"string": "1.2.3"}]),
    "b.example.com/index": st.sampled_from([{"int": 0}, {"int": 1}]),
    f"{DRIVER}/model": st.sampled_from([{"string": "a100"}, {"string": "h200"}]),
    "broken": st.sampled_from([{"version": "1.0.0"}, {"version": "1"}]),
}
AMOUNT = st.sampled_from(["80Gi", "20Gi", "81920Mi"]).map(lambda text: {"value": text})
DEVICE = st.fixed_dictionaries(
    {
        "name": st.just("d"),
        "attributes": st.fixed_dictionaries({}, optional=VALUES).flatmap(
            lambda found: st.permutations(list(found.items())).map(dict)
        ),
        "capacity": st.fixed_dictionaries(
            {}, optional={"memory": AMOUNT, f"{DRIVER}/memory": AMOUNT}
        ).flatmap(lambda found: st.permutations(list(found.items())).map(dict)),
        "allowMultipleAllocations": st.booleans(),
    }
)
EXPRESSION = st.recursive(
    st.sampled_from(sorted(READS)),
    lambda part: st.one_of(
        st.tuples(part, st.sampled_from(["&&", "||", "=="]), part).map(lambda p: f"({p[0]}) {p[1]} ({p[2]})"),
        part.map(lambda p: f"!({p})"),
        st.tuples(part, part, part).map(lambda p: f"({p[0]}) ? ({p[1]}) : ({p[2]})"),
    ),
    max_leaves=4,
)


@pytest.fixture
def _planted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Groups that forget the first thing that an expression reads."""

    def forgetful(tree: Tree) -> KnownReads | None:
        found = reads_of(tree)
        return None if found is None else KnownReads(frozenset(sorted(found.paths)[1:]))

    _forget_all()
    monkeypatch.setattr(compiler, "reads_of", forgetful)
    yield
    _forget_all()


def _forget_all() -> None:
    kept_selectors.selectors.clear()
    selectors._kept.cache_clear()


def a_pooled(document: dict[str, Any], **spec: Any) -> PooledDevice:
    """A device as nodes see it."""
    published = a_slice("n", [document], **spec)
    return PooledDevice(published, published.spec.devices[0], is_reached=True)


@pytest.mark.parametrize("expression", READS)
def test_what_an_expression_reads(expression: str) -> None:
    """Named paths; nothing where it goes through a map, computes a key or passes the map on."""
    compiled = selector(expression)

    assert compiled.error == ""
    assert (None if compiled.reads is None else compiled.reads.paths) == READS[expression]


@given(EXPRESSION, st.lists(DEVICE, min_size=1, max_size=6), st.sampled_from([DRIVER, "b.example.com"]))
def test_shared_answers_are_those_of_each_device(
    expression: str, documents: list[dict[str, Any]], driver: str
) -> None:
    """Verdict, cost and error, also of devices whose values cannot be read."""
    for document in documents:
        device = a_pooled(document, driver=driver)
        assert answer_of(expression, device) == evaluated(expression, device.view)


@pytest.mark.usefixtures("_planted")
@pytest.mark.parametrize("expression", [text for text, paths in READS.items() if paths])
def test_a_group_that_forgets_an_attribute_is_noticed(expression: str) -> None:
    """The planted slip shows in some device."""
    attributes = {
        "model": {"string": "a100"},
        "index": {"int": 2},
        "version": {"version": "2.0.0"},
        "b.example.com/index": {"int": 1},
    }
    full = a_pooled({"name": "d", "attributes": attributes, "capacity": {"memory": {"value": "80Gi"}}})

    assert answer_of(expression, full) != evaluated(expression, full.view)


@pytest.mark.parametrize("kind", ["attributes", "capacity"])
@pytest.mark.parametrize("full_name_is_last", [True, False])
def test_a_value_under_two_names(kind: str, full_name_is_last: bool) -> None:
    """The one with the domain counts, for all of the device's expressions."""
    small, great = ({"int": 1}, {"int": 2}) if kind == "attributes" else ({"value": "1"}, {"value": "2"})
    both = {"size": small, f"{DRIVER}/size": great}
    device = a_pooled({"name": "d", kind: both if full_name_is_last else dict(reversed(both.items()))})
    value = f'device.{kind}["{DRIVER}"].size'
    expression = f"{value} == 2" if kind == "attributes" else f'{value}.compareTo(quantity("2")) == 0'

    assert answer_of(expression, device) == evaluated(expression, device.view)
    assert answer_of(expression, device).matches


def test_devices_that_differ_in_what_is_not_read_are_asked_once() -> None:
    """Their names and serial numbers do not matter; another model does."""
    _forget_all()
    for number in range(40):
        attributes = {"model": {"string": f"m{number % 2}"}, "uuid": {"string": f"u{number}"}}
        device = a_pooled({"name": f"d{number}", "attributes": attributes})
        assert answer_of(f'{OWN}.model == "m1"', device).matches is (number % 2 == 1)

    assert selectors._kept.cache_info().misses == 2
