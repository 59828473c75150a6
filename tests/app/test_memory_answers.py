"""The operator's memory of pods and nodes, against the queue and the book themselves."""

import asyncio
import gc
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.answers.operator_memory import NodeMemory, PodMemory, QueueMemory, RoomMemory
from plimsoll.app.machine.attempt_watch import AttemptWatch
from plimsoll.app.machine.garbage import EVERY_S, collect_until
from plimsoll.app.machine.machine import Machine
from plimsoll.app.memory.answers import MemoryAnswers
from plimsoll.app.memory.caller_gate import ADDRESSES, KEPT, KEPT_S, REVIEWS, CallerGate
from plimsoll.app.memory.live_views import LiveViews
from plimsoll.app.supervision import BEAT_S, Supervision
from plimsoll.cluster.cache import Cache
from plimsoll.cluster.reservations import Reservation, ReservationBook, ReservationReason
from plimsoll.engine.plugin_calls import BUDGET_S, AttemptBudget
from plimsoll.kube.access_reviews import Caller
from plimsoll.model.kinds.pod_info import Holder, HolderKind
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import FakeClock, RememberingObserver
from plimsoll.timing.timer import Timer
from scheduling.queue.queueing import a_queue, asleep, uid_of, waiting

UNKNOWN = PodMemory(standing="leading", queue=None, assumed="", room=None)


class Scene:
    """A queue, a book and a cache, as the operator has them."""

    def __init__(self) -> None:
        self.clock, self.cache = FakeClock(100.0), Cache()
        for name in ("n1", "n2"):
            self.cache.set_node(a_node(name, cpu="8"))
        self.book = ReservationBook(self.cache, Timer(self.clock, RememberingObserver()))
        self.queue = a_queue()
        self.answers = MemoryAnswers(self.queue, self.book, self.clock, lambda: "leading")

    def asked(self, name: str) -> PodMemory:
        """What is said of a pod."""
        return self.answers.pod("default", name)


@given(rejections=st.integers(0, 5), later=st.floats(0, 30))
def test_a_pod_that_waits_says_where_since_when_and_for_what(rejections: int, later: float) -> None:
    """Each rejection doubles the back-off; seconds that are over are 0."""
    scene = Scene()
    scene.queue.add_or_update(waiting("older"), 99.0)
    asleep(scene.queue, "older", now=99.0)
    scene.queue.add_or_update(waiting("p"), 100.0)
    for _ in range(rejections):
        scene.queue.activate([uid_of("p")], scene.clock.time)
        scene.clock.time += 20
        scene.queue.pop(scene.clock.time)
        scene.queue.add_unschedulable_if_not_present(
            uid_of("p"), scene.clock.time, frozenset({"NodeResourcesFit"}), frozenset({"Waits"})
        )
    scene.clock.time += later

    said = scene.asked("p").queue

    assert isinstance(said, QueueMemory)
    assert said.queue == ("unschedulable" if rejections else "active")
    assert (said.attempts, said.waited_seconds, said.ahead) == (rejections, round(later), 0)
    assert said.rejected_by == (["NodeResourcesFit", "Waits"] if rejections else [])
    assert said.backoff_seconds == 0


@pytest.mark.parametrize("passed", [0.0, 0.4, 1.6, 3.9])
def test_a_pod_in_back_off_says_how_long(passed: float) -> None:
    scene = Scene()
    scene.queue.add_or_update(waiting("p"), 100.0)
    for now in (100.0, 110.0, 120.0):
        scene.queue.pop(now)
        scene.queue.add_unschedulable_if_not_present(uid_of("p"), now, frozenset(), frozenset())
        if now < 120:
            scene.queue.activate([uid_of("p")], now + 9)
    scene.clock.time = 120.0 + passed

    said = scene.asked("p").queue

    assert said is not None
    assert (said.queue, said.waited_seconds) == ("backoff", round(passed))
    assert said.backoff_seconds == round(4 - passed)


def test_assumed_pods_and_reserved_rooms_are_of_their_node_and_their_pod() -> None:
    scene = Scene()
    for name, node in (("b", "n1"), ("a", "n1"), ("c", "n2")):
        scene.cache.assume(scene.cache.info(a_pod(name)), node)
    held = scene.cache.info(a_pod("held"))
    scene.book.reserve(
        Reservation(
            Holder(HolderKind.POD, held.uid),
            held,
            "n2",
            ReservationReason.ROOM,
            "tidy",
            until=112.4,
        )
    )
    scene.book.nominate(scene.cache.info(a_pod("for-ever")), "n1")

    room = RoomMemory(node="n2", pod="default/held", reason="Room", owner="tidy", seconds_left=12)
    assert scene.answers.node("n1").assumed == ["default/a", "default/b"]
    assert [each.seconds_left for each in scene.answers.node("n1").rooms] == [None]
    assert scene.answers.node("n2") == NodeMemory(standing="leading", assumed=["default/c"], rooms=[room])
    assert scene.asked("c").assumed == "n2"
    assert scene.asked("unknown") == UNKNOWN
    scene.clock.time += 20
    assert scene.answers.node("n2").rooms[0].seconds_left == 0


def test_a_live_view_counts_a_pod_from_its_first_sight() -> None:
    """Also after it was tried."""
    scene = Scene()
    scene.queue.add_or_update(waiting("p"), 100.0)
    scene.clock.time = 130.0
    asleep(scene.queue, "p", now=130.0)
    scene.clock.time = 142.0

    class NoPolicies:
        """None."""

        def described(self) -> Any:
            return ()

    view, _ = LiveViews(
        scene.queue, scene.cache, NoPolicies(), {}, list, scene.clock, lambda: "leading", tuple
    ).since({})

    (pod,) = view.queue
    assert (pod.pod, pod.queue, pod.attempts, pod.waited_seconds) == ("default/p", "unschedulable", 1, 42)
    assert pod.rejected_by == ("NodeResourcesFit",)


class Reviews:
    """Everybody may; counts the tokens."""

    def __init__(self) -> None:
        self.tokens: list[str] = []

    async def caller(self, token: str, audience: str = "") -> Caller | None:
        assert not audience
        self.tokens.append(token)
        return Caller(token)

    async def may_get(self, caller: Caller, path: str) -> bool:
        return bool(caller.user and path)


def bearer(token: str) -> Mapping[str, str]:
    """The header of a token."""
    return {"Authorization": f"Bearer {token}"}


async def test_as_many_results_are_kept_as_there_is_room_for_and_the_oldest_goes_first() -> None:
    reviews, clock = Reviews(), FakeClock()
    gate = CallerGate(reviews, clock)
    for number in range(KEPT + 1):
        assert await gate.refusal(bearer(f"t{number}"), "/explain/pods", f"address-{number}") is None
    reviews.tokens.clear()

    for number in (KEPT, 1, 0):
        assert await gate.refusal(bearer(f"t{number}"), "/explain/pods", "another") is None

    assert reviews.tokens == ["t0"]
    assert len(gate._kept) == KEPT
    clock.time += KEPT_S
    assert await gate.refusal(bearer(f"t{KEPT}"), "/explain/pods", "another") is None
    assert reviews.tokens == ["t0", f"t{KEPT}"], "a result that is old is reviewed again"


async def test_an_address_that_asks_too_often_waits_and_is_forgotten_last() -> None:
    """It has used up its reviews; many others come, and it is remembered because it came again."""
    reviews, clock = Reviews(), FakeClock()
    gate = CallerGate(reviews, clock)
    numbers = iter(range(10_000))

    async def status(address: str) -> int:
        found = await gate.refusal(bearer(f"t{next(numbers)}"), "/explain/pods", address)
        return 200 if found is None else found.status

    assert [await status("busy") for _ in range(REVIEWS + 1)] == [200] * REVIEWS + [429]
    for number in range(ADDRESSES - 1):
        assert await status(f"address-{number}") == 200
    assert await status("busy") == 429
    assert await status("one-more") == 200
    assert await status("busy") == 429
    assert len(gate._paces) == ADDRESSES


def test_a_collection_waits_until_the_first_lists_are_read() -> None:
    """While it is off nothing is collected, and the next look comes all the same."""
    looks: list[float] = []

    def stopped(pause_s: float) -> bool:
        looks.append(pause_s)
        if len(looks) == 2:
            gc.enable()
        return len(looks) > 2

    moments = iter((0.0, 1.0))
    gc.disable()
    try:
        collect_until(stopped, moments.__next__)
    finally:
        gc.enable()

    assert looks == [EVERY_S, EVERY_S, 2000.0]


def test_the_first_attempt_of_a_process_counts_from_its_first_look() -> None:
    """The thread has used much before, at the start."""
    used = 100.0
    budget, watch = AttemptBudget(), AttemptWatch(lambda: used)
    budget.begin("first")

    watch.look(budget)
    assert budget.spent != budget.attempt
    used += BUDGET_S + 0.1
    watch.look(budget)

    assert budget.spent == budget.attempt


async def test_the_loop_of_the_election_says_how_late_it_is() -> None:
    """In time twice, then by three seconds."""
    clock, told = FakeClock(), []
    one = Supervision(Machine(clock), RememberingObserver())
    one._observer.loop_lagged = lambda loop, seconds: told.append((loop, seconds))  # type: ignore[method-assign] # replaced for this test
    task = asyncio.create_task(one.measure())
    await clock.advance(2 * BEAT_S)
    clock.time += BEAT_S + 3
    await clock.advance(0)
    task.cancel()

    assert told == [("election", 0.0), ("election", 0.0), ("election", pytest.approx(3.0))]
