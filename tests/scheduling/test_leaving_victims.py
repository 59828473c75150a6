"""Preemptors are tried again when the last of their victims has left, and not before."""

from typing import Any

import pytest

from plimsoll.cluster.cache import Cache
from plimsoll.cluster.watch_events import PodDeleted, PodUpdated
from plimsoll.model.kinds.pod import Pod
from plimsoll.scheduling.leaving_victims import LeavingVictims
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import FakeClock
from scheduling.queue.queueing import a_queue, asleep, waiting


class Scene:
    """Preemptors that were rejected, and pods on a node."""

    def __init__(self, *preemptors: str) -> None:
        self.cache, self.queue = Cache(), a_queue(*map(waiting, preemptors))
        self.cache.set_node(a_node("n1", cpu=8))
        self.leaving = LeavingVictims(self.queue, self.cache, FakeClock())
        asleep(self.queue, *preemptors)

    def placed(self, *names: str) -> list[Any]:
        pods = [self.cache.info(a_pod(name, node="n1")) for name in names]
        for pod in pods:
            self.cache.set_placed(pod, "n1")
        return pods

    def gone(self, name: str, **status: Any) -> None:
        pod: Pod = a_pod(name, node="n1", **status)
        self.cache.remove_pod(pod.uid)
        self.leaving.observe(PodUpdated(a_pod(name, node="n1"), pod) if status else PodDeleted(pod))

    def active(self) -> list[str]:
        found = []
        while (queued := self.queue.pop(0.0)) is not None:
            found.append(queued.pod.name)
        return sorted(found)


def test_the_last_victim_counts() -> None:
    """However it ends; other pods do not count."""
    scene = Scene("high")
    scene.leaving.expect(waiting("high"), scene.placed("a", "b"))
    scene.placed("c")

    scene.gone("a", status={"phase": "Succeeded"})
    scene.gone("c")
    assert scene.active() == []
    scene.gone("b")

    assert scene.active() == ["high"]


def test_a_victim_that_is_gone_already_is_not_waited_for() -> None:
    """Its deletion was seen before the answer to the request."""
    scene = Scene("high")
    victims = scene.placed("a")
    scene.gone("a")

    scene.leaving.expect(waiting("high"), victims)

    assert scene.active() == ["high"]


def test_a_pod_that_changes_is_still_there() -> None:
    """It gets a condition and a time to end first."""
    scene = Scene("high")
    scene.leaving.expect(waiting("high"), scene.placed("a"))

    pod = a_pod("a", node="n1")
    scene.leaving.observe(
        PodUpdated(pod, a_pod("a", node="n1", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}))
    )

    assert scene.active() == []


def test_later_victims_replace_earlier_ones() -> None:
    """The pod preempts on another node; who it expected before may stay for ever."""
    scene = Scene("high")
    victims = scene.placed("a", "b")
    scene.leaving.expect(waiting("high"), victims[:1])
    scene.leaving.expect(waiting("high"), victims[1:])

    scene.gone("a")
    assert scene.active() == []
    scene.gone("b")

    assert scene.active() == ["high"]


def test_of_two_preemptors_the_later_one_has_the_victim() -> None:
    """The earlier one was outranked, and waits for news as every other pod."""
    scene = Scene("first", "second")
    victims = scene.placed("a", "b")
    scene.leaving.expect(waiting("first"), victims[:1])
    scene.leaving.expect(waiting("second"), victims)

    scene.gone("a")
    scene.gone("b")

    assert scene.active() == ["second"]


def test_a_preemptor_that_waits_no_longer_is_left_alone() -> None:
    """It was bound elsewhere, or deleted, before its victims left."""
    scene = Scene("high")
    scene.leaving.expect(waiting("high"), scene.placed("a"))
    scene.queue.remove("uid-default-high")

    scene.gone("a")

    assert scene.active() == []


@pytest.mark.parametrize("status", [{}, {"status": {"phase": "Failed"}}])
def test_a_preemptor_that_is_gone_is_not_remembered(status: dict[str, Any]) -> None:
    """Its victims may take hours to leave; one of them counts for another preemptor then."""
    scene = Scene("high", "other")
    victims = scene.placed("a", "b")
    scene.leaving.expect(waiting("high"), victims)
    scene.queue.remove("uid-default-high")
    scene.gone("high", **status)

    assert not scene.leaving._awaited
    assert not scene.leaving._preemptor_of
    scene.leaving.expect(waiting("other"), victims[1:])
    scene.gone("b")
    assert scene.active() == ["other"]


def test_a_preemptor_that_was_deleted_while_its_victims_were_asked_expects_none() -> None:
    """Nothing would ever say again that it is gone."""
    scene = Scene("high")
    victims = scene.placed("a")
    scene.queue.remove("uid-default-high")
    scene.gone("high")

    scene.leaving.expect(waiting("high"), victims)

    assert not scene.leaving._awaited
