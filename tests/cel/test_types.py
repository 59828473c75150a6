"""Types as the parser encodes them, in CEL's notation."""

import pytest

from dra_cel.syntax import _type


def field(number: int, value: bytes | int) -> bytes:
    """A field of an encoded message: a small number, or bytes."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


INT, MESSAGE = field(3, 2), field(9, b"a.B")


@pytest.mark.parametrize(
    ("message", "text"),
    [
        pytest.param(b"", "dyn", id="none"),
        pytest.param(field(1, b""), "dyn", id="checked-at-run-time"),
        pytest.param(field(2, 0), "null", id="null"),
        pytest.param(INT, "int", id="a-primitive"),
        pytest.param(field(3, 9), "dyn", id="an-unknown-primitive"),
        pytest.param(field(5, 3), "duration", id="well-known"),
        pytest.param(MESSAGE, "a.B", id="a-message"),
        pytest.param(field(6, field(1, MESSAGE)), "list(a.B)", id="a-list"),
        pytest.param(field(7, field(1, INT) + field(2, MESSAGE)), "map(int, a.B)", id="a-map"),
        pytest.param(field(14, field(1, b"box") + field(2, INT)), "box(int)", id="opaque"),
        pytest.param(field(14, field(1, b"box")), "box", id="opaque-without-parts"),
    ],
)
def test_types_are_written_in_the_notation_of_the_language(message: bytes, text: str) -> None:
    assert _type(message) == text
