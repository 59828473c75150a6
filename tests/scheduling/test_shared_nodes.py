"""Two replicas on one cluster: each sees late what the other does, and no node ever gets too much.

The server takes whatever it is sent, as an API server does: a pod is bound once, and the room is not checked.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plimsoll.app.machine.clock import SeededRandomness
from plimsoll.app.scheduling_wing import PodPorts, SchedulingWing, WingParts
from plimsoll.cluster.cache import Cache
from plimsoll.cluster.node_shares import NODE_SHARES, NodeShares, share_of
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.model.kinds.pod import PodCondition
from plimsoll.model.kinds.watch_event import NodeAdded, PodAdded, PodDeleted, PodUpdated, WatchEvent
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.ports.pods import BINDING_REQUESTED
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.scheduling.binding.binder import ConfirmedBinder
from plimsoll.scheduling.shared_nodes.answers import RequestAnswers
from plimsoll.scheduling.shared_nodes.binder import SharedNodeBinder
from plimsoll.scheduling.shared_nodes.pods_elsewhere import PodsElsewhere
from plimsoll.scheduling.shared_nodes.request import ANSWER_S, RequestReason, refusal, requested_node
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import (
    FakeClaims,
    FakeClock,
    FakePreemptor,
    FakeRecorder,
    FakeStatuses,
    FakeVolumes,
    RememberingObserver,
    a_book,
    settled,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from plimsoll.model.kinds.pod import Pod

DONE = WriteResult(WriteOutcome.DONE)
OTHER_VERSION = WriteResult(WriteOutcome.CONFLICT, "the pod has changed")

#: The pods that a node takes, and the nodes: some in every share.
ROOM, NODES = 2, tuple(f"n{number}" for number in range(9))

PROFILES = {
    name: build_profile(
        ProfileConfig(name),
        Registry(IN_TREE),
        [Enabled(each, weight) for each, weight in DEFAULT_PLUGINS.items()],
    )
    for name in ("a", "b")
}


@dataclass(slots=True)
class Server:
    """Pods, and what happened to them, for everybody to read at their own pace."""

    pods: dict[str, Pod] = field(default_factory=dict)
    log: list[WatchEvent] = field(default_factory=list)
    posted: Counter[str] = field(default_factory=Counter)

    def add(self, pod: Pod) -> None:
        """A pod is created."""
        self.pods[pod.uid] = pod
        self.log.append(PodAdded(pod))

    def _change(self, old: Pod, **changes: Any) -> None:
        meta = msgspec.structs.replace(old.metadata, resource_version=str(len(self.log) + 1))
        new = self.pods[old.uid] = msgspec.structs.replace(old, metadata=meta, **changes)
        self.log.append(PodUpdated(old, new))

    def delete(self, uid: str) -> None:
        """A pod is deleted."""
        self.log.append(PodDeleted(self.pods.pop(uid)))

    async def bind(self, pod: Pod, node: str, *, as_seen: bool = False) -> WriteResult:
        """Bind a pod that has no node."""
        present = self.pods.get(pod.uid)
        if present is None:
            return WriteResult(WriteOutcome.GONE, "gone")
        if as_seen and present.metadata.resource_version != pod.metadata.resource_version:
            return OTHER_VERSION
        if present.node_name:
            return WriteResult(WriteOutcome.CONFLICT, f"already on {present.node_name}")
        self.posted[pod.uid] += 1
        self._change(present, spec=msgspec.structs.replace(present.spec, node_name=node))
        return DONE

    async def bind_together(self, bindings: Sequence[tuple[Pod, str]]) -> Sequence[WriteResult | None]:
        """One after the other."""
        return [await self.bind(pod, node) for pod, node in bindings]

    async def node_of(self, pod: Pod) -> tuple[WriteResult, str]:
        """Where a pod is."""
        return DONE, self.pods[pod.uid].node_name

    async def request(
        self, pod: Pod, reason: str, message: str, *, is_open: bool, as_seen: bool = False
    ) -> WriteResult:
        """Set the condition."""
        present = self.pods.get(pod.uid)
        if present is None:
            return WriteResult(WriteOutcome.GONE, "gone")
        if as_seen and present.metadata.resource_version != pod.metadata.resource_version:
            return OTHER_VERSION
        others = tuple(each for each in present.status.conditions if each.type != BINDING_REQUESTED)
        asked = PodCondition(
            type=BINDING_REQUESTED, status="True" if is_open else "False", reason=str(reason), message=message
        )
        self._change(present, status=msgspec.structs.replace(present.status, conditions=(*others, asked)))
        return DONE

    def load(self) -> Counter[str]:
        """How many pods each node has."""
        return Counter(pod.node_name for pod in self.pods.values() if pod.node_name)


class Replica:
    """A replica with one of two scheduler names and some of the nodes, and how far it has read."""

    def __init__(self, server: Server, clock: FakeClock, name: str, held: set[int]) -> None:
        self.server, self.read, self.name = server, 0, name
        cache = Cache()
        book = a_book(cache)
        self.shares = NodeShares()
        self.shares.held = frozenset(held)
        self.binder = SharedNodeBinder(server, server, self.shares, clock)
        self.observer = RememberingObserver()
        self.wing = SchedulingWing(
            book,
            PodPorts(
                self.binder, FakeVolumes(), FakePreemptor(), FakeStatuses(), FakeRecorder(), FakeClaims()
            ),
            clock,
            SeededRandomness(0),
            self.observer,
            WingParts(shares=self.shares),
        )
        self.answers = RequestAnswers(
            self.wing.served,
            book,
            ConfirmedBinder(self.binder, clock),
            server,
            self.shares,
            self.wing.pipeline,
            self.observer,
            clock,
        )
        self.elsewhere = PodsElsewhere(self.wing.served, cache, ())
        self.ingestion = self.wing.ingestion((self.binder, self.answers), self.observer)
        schedulers = {
            each: ProfileScheduler(profile, cache.cluster, nominator=book.nominator)
            for each, profile in PROFILES.items()
        }
        self.wing.serve(schedulers, schedulers.keys() - {name})
        self.ingestion.apply([NodeAdded(a_node(node, cpu="64", pods=ROOM)) for node in NODES])

    async def look(self, count: int = 1_000_000) -> None:
        """Read so many of the events that it has not read."""
        events = self.server.log[self.read : self.read + count]
        self.read += len(events)
        self.ingestion.apply(self.elsewhere.sifted(events))
        await settled()

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Place pods meanwhile."""
        task = asyncio.ensure_future(self.wing.run())
        try:
            yield
        finally:
            tasks = [task, *self.wing.pipeline.tasks]
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def hand_over(share: int, giver: Replica, taker: Replica) -> None:
    """As :mod:`plimsoll.app.replica.role_duties` does it: stop, wait, and list before the other begins."""
    giver.shares.held -= {share}
    await giver.binder.until_idle(share)
    await taker.look()
    taker.shares.held |= {share}
    taker.answers.look_at_all()


async def play(steps: list[tuple[str, int]], pods: list[str], held: set[int]) -> Server:
    """Create pods, and let two replicas place them while each reads at its own pace."""
    server, clock = Server(), FakeClock()
    one = Replica(server, clock, "a", held)
    two = Replica(server, clock, "b", set(range(NODE_SHARES)) - held)
    waiting = [a_pod(f"p{number}", schedulerName=name) for number, name in enumerate(pods)]
    async with one.working(), two.working():
        for what, number in steps:
            match what:
                case "create":
                    for pod in waiting[:number]:
                        server.add(pod)
                    del waiting[:number]
                case "one" | "two":
                    await (one if what == "one" else two).look(number)
                case "give":
                    share = number % NODE_SHARES
                    pair = (one, two) if share in one.shares.held else (two, one)
                    await hand_over(share, *pair)
                case "wait":
                    await clock.advance(number)
            assert max(server.load().values(), default=0) <= ROOM
        for pod in waiting:
            server.add(pod)
        for _ in range(12):
            for _ in range(6):
                await one.look()
                await two.look()
            await clock.advance(10)
            assert max(server.load().values(), default=0) <= ROOM
    assert one.observer.failures == two.observer.failures == []
    return server


STEPS = st.lists(
    st.tuples(st.sampled_from(["create", "create", "one", "two", "give", "wait"]), st.integers(1, 9)),
    max_size=14,
)


@settings(max_examples=10, deadline=None)
@example(
    steps=[("create", 24), ("one", 24), ("two", 24)], pods=["a"] * 12 + ["b"] * 12, held={0, 1, 2}
)  # both decide before either sees a binding, and one has more pods than room of its own
@given(
    steps=STEPS,
    pods=st.lists(st.sampled_from("ab"), min_size=12, max_size=24),
    held=st.sets(st.integers(0, NODE_SHARES - 1)),
)
def test_no_node_gets_more_than_it_takes_and_no_room_is_left_while_pods_wait(
    steps: list[tuple[str, int]], pods: list[str], held: set[int]
) -> None:
    """However late each sees the other's bindings, whatever shares they have and pass on."""
    server = asyncio.run(play(steps, pods, held))

    assert set(server.posted.values()) <= {1}, "a pod was bound twice"
    assert sum(server.load().values()) == min(len(pods), ROOM * len(NODES))


async def test_a_replica_prefers_nodes_that_it_binds_to_itself() -> None:
    """As long as there is room, the other is not asked."""
    server = await play([("create", 9)], ["a"] * 4 + ["b"] * 4, {0, 1, 2})

    asked = [each for each in server.log if isinstance(each, PodUpdated) and requested_node(each.new)]
    assert not asked
    assert {share_of(pod.node_name) < 3: pod.spec.scheduler_name for pod in server.pods.values()} == {
        True: "a",
        False: "b",
    }


@pytest.fixture
def full_home() -> tuple[Server, FakeClock, Replica, Pod]:
    """A replica with one share whose nodes are full, and a pod that must go elsewhere."""
    server, clock = Server(), FakeClock()
    one = Replica(server, clock, "a", {share_of("n0")})
    homes = [node for node in NODES if share_of(node) == share_of("n0")]
    for number, node in enumerate(homes * ROOM):
        server.add(a_pod(f"full-{number}", node=node))
    pod = a_pod("late", schedulerName="a")
    server.add(pod)
    return server, clock, one, pod


async def test_a_request_without_an_answer_is_withdrawn(full_home: tuple[Any, ...]) -> None:
    """Its holder is gone for the moment: the pod is tried again, and its slot is free."""
    server, clock, one, pod = full_home
    async with one.working():
        await one.look()
        assert requested_node(server.pods[pod.uid])
        await clock.advance(ANSWER_S)

        assert not requested_node(server.pods[pod.uid])
        await one.look()
        await clock.advance(2)
        assert requested_node(server.pods[pod.uid]), "it is tried again"


async def test_a_pod_that_is_deleted_while_it_waits_leaves_nothing_behind(
    full_home: tuple[Any, ...],
) -> None:
    """Nothing counts where it was to go."""
    server, _, one, pod = full_home
    async with one.working():
        await one.look()
        server.delete(pod.uid)
        await one.look()

        assert pod.uid not in one.wing.queue
        assert one.wing.mirror.cache.node_of(pod.uid) == ""


@pytest.mark.parametrize(
    ("what", "verdict"),
    [
        pytest.param("bound", WriteOutcome.DONE, id="bound"),
        pytest.param("bound elsewhere", WriteOutcome.CONFLICT, id="bound-elsewhere"),
        pytest.param("refused", WriteOutcome.CONFLICT, id="refused"),
        pytest.param("deleted", WriteOutcome.GONE, id="deleted"),
        pytest.param("made again", WriteOutcome.GONE, id="made-again-under-its-name"),
    ],
)
async def test_the_answer_to_a_request_is_what_became_of_the_pod(
    full_home: tuple[Any, ...], what: str, verdict: WriteOutcome
) -> None:
    """And a second pod under its name answers nothing."""
    server, clock, one, pod = full_home
    node, other = [each for each in NODES if share_of(each) != share_of("n0")][:2]
    await one.look()
    one.shares.held = frozenset()
    binding = asyncio.ensure_future(one.binder.bind(pod, node))
    await settled()
    await one.look()
    assert not binding.done()
    begun = clock.monotonic()
    if what in ("deleted", "made again"):
        server.delete(pod.uid)
    if what == "made again":
        server.add(a_pod("late", uid="another", schedulerName="a", node=node))
    elif what == "refused":
        await server.request(pod, RequestReason.REFUSED, f"{node}: no room", is_open=False)
    elif what != "deleted":
        await server.bind(pod, node if what == "bound" else other)
    await one.look()

    assert binding.done()
    assert (await binding).verdict is verdict
    assert clock.monotonic() == begun


@pytest.fixture
def asked() -> tuple[Server, FakeClock, Replica, Pod]:
    """A replica without nodes, which another one's pod may ask."""
    server, clock = Server(), FakeClock()
    pod = a_pod("old", schedulerName="a")
    server.add(pod)
    return server, clock, Replica(server, clock, "b", set()), pod


def take_node(replica: Replica, node: str) -> None:
    """As :mod:`plimsoll.app.replica.role_duties` does it."""
    replica.shares.held |= {share_of(node)}
    replica.answers.look_at_all()


async def test_a_request_from_before_the_replica_held_the_node_is_refused(asked: tuple[Any, ...]) -> None:
    """Its process may have ended long ago; what it decided need not hold any more."""
    server, _, other, pod = asked
    async with other.working():
        await server.request(pod, "NodeOfAnotherReplica", "n0", is_open=True)
        await other.look()
        take_node(other, "n0")
        await settled()

        assert server.pods[pod.uid].node_name == ""
        assert refusal(server.pods[pod.uid], "n0") == "n0: the request is older than 5 s"
        await other.look()
        assert other.answers._seen == {}


@pytest.mark.parametrize(("waited_s", "node"), [(4.9, "n0"), (5.0, "")])
async def test_a_request_is_answered_in_time_or_not_at_all(
    asked: tuple[Any, ...], waited_s: float, node: str
) -> None:
    """It was shown while the replica held another node, which it then got."""
    server, clock, other, pod = asked
    take_node(other, next(each for each in NODES if share_of(each) != share_of("n0")))
    async with other.working():
        await server.request(pod, "NodeOfAnotherReplica", "n0", is_open=True)
        await other.look()
        await clock.advance(waited_s)
        take_node(other, "n0")
        await settled()

        assert server.pods[pod.uid].node_name == node


async def test_each_request_has_its_own_age(asked: tuple[Any, ...]) -> None:
    """The first was withdrawn; the pod asks again, which is seen as it comes."""
    server, clock, other, pod = asked
    async with other.working():
        await server.request(pod, "NodeOfAnotherReplica", "n1", is_open=True)
        await other.look()
        await clock.advance(60)
        take_node(other, "n0")
        await server.request(pod, "NodeOfAnotherReplica", "n0", is_open=True)
        await other.look()

        assert server.pods[pod.uid].node_name == "n0"


async def test_no_request_of_a_deleted_pod_is_kept(asked: tuple[Any, ...]) -> None:
    """Its age is forgotten with it."""
    server, _, other, pod = asked
    await server.request(pod, "NodeOfAnotherReplica", "n0", is_open=True)
    await other.look()
    assert list(other.answers._seen) == [pod.uid]
    server.delete(pod.uid)
    await other.look()

    assert other.answers._seen == {}


async def test_a_request_that_was_withdrawn_is_not_carried_out(asked: tuple[Any, ...]) -> None:
    """Who made it may have taken its claims back already; the replica asked sees the request alone."""
    server, _, other, pod = asked
    take_node(other, "n0")
    async with other.working():
        await server.request(pod, "NodeOfAnotherReplica", "n0", is_open=True)
        await server.request(pod, "NotAnswered", "late", is_open=False)
        await other.look(2)

        assert server.pods[pod.uid].node_name == ""
        await other.look()
        assert other.wing.mirror.cache.node_of(pod.uid) == ""


@pytest.mark.parametrize("shown", [2, 1_000_000])
async def test_an_answer_to_one_request_does_not_close_the_next(asked: tuple[Any, ...], shown: int) -> None:
    """The first is refused as too old while the second stands, which is seen later or in the meantime."""
    server, clock, other, pod = asked
    await server.request(pod, "NodeOfAnotherReplica", "n1", is_open=True)
    await server.request(pod, "NodeOfAnotherReplica", "n0", is_open=True)
    async with other.working():
        for node in ("n1", "n0"):
            take_node(other, node)
        await other.look(shown)
        await clock.advance(1)
        if shown == 2:
            assert requested_node(server.pods[pod.uid]) == "n0"
        await other.look()

        assert server.pods[pod.uid].node_name == "n0"
