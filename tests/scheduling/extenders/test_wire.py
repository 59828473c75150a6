"""Requests to extenders with Go's field names, and tolerant but validated responses."""

import json
from typing import Any

import pytest

from plimsoll.scheduling.extenders import wire
from plimsoll.scheduling.extenders.wire import AnswerError, MetaVictims, ReportedError
from plimsoll.testing.builders import a_node, a_pod

POD = b'{"metadata":{"name":"web"}}'


def content(document: Any) -> bytes:
    return json.dumps(document).encode()


def test_a_question_about_nodes_has_their_names_or_themselves() -> None:
    """Never both: the other member is null, as Go writes it."""
    named = json.loads(wire.nodes_body(POD, ["a", "b"], None))
    whole = json.loads(wire.nodes_body(POD, ["a"], [wire.node_document(a_node("a", labels={"x": "1"}))]))

    assert named == {"Pod": {"metadata": {"name": "web"}}, "Nodes": None, "NodeNames": ["a", "b"]}
    assert whole["NodeNames"] is None
    (node,) = whole["Nodes"]["items"]
    assert node["metadata"]["name"] == "a"
    assert node["metadata"]["labels"]["x"] == "1"
    assert node["status"]["allocatable"]["cpu"]


def test_a_question_about_victims_has_their_uids_or_themselves() -> None:
    """With the number of them that leave against their budget."""
    victim = a_pod("low", uid="u1")
    victims = {"a": ([victim], 1)}

    named = json.loads(wire.victims_body(POD, victims, names_only=True))
    whole = json.loads(wire.victims_body(POD, victims, names_only=False))

    assert named["NodeNameToMetaVictims"] == {"a": {"Pods": [{"UID": victim.uid}], "NumPDBViolations": 1}}
    assert "NodeNameToVictims" not in named
    assert whole["NodeNameToVictims"]["a"]["Pods"][0]["metadata"]["uid"] == victim.uid


def test_a_binding_names_the_pod() -> None:
    """By uid, too."""
    pod = a_pod("web")

    assert json.loads(wire.binding_body(pod, "a")) == {
        "PodName": "web",
        "PodNamespace": pod.namespace,
        "PodUID": pod.uid,
        "Node": "a",
    }


@pytest.mark.parametrize(
    ("answer", "names", "passed"),
    [
        pytest.param({"NodeNames": ["a"]}, True, {"a"}, id="names"),
        pytest.param({"nodenames": ["a"], "error": ""}, True, {"a"}, id="lower-case"),
        pytest.param({"Nodes": {"items": [{"metadata": {"name": "b"}}]}}, False, {"b"}, id="nodes"),
        pytest.param(
            {"NodeNames": None, "Nodes": {"Items": [{"metadata": {"name": "b"}}]}},
            True,
            {"b"},
            id="nodes-all-the-same",
        ),
        pytest.param({"NodeNames": ["a"]}, False, set(), id="names-for-nodes"),
        pytest.param({}, True, set(), id="nothing"),
        pytest.param(None, True, set(), id="null"),
        pytest.param({"NodeNames": ["a", "a"]}, True, {"a"}, id="twice"),
    ],
)
def test_who_passes(answer: dict[str, Any] | None, names: bool, passed: set[str]) -> None:
    """Names are read where names were sent; without names and nodes no node passes."""
    assert wire.filter_answer(content(answer), ["a", "b"], names=names).passed == passed


def test_why_not() -> None:
    """Both kinds of reasons come through."""
    answer = wire.filter_answer(
        content({"NodeNames": [], "FailedNodes": {"a": "full"}, "FailedAndUnresolvableNodes": {"b": "old"}}),
        ["a", "b"],
        names=True,
    )

    assert (answer.failed, answer.unresolvable) == ({"a": "full"}, {"b": "old"})


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        pytest.param(b"<html>", "cannot be read", id="html"),
        pytest.param(b"", "cannot be read", id="empty"),
        pytest.param(b"[]", "cannot be read", id="a-list"),
        pytest.param(b'{"NodeNames": "a"}', 'in "nodenames"', id="a-word-for-a-list"),
        pytest.param(b'{"NodeNames": [1]}', 'in "nodenames"', id="a-number-for-a-name"),
        pytest.param(b'{"NodeNames": ["\xff"]}', "cannot be read|UTF-8", id="no-utf8"),
        pytest.param(b'{"NodeNames": ["z"]}', 'claims a filtered node "z" which is not found', id="stranger"),
        pytest.param(b"[" * 100_000, "cannot be read", id="deep"),
    ],
)
def test_what_is_no_answer(body: bytes, sentence: str) -> None:
    """A sentence says what is wrong with it."""
    with pytest.raises(AnswerError, match=sentence):
        wire.filter_answer(body, ["a"], names=True)


def test_an_error_of_its_own_is_reported_in_its_words() -> None:
    """Cut where no person reads on."""
    with pytest.raises(ReportedError, match=r"^no licence$"):
        wire.filter_answer(content({"Error": "no licence"}), ["a"], names=True)
    with pytest.raises(ReportedError) as caught:
        wire.binding_answer(content({"Error": "x" * 10_000}))
    assert len(str(caught.value)) == wire.LONGEST_TEXT
    with pytest.raises(ReportedError, match="gave no reason"):
        wire.filter_answer(content({"Error": " "}), ["a"], names=True)


def test_reasons_are_bounded() -> None:
    """A thousand different ones would make a message that no API server takes."""
    names = [f"n{number}" for number in range(1000)]
    reasons = {name: f"{name} {'x' * 5000}" for name in names}

    answer = wire.filter_answer(content({"NodeNames": [], "FailedNodes": reasons}), names, names=True)

    assert answer.failed.keys() == set(names)
    assert len(set(answer.failed.values())) == wire.MOST_REASONS + 1
    assert max(map(len, answer.failed.values())) == wire.LONGEST_TEXT


def test_scores_add_up() -> None:
    """In either spelling; a node without a score has none."""
    answer = [{"Host": "a", "Score": 7}, {"host": "b", "score": 3}, {"Host": "a", "Score": 1}, {"Host": "c"}]

    assert wire.scores_answer(content(answer)) == {"a": 8, "b": 3, "c": 0}
    assert wire.scores_answer(b"null") == {}


@pytest.mark.parametrize(
    "body", [b"{}", b'[{"Host": "a", "Score": "7"}]', b'[{"Host": "a", "Score": 1e300}]']
)
def test_what_is_no_score(body: bytes) -> None:
    """Not even one that is a number."""
    with pytest.raises(AnswerError):
        wire.scores_answer(body)


def test_victims_that_are_left() -> None:
    """Uids by node; null means no victims."""
    answer = {"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "1"}], "NumPDBViolations": 2}, "b": None}}

    assert wire.victims_answer(content(answer)) == {"a": MetaVictims(("1",), 2), "b": MetaVictims(())}
    assert wire.victims_answer(b"{}") == {}


@pytest.mark.parametrize("sign", [1, -1])
def test_a_score_has_thirty_two_bits_at_most(sign: int) -> None:
    """The largest one is read, in the sum of a node's as well; one more is refused."""

    def answer(score: int) -> bytes:
        return content([{"Host": "a", "Score": sign}, {"Host": "a", "Score": score}])

    assert wire.scores_answer(answer(sign * wire.LARGEST_SCORE)) == {"a": sign * (wire.LARGEST_SCORE + 1)}
    with pytest.raises(AnswerError, match="scores lie in 0"):
        wire.scores_answer(answer(sign * (wire.LARGEST_SCORE + 1)))
