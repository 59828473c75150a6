"""States of objects in lines of a list: the same whether a line's beginning is read, or all of it."""

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.listed_objects import ObjectState, listed_state_of

IDENTITY = {"name": "web-7d4b9-x2", "namespace": "team-1", "uid": "0a-1", "resourceVersion": "17"}

#: What an API server accepts as a name, and what it does not, in characters that JSON escapes.
TEXTS = st.sampled_from(("web-7d4b9", "system:node", "a.b", "", 'quo"ted', "back\\slash", "n\u00e4me", "12"))


def a_line(metadata: dict[str, Any], *, kind: str = "ADDED", first: str = "kind") -> bytes:
    """A line, with the fields of the object in the order of an API server unless another comes first."""
    document = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {"nodeName": "n"}}
    document = {first: document[first], **document}
    return orjson.dumps({"type": kind, "object": document})


def expected(line: bytes) -> ObjectState | None:
    """By all of the line."""
    read = orjson.loads(line)
    metadata = read["object"]["metadata"]
    if read["type"] != "ADDED" or not {"name", "uid", "resourceVersion"} <= metadata.keys():
        return None
    return ObjectState(
        metadata["name"], metadata["uid"], metadata["resourceVersion"], metadata.get("namespace", "")
    )


@given(
    st.permutations(("name", "generateName", "namespace", "uid", "resourceVersion", "labels")),
    st.integers(0, 6),
    st.dictionaries(st.sampled_from((*IDENTITY, "generateName")), TEXTS),
    st.sampled_from(("ADDED", "MODIFIED", "DELETED")),
    st.sampled_from(("kind", "metadata", "spec")),
)
def test_a_line_is_read_as_its_json_says(
    order: list[str], count: int, changed: dict[str, str], kind: str, first: str
) -> None:
    """In whatever order and with whatever characters the fields come."""
    whole = {**IDENTITY, "generateName": "web-7d4b9-", "labels": {"uid": "other"}, **changed}
    for fields in (order, order[:count], [name for name in whole if name in order]):
        line = a_line({name: whole[name] for name in fields}, kind=kind, first=first)

        assert listed_state_of(line) == expected(line)


def test_the_rest_of_a_usual_line_is_not_read() -> None:
    """A new leader lists all pods again, and most are as they were; reading each takes six times as long."""
    usual, other = ({**IDENTITY, "labels": {}}, {"labels": {}, **IDENTITY})

    for metadata, state in ((usual, expected(a_line(usual))), (other, None)):
        assert listed_state_of(a_line(metadata)[:-2]) == state
