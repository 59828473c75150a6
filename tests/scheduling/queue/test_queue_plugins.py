"""Plugins of the queue, and failures in them."""

from collections.abc import Callable
from typing import Any

import pytest

from plimsoll.cluster.cache import Cache
from plimsoll.cluster.ingestion import Ingestion, Mirror
from plimsoll.cluster.watch_events import NodeAdded, NodeUpdated, PodAdded, PodDeleted, PodUpdated
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import (
    SUCCESS,
    ActionType,
    EnqueueExtensions,
    EventResource,
    EventWithHint,
    NoArgs,
    PreEnqueuePlugin,
    QueueingHint,
    Registry,
    unschedulable,
)
from plimsoll.framework.queueing import ClusterEvent
from plimsoll.framework.status import Status
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.plugins.priority_sort import PrioritySort
from plimsoll.policy_controller.served_profiles import ServedProfiles
from plimsoll.ports.observer import Observer
from plimsoll.scheduling.queue.feed import QueueFeed
from plimsoll.scheduling.queue.queue import SchedulingQueue
from plimsoll.scheduling.queue.queue_plugins import QueuePlugins
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import FakeClock, a_book


class Told(Observer):
    """Remembers its notifications about plugins, hints and events."""

    def __init__(self) -> None:
        self.failed_plugins: list[Any] = []
        self.hints: list[Any] = []
        self.events: list[Any] = []

    def plugin_failed(self, plugin: str, point: str, problem: str, trace: str = "") -> None:
        self.failed_plugins.append((plugin, point))

    def hint_asked(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        self.hints.append((plugin, event, hint))

    def event_handled(self, event: str, seconds: float) -> None:
        self.events.append(event)


def asked_late(pod: PodInfo, change: ClusterEvent) -> str | QueueingHint:
    """The hint that the test has set by then."""
    return Odd.hint(pod, change)


class Odd(PreEnqueuePlugin, EnqueueExtensions):
    """A plugin whose answers the test sets on the class."""

    name = "Odd"
    args_model = NoArgs
    gate = staticmethod(lambda pod: SUCCESS)
    hint = staticmethod(lambda pod, change: QueueingHint.SKIP)
    events = staticmethod(lambda: (EventWithHint(EventResource.NODE, ActionType.ADD, asked_late),))  # type: ignore[arg-type] # a fake has only what is used

    def __init__(self, args: Any) -> None:
        """Take no arguments."""

    def pre_enqueue(self, pod: Any) -> Status:
        return type(self).gate(pod)

    def events_to_register(self) -> tuple[Any]:
        return type(self).events()


class Scene:
    """Cache, queue and ingestion around the default profile of scheduler ``s``, and Odd."""

    def __init__(self) -> None:
        self.observer, self.clock, self.cache = Told(), FakeClock(), Cache()
        self.asking = QueuePlugins(PrioritySort(NoArgs()), self.clock, self.observer)
        self.queue = SchedulingQueue(
            self.asking.sort_key,
            self.observer,
            gate=self.asking.gate,
            ask=self.asking.hint,
            objects=self.cache.cluster.objects,
        )
        plugins = [*(Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()), Enabled("Odd")]
        profile = build_profile(ProfileConfig("s"), Registry([*IN_TREE, Odd]), plugins)
        served, mirror = ServedProfiles(), Mirror(self.cache, self.observer)
        served.replace({"s": ProfileScheduler(profile, self.cache.cluster)})
        hints, changed = self.asking.serve(served.schedulers)
        self.queue.use(hints, changed, 0.0)
        feed = QueueFeed(mirror, self.queue, served, a_book(self.cache), self.clock, self.observer)
        self.ingestion = Ingestion((mirror, feed), self.observer)

    def tell(self, *events: Any) -> None:
        self.ingestion.apply(events)

    def rejected(self, *pods: Any, by: str) -> None:
        """These pods are unschedulable."""
        self.tell(*(PodAdded(pod) for pod in pods))
        while (queued := self.queue.pop(self.clock.monotonic())) is not None:
            self.queue.add_unschedulable_if_not_present(
                queued.pod.uid, self.clock.monotonic(), frozenset({by})
            )

    @property
    def asleep(self) -> int:
        return self.queue.depths()["unschedulable"]


def ours(name: str = "pod", **options: Any) -> Pod:
    return a_pod(name, schedulerName="s", **options)


def raising(*_: PodInfo | ClusterEvent) -> None:
    raise ValueError("as asked")


@pytest.mark.parametrize("hint", [raising, lambda pod, change: "Queue"], ids=["raises", "answers-nonsense"])
def test_a_hint_that_breaks_wakes_its_pod_and_is_counted(
    monkeypatch: pytest.MonkeyPatch, hint: Callable[..., Any]
) -> None:
    """Sleeping on would be the worse mistake."""
    monkeypatch.setattr(Odd, "hint", staticmethod(hint))
    scene = Scene()
    scene.rejected(ours(), by="Odd")

    scene.tell(NodeAdded(a_node("n")))

    assert scene.asleep == 0
    assert scene.observer.failed_plugins == [("Odd", "queueingHint")]
    assert scene.observer.hints == [("Odd", "NodeAdd", "Error")]


@pytest.mark.parametrize("events", [raising, lambda: ("NodeAdd",)], ids=["raises", "declares-nonsense"])
def test_a_plugin_that_cannot_declare_is_woken_by_everything(
    monkeypatch: pytest.MonkeyPatch, events: Callable[..., Any]
) -> None:
    """Named and counted; the hints of the others hold."""
    monkeypatch.setattr(Odd, "events", staticmethod(events))
    scene = Scene()
    scene.tell(NodeAdded(a_node("n")))
    scene.rejected(ours("odd"), by="Odd")
    scene.rejected(ours("fit", cpu="64"), by="NodeResourcesFit")

    scene.tell(NodeUpdated(a_node("n"), a_node("n", labels={"x": "y"})))

    assert scene.observer.failed_plugins == [("Odd", "eventsToRegister")]
    assert [queued.pod.name for queued in scene.queue._unschedulable] == ["fit"]


def test_hints_are_reported_with_their_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """By plugin and event; and the event itself."""
    scene = Scene()
    scene.rejected(ours(), by="Odd")

    scene.tell(NodeAdded(a_node("n")))

    assert scene.observer.hints == [("Odd", "NodeAdd", "QueueSkip")]
    assert scene.observer.events[-1] == "NodeAdd"


def test_a_gate_that_breaks_holds_its_pod_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """And is counted each time it is asked."""
    monkeypatch.setattr(Odd, "gate", staticmethod(lambda pod: raising() if pod.name == "bad" else SUCCESS))
    scene = Scene()

    scene.tell(PodAdded(ours("bad")), PodAdded(ours("good")))

    assert scene.queue.depths() == {"active": 1, "backoff": 0, "unschedulable": 0, "gated": 1}
    assert scene.observer.failed_plugins == [("Odd", "preEnqueue")]


def test_a_gate_is_asked_again_by_its_own_events_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Odd registered for new nodes, with a hint that may refuse."""
    monkeypatch.setattr(Odd, "gate", staticmethod(lambda pod: unschedulable("closed")))
    scene = Scene()
    scene.tell(PodAdded(ours()))
    monkeypatch.setattr(Odd, "gate", staticmethod(lambda pod: SUCCESS))

    scene.tell(NodeAdded(a_node("n")))  # its hint says no
    monkeypatch.setattr(Odd, "hint", staticmethod(lambda pod, change: QueueingHint.QUEUE))
    scene.tell(NodeUpdated(a_node("n"), a_node("n", labels={"x": "y"})))  # it did not register for this
    held = scene.queue.depths()["gated"]
    scene.tell(NodeAdded(a_node("m")))

    assert held == 1
    assert scene.queue.depths() == {"active": 1, "backoff": 0, "unschedulable": 0, "gated": 0}


@pytest.mark.parametrize(
    ("after", "woken"),
    [
        pytest.param(None, {"low", "same"}, id="deleted"),
        pytest.param("", {"low", "same"}, id="cleared"),
        pytest.param("n2", {"low", "same"}, id="moved"),
        pytest.param("n1", set(), id="kept"),
    ],
)
def test_room_that_a_pod_was_promised_and_gives_up_is_for_others_of_no_higher_priority(
    after: str | None, woken: set[str]
) -> None:
    """An AssignedPodDelete, though the pod had no node yet."""
    scene = Scene()
    promised = ours("promised", priority=5, status={"nominatedNodeName": "n1"})
    others = [ours("low"), ours("same", priority=5), ours("high", priority=9)]
    scene.rejected(promised, *others, by="NodeResourcesFit")

    if after is None:
        scene.tell(PodDeleted(promised))
    else:
        now = ours("promised", priority=5, status={"nominatedNodeName": after})
        scene.tell(PodUpdated(promised, now))

    sleeping = {queued.pod.name for queued in scene.queue._unschedulable}
    assert {"low", "same", "high"} - sleeping == woken


def test_a_pod_that_is_confirmed_where_it_was_assumed_counts_as_new_there() -> None:
    """Those who wait for its company are woken when the API server knows of it."""
    scene = Scene()
    scene.rejected(ours("sleeper"), by="Odd")
    scene.tell(NodeAdded(a_node("n")), PodAdded(ours()))
    queued = scene.queue.pop(0.0)
    scene.cache.assume(queued.pod, "n")
    scene.queue.done(queued.pod.uid)

    scene.tell(PodUpdated(ours(), ours(node="n")))
    scene.tell(PodUpdated(ours(node="n"), ours(node="n", labels={"x": "y"})))

    assert scene.observer.events[-2:] == ["AssignedPodAdd", "AssignedPodUpdatePodLabel"]


def test_changes_that_concern_no_pod_are_not_looked_at() -> None:
    """No pod was rejected or is in flight: a list of a hundred thousand pods costs nothing here."""
    scene = Scene()
    scene.tell(NodeAdded(a_node("n")), PodAdded(ours("placed", node="n")), PodAdded(ours()))
    assert scene.observer.events == []
    queued = scene.queue.pop(0.0)

    scene.tell(PodAdded(ours("later", node="n")), PodAdded(ours("another")))
    scene.queue.done(queued.pod.uid)
    scene.tell(PodAdded(ours("last", node="n")))

    assert scene.observer.events == ["AssignedPodAdd", "UnschedulablePodAdd"]
