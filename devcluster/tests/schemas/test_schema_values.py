"""Values against schemas, in the API server's words."""

from typing import Any

import pytest

from roadstead.schemas.schema_values import list_causes, value_causes
from roadstead.values.resources import Obj


def told(value: Any, schema: Obj, old: Any = None) -> list[tuple[str, str, str]]:
    """Field, reason without its prefix, and message of each cause."""
    causes = value_causes(value, schema, "spec.x", old)
    return [(cause.field, cause.reason.removeprefix("FieldValue"), cause.message) for cause in causes]


@pytest.mark.parametrize(
    ("value", "schema", "reason", "message"),
    [
        pytest.param(
            "3",
            {"type": "integer"},
            "TypeInvalid",
            'Invalid value: "string": spec.x in body must be of type integer: "string"',
            id="type",
        ),
        pytest.param(
            True,
            {"x-kubernetes-int-or-string": True},
            "TypeInvalid",
            'Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean"',
            id="int-or-string",
        ),
        pytest.param(
            None,
            {"type": "string"},
            "TypeInvalid",
            'Invalid value: "null": spec.x in body must be of type string: "null"',
            id="null",
        ),
        pytest.param(
            "huge",
            {"type": "string", "enum": ["small", "large"]},
            "NotSupported",
            'Unsupported value: "huge": supported values: "small", "large"',
            id="enum",
        ),
        pytest.param(
            11,
            {"type": "integer", "maximum": 10},
            "Invalid",
            "Invalid value: 11: spec.x in body should be less than or equal to 10",
            id="maximum",
        ),
        pytest.param(
            0,
            {"type": "number", "minimum": 0, "exclusiveMinimum": True},
            "Invalid",
            "Invalid value: 0: spec.x in body should be greater than 0",
            id="exclusive",
        ),
        pytest.param(
            0.7,
            {"type": "number", "multipleOf": 0.5},
            "Invalid",
            "Invalid value: 0.7: spec.x in body should be a multiple of 0.5",
            id="multiple",
        ),
        pytest.param(
            "ABC",
            {"type": "string", "pattern": "^[a-z]+$"},
            "Invalid",
            "Invalid value: \"ABC\": spec.x in body should match '^[a-z]+$'",
            id="pattern",
        ),
        pytest.param(
            "abcdef",
            {"type": "string", "maxLength": 5},
            "TooLong",
            "Too long: may not be more than 5 bytes",
            id="long",
        ),
        pytest.param(
            [1, 2],
            {"type": "array", "maxItems": 1},
            "TooMany",
            "Too many: 2: must have at most 1 item",
            id="many",
        ),
        pytest.param(
            "yesterday",
            {"type": "string", "format": "date-time"},
            "TypeInvalid",
            'Invalid value: "yesterday": spec.x in body must be of type date-time: "yesterday"',
            id="format",
        ),
    ],
)
def test_messages_are_those_of_the_server(value: Any, schema: Obj, reason: str, message: str) -> None:
    """One cause, at the field, in the words that people search for."""
    assert told(value, schema) == [("spec.x", reason, message)]


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        pytest.param(3.0, {"type": "integer"}, id="a whole number"),
        pytest.param(3, {"type": "number"}, id="an integer for a number"),
        pytest.param(None, {"type": "string", "nullable": True}, id="nullable"),
        pytest.param(0.3, {"type": "number", "multipleOf": 0.1}, id="multiple, rounded"),
        pytest.param("1h30m", {"type": "string", "format": "duration"}, id="duration"),
        pytest.param(
            "2020-02-02T02:02:02.123456789+01:00", {"type": "string", "format": "date-time"}, id="time"
        ),
        pytest.param("x", {"type": "string", "format": "made-up"}, id="unknown format"),
        pytest.param("äöü", {"type": "string", "maxLength": 3}, id="characters, not bytes"),
    ],
)
def test_what_fits_is_not_refused(value: Any, schema: Obj) -> None:
    """The generous side of each check."""
    assert told(value, schema) == []


def test_end_of_pattern_is_the_end_of_the_text() -> None:
    """In RE2 a dollar sign lets no newline follow."""
    assert told("abc\n", {"type": "string", "pattern": "^[a-z]+$"})
    assert not told("a$", {"type": "string", "pattern": "^a[$]$"})


EITHER: Obj = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
}


@pytest.mark.parametrize(
    ("value", "found"),
    [({}, "Found none valid"), ({"a": 1, "b": 2}, "Found 2 valid alternatives")],
    ids=["none", "both"],
)
def test_one_of_is_exactly_one(value: Obj, found: str) -> None:
    """Neither none nor several."""
    text = f'Invalid value: "": "spec.x" must validate one and only one schema (oneOf). {found}'

    assert ("<nil>", "Invalid", text) in told(value, EITHER)
    assert told({"a": 1}, EITHER) == []


PORTS: Obj = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["port", "protocol"],
    "items": {"type": "object", "properties": {"port": {"type": "integer", "maximum": 9}}},
}


def test_repeated_keys_are_reported_once_at_their_second_place() -> None:
    """A list that is a map has each key once."""
    items = [{"port": 1}, {"port": 2}, {"port": 1, "note": "x"}, {"port": 1}]

    causes = list_causes(items, PORTS, "spec.ports")

    assert [(cause.field, cause.message) for cause in causes] == [
        ("spec.ports[2]", 'Duplicate value: {"port":1}')
    ]


def test_true_is_not_one() -> None:
    """A set tells booleans from numbers."""
    schema: Obj = {"type": "array", "x-kubernetes-list-type": "set"}

    assert list_causes([1, True, "1"], schema) == []


def test_an_update_may_leave_what_was_invalid_before() -> None:
    """Only what an update changes is checked, item by item in a list that is a map."""
    old = [{"port": 99}, {"port": 98}]

    assert told([{"port": 99}, {"port": 98}, {"port": 3}], PORTS, old) == []
    assert [field for field, _, _ in told([{"port": 99}, {"port": 97}], PORTS, old)] == ["spec.x[1].port"]
