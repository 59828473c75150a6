"""A replacement is credited once, to the move that waits longest, in any order of events."""

from typing import Any

import pytest

from plimsoll.api.v1alpha1.eviction import EvictionSpec, EvictionStatus
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.watch_event import PodAdded, PodDeleted, PodUpdated
from plimsoll.rebalancing.moves.verifying import PATIENCE_S, Verification
from plimsoll.rebalancing.records.record import Record
from plimsoll.testing.builders import a_pod
from rebalancing.scene import status_of


def a_move(pod: str, *, owner: str = "web", target: str = "good") -> Record:
    """The record of a move of one of the owner's pods away from node "bad"."""
    spec = EvictionSpec.model_validate(
        {
            "pod": {"namespace": "default", "name": pod, "uid": f"uid-default-{pod}"},
            "owner": {
                "api_version": "apps/v1",
                "kind": "ReplicaSet",
                "name": owner,
                "uid": f"uid-ReplicaSet/{owner}",
            }
            if owner
            else None,
            "policy": "tidy",
            "strategy": "RemoveDuplicates",
            "mode": "Enforce",
            "reason": "for a test",
            "from_node": "bad",
            "target_node": target,
        }
    )
    return Record("default", f"{pod}-record", spec, EvictionStatus(phase=Phase.EVICTED), 0.0)


def sibling(
    name: str,
    node: str = "",
    phase: str = "Running",
    owner: str = "web",
    *,
    ready: bool = True,
    **metadata: Any,
) -> Pod:
    """A pod of an owner."""
    status = status_of(node, phase, ready)
    return a_pod(name, owner=f"ReplicaSet/{owner}", node=node, status=status, metadata=metadata)


class Scene:
    """A verification, and how moves ended."""

    def __init__(self, *pods: Any) -> None:
        self.ended: list[Any] = []
        self.credited: list[Any] = []
        self.verification = Verification(
            self.ended.append, lambda record, pod: self.credited.append((record.name, pod.name))
        )
        self.tell(*(PodAdded(pod) for pod in pods))

    def tell(self, *events: Any) -> None:
        """What the watch tells."""
        for event in events:
            self.verification.observe(event)

    def expect(self, record: Any, now: float = 0.0) -> None:
        """An eviction was accepted."""
        known = self.verification.siblings(record.spec.owner.uid) if record.spec.owner else frozenset()
        self.verification.expect(record, known, now)

    @property
    def outcomes(self) -> list[tuple[str, ...]]:
        """Record, phase and replacement of each move that ended."""
        return [
            (each.record.name, each.phase.value, each.replacement.name if each.replacement else "")
            for each in self.ended
        ]


@pytest.mark.parametrize(
    ("node", "phase"),
    [pytest.param("good", "Settled", id="elsewhere"), pytest.param("bad", "Returned", id="same-node")],
)
def test_a_move_ends_where_its_replacement_is_ready(node: str, phase: str) -> None:
    """Bound is not enough, nor is running: until it is Ready the next move of its workload waits."""
    scene = Scene(sibling("web-1", "bad"))
    scene.expect(a_move("web-1"))

    scene.tell(PodAdded(sibling("web-2")), PodUpdated(sibling("web-2"), sibling("web-2", node, "Pending")))
    early = list(scene.outcomes)
    running = sibling("web-2", node, ready=False)
    scene.tell(PodUpdated(sibling("web-2", node, "Pending"), running))
    early += scene.outcomes
    during = scene.verification.in_flight()
    scene.tell(PodUpdated(running, sibling("web-2", node)))

    assert early == []
    assert during == {"uid-ReplicaSet/web": 1}
    assert scene.outcomes == [("web-1-record", phase, "web-2")]
    assert scene.verification.in_flight() == {}


def test_pods_that_were_there_before_are_no_replacements() -> None:
    """A sibling that becomes Running now was on its way anyway."""
    starting = sibling("web-2", "good", "Pending")
    scene = Scene(sibling("web-1", "bad"), starting)
    scene.expect(a_move("web-1"))

    scene.tell(PodUpdated(starting, sibling("web-2", "good")))

    assert scene.outcomes == []


def test_each_replacement_is_credited_to_one_move() -> None:
    """Two pods of one owner move: the first replacement belongs to the first move."""
    scene = Scene(sibling("web-1", "bad"), sibling("web-2", "bad"))
    scene.expect(a_move("web-1"))
    scene.expect(a_move("web-2"))

    scene.tell(PodAdded(sibling("web-3", "good")))
    first = list(scene.outcomes)
    scene.tell(PodAdded(sibling("web-4", "good")))

    assert first == [("web-1-record", "Settled", "web-3")]
    assert scene.outcomes[1:] == [("web-2-record", "Settled", "web-4")]


def test_pods_of_other_owners_do_not_count() -> None:
    """However much they look alike."""
    scene = Scene(sibling("web-1", "bad"))
    scene.expect(a_move("web-1"))

    scene.tell(PodAdded(sibling("api-1", "good", owner="api")), PodAdded(a_pod("bare", node="good")))

    assert scene.outcomes == []


@pytest.mark.parametrize("is_late", [False, True], ids=["before", "after"])
def test_a_pod_of_another_namespace_that_names_the_owner_replaces_nobody(is_late: bool) -> None:
    """Whoever may create pods there would be sent to the node that was freed, and end the record."""
    spoofed = PodAdded(
        a_pod("web-2", namespace="mallory", owner="ReplicaSet/web", node="good", status=status_of("good"))
    )
    scene = Scene(sibling("web-1", "bad"))
    if not is_late:
        known = scene.verification.siblings("uid-ReplicaSet/web")
        scene.tell(spoofed)
        scene.verification.expect(a_move("web-1"), known, 0.0)
    else:
        scene.expect(a_move("web-1"))
        scene.tell(spoofed)

    assert scene.outcomes == []
    assert scene.credited == []
    scene.tell(PodAdded(sibling("web-3", "good")))
    assert scene.outcomes == [("web-1-record", "Settled", "web-3")]


def test_a_replacement_that_is_deleted_is_waited_for_again() -> None:
    """Its own replacement takes its part."""
    scene = Scene(sibling("web-1", "bad"))
    scene.expect(a_move("web-1"))

    scene.tell(PodAdded(sibling("web-2")), PodDeleted(sibling("web-2")), PodAdded(sibling("web-3", "good")))

    assert scene.outcomes == [("web-1-record", "Settled", "web-3")]


def test_patience_ends() -> None:
    """Five minutes; with a replacement that does not run its name is told."""
    scene = Scene(sibling("web-1", "bad"))
    scene.expect(a_move("web-1"), now=100.0)
    scene.tell(PodAdded(sibling("web-2")))

    scene.verification.expire(100.0 + PATIENCE_S - 1)
    early = list(scene.outcomes)
    scene.verification.expire(100.0 + PATIENCE_S)

    assert early == []
    assert [phase for _, phase, _ in scene.outcomes] == ["Failed"]
    assert "web-2" in scene.ended[0].message
    assert scene.verification.in_flight() == {}


@pytest.mark.parametrize(
    ("node", "phase", "reason"),
    [("good", "Failed", "ReplacementNotReady"), ("bad", "Returned", "SameNode")],
)
def test_a_replacement_that_runs_has_as_long_again_to_become_ready(
    node: str, phase: str, reason: str
) -> None:
    """From when it was seen running; then the record says where it runs, and nobody waits any longer."""
    scene = Scene(sibling("web-1", "bad"))
    scene.expect(a_move("web-1"), now=100.0)
    scene.tell(PodAdded(sibling("web-2", node, ready=False)))

    scene.verification.expire(100.0 + PATIENCE_S)
    scene.verification.expire(100.0 + 2 * PATIENCE_S - 1)
    early = list(scene.outcomes)
    scene.verification.expire(100.0 + 2 * PATIENCE_S)

    assert early == []
    assert scene.outcomes == [("web-1-record", phase, "web-2")]
    assert (scene.ended[0].reason, scene.ended[0].replacement.node) == (reason, node)
    assert "was not Ready within 300 s" in scene.ended[0].message
    assert scene.verification.in_flight() == {}


def test_replacements_that_crash_do_not_win_more_time_each() -> None:
    """The time to become Ready is given once, however many pods the owner makes meanwhile."""
    scene = Scene(sibling("web-1", "bad"))
    scene.expect(a_move("web-1"))
    for number in range(2, 9):
        running = sibling(f"web-{number}", "good", ready=False)
        scene.tell(PodAdded(running))
        scene.verification.expire(100.0 * number)
        scene.tell(PodDeleted(running))

    assert [phase for _, phase, _ in scene.outcomes] == ["Failed"]


def test_a_ready_pod_on_its_way_out_is_no_replacement() -> None:
    """It will not be there for long; the pod that follows it is waited for."""
    leaving = sibling("web-2", "good", deletionTimestamp="2026-01-01T00:00:00Z")
    scene = Scene(sibling("web-1", "bad"))
    scene.expect(a_move("web-1"))

    scene.tell(PodAdded(leaving))
    early = list(scene.outcomes)
    scene.tell(PodDeleted(leaving), PodAdded(sibling("web-3", "good")))

    assert early == []
    assert scene.outcomes == [("web-1-record", "Settled", "web-3")]


def test_a_replacement_that_fails_is_followed_by_the_next() -> None:
    """Refused by the kubelet, say: the owner makes another pod while the failed one is still listed."""
    refused = sibling("web-2", "good", "Failed")
    scene = Scene(sibling("web-1", "bad"))
    scene.expect(a_move("web-1"))

    scene.tell(PodAdded(sibling("web-2")), PodUpdated(sibling("web-2"), refused))
    scene.tell(PodAdded(sibling("web-3", "good")))

    assert scene.outcomes == [("web-1-record", "Settled", "web-3")]


def test_a_replacement_that_has_done_its_work_was_there() -> None:
    """The pod of a Job may end before anybody has seen it Ready."""
    scene = Scene(sibling("web-1", "bad"))
    scene.expect(a_move("web-1"))

    scene.tell(PodAdded(sibling("web-2", "good", "Succeeded")))

    assert scene.outcomes == [("web-1-record", "Settled", "web-2")]


def test_moves_in_flight_are_counted_by_owner() -> None:
    """So that the next run leaves the workload alone."""
    scene = Scene(sibling("web-1", "bad"), sibling("web-2", "bad"))

    scene.expect(a_move("web-1"))
    scene.expect(a_move("web-2"))
    during = scene.verification.in_flight()
    scene.verification.withdraw(a_move("web-1"))

    assert during == {"uid-ReplicaSet/web": 2}
    assert scene.verification.in_flight() == {"uid-ReplicaSet/web": 1}


def test_a_pod_that_nobody_replaces_ends_at_once() -> None:
    """No controller, no replacement: the user is told, not kept waiting."""
    scene = Scene()

    scene.expect(a_move("bare", owner=""))

    assert [phase for _, phase, _ in scene.outcomes] == ["Failed"]


def test_a_pod_that_its_owner_let_go_is_no_sibling_any_more() -> None:
    """Released by a changed label, it replaces nobody, and nothing is kept of it when it is deleted."""
    scene = Scene(sibling("web-1", "bad"))
    released = a_pod("web-1", node="bad")

    scene.tell(PodUpdated(sibling("web-1", "bad"), released), PodDeleted(released))

    assert scene.verification.siblings("uid-ReplicaSet/web") == frozenset()
    assert scene.verification._siblings == {}
