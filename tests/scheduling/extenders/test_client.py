"""Attempts with extenders run concurrently with the loop and delay no other pod."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from cluster.invariants import check_cache
from plimsoll.api.v1alpha1.scheduling import SchedulingSpec
from plimsoll.app.scheduling_wing import GangParts
from plimsoll.cluster.pod_groups import Groups
from plimsoll.cluster.watch_events import NodeAdded, ObjectAdded, PodDeleted, PodUpdated
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import ConfigurationError, Registry
from plimsoll.leadership.fence import Fence
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import PodGroup
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.ports.extenders import TLSSettings
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.scheduling.extenders import client
from plimsoll.scheduling.extenders.client import TURNS, ExtenderClient, endpoint_of
from plimsoll.scheduling.extenders.health import FAILURES, PAUSE_S
from plimsoll.scheduling.extenders.steps import schedule_steps
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import (
    FakeClock,
    FakeExtenders,
    FakePods,
    settled,
)
from plimsoll.timing.signal import Signal
from plimsoll.timing.timer import Timer
from scheduling.gangs.gang_scene import FakeGroupStatuses
from scheduling.queue.invariants import check_queue
from scheduling.wing_scene import WingScene

FILTER = {"urlPrefix": "http://f", "filterVerb": "filter", "nodeCacheCapable": True}
BIND = {"urlPrefix": "http://b", "bindVerb": "bind"}


class Counted(Observer):
    def __init__(self) -> None:
        self.asks: list[Any] = []
        self.broken: list[Any] = []

    def extender_asked(self, extender: str, point: str, result: str, seconds: float, problem: str) -> None:
        self.asks.append((extender, point, result))

    def failed(self, where: str, problem: str) -> None:
        self.broken.append(problem)


class Stage(WingScene):
    """A loop that runs, between fakes: pods of ``plain`` go the usual way, ``x`` has the extenders."""

    def __init__(self, *extenders: Any) -> None:
        clock, observer, self.groups = FakeClock(), Counted(), Groups()
        self.used_s = 0.0  #: processor time of the loop's thread
        self.extenders, self.documents = FakeExtenders(), FakePods()
        self.fence = Fence(clock)
        self.fence.open(clock.monotonic() + 10_000)
        self.extending = ExtenderClient(
            self.extenders,
            self.documents,
            fence=self.fence,
            clock=clock,
            observer=observer,
            conditions=Signal(),
            cpu_s=lambda: self.used_s,
        )
        gangs = GangParts(self.groups, FakeGroupStatuses(), Timer(clock, observer))
        super().__init__(clock=clock, observer=observer, gangs=gangs, extending=self.extending)
        self.serve(*extenders)

    def serve(self, *extenders: Any) -> None:
        """From now on these are the extenders of ``x``."""
        spec = SchedulingSpec.from_wire({"schedulerName": "x", "extenders": list(extenders)})
        names = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
        profiles = [build_profile(ProfileConfig(name), Registry(IN_TREE), names) for name in ("plain", "x")]
        profiles[1] = self.extending.equip(profiles[1], spec)
        self.wing.serve(
            {each.scheduler_name: ProfileScheduler(each, self.cache.cluster) for each in profiles}
        )

    @property
    def bound(self) -> dict[str, Any]:
        return {key.removeprefix("default/"): node for key, node in self.binder.bound.items()}


@pytest.fixture
async def stage() -> AsyncIterator[Any]:
    """A function that starts a loop with extenders, on nodes n0 and n1 with 4 cpu each."""
    tasks = []

    async def start(*extenders: dict[str, Any]) -> Stage:
        one = Stage(*extenders)
        tasks.append(asyncio.ensure_future(one.wing.run()))
        await one.see(NodeAdded(a_node("n0")), NodeAdded(a_node("n1")))
        return one

    yield start
    for task in tasks:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def ours(name: str, **more: Any) -> Pod:
    return a_pod(name, schedulerName="x", **more)


def plain(name: str, **more: Any) -> Pod:
    return a_pod(name, schedulerName="plain", **more)


class Held:
    """Answers that a test gives when it likes."""

    def __init__(self, answer: Any = None) -> None:
        self.gate = asyncio.Event()
        self.answer = answer or (lambda body: {"NodeNames": body["NodeNames"]})

    async def __call__(self, body: Any) -> dict[str, Any]:
        await self.gate.wait()
        return self.answer(body)


async def test_a_pod_is_asked_about_and_bound(stage: Callable[..., Any]) -> None:
    """The usual way: assumed, bound, told."""
    one = await stage(FILTER)
    one.extenders.answers["filter"] = {"NodeNames": ["n1"]}

    await one.pods(ours("a"))

    assert one.bound == {"a": "n1"}
    assert one.recorder.said("Scheduled") == ["Successfully assigned default/a to n1"]
    assert one.observer.asks == [("http://f", "filter", "success")]
    ((verb, body),) = one.extenders.asked
    assert (verb, body["Pod"]["metadata"]["name"]) == ("filter", "a")


async def test_a_hanging_extender_holds_its_own_pods_only(stage: Callable[..., Any]) -> None:
    """However many there are; a fixed number asks simultaneously, the important ones next."""
    one = await stage(FILTER)
    one.extenders.answers["filter"] = held = Held()
    await one.pods(*(ours(f"slow-{number}", cpu="1m") for number in range(2 * TURNS)))
    await one.pods(ours("important", cpu="1m", priority=9))

    await one.pods(*(plain(f"quick-{number}", cpu="1m") for number in range(120)))

    assert one.bound.keys() == {f"quick-{number}" for number in range(120)}
    assert len(one.extenders.asked) == TURNS
    held.gate.set()
    await settled()
    assert len(one.bound) == 120 + 2 * TURNS + 1
    assert one.extenders.asked[TURNS][1]["Pod"]["metadata"]["name"] == "important"
    check_cache(one.cache)
    check_queue(one.queue)


async def test_a_binder_that_hangs_holds_its_own_pods_only(stage: Callable[..., Any]) -> None:
    """Not the bindings of others, of which there is a bounded number."""
    one = await stage(BIND)
    one.extenders.answers["bind"] = held = Held(lambda _: {"Error": ""})
    await one.pods(*(ours(f"slow-{number}", cpu="1m") for number in range(105)))

    await one.pods(plain("quick", cpu="1m"))

    assert one.bound == {"quick": one.bound["quick"]}
    assert len(one.extenders.asked) == TURNS
    held.gate.set()
    await settled()
    assert len(one.recorder.said("Scheduled")) == 106
    assert one.bound.keys() == {"quick"}  # the others were bound by the extender


async def test_what_an_extender_says_of_a_pod_that_is_gone_is_dropped(stage: Callable[..., Any]) -> None:
    """Nothing is assumed, nothing is bound, nothing is reported."""
    one = await stage(FILTER)
    one.extenders.answers["filter"] = held = Held()
    await one.pods(ours("a"))

    await one.see(PodDeleted(ours("a")))
    held.gate.set()
    await settled()

    assert (one.bound, one.cache.assumed, len(one.extenders.asked)) == ({}, {}, 1)
    assert one.observer.broken == []


async def test_a_pod_that_is_gone_before_it_is_read_is_not_asked_about(stage: Callable[..., Any]) -> None:
    """The API server knows first."""
    one = await stage(FILTER)
    one.documents.answer = WriteResult(WriteOutcome.GONE)

    await one.pods(ours("a"))

    assert one.extenders.asked == []
    assert one.recorder.said("FailedScheduling") == []


async def test_a_pod_that_cannot_be_read_gets_a_condition(stage: Callable[..., Any]) -> None:
    """And tried again."""
    one = await stage(FILTER)
    one.documents.answer = WriteResult(WriteOutcome.UNKNOWN, "the API server is away")

    await one.pods(ours("a"))

    assert one.recorder.said("FailedScheduling") == [
        "the pod could not be read for its extenders: the API server is away"
    ]
    assert one.statuses.conditions["a"].reason == "SchedulerError"


async def test_a_pod_that_changed_meanwhile_is_asked_about_again(stage: Callable[..., Any]) -> None:
    """The answer was about another pod."""
    one = await stage(FILTER)
    one.extenders.answers["filter"] = held = Held()
    await one.pods(ours("a", cpu="1"))

    await one.see(PodUpdated(ours("a", cpu="1"), ours("a", cpu="1", labels={"new": "yes"})))
    held.gate.set()
    await one.clock.advance(5)

    assert len(one.extenders.asked) == 2
    assert one.extenders.asked[1][1]["Pod"]["metadata"]["labels"] == {"new": "yes"}
    assert one.bound.keys() == {"a"}


async def test_a_pod_that_waits_for_its_turn_is_asked_about_as_it_is_then(stage: Callable[..., Any]) -> None:
    """Once, however it changed meanwhile."""
    one = await stage(FILTER)
    one.extenders.answers["filter"] = held = Held()
    await one.pods(*(ours(f"slow-{number}", cpu="1m") for number in range(TURNS)))
    await one.pods(ours("late", cpu="1m"))
    await one.see(PodUpdated(ours("late", cpu="1m"), ours("late", cpu="1m", labels={"new": "yes"})))

    held.gate.set()
    await settled()

    (asked,) = (body["Pod"] for _, body in one.extenders.asked if body["Pod"]["metadata"]["name"] == "late")
    assert asked["metadata"]["labels"] == {"new": "yes"}
    assert "late" in one.bound


async def test_a_pod_that_is_gone_when_its_turn_comes_is_not_asked_about(stage: Callable[..., Any]) -> None:
    """Nor read."""
    one = await stage(FILTER)
    one.extenders.answers["filter"] = held = Held()
    await one.pods(*(ours(f"slow-{number}", cpu="1m") for number in range(TURNS)))
    await one.pods(ours("late", cpu="1m"))
    await one.see(PodDeleted(ours("late", cpu="1m")))

    held.gate.set()
    await settled()

    assert len(one.bound) == len(one.extenders.asked) == TURNS


async def test_a_policy_that_changed_meanwhile_decides_again(stage: Callable[..., Any]) -> None:
    """With the extenders that it has now."""
    one = await stage(FILTER)
    one.extenders.answers["filter"] = held = Held()
    await one.pods(ours("a"))

    one.serve()
    held.gate.set()
    await one.clock.advance(5)

    assert one.bound.keys() == {"a"}
    assert len(one.extenders.asked) == 1


async def test_two_pods_are_never_given_the_same_room(stage: Callable[..., Any]) -> None:
    """The extender said yes to both while neither was placed."""
    one = await stage(FILTER)
    one.extenders.answers["filter"] = held = Held(lambda _: {"NodeNames": ["n0"]})
    await one.pods(ours("a", cpu="3"), ours("b", cpu="3"))

    held.gate.set()
    await settled()

    assert len(one.extenders.asked) == 2
    assert len(one.bound) == 1
    assert one.recorder.said("FailedScheduling")


async def test_a_refused_pod_waits_for_any_event(stage: Callable[..., Any]) -> None:
    """What an extender looks at is unknown."""
    one = await stage(FILTER)
    one.extenders.answers["filter"] = {"NodeNames": [], "FailedNodes": {"n0": "no", "n1": "no"}}
    await one.pods(ours("a"))
    one.extenders.answers["filter"] = lambda body: {"NodeNames": body["NodeNames"]}

    await one.see(NodeAdded(a_node("n2")))
    await one.clock.advance(5)

    assert one.bound.keys() == {"a"}
    assert one.statuses.conditions["a"].message.startswith("0/2 nodes are available: 2 no. ")


async def test_an_extender_that_keeps_failing_is_left_alone_for_a_while(stage: Callable[..., Any]) -> None:
    """Its pods fail immediately with its last words; then one of them finds out that it is well."""
    one = await stage(FILTER)
    one.extenders.answers["filter"] = "no answer"
    await one.pods(*(ours(f"p{number}", cpu="1m") for number in range(FAILURES)))

    assert [result for _, _, result in one.observer.asks] == ["error"] * FAILURES
    one.observer.asks.clear()
    await one.pods(ours("late", cpu="1m"))
    assert one.observer.asks == [("http://f", "filter", "skipped")]
    assert one.statuses.conditions["late"].message == "no answer"
    assert one.extending.health.of("x") == [
        f'extender "http://f" has failed {FAILURES} times in a row: no answer'
    ]

    one.extenders.answers["filter"] = lambda body: {"NodeNames": body["NodeNames"]}
    await one.clock.advance(PAUSE_S + 20)

    assert len(one.bound) == FAILURES + 1
    assert one.extending.health.of("x") == []


async def test_an_error_of_its_own_does_not_count_as_a_failure(stage: Callable[..., Any]) -> None:
    """The extender is alive, and said so of one pod."""
    one = await stage(FILTER)
    one.extenders.answers["filter"] = {"Error": "not this pod"}

    await one.pods(*(ours(f"p{number}") for number in range(FAILURES + 1)))

    assert one.extending.health.of("x") == []
    assert one.statuses.conditions["p0"].message == "not this pod"


async def test_something_of_ours_that_breaks_harms_its_pod_only(stage: Callable[..., Any]) -> None:
    """It is counted, and the pod is tried again."""
    one = await stage(FILTER)

    def break_down(_: dict[str, Any]) -> None:
        raise RuntimeError("as asked")

    one.extenders.answers["filter"] = break_down
    await one.pods(ours("a"), plain("b"))
    one.extenders.answers["filter"] = lambda body: {"NodeNames": body["NodeNames"]}
    await one.clock.advance(5)

    assert one.bound.keys() == {"a", "b"}
    assert "as asked" in one.observer.broken[0]


@pytest.mark.parametrize("ignorable", [False, True])
async def test_a_binder_that_fails(stage: Callable[..., Any], ignorable: bool) -> None:
    """Undoes the attempt; unless it may be ignored: then we bind."""
    one = await stage({**BIND, "ignorable": ignorable})
    one.extenders.answers["bind"] = {"Error": "no licence"}

    await one.pods(ours("a"))

    assert one.bound.keys() == ({"a"} if ignorable else set())
    if not ignorable:
        assert one.cache.assumed == {}
        assert "no licence" in one.statuses.conditions["a"].message


@pytest.mark.parametrize("ignorable", [False, True])
async def test_a_binding_whose_answer_an_extender_loses_keeps_its_room(
    stage: Callable[..., Any], ignorable: bool
) -> None:
    """The API server says where the pod is, however late; its room stays taken meanwhile."""
    one = await stage({**BIND, "ignorable": ignorable})

    def bind(body: Any) -> str:
        one.binder.bound[f"default/{body['PodName']}"] = body["Node"]
        return "connection reset"

    one.extenders.answers["bind"] = bind
    one.binder.looks = [WriteResult(WriteOutcome.UNKNOWN, "no answer")]

    await one.pods(ours("a"))
    held = dict(one.cache.assumed)
    await one.clock.advance(5)

    assert len(held) == 1
    assert one.cache.assumed == held
    assert "a" not in one.statuses.conditions
    assert one.recorder.said("Scheduled") == [f"Successfully assigned default/a to {one.bound['a']}"]


@pytest.mark.parametrize(
    ("answer", "is_heard"),
    [({"Error": ""}, True), ("connection reset", False), (None, False)],
)
async def test_a_binding_that_an_extender_leaves_unanswered_may_happen_yet(
    stage: Callable[..., Any], answer: str | dict[str, Any] | None, is_heard: bool
) -> None:
    """Giving the lease away waits for it, as for a write of our own; None: it hangs to its limit."""
    one = await stage(BIND)
    one.extenders.answers["bind"] = asyncio.Event().wait() if answer is None else answer
    began = one.clock.monotonic()
    if answer is None:
        one.fence.open(began + 0.05)

    await one.pods(ours("a"))
    async with asyncio.timeout(300):
        while one.fence.under_way or not one.extenders.asked:  # noqa: ASYNC110 - the limit is the loop's
            await asyncio.sleep(0.005)

    assert one.fence.under_way == 0
    assert [verb for verb, _ in one.extenders.asked] == ["bind"]
    assert one.fence.is_quiet(5.0) is is_heard


async def test_a_deposed_leader_asks_no_extender_to_bind(stage: Callable[..., Any]) -> None:
    """Its successor does; whether the attempt could be undone does not matter then."""
    one = await stage(BIND)
    one.extenders.answers["bind"] = {"Error": ""}
    one.fence.shut()

    await one.pods(ours("a"))

    assert one.extenders.asked == []
    assert one.cache.assumed == {}


async def test_a_gang_is_not_placed_past_an_extender(stage: Callable[..., Any]) -> None:
    """It is asked about one pod at a time; the members' condition says what to do."""
    one = await stage(FILTER)
    group = convert(
        PodGroup, {"metadata": {"name": "train", "namespace": "default"}, "spec": {"minMember": 2}}
    )
    await one.see(ObjectAdded(group))

    await one.pods(*(ours(f"m{number}", labels={"plimsoll.dev/pod-group": "train"}) for number in range(2)))

    assert one.bound == {}
    assert one.extenders.asked == []
    assert "extender http://f is asked about one pod at a time" in one.statuses.conditions["m0"].message


async def test_the_order_of_asks_follows_the_spec_but_for_ignorable_ones(stage: Callable[..., Any]) -> None:
    """And managed resources leave out whom they do not concern."""
    one = await stage(
        {**FILTER, "urlPrefix": "http://1", "filterVerb": "one", "ignorable": True},
        {**FILTER, "urlPrefix": "http://2", "filterVerb": "two"},
        {**FILTER, "urlPrefix": "http://3", "managedResources": [{"name": "example.com/gpu"}]},
    )
    one.extenders.answers |= dict.fromkeys(("one", "two"), lambda body: {"NodeNames": body["NodeNames"]})

    await one.pods(ours("a"))

    assert [verb for verb, _ in one.extenders.asked] == ["two", "one"]


async def test_extenders_that_are_served_no_longer_are_let_go(stage: Callable[..., Any]) -> None:
    """Their connections too."""
    one = await stage(FILTER, BIND)
    spec = SchedulingSpec.from_wire({"schedulerName": "x", "extenders": [FILTER, BIND]})

    await one.extending.retain(["x"])
    kept = one.extenders.retained
    await one.extending.retain([])

    assert kept == {endpoint_of(each) for each in spec.extenders}
    assert one.extenders.retained == frozenset()


def test_a_timeout_of_nothing_is_the_default() -> None:
    """As in kube-scheduler."""
    spec = SchedulingSpec.from_wire(
        {
            "schedulerName": "x",
            "extenders": [{**FILTER, "httpTimeout": "0s"}, {**BIND, "httpTimeout": "250ms"}],
        }
    )

    assert [endpoint_of(each).timeout_s for each in spec.extenders] == [5.0, 0.25]


def test_an_invalid_certificate_is_refused_with_its_field() -> None:
    """By the position of the extender."""
    bad = {"urlPrefix": "https://c", "tlsConfig": {"caData": "bad"}}
    spec = SchedulingSpec.from_wire({"schedulerName": "x", "extenders": [FILTER, bad]})
    clock = FakeClock()
    extending = ExtenderClient(
        FakeExtenders(),
        FakePods(),
        fence=Fence(clock),
        clock=clock,
        observer=Observer(),
        conditions=Signal(),
    )

    with pytest.raises(ConfigurationError, match=r"spec\.scheduling\.extenders\[1\]\.tlsConfig: the cert"):
        extending.check(spec)


def test_a_key_is_in_no_text_about_an_endpoint() -> None:
    """Such as a log line."""
    tls = {"certData": "Y2VydA==", "keyData": "c2VjcmV0"}
    spec = SchedulingSpec.from_wire(
        {"schedulerName": "x", "extenders": [{"urlPrefix": "https://c", "tlsConfig": tls}]}
    )

    assert "c2VjcmV0" not in repr(endpoint_of(spec.extenders[0]))


def test_every_setting_of_tls_reaches_the_endpoint() -> None:
    """Each is its own; left out, none is set."""
    tls = {"serverName": "n", "caData": "Y2E=", "certData": "Y2VydA==", "keyData": "a2V5"}
    settings: list[dict[str, Any]] = [{"tlsConfig": tls}, {}, {"tlsConfig": {"insecure": True}}]
    extenders = [{"urlPrefix": f"https://c{at}", **each} for at, each in enumerate(settings)]
    spec = SchedulingSpec.from_wire({"schedulerName": "x", "extenders": extenders})

    assert [endpoint_of(each).tls for each in spec.extenders] == [
        TLSSettings(server_name="n", ca_data="Y2E=", cert_data="Y2VydA==", key_data="a2V5"),
        TLSSettings(),
        TLSSettings(insecure=True),
    ]


@pytest.mark.parametrize(("each_s", "is_bound"), [(0.9, True), (1.1, False)])
async def test_the_parts_of_an_attempt_between_requests_have_one_budget(
    stage: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, each_s: float, is_bound: bool
) -> None:
    """Too much in two parts is given up, said and backed off; what others take meanwhile is not the pod's."""
    one = await stage(FILTER | {"prioritizeVerb": "prioritize", "weight": 1})
    one.extenders.answers["filter"] = held = Held()
    one.extenders.answers["prioritize"] = []
    ordinary = schedule_steps

    def costly(*args: Any) -> Any:
        steps, answers = ordinary(*args), None
        while True:
            one.used_s += each_s
            try:
                asks = steps.send(answers)  # type: ignore[arg-type] # None at first
            except StopIteration as end:
                return end.value
            answers = yield asks

    monkeypatch.setattr(client, "schedule_steps", costly)

    await one.pods(ours("a"))
    one.used_s += 60.0
    await one.pods(plain("b"))
    held.gate.set()
    await settled()

    assert one.bound.keys() == ({"a", "b"} if is_bound else {"b"})
    if not is_bound:
        assert one.statuses.conditions["a"].reason == "SchedulerError"
        assert "the attempt took more than 2 s of processor time" in one.statuses.conditions["a"].message
        (queued,) = one.queue
        assert queued.costly_count == 1
        await one.clock.advance(61.0)
        assert queued.costly_count == 2
