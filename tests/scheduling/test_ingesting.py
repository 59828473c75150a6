"""Watch events update cache and queue; malformed objects affect only themselves."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from cluster.invariants import check_cache
from plimsoll.cluster.cache import Cache
from plimsoll.cluster.ingestion import Ingestion, Mirror
from plimsoll.cluster.watch_events import (
    NodeAdded,
    NodeDeleted,
    NodeUpdated,
    ObjectAdded,
    ObjectDeleted,
    ObjectUpdated,
    PodAdded,
    PodDeleted,
    PodUpdated,
    Synced,
)
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.storage import PersistentVolume, PersistentVolumeClaim
from plimsoll.model.kinds.workload import Namespace, PodDisruptionBudget
from plimsoll.policy_controller.served_profiles import ServedProfiles
from plimsoll.scheduling.queue.feed import QueueFeed
from plimsoll.scheduling.queue.queue import SchedulingQueue
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import FakeClock, RememberingObserver, a_book
from plimsoll.toolkit.scheduling.disruption_budgets import DisruptionBudgets

CLAIM = PersistentVolumeClaim(metadata=ObjectMeta(name="data", namespace="default"))
VOLUME = PersistentVolume(metadata=ObjectMeta(name="disk"))


class Scene:
    """Cache and queue of an operator that serves the scheduler name "ours"."""

    def __init__(self) -> None:
        self.cache = Cache()
        self.queue = SchedulingQueue(lambda pod, since: (-pod.priority, since))
        self.book = a_book(self.cache)
        self.nominator = self.book.nominator
        self.observer = RememberingObserver()
        self.served = ServedProfiles()
        self.serve("ours")
        self.mirror = Mirror(self.cache, self.observer)
        self.feed = QueueFeed(self.mirror, self.queue, self.served, self.book, FakeClock(), self.observer)
        self.ingestion = Ingestion((self.mirror, self.feed), self.observer)

    def serve(self, *names: Any) -> None:
        """The scheduler names that are ours."""
        self.served.replace(dict.fromkeys(names, cast("Any", None)))

    def tell(self, *events: Any) -> None:
        """What the watches tell."""
        self.ingestion.apply(events)

    @property
    def active(self) -> list[str]:
        """Names of the pods that may be tried."""
        names = []
        while (queued := self.queue.pop(0.0)) is not None:
            names.append(queued.pod.name)
        return names


def ours(name: str = "pod", **options: Any) -> Pod:
    """A pod that we are to place."""
    return a_pod(name, schedulerName="ours", **options)


def test_pods_of_ours_are_queued_others_are_not() -> None:
    """By the scheduler's name, and only while they have no node."""
    scene = Scene()

    scene.tell(PodAdded(ours("mine")), PodAdded(a_pod("theirs")), PodAdded(ours("placed", node="n1")))

    assert scene.active == ["mine"]


def test_every_placed_pod_counts_by_any_scheduler() -> None:
    """Other schedulers' pods take room like ours."""
    scene = Scene()

    scene.tell(NodeAdded(a_node("n1")), PodAdded(a_pod("theirs", cpu="1", node="n1")))

    assert scene.cache.cluster.requested[0, 0] == 1000


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_ended_takes_no_room(phase: str) -> None:
    """Its object stays, its place is free."""
    scene = Scene()
    running = a_pod(cpu="1", node="n1")

    scene.tell(NodeAdded(a_node("n1")), PodAdded(running))
    scene.tell(PodUpdated(running, a_pod(cpu="1", node="n1", status={"phase": phase})))

    assert scene.cache.cluster.requested[0, 0] == 0


def test_a_pod_that_is_being_deleted_is_not_scheduled() -> None:
    """It would only be placed to die."""
    scene = Scene()

    scene.tell(PodAdded(ours(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})))

    assert scene.active == []


def test_an_assumed_pod_is_not_queued_again() -> None:
    """The watch lags behind the binding that is on its way."""
    scene = Scene()
    waiting = ours(cpu="1")
    scene.tell(NodeAdded(a_node("n1")), PodAdded(waiting))
    queued = scene.queue.pop(0.0)
    scene.cache.assume(queued.pod, "n1")
    scene.queue.done(queued.pod.uid)

    scene.tell(PodUpdated(waiting, ours(cpu="1", labels={"new": "label"})))

    assert scene.active == []
    assert scene.cache.cluster.requested[0, 0] == 1000


def test_profiles_that_come_and_go_take_their_pods_along() -> None:
    """A policy is created or deleted while pods wait."""
    scene = Scene()
    scene.serve()
    scene.tell(PodAdded(ours()))
    none = scene.active

    scene.serve("ours")
    scene.feed.requeue_all()

    assert none == []
    assert scene.active == ["pod"]


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(PodAdded(ours("bad", cpu="a lot")), id="waiting-pod"),
        pytest.param(PodAdded(a_pod("bad", cpu="1Q", node="n1")), id="placed-pod"),
        pytest.param(NodeAdded(a_node("bad", cpu="many")), id="node"),
    ],
)
def test_absurd_amounts_harm_only_their_object(event: PodAdded | NodeAdded) -> None:
    """It is named; what comes after it in the same batch is taken."""
    scene = Scene()

    scene.tell(NodeAdded(a_node("n1")), event, PodAdded(ours("good")))

    assert [name.removeprefix("default/") for name, _ in scene.observer.skipped] == ["bad"]
    assert scene.active == ["good"]
    check_cache(scene.cache)


def test_an_absurd_amount_takes_no_other_of_its_object_along() -> None:
    """The placed pod counts with everything else it uses, the node offers everything else it has."""
    scene = Scene()

    scene.tell(
        NodeAdded(a_node("n1", cpu="many", memory="8Gi")),
        PodAdded(a_pod("bad", cpu="1Q", memory="2Gi", node="n1")),
    )

    cluster = scene.cache.cluster
    assert cluster.allocatable[0, :2].tolist() == [0, 8 * 2**30]
    assert cluster.requested[0, :2].tolist() == [0, 2 * 2**30]
    assert cluster.requested[0, cluster.axis_of("pods")] == 1


def test_a_subscriber_that_breaks_harms_no_other() -> None:
    """Named, and the next one receives the event all the same."""
    scene = Scene()
    told: list[Any] = []

    def broken(_: PodAdded) -> None:
        raise RuntimeError("broken")

    ingestion = Ingestion(
        (SimpleNamespace(observe=broken), SimpleNamespace(observe=told.append)), scene.observer
    )
    ingestion.apply([PodAdded(ours())])

    assert len(told) == 1
    assert "broken" in scene.observer.failures[0][1]


def test_nominations_go_with_their_pods() -> None:
    """Deleted or placed: the room is not kept for it any longer."""
    scene = Scene()
    one, other = ours("one"), ours("other")
    scene.tell(PodAdded(one), PodAdded(other))
    for queued in list(scene.queue):
        scene.book.nominate(queued.pod, "n1")

    scene.tell(PodDeleted(one), PodUpdated(other, ours("other", node="n2")))

    assert scene.nominator.by_node == {}


def test_nominations_of_an_earlier_process_are_taken_over() -> None:
    """Room was made for the pod, maybe by preemption, before this process began."""
    scene = Scene()

    scene.tell(PodAdded(ours(status={"nominatedNodeName": "n1"})))

    assert scene.nominator.node_of("uid-default-pod") == "n1"


def test_a_pod_with_scheduling_gates_is_nominated_by_no_process() -> None:
    """Somebody wrote that into its status: the room would be held for as long as the gates stay."""
    scene = Scene()
    scene.serve("ours")
    gated = ours(status={"nominatedNodeName": "n1"}, schedulingGates=[{"name": "example.com/wait"}])

    scene.tell(PodAdded(gated))
    first = dict(scene.nominator.by_node)
    scene.feed.take_over()

    assert (first, scene.nominator.by_node) == ({}, {})


def test_a_new_leader_holds_what_the_pods_say() -> None:
    """While it stood by, another process gave nominations and took them away."""
    scene = Scene()
    scene.serve()
    early = ours("early", status={"nominatedNodeName": "n1"})
    late, gone = ours("late"), ours("gone", status={"nominatedNodeName": "n3"})
    scene.tell(PodAdded(early))
    scene.serve("ours")
    scene.feed.requeue_all()
    scene.tell(PodAdded(late), PodAdded(gone))
    scene.tell(
        PodUpdated(late, ours("late", status={"nominatedNodeName": "n2"})), PodUpdated(gone, ours("gone"))
    )

    scene.feed.take_over()

    assert {node: len(pods) for node, pods in scene.nominator.by_node.items()} == {"n1": 1, "n2": 1}


@pytest.mark.parametrize("name", ["ours", "theirs"])
@pytest.mark.parametrize("end", ["deleted", "Failed", "Succeeded"])
@pytest.mark.parametrize("was_placed", [True, False])
def test_a_pod_that_goes_wakes_those_that_wait_for_room(name: str, end: str, was_placed: bool) -> None:
    """By any scheduler, and once: no room comes of a pod without a node, nor of one that is gone."""
    scene = Scene()
    other = a_pod("other", cpu="1", node="n1" * was_placed, schedulerName=name)
    scene.tell(NodeAdded(a_node("n1")), PodAdded(other), PodAdded(ours(priority=9)))
    ended = a_pod("other", cpu="1", node="n1" * was_placed, schedulerName=name, status={"phase": end})
    gone = PodDeleted(other) if end == "deleted" else PodUpdated(other, ended)
    awake = []
    for now in (0.0, 100.0):
        if scene.queue.pop(now) is not None:
            scene.queue.add_unschedulable_if_not_present(
                "uid-default-pod", now, frozenset({"NodeResourcesFit"})
            )
            scene.tell(gone)
            awake.append(not scene.queue.depths()["unschedulable"])

    assert awake == ([True, False] if was_placed else [False])


def test_heartbeats_wake_no_pod() -> None:
    """A node says every few seconds that it lives; that helps no pod."""
    scene = Scene()
    before = a_node("n1")
    scene.tell(NodeAdded(before), PodAdded(ours()))
    scene.queue.pop(0.0)
    scene.queue.add_unschedulable_if_not_present("uid-default-pod", 0.0, frozenset({"NodeResourcesFit"}))

    scene.tell(NodeUpdated(before, a_node("n1", resourceVersion="2")))
    asleep = scene.queue.depths()["unschedulable"]
    scene.tell(NodeUpdated(before, a_node("n1", cpu="64")))

    assert asleep == 1
    assert scene.queue.depths()["unschedulable"] == 0


def test_other_objects_lie_on_their_shelf() -> None:
    """Keyed by name, or namespace and name; the version dates what was derived from them."""
    scene = Scene()
    version = scene.cache.cluster.objects.version

    scene.tell(ObjectAdded(Namespace(metadata=ObjectMeta(name="shop"))), Synced("namespaces"))

    assert set(scene.cache.cluster.objects.namespaces) == {"shop"}
    assert scene.cache.cluster.objects.version > version
    assert scene.mirror.synced == {"namespaces"}


def test_a_node_that_goes_leaves_its_pods_known() -> None:
    """It may come back with them."""
    scene = Scene()
    scene.tell(NodeAdded(a_node("n1")), PodAdded(a_pod(cpu="1", node="n1")))

    scene.tell(NodeDeleted(a_node("n1")))
    scene.tell(NodeAdded(a_node("n1")))

    assert scene.cache.cluster.requested[0, 0] == 1000
    check_cache(scene.cache)


def a_budget(allowed: int, generation: int = 1) -> PodDisruptionBudget:
    """A PodDisruptionBudget with a status."""
    return convert(
        PodDisruptionBudget,
        {
            "metadata": {"name": "wall", "namespace": "default", "generation": generation},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": allowed},
        },
    )


def test_a_budgets_change_is_seen_by_the_choice_of_victims_alone() -> None:
    """Lanes keep what they know; what was compiled of the budgets is forgotten."""
    scene = Scene()
    objects = scene.cache.cluster.objects
    pod = scene.cache.info(ours(labels={"app": "web"}))
    before = objects.version
    scene.tell(ObjectAdded(a_budget(allowed=1)))
    assert DisruptionBudgets(objects).violating([pod]) == [False]

    scene.tell(ObjectUpdated(a_budget(allowed=1), a_budget(allowed=0)))

    assert DisruptionBudgets(objects).violating([pod]) == [True]
    assert objects.version == before
    seen = objects.budget_version
    scene.tell(ObjectUpdated(a_budget(allowed=0), a_budget(allowed=0)))
    assert objects.budget_version == seen


@pytest.mark.parametrize(
    ("event", "signal"),
    [
        pytest.param(NodeAdded(a_node("n1")), "nodes_changed", id="node"),
        pytest.param(NodeDeleted(a_node("n1")), "nodes_changed", id="node-gone"),
        pytest.param(ObjectAdded(CLAIM), "volumes_changed", id="claim"),
        pytest.param(ObjectUpdated(CLAIM, CLAIM), "volumes_changed", id="claim-updated"),
        pytest.param(ObjectDeleted(CLAIM), "volumes_changed", id="claim-gone"),
        pytest.param(ObjectAdded(VOLUME), "volumes_changed", id="volume"),
        pytest.param(ObjectAdded(Namespace(metadata=ObjectMeta(name="n"))), "", id="namespace"),
    ],
)
def test_those_who_wait_for_a_change_are_woken(event: Any, signal: str) -> None:
    """By the signal of what has changed, and by no other."""
    scene = Scene()

    scene.ingestion.apply([event])

    counts = {name: getattr(scene.cache, name).count for name in ("nodes_changed", "volumes_changed")}
    assert counts == {name: int(name == signal) for name in counts}


def test_a_complete_list_is_announced() -> None:
    """Once its objects are there: the operator decides nothing before."""
    scene = Scene()

    scene.ingestion.apply([Synced("pods")])

    assert (scene.mirror.listed.count, scene.mirror.synced) == (1, {"pods"})
