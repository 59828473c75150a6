"""Gangs: members that are bound too early, groups that stay in parts, and those that do right."""

from typing import Any

import pytest

from promises.streams import Stream, a_cluster

MEMBER: dict[str, Any] = {"metadata": {"labels": {"plimsoll.dev/pod-group": "train"}}}
FOREIGN: dict[str, Any] = {"metadata": {"labels": {"scheduling.x-k8s.io/pod-group": "train"}}}


def a_gang(least: int = 2, members: int = 2) -> Stream:
    """A PodGroup with members that wait."""
    stream = a_cluster()
    stream.group(least)
    for number in range(members):
        stream.pod(f"m-{number}", **(FOREIGN if number % 2 else MEMBER))
    return stream


@pytest.mark.parametrize(
    ("members", "said"), [(2, []), (1, ["m-0 was bound, 1 of 2 members of train exist"])]
)
def test_a_member_is_bound_when_as_many_exist_as_must(members: int, said: list[str]) -> None:
    """Whichever label they have."""
    stream = a_gang(members=members)
    stream.bind("m-0", "n2")

    assert stream.said == said


@pytest.mark.parametrize("how", ["leaving", "over", "other"])
def test_who_is_no_member(how: str) -> None:
    """A pod that leaves or has ended, and one of another group."""
    stream = a_gang()
    changes: dict[str, dict[str, Any]] = {
        "leaving": {"metadata": {"deletionTimestamp": "now"}},
        "over": {"status": {"phase": "Failed"}},
        "other": {"metadata": {"labels": {"scheduling.x-k8s.io/pod-group": "other"}}},
    }
    stream.change("pods", "m-1", changes[how])
    stream.wait(30.0)
    stream.lead()
    stream.bind("m-0", "n2")

    assert stream.said == ["m-0 was bound, 1 of 2 members of train exist"]


@pytest.mark.parametrize(("seconds", "count"), [(29.0, 0), (30.0, 1)])
def test_a_member_that_is_gone_was_there(seconds: float, count: int) -> None:
    """Until every watch has shown that it is not."""
    stream = a_gang()
    stream.delete("pods", "m-1")
    stream.wait(seconds)
    stream.lead()
    stream.bind("m-0", "n2")

    assert len(stream.said) == count


def test_the_loosest_group_of_late_counts() -> None:
    """And one that is not there wants nothing; others may bind what they like."""
    stream = a_gang(least=1, members=1)
    stream.group(9)
    stream.bind("m-0", "n2")
    stream.pod("loose", metadata={"labels": {"plimsoll.dev/pod-group": "unknown"}})
    stream.bind("loose", "n2")
    stream.wait(60.0)
    stream.pod("foreign", "n1", **MEMBER)

    assert stream.said == []


def left(stream: Stream, calm_since: float = 0.0) -> list[str]:
    """What is said of groups at the end."""
    return list(stream.checker._gangs.unfinished(stream.at, calm_since))


PART = ["1 of 2 members of train have a node since 100"]


@pytest.mark.parametrize(("bound", "said"), [((), []), (("m-0",), PART), (("m-0", "m-1"), [])])
def test_a_group_is_whole_or_absent(bound: tuple[str, ...], said: list[str]) -> None:
    """At the end."""
    stream = a_gang()
    for name in bound:
        stream.bind(name, "n2")

    assert left(stream) == said
    assert left(stream, calm_since=100.0) == []


def test_a_group_that_was_whole_may_lose_a_member() -> None:
    """Nothing can be unbound."""
    stream = a_gang()
    stream.bind("m-0", "n2")
    stream.bind("m-1", "n2")
    stream.delete("pods", "m-1")

    assert left(stream) == []


def test_a_part_that_is_gone_does_not_count() -> None:
    """The only bound member was deleted; a group that starts again starts afresh."""
    stream = a_gang()
    stream.bind("m-0", "n2")
    stream.delete("pods", "m-0")

    assert left(stream) == []


def test_the_members_are_those_of_its_namespace() -> None:
    """And the group is the one of that name there."""
    stream = a_gang()
    stream.pod("far", "n1", metadata={"namespace": "shop", **MEMBER["metadata"]})
    stream.bind("m-0", "n2")

    assert left(stream) == PART


def test_what_is_no_binding() -> None:
    """A member that is deleted, or written by the operator when it has its node; pods of no group."""
    stream = a_gang(members=1)
    stream.pod("bound", "n1", **MEMBER)
    stream.pod("loose")
    stream.bind("loose", "n2")
    stream.wait(60.0)
    stream.lead()
    stream.change("pods", "m-0", {"status": {"message": "x"}}, stream.by())
    stream.delete("pods", "m-0", stream.by("/", method="PATCH"))
    stream.wait(60.0)
    stream.lead()
    stream.change("pods", "bound", {"status": {"message": "x"}}, stream.by())

    assert [each for each in stream.said if "member" in each] == []


def test_objects_that_are_no_pods_have_no_group() -> None:
    """Though they have its label."""
    stream = a_gang(members=1)
    stream.wait(60.0)
    stream.lead()
    labelled = {"name": "d", "namespace": "default", **MEMBER["metadata"]}
    stream.put("deployments.apps", {"metadata": labelled, "spec": {"nodeName": "n1"}}, stream.by())

    assert stream.said == []
    assert left(stream) == []
