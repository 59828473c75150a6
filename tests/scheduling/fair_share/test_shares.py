"""Fair queues in the loop: order, ceilings, demand, reclaim."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from plimsoll.cluster.watch_events import NodeAdded, PodAdded, PodDeleted, PodUpdated
from plimsoll.model.columns.queue_usage import WaitingDemand
from plimsoll.model.kinds.pod import Pod
from plimsoll.testing.builders import a_node, a_pod
from scheduling.gangs.gang_scene import GangScene, a_member, gang_scene

TWO = {"FairShare": {"queues": [{"name": "a"}, {"name": "b"}], "reclaim": "AboveDeserved"}}


def in_queue(name: str, queue: str, cpu: str = "1", **more: Any) -> Pod:
    """A pod of a queue."""
    return a_pod(name, cpu=cpu, schedulerName="s", labels={"plimsoll.dev/queue": queue}, **more)


def shares(one: GangScene) -> dict[str, int]:
    """Bound pods by queue, the first letter of their names."""
    return {queue: sum(name.startswith(queue) for name in one.bound) for queue in ("a", "b")}


async def test_room_is_shared_although_one_queue_was_first() -> None:
    """Ten pods of a came before ten of b: of eight places each gets four."""
    async with gang_scene(args=TWO, enabled=("FairShare",)) as one:
        pods = [in_queue(f"{queue}{at}", queue) for queue in ("a", "b") for at in range(10)]
        await one.see(*(PodAdded(pod) for pod in pods))

        assert shares(one) == {"a": 4, "b": 4}


async def test_room_is_shared_although_all_back_off() -> None:
    """Pods that were refused, and are woken by a node, are popped queue by queue as well."""
    async with gang_scene(args=TWO, enabled=("FairShare",), nodes=0) as one:
        pods = [in_queue(f"{queue}{at}", queue) for queue in ("a", "b") for at in range(4)]
        await one.see(NodeAdded(a_node("small", cpu="100m")), *(PodAdded(pod) for pod in pods))
        assert one.bound == []

        await one.see(NodeAdded(a_node("large", cpu="4")))
        await one.clock.advance(5)

        assert shares(one) == {"a": 2, "b": 2}


async def test_priority_counts_within_a_queue_only() -> None:
    """The urgent pods of b do not keep a from its half."""
    async with gang_scene(args=TWO, enabled=("FairShare",), nodes=1) as one:
        pods = [in_queue(f"a{at}", "a") for at in range(4)]
        pods += [in_queue(f"b{at}", "b", priority=10) for at in range(4)]
        await one.see(*(PodAdded(pod) for pod in pods))

        assert shares(one) == {"a": 2, "b": 2}


async def test_weights_are_kept() -> None:
    """Three to one."""
    args = {"FairShare": {"queues": [{"name": "a", "weight": 3}, {"name": "b"}]}}
    async with gang_scene(args=args, enabled=("FairShare",)) as one:
        pods = [in_queue(f"{queue}{at}", queue) for queue in ("b", "a") for at in range(10)]
        await one.see(*(PodAdded(pod) for pod in pods))

        assert shares(one) == {"a": 6, "b": 2}


async def test_a_pod_above_the_ceiling_goes_when_one_of_its_queue_has_left() -> None:
    """Nothing else wakes it."""
    args = {"FairShare": {"queues": [{"name": "a", "capability": {"cpu": "1"}}]}}
    async with gang_scene(args=args, enabled=("FairShare",)) as one:
        first = in_queue("a1", "a")
        await one.pods(first, in_queue("b1", "b"))
        await one.pods(in_queue("a2", "a"))
        assert one.message("a2").startswith(
            "0/2 nodes are available: queue a has no capability left for this pod: cpu."
        )
        await one.see(NodeAdded(a_node("n9")))
        await one.clock.advance(20)
        assert one.bound == ["a1", "b1"]

        await one.see(PodDeleted(first))
        await one.clock.advance(3)

        assert "a2" in one.bound


async def test_demand_is_what_waits() -> None:
    """Without a node, a gate or an assumption; kept up to date."""
    async with gang_scene(args=TWO, enabled=("FairShare",), nodes=1, cpu="1") as one:
        await one.pods(in_queue("a1", "a"), in_queue("a2", "a"), in_queue("b1", "b", cpu="2"))
        gated = in_queue("b2", "b", schedulingGates=[{"name": "example.com/wait"}])
        await one.pods(gated)
        sums = one.cache.cluster.index(WaitingDemand).sums
        assert sums == {("s", "a"): {"cpu": 1000}, ("s", "b"): {"cpu": 2000}}

        await one.see(PodUpdated(gated, in_queue("b2", "b")), PodDeleted(in_queue("b1", "b", cpu="2")))

        both = {("s", "a"): {"cpu": 1000}, ("s", "b"): {"cpu": 1000}}
        assert sums == both
        one.sharing.serve(one.wing.served.schedulers, list(one.cache.waiting.values()))
        assert sums == both
        (assumed,) = one.cache.assumed
        one.cache.forget(assumed)
        assert sums == both | {("s", "a"): {"cpu": 2000}}
        assert one.cache.cluster.fork().index(WaitingDemand).sums == sums


async def test_a_queue_gets_back_what_it_deserves() -> None:
    """B has it all when a's pods come: half of b's are evicted, and no more, however many wait."""
    async with gang_scene(args=TWO, enabled=("FairShare",), nodes=2, cpu="2") as one:
        there = {
            f"b{at}": in_queue(f"b{at}", "b", node=f"n{at % 2}", status={"startTime": "2026-01-01T00:00:00Z"})
            for at in range(4)
        }
        await one.pods(*there.values())
        await one.pods(*(in_queue(f"a{at}", "a") for at in range(4)))
        assert len(one.preemptor.victims) == 2

        await one.see(*(PodDeleted(there[name]) for name in one.preemptor.victims))
        await one.clock.advance(20)

        assert len(one.preemptor.victims) == 2
        assert shares(one) == {"a": 2, "b": 0}


async def test_a_pod_reclaims_as_soon_as_what_would_help_has_run_long_enough() -> None:
    """Nothing but time wakes it, to the second; and once more for what starts later."""
    queues = [{"name": "a"}, {"name": "b", "reclaimMinRuntimeSeconds": 1000}]
    args = {"FairShare": {"queues": queues, "reclaim": "AboveDeserved"}}
    async with gang_scene(args=args, enabled=("FairShare",), nodes=1, cpu="2") as one:
        for time in range(2):
            now = datetime.fromtimestamp(one.clock.now(), UTC).isoformat()
            there = [in_queue(f"b{time}{at}", "b", node="n0", status={"startTime": now}) for at in range(2)]
            await one.pods(*there)
            waiting = in_queue(f"a{time}", "a")
            await one.pods(waiting)
            await one.clock.advance(998)
            assert one.preemptor.victims == []
            await one.clock.advance(4)
            (victim,) = one.preemptor.victims
            one.preemptor.victims.clear()
            left = [pod for pod in there if pod.name != victim]
            await one.see(*(PodDeleted(pod) for pod in there if pod.name == victim))
            await one.clock.advance(5)
            assert waiting.name in one.bound
            await one.see(*(PodDeleted(pod) for pod in (waiting, *left)))


async def test_a_gang_gets_back_what_its_queue_deserves() -> None:
    """As a whole: the gang of two is nominated, two victims go, both start."""
    async with gang_scene(args=TWO, enabled=("FairShare",), nodes=2, cpu="2") as one:
        there = {f"b{at}": in_queue(f"b{at}", "b", node=f"n{at % 2}") for at in range(4)}
        await one.pods(*there.values())
        await one.group("train", 2)
        gang = [a_member(f"a{at}", cpu="1") for at in range(2)]
        labels = {"plimsoll.dev/queue": "a", "plimsoll.dev/pod-group": "train"}
        gang = [
            msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, labels=labels))
            for pod in gang
        ]
        await one.pods(*gang)
        assert len(one.preemptor.victims) == 2

        await one.see(*(PodDeleted(there[name]) for name in one.preemptor.victims))
        await one.clock.advance(5)

        assert shares(one)["a"] == 2


async def test_a_plugin_that_breaks_leaves_the_order_to_the_sort_key() -> None:
    """It is named; pods are served all the same."""
    async with gang_scene(args=TWO, enabled=("FairShare",), nodes=1, cpu="1") as one:
        (plugin,) = one.sharing._fair.values()
        plugin.standing = lambda *_: 1 / 0

        await one.pods(in_queue("a1", "a"))

        assert one.bound == ["a1"]


async def test_no_pod_is_remembered_while_no_profile_has_fair_queues() -> None:
    """Their policy may be gone for long, and what then becomes of them is not followed."""
    async with gang_scene(args=TWO, enabled=("FairShare",), nodes=0) as one:
        await one.pods(in_queue("a1", "a"))
        demand = one.cache.cluster.index(WaitingDemand)
        assert demand.sums

        one.sharing.serve({}, ())

        assert demand.sums == {}
