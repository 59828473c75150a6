"""The view of a cluster, with earlier versions of objects and lives of pods."""

from math import inf
from typing import Any

import pytest

from promises.commits import Commit
from promises.lives import most
from promises.pods import controller_of
from promises.quantities import MOST, counts_all, requests
from promises.streams import Stream
from promises.view import DEFINITIONS, KEPT_S, View


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        pytest.param([], 0, id="nothing"),
        pytest.param([(0.0, inf), (5.0, inf)], 2, id="open"),
        pytest.param([(0.0, 10.0), (10.0, inf)], 1, id="one-after-the-other"),
        pytest.param([(0.0, 15.0), (12.0, inf)], 2, id="overlapping"),
        pytest.param([(0.0, 12.0), (12.0, inf)], 1, id="one-after-the-other-within"),
        pytest.param([(20.0, inf)], 1, id="at-the-end"),
        pytest.param([(20.1, inf)], 0, id="later"),
        pytest.param([(0.0, 9.0)], 0, id="earlier"),
        pytest.param([(0.0, 10.0)], 0, id="until-the-beginning"),
        pytest.param([(0.0, 11.0), (0.0, 11.0), (12.0, 13.0)], 2, id="the-most-of-all-times"),
    ],
)
def test_the_most_at_one_time(spans: list[tuple[float, float]], expected: int) -> None:
    """From the tenth second to the twentieth, both included; a span ends before its end."""
    assert most(spans, 10.0, 20.0) == expected


def test_a_resource_goes_with_its_definition() -> None:
    """When that is deleted, whether or not its objects were; other deletions and definitions take nothing."""
    view = View()
    definition = {"metadata": {"name": "things.example.com"}}
    thing = {"metadata": {"name": "a", "namespace": "b"}}
    view.see(Commit("things.example.com", "ADDED", thing))
    view.see(Commit(DEFINITIONS, "ADDED", definition))
    view.see(Commit("nodes", "DELETED", {"metadata": {"name": "things.example.com"}}))
    assert list(view.objects("things.example.com")) == [thing]

    view.see(Commit(DEFINITIONS, "DELETED", definition))
    assert list(view.objects("things.example.com")) == []


@pytest.mark.parametrize(("at", "sees_late"), [(69.9, True), (70.0, False), (70.1, False)])
@pytest.mark.parametrize("collection", ["nodes", "pods"])
def test_a_watch_that_is_behind_shows_what_was_before(at: float, sees_late: bool, collection: str) -> None:
    """For twice as long as it is behind, from 50 s on; the watches of other collections do not."""
    view = View(30.0)
    for number, written in enumerate((0.0, 35.0)):
        node = {"metadata": {"name": "n"}, "number": number}
        view.see(Commit("nodes", "MODIFIED", node, at=written))
    view.delay(collection, 50.0, 10.0)

    seen = [each["number"] for each in view.recent("nodes", ("", "n"), at) if each is not None]
    assert seen == ([0, 1] if sees_late and collection == "nodes" else [1])


def test_old_versions_are_forgotten() -> None:
    """But one of them says what the object was when the others begin."""
    view = View(30.0)
    node: dict[str, Any] = {"metadata": {"name": "n"}}
    for number, at in enumerate((0.0, 10.0, 20.0)):
        view.see(Commit("nodes", "MODIFIED", {**node, "number": number}, at=at))
    view.see(Commit("nodes", "MODIFIED", {**node, "number": 3}, at=20.0 + 30.0 + KEPT_S))
    assert len(view.versions("nodes", ("", "n"), -inf)) == 4

    view.see(Commit("nodes", "MODIFIED", {**node, "number": 4}, at=20.1 + 30.0 + KEPT_S))
    kept = view.versions("nodes", ("", "n"), -inf)
    assert [None if each is None else each["number"] for each in kept] == [None, 2, 3, 4]


def test_keys_are_those_of_one_collection() -> None:
    """Also of objects that are gone."""
    stream = Stream()
    stream.node("n1")
    stream.pod("a")
    stream.delete("nodes", "n1")

    assert stream.checker.view.known("nodes") == [("", "n1")]


def test_one_owner_replaces_a_pod() -> None:
    """The one that controls it."""
    owners = [{"uid": "other"}, {"uid": "mine", "controller": True}]

    assert controller_of({"metadata": {"ownerReferences": owners}}) == "mine"
    assert controller_of({"metadata": {}}) == ""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("cpu", f"{MOST}m", MOST),
        ("cpu", f"{MOST}", None),
        ("memory", f"{MOST}", MOST * 1000),
        ("memory", f"{MOST}1", None),
    ],
)
def test_amounts_beyond_64_bits_count_nothing(name: str, text: str, expected: int | None) -> None:
    """The API library's arithmetic says 0: cpu in thousandths, other resources in units."""
    pod = {"spec": {"containers": [{"resources": {"requests": {name: text}}}]}}

    assert requests(pod).get(name) == expected
    assert counts_all(pod) is (expected is not None)
