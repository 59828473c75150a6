"""Events requeue pods by registrations and hints of the rejecting plugins."""

from collections.abc import Callable, Collection
from typing import Any, cast

import pytest

from plimsoll.framework import (
    ActionType,
    ClusterEvent,
    EnqueueExtensions,
    EventResource,
    EventWithHint,
    HintByValue,
    PodsToActivate,
    PodTemplate,
    QueueingHint,
    Status,
    unresolvable,
)
from plimsoll.framework.registry import EXTENSION_POINTS
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.kinds.workload import Namespace
from plimsoll.scheduling.queue.queue import SchedulingQueue
from plimsoll.scheduling.queue.queueing_hints import QueueingHints, hints_of
from plimsoll.testing.builders import a_node
from scheduling.queue.invariants import check_queue
from scheduling.queue.queueing import (
    a_queue,
    asleep,
    node_added,
    pod_gone,
    pod_placed,
    popped,
    uid_of,
    waiting,
)

PROFILE = "default-scheduler"
NODE, POD = EventResource.NODE, EventResource.POD
ADD = ActionType.ADD


def serving(queue: SchedulingQueue, **declared: Any) -> SchedulingQueue:
    """Give the queue a profile whose plugins have declared this."""
    looking = {"PodTopologySpread": True, "InterPodAffinity": False}
    queue.use({PROFILE: QueueingHints(declared, looking=looking)}, (), 0.0)
    return queue


def saying(answer: ValueError | QueueingHint, asked: list[Any] | None = None) -> Callable[..., Any]:
    """A hint with a fixed answer that remembers whom it was asked about."""

    def hint(pod: PodInfo, change: ClusterEvent) -> QueueingHint:
        if asked is not None:
            asked.append(pod.name)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return hint


def test_an_event_wakes_pods_of_plugins_that_registered_for_it() -> None:
    """And of no others."""
    queue = serving(
        a_queue(waiting("node"), waiting("pod")),
        OnNode=(EventWithHint(NODE, ADD),),
        OnPod=(EventWithHint(POD, ADD),),
    )
    asleep(queue, "node", rejected_by=frozenset({"OnNode"}))
    asleep(queue, "pod", rejected_by=frozenset({"OnPod"}))

    assert queue.move_all_to_active_or_backoff_queue(node_added(), 1.0) == 1

    assert popped(queue, 1.0) == ["node"]


def test_one_of_several_plugins_is_enough() -> None:
    """What the others think, the next attempt finds out."""
    queue = serving(a_queue(waiting()), A=(EventWithHint(NODE, ADD),), B=())
    asleep(queue, "pod", rejected_by=frozenset({"A", "B"}))

    assert queue.move_all_to_active_or_backoff_queue(node_added(), 1.0) == 1


def test_a_plugin_that_declares_nothing_is_woken_by_everything() -> None:
    """What may help is unknown; but a new pod that waits, too, is no help."""
    queue = serving(a_queue(waiting()), A=(EventWithHint(NODE, ADD),))
    asleep(queue, "pod", rejected_by=frozenset({"Silent"}))
    arrives = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ADD, None, waiting("new"))
    queue.use({PROFILE: QueueingHints({}, has_undeclared=True)}, (), 0.0)

    assert queue.move_all_to_active_or_backoff_queue(arrives, 1.0) == 0
    assert queue.move_all_to_active_or_backoff_queue(ClusterEvent("Namespace", ActionType.UPDATE), 1.0) == 1


def test_a_plugin_that_registers_for_nothing_leaves_it_to_time() -> None:
    """An empty declaration is one."""
    queue = serving(a_queue(waiting()), A=())
    asleep(queue, "pod", rejected_by=frozenset({"A"}))

    assert queue.move_all_to_active_or_backoff_queue(node_added(), 1.0) == 0
    assert popped(queue, 400.0) == ["pod"]


def test_a_hint_may_skip() -> None:
    """The pod sleeps on."""
    queue = serving(a_queue(waiting()), A=(EventWithHint(NODE, ADD, saying(QueueingHint.SKIP)),))
    asleep(queue, "pod", rejected_by=frozenset({"A"}))

    assert queue.move_all_to_active_or_backoff_queue(node_added(), 1.0) == 0


def test_a_hint_that_raises_wakes() -> None:
    """Sleeping on would be the worse mistake."""
    queue = serving(a_queue(waiting()), A=(EventWithHint(NODE, ADD, saying(ValueError("as asked"))),))
    asleep(queue, "pod", rejected_by=frozenset({"A"}))

    assert queue.move_all_to_active_or_backoff_queue(node_added(), 1.0) == 1


def test_a_hint_by_template_is_asked_once_for_all_alike() -> None:
    """However many pods sleep; another shape, or other plugins, are another question."""
    asked: list[Any] = []
    alone: list[Any] = []
    queue = serving(
        a_queue(*(waiting(f"small-{n}") for n in range(5)), waiting("large", cpu="9")),
        Shared=(EventWithHint(NODE, ADD, saying(QueueingHint.SKIP, asked), by_template=True),),
        Each=(EventWithHint(NODE, ADD, saying(QueueingHint.SKIP, alone)),),
    )
    names = [queued.pod.name for queued in queue]
    asleep(queue, *names, rejected_by=frozenset({"Shared", "Each"}))

    queue.move_all_to_active_or_backoff_queue(node_added(), 1.0)

    assert len(asked) == 2
    assert sorted(alone) == sorted(names)


def requested(template: PodTemplate) -> int:
    """A value that a hint reads."""
    return template.requests["cpu"] // 1000


def test_a_hint_by_value_is_asked_once_for_an_event() -> None:
    """With each value once, however many templates have it; it wakes in the order of arrival."""
    asked: list[list[int]] = []

    def even(values: Collection[int], _change: ClusterEvent) -> Collection[int]:
        asked.append(sorted(values))
        return [value for value in (8, 6, 4, 2, 0) if value in values or value == 0]

    cpus = {"a": "2", "b": "3", "c": "4", "d": "2"}
    pods = [waiting(name, cpu=cpu, labels={"app": name}) for name, cpu in cpus.items()]
    queue = serving(a_queue(*pods), A=(EventWithHint(NODE, ADD, HintByValue(requested, even)),))
    asleep(queue, *cpus, rejected_by=frozenset({"A"}))

    assert queue.move_all_to_active_or_backoff_queue(node_added(), 1.0) == 3
    assert asked[0] == [2, 3, 4]
    assert popped(queue, 1.0) == ["a", "c", "d"]

    asked.clear()
    assert queue.move_all_to_active_or_backoff_queue(node_added(), 1.0) == 0
    assert asked == [[3]]


@pytest.mark.parametrize(
    ("reads", "helps"),
    [
        (requested, lambda values, change: 1 // 0),
        (requested, lambda values, change: None),
        (lambda template: 1 // (template.requests["cpu"] // 1000 - 2), lambda values, change: values),
        (lambda template: [template], lambda values, change: values),
    ],
    ids=["raises", "answers-nonsense", "some-cannot-be-read", "not-hashable"],
)
def test_a_hint_by_value_that_breaks_wakes(
    reads: Callable[[PodTemplate], Any], helps: Callable[..., Any]
) -> None:
    """Sleeping on would be the worse mistake, also for pods without a value."""
    queue = serving(
        a_queue(waiting("a", cpu="1"), waiting("b", cpu="2")),
        A=(EventWithHint(NODE, ADD, HintByValue(reads, helps)),),
    )
    asleep(queue, "a", "b", rejected_by=frozenset({"A"}))
    check_queue(queue)

    assert queue.move_all_to_active_or_backoff_queue(node_added(), 1.0) == 2
    check_queue(queue)


def test_a_hint_for_each_pod_wakes_only_those_it_names() -> None:
    """Siblings of one shape may differ for a plugin that reads more than the shape."""

    def odd(pod: PodInfo, change: ClusterEvent) -> QueueingHint:
        return QueueingHint.of(int(pod.name[-1]) % 2 == 1)

    queue = serving(a_queue(*(waiting(f"p-{n}") for n in range(4))), A=(EventWithHint(NODE, ADD, odd),))
    asleep(queue, *(f"p-{n}" for n in range(4)), rejected_by=frozenset({"A"}))

    assert queue.move_all_to_active_or_backoff_queue(node_added(), 1.0) == 2
    assert popped(queue, 1.0) == ["p-1", "p-3"]


def test_what_a_pending_plugin_waited_for_skips_the_back_off() -> None:
    """Immediately to the active queue, whatever plugins that found it unschedulable say, before or after."""
    queue = serving(
        a_queue(waiting("on-a"), waiting("on-b"), waiting("unschedulable")),
        A=(EventWithHint(NODE, ADD),),
        B=(EventWithHint(NODE, ADD),),
    )
    asleep(queue, "on-a", rejected_by=frozenset({"B"}), pending_on=frozenset({"A"}))
    asleep(queue, "on-b", rejected_by=frozenset({"A"}), pending_on=frozenset({"B"}))
    asleep(queue, "unschedulable", rejected_by=frozenset({"A", "B"}))

    queue.move_all_to_active_or_backoff_queue(node_added(), 0.1)

    assert queue.depths() == {"active": 2, "backoff": 1, "unschedulable": 0, "gated": 0}
    assert [queue.pop(0.1).pod.name for _ in range(2)] == ["on-a", "on-b"]


def test_events_in_flight_are_judged_by_the_plugins_that_reject_in_the_end() -> None:
    """Recorded when it happens, weighed when the attempt fails."""
    plugins = {"A": (EventWithHint(NODE, ADD),), "B": (EventWithHint(POD, ADD),)}
    for name, sleeps in (("A", 0), ("B", 1)):
        queue = serving(a_queue(waiting()), **plugins)
        queue.pop(0.0)
        queue.move_all_to_active_or_backoff_queue(node_added(), 0.1)
        queue.add_unschedulable_if_not_present(uid_of(), 0.2, frozenset({name}))

        assert queue.depths()["unschedulable"] == sleeps


def test_what_happened_before_the_pop_is_not_replayed() -> None:
    """The attempt saw it."""
    queue = serving(a_queue(waiting("one"), waiting("two")), A=(EventWithHint(NODE, ADD),))
    queue.pop(0.0)
    queue.move_all_to_active_or_backoff_queue(node_added(), 0.1)
    queue.pop(0.2)
    queue.add_unschedulable_if_not_present(uid_of("two"), 0.3, frozenset({"A"}))
    queue.add_unschedulable_if_not_present(uid_of("one"), 0.3, frozenset({"A"}))

    assert queue.depths() == {"active": 0, "backoff": 1, "unschedulable": 1, "gated": 0}


def test_events_are_kept_only_while_somebody_may_ask_for_them() -> None:
    """Not before, not after, and not for pods that only wait for their binding to be written."""
    queue = serving(a_queue(waiting("one"), waiting("two")), A=(EventWithHint(NODE, ADD),))
    queue.move_all_to_active_or_backoff_queue(node_added(), 0.0)
    queue.pop(0.0)
    queue.pop(0.0)
    queue.move_all_to_active_or_backoff_queue(node_added(), 0.1)
    assert [each.change.label for each in queue._in_flight._events] == ["NodeAdd"]

    queue.settled(uid_of("one"))
    queue.done(uid_of("two"))
    queue.move_all_to_active_or_backoff_queue(node_added(), 0.2)

    assert not queue._in_flight._events
    queue.add_unschedulable_if_not_present(
        uid_of("one"), 0.3, frozenset({"A"})
    )  # what might have helped was not kept: it is tried
    assert queue.depths()["backoff"] == 1


def test_a_pod_that_is_decided_on_later_sees_what_happens_from_then_on() -> None:
    """What happened before is in the cluster that its attempt looks at."""
    queue = serving(a_queue(waiting("one"), waiting("two")), A=(EventWithHint(NODE, ADD),))
    for name in ("one", "two"):
        queue.pop(0.0)
        queue.settled(uid_of(name))
    queue.move_all_to_active_or_backoff_queue(node_added(), 0.1)
    assert not queue._in_flight._events

    queue.resumed(uid_of("one"))
    queue.move_all_to_active_or_backoff_queue(node_added(), 0.2)
    queue.add_unschedulable_if_not_present(uid_of("one"), 0.3, frozenset({"A"}))
    queue.resumed(uid_of("two"))
    queue.add_unschedulable_if_not_present(uid_of("two"), 0.4, frozenset({"A"}))
    queue.resumed(uid_of("two"))  # landed already: nothing to resume

    assert queue.depths() == {"active": 0, "backoff": 1, "unschedulable": 1, "gated": 0}
    assert not queue._in_flight._events


def test_an_event_may_concern_some_only() -> None:
    """Room that was promised to a pod is given up to those of no higher priority."""
    queue = serving(
        a_queue(waiting("low"), waiting("high", priority=10), waiting("same", priority=5)),
        A=(EventWithHint(POD, ActionType.DELETE),),
    )
    asleep(queue, "high", "same", "low", rejected_by=frozenset({"A"}))

    queue.move_all_to_active_or_backoff_queue(pod_gone(), 1.0, but=uid_of("low"), at_most=5)

    assert popped(queue, 1.0) == ["same"]


class Gatekeeper(EnqueueExtensions):
    """Opens when a Key appears."""

    name = "Gatekeeper"

    def pre_enqueue(self, pod: Any) -> Any:
        return Status()

    def events_to_register(self) -> tuple[EventWithHint]:
        return (EventWithHint("Key", ADD),)


def test_a_gated_pod_is_reconsidered_by_events_of_its_gate_only() -> None:
    """Others are no reason to ask the gate."""
    asked, closed = [], [True]

    def gate(pod: PodInfo, first: str) -> Status:
        asked.append(first)
        return unresolvable("closed").by("Gatekeeper") if closed[0] else Status()

    queue = a_queue(gate=gate)
    queue.use({PROFILE: hints_of([cast("Any", Gatekeeper())])}, (), 0.0)
    queue.add_or_update(waiting(), 0.0)

    queue.move_all_to_active_or_backoff_queue(node_added(), 1.0)
    queue.move_all_to_active_or_backoff_queue(ClusterEvent("Key", ADD), 2.0)
    closed[0] = False
    queue.move_all_to_active_or_backoff_queue(ClusterEvent("Key", ADD), 3.0)

    assert asked == ["", "Gatekeeper", "Gatekeeper"]  # who holds the pod is asked first
    assert popped(queue, 3.0) == ["pod"]


def test_invalid_declarations_are_refused() -> Any:
    """Named where the profile is built."""
    plugin = Gatekeeper()
    plugin.events_to_register = lambda: ["NodeAdd"]  # type: ignore[assignment, method-assign, return-value] # replaced for this test

    with pytest.raises(TypeError, match="NodeAdd"):
        hints_of([plugin])  # type: ignore[list-item] # a fake has only what is used


def test_a_changed_profile_has_its_pods_tried_again() -> None:
    """What refused them may be gone; pods of other profiles sleep on."""
    queue = a_queue(waiting("ours"), waiting("theirs", schedulerName="other"))
    asleep(queue, "ours", "theirs")

    queue.use({PROFILE: QueueingHints({})}, {PROFILE}, 1.0)

    assert popped(queue, 1.0) == ["ours"]


@pytest.mark.parametrize("times", [1, 2])
def test_a_changed_profile_has_its_gated_pods_tried_again(times: int) -> None:
    """The plugin that holds them back may be gone at the first or at the second change; others stay."""
    closed = [True]

    def gate(pod: PodInfo, _first: str) -> Status:
        is_ours = pod.pod.spec.scheduler_name == PROFILE
        return unresolvable("closed").by("Gatekeeper") if closed[0] or not is_ours else Status()

    queue = a_queue(gate=gate)
    for name, profile in (("ours", PROFILE), ("theirs", "other")):
        queue.add_or_update(waiting(name, schedulerName=profile), 0.0)
    for number in range(times):
        assert popped(queue, 0.0) == []
        closed[0] = number < times - 1
        queue.use({PROFILE: QueueingHints({})}, {PROFILE}, 1.0)

    assert popped(queue, 1.0) == ["ours"]


WANTED = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}
        ]
    }
}
SHUNNED = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}
        ]
    }
}


@pytest.mark.parametrize(
    ("pod", "rejected_by", "change", "woken"),
    [
        pytest.param({}, "PodTopologySpread", pod_placed(), True, id="spread-same-namespace"),
        pytest.param({}, "PodTopologySpread", pod_placed(namespace="far"), False, id="spread-elsewhere"),
        pytest.param(
            {"affinity": WANTED}, "InterPodAffinity", pod_placed(labels={"app": "db"}), True, id="wanted"
        ),
        pytest.param({"affinity": WANTED}, "InterPodAffinity", pod_placed(), False, id="not-wanted"),
        pytest.param({"affinity": SHUNNED}, "InterPodAffinity", pod_placed(), False, id="shunned"),
        pytest.param({}, "InterPodAffinity", pod_gone(namespace="far"), True, id="all-deletes"),
        pytest.param({}, "Another", pod_placed(namespace="far"), True, id="other-plugins"),
    ],
)
def test_pods_that_come_to_nodes_are_offered_to_few(
    pod: dict[str, Any], rejected_by: str, change: ClusterEvent, woken: bool
) -> None:
    """Upstream's pre-selection: the namespace of the spread, or a required affinity term that matches."""
    everything = (EventWithHint(POD, ActionType.ALL),)
    queue = serving(
        a_queue(waiting(**pod)), PodTopologySpread=everything, InterPodAffinity=everything, Another=everything
    )
    asleep(queue, "pod", rejected_by=frozenset({rejected_by}))

    assert queue.move_all_to_active_or_backoff_queue(change, 1.0) == woken


def test_the_preselection_knows_namespaces_by_their_labels() -> None:
    """A term with a namespace selector."""
    wanted = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {},
                    "namespaceSelector": {"matchLabels": {"team": "a"}},
                    "topologyKey": "zone",
                }
            ]
        }
    }
    objects = ClusterObjects(
        namespaces={"far": Namespace(metadata=ObjectMeta(name="far", labels={"team": "a"}))}
    )
    queue = serving(a_queue(waiting(affinity=wanted)), InterPodAffinity=(EventWithHint(POD, ADD),))
    asleep(queue, "pod", rejected_by=frozenset({"InterPodAffinity"}))
    seen = pod_placed(namespace="far")

    assert queue.move_all_to_active_or_backoff_queue(seen, 1.0) == 0
    assert (
        queue.move_all_to_active_or_backoff_queue(
            ClusterEvent(seen.resource, seen.action, None, seen.new, objects), 1.0
        )
        == 1
    )


def test_the_preselection_does_not_hold_for_what_happened_in_flight() -> None:
    """The pod's terms were not looked at then."""
    queue = serving(a_queue(waiting()), PodTopologySpread=(EventWithHint(POD, ADD),))
    queue.pop(0.0)
    queue.move_all_to_active_or_backoff_queue(pod_placed(namespace="far"), 0.1)
    queue.add_unschedulable_if_not_present(uid_of(), 0.2, frozenset({"PodTopologySpread"}))

    assert queue.depths()["unschedulable"] == 0


def test_pods_to_activate_are_remembered_by_uid() -> None:
    """A plugin names each as often as it likes."""
    wanted = PodsToActivate()

    wanted.add(waiting())
    wanted.add(waiting())

    assert wanted.uids == {uid_of()}


def test_the_cost_of_an_event_does_not_rise_with_the_pods_of_a_shape() -> None:
    """A thousand nodes change while a thousand pods sleep: one question a node."""
    asked: list[Any] = []
    queue = serving(
        a_queue(*(waiting(f"p-{number}", cpu="64") for number in range(1000))),
        Fit=(EventWithHint(NODE, ActionType.ALL, saying(QueueingHint.SKIP, asked), by_template=True),),
    )
    asleep(queue, *(f"p-{number}" for number in range(1000)), rejected_by=frozenset({"Fit"}))

    for number in range(1000):
        node = a_node(f"n-{number}")
        queue.move_all_to_active_or_backoff_queue(
            ClusterEvent(NODE, ActionType.UPDATE_NODE_ALLOCATABLE, node, node), 1.0
        )

    assert len(asked) == 1000


@pytest.mark.parametrize("point", EXTENSION_POINTS)
def test_one_point_at_which_it_can_reject_makes_every_event_count_for_a_plugin_that_declares_none(
    point: str,
) -> None:
    """Its pods would sleep otherwise until the next flush."""
    plugin: Any = type("Silent", (), {"name": "Silent", **dict.fromkeys(EXTENSION_POINTS[point], print)})()
    assert hints_of([plugin]).mean(node_added()) is (
        point in {"preEnqueue", "preFilter", "filter", "reserve", "permit"}
    )
