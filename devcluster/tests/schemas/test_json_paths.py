"""JSON paths of printer columns."""

from typing import Any

import pytest

from roadstead.schemas.json_paths import PathError, path, values

OBJ = {
    "metadata": {"labels": {"example.com/a": "x"}},
    "status": {
        "conditions": [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}],
        "counts": [1, 2, 3],
    },
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[*].type", ["Other", "Ready"]),
        (".status.counts[0]", [1]),
        (".status.counts[-1]", [3]),
        (".status.counts[1:]", [2, 3]),
        (".status.counts[?(@>1)]", [2, 3]),
        (".metadata.labels['example.com/a']", ["x"]),
        (r".metadata.labels.example\.com/a", ["x"]),
        ("..status", [OBJ["status"], "False", "True"]),
        (".status.nope.deeper", []),
        (".status.counts[9]", []),
    ],
)
def test_what_paths_lead_to(text: str, found: list[Any]) -> None:
    """Fields, indexes, slices, filters; nothing where nothing is."""
    assert values(OBJ, text) == found


@pytest.mark.parametrize("text", ["status", ".status[", ".a b", ".a[?(@.b==c)]"])
def test_paths_that_cannot_be_read(text: str) -> None:
    """The message names them."""
    with pytest.raises(PathError):
        path(text)
