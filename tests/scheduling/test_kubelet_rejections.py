"""Pods that their kubelet did not admit are counted and told once; others are not."""

from typing import Any, cast

import pytest

from plimsoll.cluster.watch_events import PodDeleted, PodUpdated
from plimsoll.model.kinds.pod import Pod
from plimsoll.policy_controller.served_profiles import ServedProfiles
from plimsoll.ports.observer import Observer
from plimsoll.scheduling.kubelet_rejections import KubeletRejections
from plimsoll.testing.builders import a_pod, the_info
from plimsoll.testing.fakes import FakeClock, FakeRecorder


class Stage(Observer):
    def __init__(self) -> None:
        served = ServedProfiles()
        served.replace({"s": cast("Any", None)})
        self.clock, self.recorder = FakeClock(), FakeRecorder()
        self.seen: list[Any] = []
        self.gone: set[str] = set()
        self.refusals = KubeletRejections(
            served, self.recorder, self.clock, self, lambda uid: uid not in self.gone
        )

    def pod_refused(
        self, profile: str, reason: str, *, pod: str, node: str, decision: str, after_s: Any
    ) -> None:
        self.seen.append((profile, reason, pod, node, decision, after_s))

    def becomes(self, phase: str, reason: str = "", before: str = "Pending", scheduler: str = "s") -> None:
        self.refusals.observe(PodUpdated(pod(before, scheduler=scheduler), pod(phase, reason, scheduler)))


def pod(phase: str, reason: str = "", scheduler: str = "s") -> Pod:
    return a_pod("p", node="n1", schedulerName=scheduler, status={"phase": phase, "reason": reason})


@pytest.mark.parametrize(
    "reason", ["OutOfcpu", "OutOfpods", "OutOfexample.com/gpu", "NodeAffinity", "UnexpectedAdmissionError"]
)
async def test_a_refusal_is_counted_by_reason_and_told_on_the_pod(reason: str) -> None:
    """With the decision it undid, and how long ago that was."""
    stage = Stage()
    stage.refusals.bound(the_info(pod("")))
    await stage.clock.advance(2)

    stage.becomes("Failed", reason)

    assert stage.seen == [("s", reason, "default/p", "n1", "uid-default-p", 2.0)]
    (note,) = stage.recorder.notes
    assert (note.reason, note.reporter, note.is_warning) == ("NotAdmitted", "s", True)
    assert f"the kubelet of n1 did not admit the pod: {reason};" in note.text


def test_a_binding_of_an_earlier_process_counts_too() -> None:
    """Only its age is not known."""
    stage = Stage()

    stage.becomes("Failed", "OutOfmemory")

    assert stage.seen == [("s", "OutOfmemory", "default/p", "n1", "uid-default-p", None)]


async def test_a_pod_that_is_gone_before_the_answer_to_its_binding_is_not_remembered() -> None:
    """No event would come that ends it."""
    stage = Stage()
    stage.gone.add("uid-default-p")
    stage.refusals.bound(the_info(pod("")))
    await stage.clock.advance(2)

    stage.becomes("Failed", "OutOfcpu")

    assert stage.seen == [("s", "OutOfcpu", "default/p", "n1", "uid-default-p", None)]


def test_it_is_reported_once() -> None:
    """Later changes of the failed pod are no news."""
    stage = Stage()
    stage.becomes("Failed", "OutOfcpu")
    stage.refusals.observe(PodUpdated(pod("Failed", "OutOfcpu"), pod("Failed", "OutOfcpu")))

    assert len(stage.seen) == len(stage.recorder.notes) == 1


@pytest.mark.parametrize(
    ("phase", "reason", "scheduler"),
    [
        pytest.param("Running", "", "s", id="admitted"),
        pytest.param("Failed", "Evicted", "s", id="evicted"),
        pytest.param("Failed", "", "s", id="its-own-failure"),
        pytest.param("Failed", "OutOfcpu", "somebody-else", id="not-ours"),
    ],
)
def test_what_is_no_refusal_of_ours_is_not_counted(phase: str, reason: str, scheduler: str) -> None:
    """A pod that ran and failed, or that somebody else placed."""
    stage = Stage()

    stage.becomes(phase, reason, scheduler=scheduler)

    assert stage.seen == []


def test_nothing_is_kept_of_pods_that_started_or_are_gone() -> None:
    """One entry a pod, from its binding to its start."""
    stage = Stage()
    stage.refusals.bound(the_info(pod("")))
    stage.becomes("Running")
    assert stage.refusals._bound == {}
    stage.refusals.bound(the_info(pod("")))
    stage.refusals.observe(PodDeleted(pod("Pending")))
    assert stage.refusals._bound == {}
