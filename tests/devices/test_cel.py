"""Devices as the evaluator of selectors gets them, and the same reading of quantities on both sides."""

import sys
import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.builders import a_slice
from dra_cel.quantity_texts import billionths_of
from plimsoll.devices import cel
from plimsoll.devices.pools import PooledDevice
from plimsoll.devices.selectors import SelectorAnswer, answer_of
from plimsoll.model.quantity import nanos

QUANTITY = st.tuples(
    st.sampled_from(["", "", "", "-", "+", "x"]),
    st.integers(0, 10**30).map(str) | st.text("09", max_size=4) | st.integers(10**990, 10**1010).map(str),
    st.just("") | st.text("0123456789", max_size=130).map(".{}".format),
    st.sampled_from([*"numkMGTPE", "", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e", "K"])
    | st.integers(-1200, 1200).map("e{}".format),
).map("".join)
#: Exponents as upstream keeps them, fractions of a billionth, numbers beyond a thousand digits.
EDGES = [
    *(
        "",
        ".",
        "Ki",
        "1.",
        ".5",
        "-.5k",
        "0.1n",
        "-0.1n",
        "1.0000000001",
        "0001",
        "--1",
        "1e",
        "1 Gi",
        "1.2.3",
    ),
    *("1e+3", "1E-10", "1e2147483647", "1e2147483648", "1e4294967299", "1e-4294967299", "1e" + "9" * 19),
    *(
        f"1e{2**63 - 1}",
        f"1e{2**63}",
        f"1e-{2**63}",
        f"1e-{2**63 + 1}",
        "1e" + "0" * 30 + "5",
        "1e" + "1" * 30,
    ),
    *(
        "1" * 1000 + "Ki",
        "1" * 1001 + "Ki",
        "16Ei",
        "8Ei",
        "0." + "0" * 105 + "1Ki",
        "-" + "7" * 991,
        "7" * 992,
    ),
]


def read_by(reader: Callable[[str], int], text: str) -> int | None:
    """What a reader makes of a text, None for no quantity."""
    try:
        return reader(text)
    except ValueError:
        return None


@pytest.fixture
def _without_evaluator(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The core without its extra."""
    monkeypatch.setitem(sys.modules, "dra_cel", None)
    cel.is_installed.cache_clear()
    yield
    cel.is_installed.cache_clear()


@given(QUANTITY)
def test_the_evaluator_reads_quantities_as_the_model_does(text: str) -> None:
    """To the last digit, and refuses the same texts."""
    assert read_by(billionths_of, text) == read_by(nanos, text)


@pytest.mark.parametrize("text", EDGES)
def test_the_evaluator_reads_edges_as_the_model_does(text: str) -> None:
    assert read_by(billionths_of, text) == read_by(nanos, text)


@pytest.mark.parametrize(
    "text",
    ["1e1000000000", "1e-2000000000", "7" * 10**6 + "Ei", "0." + "7" * 10**6, "1e" + "0" * 10**6 + "5"],
)
def test_no_quantity_costs_the_evaluator_more_than_its_length(text: str) -> None:
    began = time.process_time()

    assert billionths_of(text) == nanos(text)
    assert time.process_time() - began < 5.0


@pytest.mark.usefixtures("_without_evaluator")
def test_without_the_evaluator_a_selector_says_what_to_install() -> None:
    """Every device gets the same error, also one that no selector could read."""
    published = a_slice("n", [{"name": "d", "attributes": {"v": {"version": "1"}}}])
    device = PooledDevice(published, published.spec.devices[0], is_reached=True)

    assert answer_of("true", device) == SelectorAnswer(matches=False, units=0, error=cel.MISSING)


@pytest.mark.parametrize(
    ("attribute", "capacity", "sound"),
    [
        ({"version": "1.2.3"}, "80Gi", True),
        ({"version": "1.2"}, "80Gi", False),
        ({"string": "1.2"}, "80Gi", True),
        ({"int": 2**63 - 1}, "80Gi", True),
        ({"version": "1.2.3"}, "much", False),
        ({}, "0", True),
    ],
)
def test_a_device_is_sound_if_selectors_can_read_it(
    attribute: dict[str, str | int], capacity: str, sound: bool
) -> None:
    """A version is one for selectors, too."""
    document = {"name": "d", "attributes": {"v": attribute}, "capacity": {"m": {"value": capacity}}}
    published = a_slice("n", [document])
    device = PooledDevice(published, published.spec.devices[0], is_reached=True)

    assert device.is_sound is sound
    assert (device.view.error == "") is sound
