"""Evictions: removals that break a promise, each with a neighbour that does not."""

from dataclasses import replace
from typing import Any

import pytest

from promises.commits import UNKNOWN, Commit
from promises.streams import NAMESPACE, a_cluster, a_move
from promises.view import RECORDS


def test_an_eviction_has_an_earlier_record() -> None:
    """Of this pod's uid, which says that it is about to be evicted."""
    stream = a_cluster()
    stream.record("web-2", phases=("Planned", "Evicting"), owner={"uid": "uid-web-1"})
    stream.record("web-1", phases=("Planned",))
    stream.evict("web-1")

    assert stream.said == ["red evicted web-1 without a record of that"]


@pytest.mark.parametrize(
    ("seconds", "said"), [(9.9, []), (10.0, ["red evicted web-1 without a record of that"])]
)
@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_record_that_somebody_undid_was_there_before(
    seconds: float, said: list[str], is_deleted: bool
) -> None:
    """The operator learns it from its watch."""
    stream = a_cluster()
    name = stream.record("web-1", phases=("Planned", "Evicting"))
    if is_deleted:
        stream.delete(RECORDS, name)
    else:
        stream.enter(name, "Cancelled", by=UNKNOWN)
    stream.wait(seconds)
    stream.lead()
    stream.evict("web-1")

    assert stream.said == said


def test_a_record_that_the_operator_closed_covers_nothing() -> None:
    """It knows."""
    stream = a_cluster()
    name = stream.record("web-1", phases=("Planned", "Evicting", "Blocked"))
    stream.evict("web-1")

    assert stream.get(RECORDS, name)["status"]["phase"] == "Blocked"
    assert stream.said == ["red evicted web-1 without a record of that"]


@pytest.mark.parametrize(
    ("seconds", "said"), [(5.0, []), (5.1, ["red evicted web-1 without a record of that"])]
)
def test_an_eviction_may_take_effect_after_its_record_says_so(seconds: float, said: list[str]) -> None:
    """It was answered with 504, and the pod had ended meanwhile."""
    stream = a_cluster()
    name = stream.record("web-1", phases=("Planned", "Evicting"))
    stream.change("pods", "web-1", {"status": {"phase": "Failed"}})
    stream.enter(name, "Evicted")
    stream.wait(seconds)
    stream.evict("web-1")

    assert stream.said == said


def test_an_eviction_has_one_record() -> None:
    """Two would both say that they moved the pod."""
    stream = a_cluster()
    stream.record("web-1", "a", phases=("Planned", "Evicting"), owner=None)
    stream.record("web-1", "b", phases=("Planned", "Evicting"), owner=None)
    stream.evict("web-1")

    assert stream.said == ["web-1 was evicted with two records: a and b"]


def test_a_record_that_somebody_else_made_evicting_is_not_the_operators() -> None:
    """It was planned for nothing, and says more than its writer did."""
    stream = a_cluster()
    stream.record("web-1", "a", phases=("Planned",), owner=None)
    stream.enter("a", "Evicting", by=UNKNOWN)
    stream.record("web-1", "b", phases=("Planned", "Evicting"), owner=None)
    stream.evict("web-1")

    assert stream.said == []


def test_records_that_somebody_else_made_are_not_the_operators() -> None:
    """Though there are two, and none of its own: what people write is not judged."""
    stream = a_cluster()
    for name in ("a", "b"):
        stream.record("web-1", name, phases=("Planned",), owner=None)
        stream.enter(name, "Evicting", by=UNKNOWN)
    stream.evict("web-1")

    assert stream.said == []


@pytest.mark.parametrize("uid", ["uid-old", ""])
def test_an_eviction_names_the_pod_that_was_meant(uid: str) -> None:
    """By its uid, as precondition."""
    stream = a_cluster()
    stream.record("web-1", phases=("Planned", "Evicting"))
    stream.evict("web-1", uid=uid)

    assert stream.said == [f"the eviction of web-1 named the uid {uid}, the pod has uid-web-1"]


def test_only_the_leader_evicts() -> None:
    """The request and its effect are both too much."""
    stream = a_cluster()
    stream.record("web-1", phases=("Planned", "Evicting"))
    stream.evict("web-1", by="blue")

    assert stream.said == [
        f"blue sent POST /api/v1/namespaces/{NAMESPACE}/pods/web-1/eviction, but the lease is held by red-id",
        "blue removed web-1, but the lease is held by red-id",
    ]


@pytest.mark.parametrize(
    ("says_why", "said"), [(True, []), (False, ["red deleted web-1 without saying why"])]
)
def test_a_deletion_is_preceded_by_its_reason(says_why: bool, said: list[str]) -> None:
    """Of a victim of preemption."""
    stream = a_cluster()
    stream.pod("important", spec={"priority": 10})
    if says_why:
        stream.change("pods", "web-1", {"status": {"conditions": [{"type": "DisruptionTarget"}]}})
    stream.delete("pods", "web-1", stream.by(f"/api/v1/namespaces/{NAMESPACE}/pods/web-1", method="DELETE"))

    assert stream.said == said


def test_removals_are_counted_once() -> None:
    """A pod that leaves was removed when it began to, and people remove pods, too."""
    stream = a_cluster()
    a_move(stream)
    stream.delete("pods", "web-2")
    pod = stream.pod("web-3")
    stream.change(
        "pods", "web-3", {"metadata": {"labels": pod["metadata"]["labels"] | {"x": "y"}}}, stream.by()
    )

    assert (stream.said, stream.checker.facts.evictions) == ([], 1)


def test_what_deletes_a_pod_that_is_leaving_removes_nothing() -> None:
    """It is going already."""
    stream = a_cluster()
    stream.change("pods", "web-1", {"metadata": {"deletionTimestamp": "now"}})
    stream.delete("pods", "web-1", stream.by(f"/api/v1/namespaces/{NAMESPACE}/pods/web-1", method="DELETE"))

    assert (stream.said, stream.checker.facts.evictions) == ([], 0)


@pytest.mark.parametrize(
    ("seconds", "uid", "is_gone", "said"),
    [
        pytest.param(30.0, "uid-web-1", False, ["red asked web-1 to leave, which is leaving"], id="known"),
        pytest.param(29.0, "uid-web-1", False, [], id="not-known"),
        pytest.param(30.0, "uid-old", False, [], id="another-pod"),
        pytest.param(30.0, "uid-web-1", True, [], id="gone"),
    ],
)
def test_a_pod_that_is_leaving_is_not_asked_to(
    seconds: float, uid: str, is_gone: bool, said: list[str]
) -> None:
    """As every watch has shown for half a minute."""
    stream = a_cluster()
    stream.change("pods", "web-1", {"metadata": {"deletionTimestamp": "now"}})
    stream.wait(seconds)
    stream.lead()
    if is_gone:
        stream.delete("pods", "web-1")
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/web-1/eviction"
    author = stream.by(path, {"deleteOptions": {"preconditions": {"uid": uid}}})
    stream.checker.judge_request(author, stream.at)

    assert stream.said == said


def test_requests_of_people_are_not_judged() -> None:
    """Whatever they ask."""
    stream = a_cluster()
    stream.change("pods", "web-1", {"metadata": {"deletionTimestamp": "now"}})
    stream.wait(60.0)
    author = stream.by(
        f"/api/v1/namespaces/{NAMESPACE}/pods/web-1/eviction",
        {"deleteOptions": {"preconditions": {"uid": "uid-web-1"}}},
    )
    people = replace(author, name="", identity="")
    stream.checker._evictions.judge_request(people, stream.at)

    assert stream.said == []


AGAINST = ["web-1 was evicted against a budget: 1 of 2 are left"]


@pytest.mark.parametrize(
    ("wanted", "budget", "web_2", "web_1", "said"),
    [
        pytest.param(1, {}, {}, {}, [], id="met"),
        pytest.param(2, {}, {}, {}, AGAINST, id="not-met"),
        pytest.param(2, {"namespace": "shop"}, {}, {}, [], id="another-namespace"),
        pytest.param(2, {"selector": {"matchLabels": {"app": "db"}}}, {}, {}, [], id="other-pods"),
        pytest.param(2, {"selector": None}, {}, {}, [], id="no-pods"),
        pytest.param(2, {"selector": {}}, {}, {}, AGAINST, id="all-pods"),
        pytest.param(2, {}, {}, {"status": {"conditions": []}}, [], id="not-ready-itself"),
        pytest.param(
            1,
            {},
            {"status": {"conditions": []}},
            {},
            ["web-1 was evicted against a budget: 0 of 1 are left"],
            id="other-is-not-ready",
        ),
        pytest.param(
            1,
            {},
            {"metadata": {"deletionTimestamp": "now"}},
            {},
            ["web-1 was evicted against a budget: 0 of 1 are left"],
            id="other-is-leaving",
        ),
        pytest.param(
            1,
            {},
            {"metadata": {"labels": {"app": "db"}}},
            {},
            ["web-1 was evicted against a budget: 0 of 1 are left"],
            id="other-has-other-labels",
        ),
    ],
)
def test_budgets(
    wanted: int, budget: dict[str, Any], web_2: dict[str, Any], web_1: dict[str, Any], said: list[str]
) -> None:
    """As many healthy pods are left as the budget wants."""
    stream = a_cluster()
    stream.budget(wanted, **budget)
    stream.change("pods", "web-2", web_2)
    stream.change("pods", "web-1", web_1)
    stream.record("web-1", phases=("Planned", "Evicting"))
    stream.evict("web-1")

    assert stream.said == said


def test_pods_of_another_namespace_do_not_help_a_budget() -> None:
    """Though they have its labels."""
    stream = a_cluster()
    stream.budget(2)
    stream.pod("web-3", "n1", ready=True, metadata={"namespace": "shop"})
    stream.record("web-1", phases=("Planned", "Evicting"))
    stream.evict("web-1")

    assert stream.said == AGAINST


def test_a_checker_that_is_not_told_what_was_before_knows() -> None:
    """Watches tell only what is."""
    stream = a_cluster()
    pod = stream.get("pods", "web-1")
    moved = {**pod, "spec": {**pod["spec"], "nodeName": "n2"}}
    stream.checker.judge(Commit("pods", "MODIFIED", moved, at=stream.at))
    stream.checker.judge(Commit("pods", "ADDED", pod, at=stream.at))

    assert stream.said == ["web-1 was moved from n1 to n2"]
