"""JSON, merge and strategic merge patches; the patched object is not changed."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.schemas import fields
from roadstead.store import patches
from roadstead.values.status_errors import StatusError

POD = fields.struct("V1Pod")
scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=4)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)
objects = st.dictionaries(st.text(max_size=3), values, max_size=4)


def without_nulls(value: Any) -> Any:
    """An object as a merge patch can make it."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return value


@given(objects, objects)
def test_merge_patch_is_idempotent_and_leaves_its_target_alone(target: Any, patch: Any) -> None:
    """Twice is as once (RFC 7386), and the object that was patched is as before."""
    before = copy.deepcopy(target)

    once = patches.merge(target, patch)

    assert patches.merge(once, patch) == once
    assert target == before


@given(objects)
def test_merge_patch_into_nothing_drops_nulls(patch: Any) -> None:
    """RFC 7386: a patch of nothing is itself without its nulls."""
    assert patches.merge({}, patch) == without_nulls(patch)


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param([{"op": "add", "path": "/a/-", "value": 3}], {"a": [1, 2, 3]}, id="append"),
        pytest.param([{"op": "add", "path": "/a/0", "value": 0}], {"a": [0, 1, 2]}, id="insert"),
        pytest.param([{"op": "remove", "path": "/a/1"}], {"a": [1]}, id="remove"),
        pytest.param([{"op": "replace", "path": "/b", "value": 1}], {"a": [1, 2], "b": 1}, id="replace-adds"),
        pytest.param(
            [{"op": "copy", "from": "/a/0", "path": "/c~1d"}], {"a": [1, 2], "c/d": 1}, id="escapes"
        ),
        pytest.param([{"op": "move", "from": "/a", "path": "/b"}], {"b": [1, 2]}, id="move"),
    ],
)
def test_json_patch_operations(patch: Any, expected: Any) -> None:
    """Operations of RFC 6902; replace of a key that is not there adds it, as upstream's library does."""
    assert patches.json_patch({"a": [1, 2]}, patch) == expected


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param([{"op": "test", "path": "/a", "value": 2}], id="test-fails"),
        pytest.param([{"op": "remove", "path": "/nope"}], id="nothing-to-remove"),
        pytest.param([{"op": "add", "path": "/no/pe", "value": 1}], id="no-parent"),
        pytest.param([{"op": "frob", "path": "/a"}], id="unknown-operation"),
    ],
)
def test_json_patch_that_does_not_hold_is_refused(patch: Any) -> None:
    """422: this is how a client says "only if"."""
    with pytest.raises(StatusError) as refused:
        patches.json_patch({"a": 1}, patch)

    assert refused.value.code == 422


def a_spec(*containers: Any, **more: Any) -> Any:
    """A pod's spec."""
    return {"spec": {"containers": list(containers), **more}}


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param(
            a_spec({"name": "a", "image": "2"}),
            [{"name": "a", "image": "2"}, {"name": "b"}],
            id="merges-by-name",
        ),
        pytest.param(
            a_spec({"name": "c"}), [{"name": "c"}, {"name": "a"}, {"name": "b"}], id="new-ones-first"
        ),
        pytest.param(a_spec({"name": "a", "$patch": "delete"}), [{"name": "b"}], id="deletes"),
        pytest.param(
            {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}},
            [{"name": "b"}, {"name": "a"}],
            id="orders",
        ),
        pytest.param(a_spec({"$patch": "replace"}, {"name": "z"}), [{"name": "z"}], id="replaces"),
    ],
)
def test_strategic_merge_of_a_list_with_a_key(patch: Any, expected: Any) -> None:
    """Containers merge by name; directives delete, order and replace."""
    pod = a_spec({"name": "a"}, {"name": "b"})

    patched = patches.strategic(pod, patch, POD)

    assert patched["spec"]["containers"] == expected
    assert pod == a_spec({"name": "a"}, {"name": "b"})


def test_strategic_merge_replaces_a_list_without_a_key() -> None:
    """Tolerations have no key."""
    pod = a_spec(tolerations=[{"key": "a"}])

    patched = patches.strategic(pod, {"spec": {"tolerations": [{"key": "b"}]}}, POD)

    assert patched["spec"]["tolerations"] == [{"key": "b"}]
