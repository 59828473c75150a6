"""PodsElsewhere: keeping pods of other replicas aside changes nothing that a replica knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plimsoll.app.machine.clock import SeededRandomness
from plimsoll.app.scheduling_wing import PodPorts, SchedulingWing
from plimsoll.cluster.cache import Cache
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.model.kinds.pod import PodCondition, PodStatus
from plimsoll.model.kinds.watch_event import NodeAdded, PodAdded, PodDeleted, PodUpdated, WatchEvent
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.ports.pods import BINDING_REQUESTED
from plimsoll.rebalancing.planning_context import PendingPods
from plimsoll.scheduling.shared_nodes.pods_elsewhere import PodsElsewhere
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import (
    FakeBinder,
    FakeClaims,
    FakeClock,
    FakePreemptor,
    FakeRecorder,
    FakeStatuses,
    FakeVolumes,
    RememberingObserver,
    a_book,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.model.kinds.pod import Pod

NAMES, NODES = ("a", "b", "c"), ("n0", "n1")

PROFILES = {
    name: build_profile(
        ProfileConfig(name),
        Registry(IN_TREE),
        [Enabled(each, weight) for each, weight in DEFAULT_PLUGINS.items()],
    )
    for name in NAMES
}

ASKED = PodCondition(type=BINDING_REQUESTED, status="True", message="n0")
REFUSED = PodCondition(type="PodScheduled", status="False", reason="Unschedulable")

#: What may become of a pod; None: it is deleted.
CHANGES: dict[str, dict[str, Any] | None] = {
    "refused": {"conditions": (REFUSED,)},
    "asks": {"conditions": (ASKED,)},
    "nominated": {"nominated_node_name": "n1"},
    "plain": {"conditions": (), "nominated_node_name": ""},
    "failed": {"phase": "Failed"},
    "deleted": None,
}


class Replica:
    """A replica that takes in the events of all pods, or of those that matter to it."""

    def __init__(self, *, sifts: bool) -> None:
        self.cache, clock, self.observer = Cache(), FakeClock(), RememberingObserver()
        self.book = a_book(self.cache)
        ports = PodPorts(
            FakeBinder(),
            FakeVolumes(),
            FakePreemptor(),
            FakeStatuses(),
            FakeRecorder(),
            FakeClaims(),
        )
        self.wing = SchedulingWing(self.book, ports, clock, SeededRandomness(0), self.observer)
        self.pending = PendingPods(self.cache)
        self.moves: dict[str, str] = {}
        self.sifts = sifts
        self.elsewhere = PodsElsewhere(self.wing.served, self.cache, self.moves)
        self.ingestion = self.wing.ingestion((self.pending,), self.observer)
        self.ingestion.apply([NodeAdded(a_node(name, cpu="64")) for name in NODES])
        self.schedulers = {
            name: ProfileScheduler(profile, self.cache.cluster, nominator=self.book.nominator)
            for name, profile in PROFILES.items()
        }

    def serve(self, own: Sequence[str]) -> None:
        """Place the pods of these scheduler names."""
        self.wing.serve(self.schedulers, self.schedulers.keys() - set(own))
        self.ingestion.apply(self.elsewhere.released())
        self.wing.take_over()

    def read(self, events: Sequence[WatchEvent]) -> None:
        """Take these events in."""
        self.ingestion.apply(self.elsewhere.sifted(events) if self.sifts else events)

    def known(self) -> dict[str, object]:
        """What decisions and plans read."""
        self.cache.validate()
        self.book.validate()
        return {
            "placed": {uid: self.cache.node_of(uid) for uid in self.cache.cluster.pods},
            "requested": self.cache.cluster.requested.tolist(),
            "queued": sorted(each.pod.uid for each in self.wing.queue),
            "waiting": {**self.cache.waiting, **self.cache.elsewhere},
            "pending": sorted(each.uid for each in self.pending.infos()),
            "wanting": sorted(each.uid for each in self.pending.waiting()),
            "nominated": {node: sorted(pods) for node, pods in self.book.nominator.by_node.items()},
            "failures": self.observer.failures,
        }


def changed(pod: Pod, what: str) -> Pod | None:
    """The pod afterwards."""
    if what in NODES:
        return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=what))
    status = CHANGES[what]
    return None if status is None else msgspec.structs.replace(pod, status=PodStatus(**status))


def happening(pods: dict[int, Pod], number: int, what: str) -> list[WatchEvent]:
    """A pod is created, or something becomes of it; none when it has a node or has ended."""
    old = pods.get(number)
    if old is None:
        pods[number] = a_pod(f"p{number}", schedulerName=NAMES[number % 3])
        return [PodAdded(pods[number])]
    if old.node_name or old.is_terminal:
        return []
    new = changed(old, what)
    if new is None:
        return [PodDeleted(pods.pop(number))]
    pods[number] = new
    return [PodUpdated(old, new)]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("serve"), st.lists(st.sampled_from(NAMES), unique=True)),
        st.tuples(st.just("moves"), st.booleans()),
        st.tuples(st.just("read"), st.just(())),
        st.tuples(st.integers(0, 3), st.sampled_from([*CHANGES, *NODES, *NODES, *NODES])),
    ),
    max_size=24,
)


@settings(max_examples=60)
@example(steps=[(1, ""), ("read", ()), (1, "nominated"), ("read", ()), (1, "plain"), ("read", ()), (1, "n0")])
@example(steps=[(1, ""), ("read", ()), ("serve", ["b"]), (1, "refused"), ("serve", ["a"]), (1, "n0")])
@example(steps=[*((each, "") for each in range(15)), ("read", ()), *((each, "n0") for each in range(15))])
@given(steps=STEPS)
def test_it_knows_the_same_whether_it_takes_in_all_pods_or_those_that_matter(
    steps: list[tuple[Any, Any]],
) -> None:
    """Through requests, nominations, refusals, other roles, moves that begin and end, and deletions."""
    plain, sifts = Replica(sifts=False), Replica(sifts=True)
    pods: dict[int, Pod] = {}
    unread: list[WatchEvent] = []

    def read() -> None:
        for each in (plain, sifts):
            each.read(unread)
        unread.clear()
        assert sifts.known() == plain.known()
        assert not plain.cache.elsewhere

    for each in (plain, sifts):
        each.serve(["a"])
    for what, which in [*steps, ("read", ())]:
        match what, which:
            case "serve", own:
                read()
                for each in (plain, sifts):
                    each.serve(own)
                assert sifts.known() == plain.known()
            case "moves", begin:
                sifts.moves.update({"m": ""}) if begin else sifts.moves.clear()
            case "read", _:
                read()
            case number, what_becomes:
                unread += happening(pods, number, what_becomes)


def test_what_waits_for_another_replica_is_passed_on_when_it_has_a_node() -> None:
    """As one event, before the others of its batch."""
    replica = Replica(sifts=True)
    replica.serve(["a"])
    own, other = a_pod("own", schedulerName="a"), a_pod("other", schedulerName="b")
    bound = changed(other, "n0")
    assert bound is not None

    first = replica.elsewhere.sifted([PodAdded(other)])
    second = replica.elsewhere.sifted([PodAdded(own), PodUpdated(other, bound)])

    assert list(first) == []
    assert list(second) == [PodAdded(bound), PodAdded(own)]


def test_while_moves_are_followed_every_pod_is_passed_on() -> None:
    """It may be the replacement of one of them."""
    replica = Replica(sifts=True)
    replica.serve(["a"])
    other, later = a_pod("other", schedulerName="b"), a_pod("later", schedulerName="b")
    assert list(replica.elsewhere.sifted([PodAdded(other)])) == []

    replica.moves["m"] = "followed"

    assert list(replica.elsewhere.sifted([PodAdded(later)])) == [PodAdded(other), PodAdded(later)]
