"""Structural schemas: pruning, nulls, defaults."""

from hypothesis import given
from hypothesis import strategies as st

from roadstead.schemas import structural
from roadstead.values.copies import copied
from roadstead.values.resources import Obj

SCHEMA: Obj = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "default": {"size": "small"},
            "properties": {
                "size": {"type": "string"},
                "replicas": {"type": "integer", "default": 1},
                "maybe": {"type": "string", "nullable": True},
                "name": {"type": "string"},
                "nested": {
                    "type": "object",
                    "default": {},
                    "properties": {"depth": {"type": "integer", "default": 3}},
                },
                "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "limits": {"type": "object", "additionalProperties": {"type": "integer"}},
                "ports": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"protocol": {"type": "string", "default": "TCP"}},
                    },
                },
            },
        },
    },
}


def completed(obj: Obj) -> Obj:
    """The object as it is stored."""
    structural.prune(obj, SCHEMA)
    structural.drop_nulls(obj, SCHEMA)
    structural.fill_defaults(obj, SCHEMA)
    return obj


def test_defaults_are_filled_in_from_the_outside_in() -> None:
    """A default object is completed by the defaults of its fields; a default is a copy each time."""
    first, second = completed({}), completed({})

    assert first == {"spec": {"size": "small", "replicas": 1, "nested": {"depth": 3}}}
    first["spec"]["nested"]["depth"] = 4
    assert second["spec"]["nested"] == {"depth": 3}


def test_nulls_that_are_not_allowed_go() -> None:
    """A null takes the default where there is one, stays where it is nullable, and else is dropped."""
    given_spec = {"size": "s", "replicas": None, "maybe": None, "name": None}

    spec = completed({"spec": given_spec})["spec"]

    assert spec == {"size": "s", "replicas": 1, "maybe": None, "nested": {"depth": 3}}


def test_unknown_fields_are_reported_by_path() -> None:
    """Fields that the schema does not know go, maps and open objects keep theirs, metadata is left alone."""
    obj = {
        "kind": "Gadget",
        "metadata": {"anything": 1},
        "extra": 1,
        "spec": {
            "stray": 1,
            "open": {"any": {"thing": 1}},
            "limits": {"any": 1},
            "ports": [{"protocol": "UDP"}, {"port": 1}],
        },
    }

    unknown = structural.prune(obj, SCHEMA)

    assert unknown == ["extra", "spec.ports[1].port", "spec.stray"]
    assert obj == {
        "kind": "Gadget",
        "metadata": {"anything": 1},
        "spec": {"open": {"any": {"thing": 1}}, "limits": {"any": 1}, "ports": [{"protocol": "UDP"}, {}]},
    }


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["spec", "size", "replicas", "nested", "open", "ports", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["spec", "status", "metadata"]), json_values, max_size=3))
def test_completing_twice_changes_nothing(obj: Obj) -> None:
    """Whatever comes in, once completed it stays as it is."""
    once = completed(copied(obj))

    assert completed(copied(once)) == once
