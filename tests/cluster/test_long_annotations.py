"""Of an object with long annotations the short ones are kept: others would fill the memory for nothing."""

import json
from typing import Any

from plimsoll.cluster.listed_objects import MOST_ANNOTATIONS, ObjectReader
from plimsoll.model.kinds.pod import Pod

SHORT = {"plimsoll.dev/never": "true", "example.com/owner": "x" * 1000}


def kept(annotations: dict[str, str]) -> list[dict[str, str]]:
    """What is kept of a pod's annotations: of a list, and of a watch."""
    document = {"metadata": {"name": "p", "namespace": "n", "annotations": annotations}}
    reader = ObjectReader(Pod)
    listed: Any = reader.document(json.dumps(document).encode())[0]
    watched = reader.line(json.dumps({"type": "ADDED", "object": document}).encode())
    assert watched is not None
    return [dict(listed.metadata.annotations), dict(watched[1].metadata.annotations)]


def test_the_longest_go_until_the_others_fit() -> None:
    """A tool's copy of the whole object is such a one."""
    long = {f"example.com/{number}": "y" * 10_000 for number in range(3)}
    both = [SHORT | {"example.com/0": long["example.com/0"]}] * 2

    assert kept({**long, **SHORT}) == both
    assert kept({"example.com/copy": "y" * 200_000, **SHORT}) == [SHORT] * 2


def test_many_short_ones_have_the_same_bound() -> None:
    """Four thousand of 60 characters are 240 kB, too."""
    for found in kept({f"example.com/{number}": "y" * 44 for number in range(4_000)}):
        assert sum(len(each) for item in found.items() for each in item) > MOST_ANNOTATIONS - 100
        assert sum(len(each) for item in found.items() for each in item) <= MOST_ANNOTATIONS


def test_those_of_an_ordinary_object_are_kept() -> None:
    """However large the rest of the object is."""
    assert (
        kept(SHORT | {"example.com/note": "z" * 14_000}) == [SHORT | {"example.com/note": "z" * 14_000}] * 2
    )
