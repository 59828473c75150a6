"""Preemption: victims without a reason, nominations that are left behind, and those that are not."""

from typing import Any

import pytest

from promises.streams import NAMESPACE, Stream, a_cluster, a_move

NEEDLESS = ["web-1 of priority 0 was preempted, and no pod of a higher one waits"]


def preempted(stream: Stream, name: str = "web-1") -> None:
    """A victim is deleted, after its condition says why."""
    stream.change("pods", name, {"status": {"conditions": [{"type": "DisruptionTarget"}]}}, stream.by())
    stream.delete("pods", name, stream.by(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}", method="DELETE"))


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        pytest.param({"spec": {"priority": 1}}, [], id="higher"),
        pytest.param({"spec": {"priority": 0}}, NEEDLESS, id="equal"),
        pytest.param({"spec": {"priority": 1, "preemptionPolicy": "Never"}}, NEEDLESS, id="never"),
        pytest.param({"spec": {"priority": 1, "nodeName": "n2"}}, NEEDLESS, id="placed"),
        pytest.param(
            {"spec": {"priority": 1}, "metadata": {"deletionTimestamp": "now"}}, NEEDLESS, id="leaving"
        ),
    ],
)
@pytest.mark.parametrize("by_eviction", [True, False])
def test_a_victim_gives_way_to_a_pod_of_higher_priority(
    pod: dict[str, Any], said: list[str], by_eviction: bool
) -> None:
    """However it leaves."""
    stream = a_cluster()
    stream.pod("important", **pod)
    if by_eviction:
        a_move(stream, strategy="DefaultPreemption", policy="serve")
    else:
        preempted(stream)

    assert stream.said == said


@pytest.mark.parametrize(("seconds", "said"), [(29.0, []), (30.0, NEEDLESS)])
def test_a_preemptor_that_is_gone_was_there(seconds: float, said: list[str]) -> None:
    """Until every watch has shown that it is not."""
    stream = a_cluster()
    stream.pod("important", spec={"priority": 1})
    stream.delete("pods", "important")
    stream.wait(seconds)
    stream.lead()
    preempted(stream)

    assert stream.said == said


def test_a_pod_that_has_no_node_is_no_victim() -> None:
    """It waits at Permit, or was left over; nothing is preempted by deleting it."""
    stream = a_cluster()
    stream.pod("waiting")
    preempted(stream, "waiting")

    assert stream.said == []


def test_a_move_is_no_preemption() -> None:
    """It needs no preemptor."""
    stream = a_cluster()
    a_move(stream)

    assert stream.said == []


STILL = ["new is still nominated to n1, which no victim leaves"]


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        pytest.param({}, STILL, id="left-behind"),
        pytest.param({"status": {"nominatedNodeName": None}}, [], id="cleared"),
        pytest.param({"spec": {"nodeName": "n1"}}, [], id="placed"),
        pytest.param({"status": {"phase": "Failed"}}, [], id="over"),
        pytest.param({"metadata": {"deletionTimestamp": "now"}}, [], id="leaving"),
    ],
)
def test_nominations_end(pod: dict[str, Any], said: list[str]) -> None:
    """With the victims that they waited for."""
    stream = a_cluster()
    stream.pod("new", status={"nominatedNodeName": "n1"})
    stream.change("pods", "new", pod)
    stream.wait(60.0)

    assert list(stream.checker._preemption.unfinished(60.0, stream.at)) == said


@pytest.mark.parametrize(("victim", "said"), [("web-1", []), ("far-1", STILL)])
def test_a_victim_may_take_its_time(victim: str, said: list[str]) -> None:
    """On the node that was nominated."""
    stream = a_cluster()
    stream.pod("far-1", "n2")
    stream.pod("new", status={"nominatedNodeName": "n1"})
    stream.change("pods", victim, {"metadata": {"deletionTimestamp": "now"}})
    stream.wait(60.0)

    assert list(stream.checker._preemption.unfinished(60.0, stream.at)) == said


def test_a_fresh_nomination_was_not_left_behind() -> None:
    """It is younger than a minute."""
    stream = a_cluster()
    stream.pod("new")
    stream.wait(1.0)
    stream.change("pods", "new", {"status": {"nominatedNodeName": "n1"}})
    stream.wait(59.0)

    assert list(stream.checker._preemption.unfinished(60.0, stream.at)) == []


def queue(name: str) -> dict[str, Any]:
    """Changes of a pod: its queue."""
    return {"metadata": {"labels": {"plimsoll.dev/queue": name}}}


@pytest.mark.parametrize(
    ("victim", "pod", "fair", "said"),
    [
        pytest.param("", "b", {"reclaim": "AboveDeserved"}, [], id="another-queue"),
        pytest.param("a", "b", {"reclaim": "AboveDeserved"}, [], id="two-queues"),
        pytest.param("b", "b", {"reclaim": "AboveDeserved"}, NEEDLESS, id="one-queue"),
        pytest.param("", "unlisted", {"reclaim": "AboveDeserved"}, NEEDLESS, id="both-by-default"),
        pytest.param("kept", "b", {"reclaim": "AboveDeserved"}, NEEDLESS, id="not-reclaimable"),
        pytest.param("a", "b", {"reclaim": "Never"}, NEEDLESS, id="never"),
        pytest.param("a", "b", {}, NEEDLESS, id="not-asked-for"),
    ],
)
def test_a_queue_may_reclaim_what_it_deserves(
    victim: str, pod: str, fair: dict[str, Any], said: list[str]
) -> None:
    """From pods of another queue of its scheduler, whatever their priority."""
    queues = [{"name": "a"}, {"name": "b"}, {"name": "kept", "reclaimable": False}]
    stream = a_cluster()
    scheduling = {"schedulerName": "plimsoll", "fairShare": {"queues": queues, **fair}}
    stream.policy("serve", moves=False, scheduling=scheduling)
    stream.change("pods", "web-1", queue(victim))
    stream.pod("foreign", spec={"schedulerName": "other"}, **queue("b" if victim != "b" else "a"))
    stream.pod("waiting", **queue(pod))
    preempted(stream)

    assert stream.said == said
