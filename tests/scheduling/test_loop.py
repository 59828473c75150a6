"""The scheduling loop: pods whose attempts or bindings fail, and the pods around them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from cluster.invariants import check_cache
from plimsoll.cluster.watch_events import NodeAdded, NodeUpdated, PodAdded, PodDeleted, PodUpdated
from plimsoll.engine.plugin_calls import METER
from plimsoll.framework import SUCCESS, Code, NodeFilter, Status, error, unschedulable
from plimsoll.model.kinds.pod import Pod
from plimsoll.ports.observer import Observer
from plimsoll.ports.pod_writes import ConditionUpdate
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import (
    settled,
)
from plimsoll.timing.slots import Slots
from plugins.stored import a_claim, a_class, a_volume, mounting
from scheduling.probes import Gang, Hesitates, Probe
from scheduling.wing_scene import WingScene


class Counted(Observer):
    def __init__(self) -> None:
        self.plugins: list[Any] = []
        self.broken: list[Any] = []

    def plugin_failed(self, plugin: str, point: str, problem: str, trace: str = "") -> None:
        self.plugins.append((plugin, point))

    def failed(self, where: str, problem: str) -> None:
        self.broken.append(problem)


class Stage(WingScene):
    """A loop that runs, between fakes; pods of scheduler ``s``, placed by the default plugins and more."""

    def __init__(self, *more: Any, args: Any = None, access: Any = None) -> None:
        super().__init__(observer=Counted(), access=access)
        self.place(*more, args=args)

    def reason(self, name: str) -> str:
        return self.statuses.conditions[name].reason

    def message(self, name: str) -> str:
        return self.statuses.conditions[name].message


class Heavy(NodeFilter):
    """Takes too much processor time for pods that say so, as the watch of attempts would find."""

    name = "Heavy"

    def filter_node(self, state: Any, pod: Any, node: Any) -> Status:
        calls = METER.get()
        if pod.labels.get("heavy") and calls is not None:
            calls.budget.spent = calls.budget.attempt
        return unschedulable("too heavy") if pod.labels.get("heavy") == "unschedulable" else SUCCESS


@pytest.fixture
async def stage() -> AsyncIterator[Any]:
    """A function that starts a loop with further plugins, on nodes n0 and n1 with 4 cpu each."""
    tasks = []

    async def start(
        *more: type[Probe] | type[Gang], args: dict[str, Any] | None = None, nodes: int = 2
    ) -> Stage:
        one = Stage(*more, args=args)
        tasks.append(asyncio.ensure_future(one.wing.run()))
        await one.see(*(NodeAdded(a_node(f"n{number}")) for number in range(nodes)))
        return one

    yield start
    for task in tasks:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def our_pod(name: str, **more: Any) -> Pod:
    return a_pod(name, schedulerName="s", **more)


def answering(**answers: Any) -> dict[str, Any]:
    return {"First": {"answers": answers}}


async def test_a_pod_is_bound_and_told(stage: Callable[..., Any]) -> None:
    """The binding is sent, the event says where, nothing waits any more."""
    one = await stage()

    await one.pods(our_pod("p", cpu="1"))

    assert one.binder.bound.keys() == {"default/p"}
    assert one.recorder.said("Scheduled") == [
        f"Successfully assigned default/p to {one.binder.bound['default/p']}"
    ]
    assert "uid-default-p" not in one.queue


async def test_a_loop_whose_bindings_never_end_says_how_long_it_waits(stage: Callable[..., Any]) -> None:
    """A hundred of them, and one pod more: the liveness probe looks at it."""
    one = await stage(nodes=1)
    await one.see(NodeUpdated(a_node("n0"), a_node("n0", cpu="200", pods="200")))  # type: ignore[arg-type] # a fake has only what is used
    one.binder.before = lambda pod, node: asyncio.Event().wait()
    await one.pods(*(our_pod(f"p{number}") for number in range(99)))
    await one.clock.advance(50)
    assert one.loop.waited_s(one.clock.monotonic()) == 0

    await one.pods(our_pod("p99"), our_pod("p100"))
    await one.clock.advance(50)

    assert one.loop.waited_s(one.clock.monotonic()) == 50


async def test_a_pod_that_permit_rejects_gives_its_room_back_and_waits(stage: Callable[..., Any]) -> None:
    """It is unschedulable by that plugin, with the message of one node; others may have the room."""
    one = await stage(Probe, args=answering(permit=unschedulable("not today")), nodes=1)

    await one.pods(our_pod("p", cpu="4"))

    assert one.reason("p") == "Unschedulable"
    assert one.message("p") == "0/1 nodes are available: 1 not today."
    assert one.queue.depths()["unschedulable"] == 1
    assert not one.cache.assumed
    check_cache(one.cache)


async def test_a_failed_prebind_is_an_error_and_is_tried_again(stage: Callable[..., Any]) -> None:
    """After back-off, without waiting for an event; meanwhile other pods have the room."""
    one = await stage(Probe, args=answering(preBind=error("the volume is away")), nodes=1)

    await one.pods(our_pod("p", cpu="4"))

    assert (one.reason("p"), one.message("p")) == (
        "SchedulerError",
        'running PreBind plugin "First": the volume is away',
    )
    assert one.queue.depths()["backoff"] == 1
    assert one.statuses.nominated["p"] == ""
    one.profile.pre_bind[-1].args.answers.clear()
    await one.clock.advance(3)
    assert one.binder.bound == {"default/p": "n0"}


async def test_pods_wait_on_permit_concurrently_with_the_loop(stage: Callable[..., Any]) -> None:
    """While one member of a gang holds its node, other pods are placed around it; the last lets both go."""
    one = await stage(Gang)

    await one.pods(our_pod("first", cpu="3", labels={"gang": "g"}))
    await one.pods(our_pod("other", cpu="3"))

    assert one.binder.bound.keys() == {"default/other"}
    assert one.statuses.nominated["first"] != one.binder.bound["default/other"]
    await one.pods(our_pod("second", cpu="1", labels={"gang": "g"}))
    assert one.binder.bound.keys() == {"default/other", "default/first", "default/second"}


async def test_any_number_of_pods_may_wait(stage: Callable[..., Any]) -> None:
    """Waiting takes none of the slots that bindings share."""
    one = await stage(Gang, args={"Gang": {"size": 150}}, nodes=4)

    await one.pods(*(our_pod(f"p{number}", labels={"gang": "g"}) for number in range(150)))
    await settled()

    assert len(one.binder.bound) == 150


async def test_a_wait_that_takes_too_long_ends_as_a_rejection(stage: Callable[..., Any]) -> None:
    """The room is free again, and the sentence says who made it wait."""
    one = await stage(Gang, nodes=1)
    await one.pods(our_pod("alone", cpu="4", labels={"gang": "g"}))

    await one.clock.advance(60)

    assert one.message("alone") == (
        "0/1 nodes are available: 1 rejected due to timeout after waiting 1m0s at plugin Gang."
    )
    assert one.statuses.nominated["alone"] == ""
    await one.pods(our_pod("other", cpu="4"))
    assert one.binder.bound == {"default/other": "n0"}


async def test_a_pod_that_is_deleted_while_it_waits_is_let_go_of(stage: Callable[..., Any]) -> None:
    """Its reservations are undone and its room is free, and no failure is reported."""
    one = await stage(Gang, Probe, nodes=1)
    pod = our_pod("p", cpu="4", labels={"gang": "g"})
    await one.pods(pod)

    await one.see(PodDeleted(pod))

    assert one.profile.reserve[-1].log[-1] == "unreserve:First"
    assert not one.recorder.said("FailedScheduling")
    await one.pods(our_pod("other", cpu="4"))
    assert one.binder.bound == {"default/other": "n0"}


async def test_a_waiting_pod_is_preempted_in_memory(stage: Callable[..., Any]) -> None:
    """Nothing is deleted: it gives up its node and is tried again later."""
    one = await stage(Gang, nodes=1)
    await one.pods(our_pod("low", cpu="4", labels={"gang": "g"}))

    await one.pods(our_pod("high", cpu="4", priority=10))
    await one.clock.advance(3)

    assert one.preemptor.victims == []
    assert one.binder.bound == {"default/high": "n0"}
    assert one.recorder.said("Preempted") == [
        "Preempted by pod uid-default-high on node n0 (in kube-scheduler memory)."
    ]


async def test_a_pod_changed_while_it_waits_is_tried_as_it_is_now(stage: Callable[..., Any]) -> None:
    """What the watch said meanwhile is not lost when the binding fails."""
    one = await stage(Gang, nodes=1)
    await one.pods(our_pod("p", cpu="1", labels={"gang": "g"}))

    await one.pods(our_pod("p", cpu="1"))
    await one.clock.advance(60 + 12)
    await one.see(NodeAdded(a_node("n9")))
    await one.clock.advance(12)

    assert "default/p" in one.binder.bound


async def test_a_binding_that_is_refused_is_explained_and_tried_again(stage: Callable[..., Any]) -> None:
    """In the API server's words."""
    one = await stage(nodes=1)
    one.binder.answer = WriteResult(WriteOutcome.REFUSED, "pods is forbidden")

    await one.pods(our_pod("p"))

    assert one.message("p") == "binding rejected: pods is forbidden"
    one.binder.answer = WriteResult(WriteOutcome.DONE)
    await one.clock.advance(3)
    assert one.binder.bound == {"default/p": "n0"}


async def test_a_plugin_that_breaks_before_the_queue_gates_its_pod_only(stage: Callable[..., Any]) -> None:
    """It is named and counted; the next pod is placed."""
    one = await stage(Hesitates)

    await one.pods(our_pod("bad", labels={"break": "yes"}), our_pod("good"))

    assert one.queue.depths()["gated"] == 1
    assert one.observer.plugins == [("Hesitates", "preEnqueue")]
    assert one.binder.bound.keys() == {"default/good"}


async def test_a_loop_that_ends_gives_everything_back(stage: Callable[..., Any]) -> None:
    """A binding in flight is undone here; what the server did, the next process sees."""
    one = await stage(Probe, nodes=1)

    async def never(pod: Pod, node: str) -> None:
        await asyncio.get_running_loop().create_future()

    one.binder.before = never
    await one.pods(our_pod("p"))
    assert one.cache.assumed

    for task in tuple(one.wing.pipeline.tasks):
        task.cancel()
    await settled()

    assert not one.cache.assumed
    assert one.profile.reserve[-1].log[-1] == "unreserve:First"


async def test_a_claim_that_waited_gets_its_volume_before_the_pod_is_bound(stage: Callable[..., Any]) -> None:
    """The smallest that is large enough is kept for it; the pod binds when the claim says so."""
    one = await stage(nodes=1)
    cluster = one.cache.cluster
    a_class(cluster)
    a_volume(cluster, "large", size="50Gi")
    a_volume(cluster, "fitting", size="5Gi")
    a_claim(cluster, "data", size="5Gi")

    await one.pods(our_pod("p", volumes=mounting("data")))
    await one.clock.advance(2)

    assert one.volumes.reserved == {"fitting": "data"}
    assert one.statuses.nominated == {"p": "n0"}
    assert one.binder.bound == {}
    a_claim(cluster, "data", size="5Gi", volume="fitting")
    one.cache.volumes_changed.notify()
    await settled()
    assert one.binder.bound == {"default/p": "n0"}


async def test_no_two_claims_are_promised_one_volume(stage: Callable[..., Any]) -> None:
    """The second pod sees the booking of the first, long before the API server does."""
    one = await stage(nodes=1)
    cluster = one.cache.cluster
    a_class(cluster, provisioner="kubernetes.io/no-provisioner")
    a_volume(cluster, "only", size="5Gi")
    for name in ("first", "second"):
        a_claim(cluster, name, size="5Gi")

    await one.pods(our_pod("p", volumes=mounting("first")))
    await one.pods(our_pod("q", volumes=mounting("second")))

    assert one.volumes.reserved == {"only": "first"}
    assert "didn't find available persistent volumes to bind" in one.message("q")


async def test_a_volume_that_cannot_be_written_is_free_again(stage: Callable[..., Any]) -> None:
    """The attempt is undone, and explained as an error; the next pod may have the volume."""
    one = await stage(nodes=1)
    cluster = one.cache.cluster
    a_class(cluster, provisioner="kubernetes.io/no-provisioner")
    a_volume(cluster, "only", size="5Gi")
    a_claim(cluster, "data", size="5Gi")
    one.volumes.answer = WriteResult(WriteOutcome.CONFLICT, "the object has been modified")

    await one.pods(our_pod("p", volumes=mounting("data")))

    assert one.message("p") == (
        'running PreBind plugin "VolumeBinding": binding volumes: the object has been modified'
    )
    assert cluster.objects.volumes["only"].spec.claim_ref is None


async def test_a_pod_deleted_while_the_loop_waits_for_a_slot_is_not_tried(stage: Callable[..., Any]) -> None:
    """All bindings are in flight: what is decided next is decided of the pods that are there then."""
    one = await stage(Probe, args=answering(permit=Status(Code.WAIT)), nodes=1)
    one.wing.pipeline.slots = Slots(0)

    await one.pods(our_pod("p"))
    await one.see(PodDeleted(our_pod("p")))
    one.wing.pipeline.slots.release()
    await settled()

    assert one.cache.assumed == {}


async def test_an_answer_that_cannot_be_printed_harms_its_pod_only(stage: Callable[..., Any]) -> None:
    """A plugin's reason is a list: it is named, the loop goes on, the room is free."""
    one = await stage(Probe, args=answering(reserve=Status(Code.UNSCHEDULABLE, ([],))), nodes=1)  # type: ignore[arg-type] # a fake has only what is used

    await one.pods(our_pod("p", cpu="4"))
    one.profile.reserve[-1].args.answers.clear()
    await one.pods(our_pod("q", cpu="4"))

    assert one.binder.bound.keys() == {"default/q"}
    assert one.observer.plugins == [("First", "reserve")]
    assert "uid-default-p" in one.queue


async def test_a_condition_that_cannot_be_written_stops_no_other(stage: Callable[..., Any]) -> None:
    """More of them than there are writers: the others' conditions are still written."""
    one = await stage(nodes=1)
    written = one.statuses.write_condition

    async def breaking(pod: Pod, condition: ConditionUpdate) -> Any:
        if pod.name.startswith("odd"):
            raise TypeError("str is not valid UTF-8: surrogates not allowed")
        return await written(pod, condition)

    one.statuses.write_condition = breaking
    await one.pods(*(our_pod(f"odd-{number}", cpu="9") for number in range(10)), our_pod("even", cpu="9"))

    assert one.statuses.conditions.keys() == {"even"}
    assert len(one.observer.broken) == 10


async def test_nothing_is_kept_of_pods_that_are_gone(stage: Callable[..., Any]) -> None:
    """Unschedulable pods that are deleted leave no condition behind."""
    one = await stage(nodes=1)

    for number in range(5):
        pod = our_pod(f"p-{number}", cpu="9")
        await one.pods(pod)
        await one.see(PodDeleted(pod))

    assert one.wing.explanations._written == {}


async def test_a_binding_that_breaks_is_tried_again_without_news(stage: Callable[..., Any]) -> None:
    """Nothing else happens in the cluster: the back-off alone brings the pod back."""
    one = await stage()

    async def broken(pod: Pod, node: str) -> None:
        one.binder.before = None
        raise ValueError("as asked")

    one.binder.before = broken
    await one.pods(our_pod("p"))
    await one.clock.advance(5)

    assert one.binder.bound.keys() == {"default/p"}


async def test_a_preemptor_deleted_before_its_victims_leaves_no_nomination(stage: Callable[..., Any]) -> None:
    """The room is not held for a pod that does not come."""
    one = await stage(nodes=1)
    await one.pods(our_pod("low", cpu="4"))
    placed = our_pod("low", cpu="4", node="n0")
    await one.see(PodUpdated(our_pod("low", cpu="4"), placed))
    high = our_pod("high", cpu="4", priority=10)
    one.ingestion.apply([PodAdded(high)])
    preempt = one.wing.failures._preempt

    async def late(*arguments: Any, **options: Any) -> None:
        one.ingestion.apply([PodDeleted(high)])
        await preempt(*arguments, **options)

    one.wing.failures._preempt = late
    await settled()

    assert one.wing.served.schedulers["s"].nominator.by_node == {}
    assert one.preemptor.victims == []


async def low_and_two_high(one: Stage) -> None:
    """A node full of one pod of low priority, and two that want its place in one slice of the loop."""
    low = our_pod("low", cpu="4")
    await one.pods(low)
    await one.see(PodUpdated(low, our_pod("low", cpu="4", node="n0")))
    await one.pods(our_pod("first", cpu="4", priority=10), our_pod("second", cpu="4", priority=10))


async def test_a_nomination_counts_before_the_next_decision(stage: Callable[..., Any]) -> None:
    """Two pods of one priority do not preempt the same victim: the room is promised once."""
    one = await stage(nodes=1)

    await low_and_two_high(one)

    assert one.preemptor.victims == ["low"]
    assert one.wing.served.schedulers["s"].nominator.node_of("uid-default-first") == "n0"
    assert one.wing.served.schedulers["s"].nominator.node_of("uid-default-second") == ""
    assert one.statuses.nominated == {"first": "n0"}


async def test_a_preemptor_gets_its_room_when_the_victim_is_gone_and_sits_out_no_back_off(
    stage: Callable[..., Any],
) -> None:
    """The queue is empty otherwise: not a moment of the clock passes between the deletion and the binding."""
    one = await stage(nodes=1)
    low = our_pod("low", cpu="4", node="n0")
    await one.see(PodAdded(low))
    await one.pods(our_pod("high", cpu="4", priority=10))
    assert one.preemptor.victims == ["low"]
    assert one.binder.bound == {}

    await one.see(PodDeleted(low))

    assert one.binder.bound == {"default/high": "n0"}


async def test_a_preemptor_whose_victim_is_gone_is_tried_before_pods_that_came_later(
    stage: Callable[..., Any],
) -> None:
    """Although it would back off: with others active, the room would stay empty until the back-off ends."""
    one = await stage(nodes=1)
    low = our_pod("low", cpu="4", node="n0")
    await one.see(PodAdded(low))
    await one.pods(our_pod("high", cpu="4", priority=10))
    await one.clock.advance(0.1)

    one.ingestion.apply([PodAdded(our_pod("later", cpu="1", priority=10)), PodDeleted(low)])

    assert one.queue.depths()["active"] == 2
    await settled()
    assert one.binder.bound == {"default/high": "n0"}


async def test_a_preemption_that_could_not_be_sent_is_tried_again_without_news(
    stage: Callable[..., Any],
) -> None:
    """No event would wake the pod: its victim still stands."""
    one = await stage(nodes=1)
    one.preemptor.answers = [WriteResult(WriteOutcome.UNKNOWN, "no answer")]

    await low_and_two_high(one)
    assert one.preemptor.victims == []
    await one.clock.advance(3)

    assert one.preemptor.victims == ["low"]


async def test_a_preemptor_that_sent_nothing_backs_off_though_its_victim_leaves(
    stage: Callable[..., Any],
) -> None:
    """Others let the victim go: that makes room like any other pod that leaves."""
    one = await stage(nodes=1)
    one.preemptor.answers = [WriteResult(WriteOutcome.UNKNOWN, "no answer")]
    low = our_pod("low", cpu="4", node="n0")
    await one.see(PodAdded(low))
    await one.pods(our_pod("high", cpu="4", priority=10))
    await one.clock.advance(0.1)

    one.ingestion.apply([PodAdded(our_pod("later", cpu="1", priority=10)), PodDeleted(low)])

    assert (one.queue.depths()["active"], one.queue.depths()["backoff"]) == (1, 1)


async def test_a_nomination_that_leads_nowhere_ends_here_and_there(stage: Callable[..., Any]) -> None:
    """No pod of lower priority can be removed any more: the pod keeps no room from others."""
    one = await stage(nodes=1)
    await low_and_two_high(one)
    top = our_pod("top", cpu="4", priority=20)
    await one.see(PodDeleted(our_pod("low", cpu="4", node="n0")), PodAdded(top))
    await one.clock.advance(10)

    assert one.binder.bound["default/top"] == "n0"
    assert one.wing.served.schedulers["s"].nominator.by_node == {}
    assert one.statuses.nominated["first"] == ""


async def test_a_victim_in_prebind_is_called_off(stage: Callable[..., Any]) -> None:
    """It waits for its volume; the more important pod takes the node, and nothing is deleted."""
    one = await stage(nodes=1)
    cluster = one.cache.cluster
    a_class(cluster, provisioner="kubernetes.io/no-provisioner")
    a_volume(cluster, "only", size="5Gi")
    a_claim(cluster, "data", size="5Gi")
    await one.pods(our_pod("low", cpu="4", volumes=mounting("data")))
    assert cluster.objects.volumes["only"].spec.claim_ref is not None

    await one.pods(our_pod("high", cpu="4", priority=10))
    await one.clock.advance(3)

    assert one.preemptor.victims == []
    assert one.binder.bound == {"default/high": "n0"}
    assert cluster.objects.volumes["only"].spec.claim_ref is None
    assert "uid-default-low" in one.queue
    check_cache(one.cache)


async def test_a_pod_deleted_in_prebind_is_not_bound(stage: Callable[..., Any]) -> None:
    """Its volume is free again immediately, and no failure is reported."""
    one = await stage(nodes=1)
    cluster = one.cache.cluster
    a_class(cluster)
    a_volume(cluster, "only", size="5Gi")
    a_claim(cluster, "data", size="5Gi")
    pod = our_pod("p", volumes=mounting("data"))
    await one.pods(pod)

    await one.see(PodDeleted(pod))
    a_claim(cluster, "data", size="5Gi", volume="only")
    await one.clock.advance(5)

    assert one.binder.sent == 0
    assert one.cache.assumed == {}
    assert not one.recorder.said("FailedScheduling")


async def test_the_room_of_a_lost_binding_is_given_to_no_pod(stage: Callable[..., Any]) -> None:
    """The server is away after the binding: another pod does not get the room before it is known."""
    one = await stage(nodes=1)
    one.binder.deaf = 1
    one.binder.looks = [WriteResult(WriteOutcome.UNKNOWN, "no answer")] * 5
    await one.pods(our_pod("p", cpu="4"))
    await one.pods(our_pod("q", cpu="4"))
    await one.clock.advance(60)

    assert one.binder.bound == {"default/p": "n0"}
    assert one.recorder.said("Scheduled") == ["Successfully assigned default/p to n0"]
    assert one.reason("q") == "Unschedulable"


async def test_a_pod_is_bound_after_what_was_being_written_about_it(stage: Callable[..., Any]) -> None:
    """An API server may carry requests out in any order: a bound pod must not be said to have no node."""
    one = await stage(nodes=0)
    answered, written = asyncio.Event(), one.statuses.write_condition

    async def slow(pod: Any, condition: Any) -> WriteResult:
        await answered.wait()
        return await written(pod, condition)  # type: ignore[no-any-return] # a fake of a fake

    one.statuses.write_condition = slow
    await one.pods(our_pod("p"))
    await one.see(NodeAdded(a_node("late")))
    await one.clock.advance(30)
    assert one.book.cache.assumed
    assert one.binder.sent == 0

    answered.set()
    await settled()
    assert one.binder.bound == {"default/p": "late"}


@pytest.mark.parametrize(
    ("heavy", "where"),
    [
        pytest.param("yes", "given up before preScore plugin NodeAffinity: ", id="between-plugins"),
        pytest.param("unschedulable", "given up before filter plugin Heavy: ", id="between-its-calls"),
    ],
)
async def test_a_pod_that_takes_too_much_is_set_aside(
    stage: Callable[..., Any], heavy: str, where: str
) -> None:
    """Its condition says where, it waits for longer each time, and no plugin is blamed; others are bound."""
    one = await stage(Heavy)

    await one.pods(our_pod("p", labels={"heavy": heavy}), our_pod("q"))

    assert one.binder.bound.keys() == {"default/q"}
    assert one.reason("p") == "SchedulerError"
    assert one.message("p").startswith(where)
    assert "the attempt took more than 2 s of processor time" in one.message("p")
    assert one.observer.plugins == []
    attempts = []
    for _ in range(4):
        (queued,) = one.queue
        attempts.append(queued.attempts)
        await one.clock.advance(59.0)
    assert attempts == [1, 1, 2, 2]


async def test_a_pod_that_took_too_much_once_is_bound_when_it_takes_less(stage: Callable[..., Any]) -> None:
    """What an earlier attempt took is not held against a later one."""
    one = await stage(Heavy)
    await one.pods(our_pod("p", labels={"heavy": "yes"}))

    await one.see(PodUpdated(our_pod("p", labels={"heavy": "yes"}), our_pod("p")))
    await one.clock.advance(62.0)

    assert one.binder.bound.keys() == {"default/p"}


async def test_a_pod_at_which_a_process_ended_is_tried_after_all_others(stage: Callable[..., Any]) -> None:
    """Minutes later, and its condition says why."""
    one = await stage(nodes=0)
    await one.pods(our_pod("p", priority=1000), our_pod("q"))
    one.wing._left.left = {"uid-default-p": 1, "uid-default-gone": 1}

    one.wing.take_over()
    await one.see(NodeAdded(a_node("n0")))
    await one.clock.advance(230.0)

    assert one.binder.bound.keys() == {"default/q"}
    assert one.message("p").startswith("the operator ended once while it tried this pod")
    await one.clock.advance(15.0)
    assert one.binder.bound.keys() == {"default/q", "default/p"}
