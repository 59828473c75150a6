"""Objects with parts that cannot be read: which still count, and which do not."""

import json
from itertools import chain, combinations
from typing import Any

import pytest

from plimsoll.cluster.listed_objects import read_object
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod

#: Parts that cannot be read, and where they lie.
PARTS: dict[str, tuple[str, Any]] = {
    "conditions": ("status", "none"),
    "allocatable": ("status", 7),
    "phase": ("status", 7),
    "taints": ("spec", "none"),
    "tolerations": ("spec", "none"),
}
OF_NODES, OF_PODS = ("conditions", "allocatable", "taints"), ("conditions", "phase", "tolerations")


def some(parts: tuple[str, ...]) -> list[tuple[str, ...]]:
    return list(chain.from_iterable(combinations(parts, size) for size in range(len(parts) + 1)))


@pytest.mark.parametrize(
    ("kind", "node", "bad"),
    [
        *((Node, "", bad) for bad in some(OF_NODES)),
        *((Pod, node, bad) for node in ("", "n1") for bad in some(OF_PODS)),
    ],
)
def test_without_a_part_of_its_spec_only_a_pod_on_a_node_counts(
    kind: type, node: str, bad: tuple[str, ...]
) -> None:
    """However many parts of the status are missing in addition; each is named."""
    document: dict[str, Any] = {"metadata": {"name": "a", "uid": "u"}, "spec": {}, "status": {}}
    if node:
        document["spec"]["nodeName"] = node
    for part in bad:
        place, value = PARTS[part]
        document[place][part] = value

    found, key, problems = read_object(kind, json.dumps(document).encode())

    counts = bool(node) or all(PARTS[part][0] == "status" for part in bad)
    assert ((found is not None), key.rpartition("/")[2]) == (counts, "a")
    assert bool(problems) == bool(bad)
    if counts:
        assert all(any(f".{PARTS[part][0]}.{part}" in each for each in problems) for part in bad)
