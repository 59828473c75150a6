"""Unhealthy nodes are closed, at most so many, opened again, and left alone when half of them look ill."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.watch_events import NodeAdded, NodeDeleted, NodeUpdated
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.node import NodeCondition, Taint
from plimsoll.model.kinds.workload import Namespace
from plimsoll.model.taints import UNHEALTHY
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.unhealthy_nodes import AGAIN_S, LOOK_S
from plimsoll.testing.builders import a_node
from plimsoll.testing.fakes import settled
from rebalancing.scene import POLICY, Scene, a_policy, named

NAMES = ("a", "b", "c", "d", "e")


def policy(mode: str = "Enforce", *, scope: dict[str, Any] | None = None, **args: Any) -> SchedulingPolicy:
    """A policy with the strategy."""
    strategy = {"name": "RemovePodsFromUnhealthyNodes", "args": args}
    return a_policy(mode, scope=scope, strategies=[strategy], evictor={"minReplicas": 1})


class Ward(Scene):
    """Five nodes without a fault; the watch shows each taint immediately."""

    def __init__(self, **known: Any) -> None:
        super().__init__(**known)
        self.tell(*map(NodeDeleted, list(self.cache.cluster.nodes)))
        self.present = {name: a_node(name) for name in NAMES}
        self.tell(*map(NodeAdded, self.present.values()))
        self.unhealthy.when_done = self.told
        self.rebalancers.all_known()

    def told(self, verb: str, node: str) -> None:
        """The taint is set or removed."""
        taints = [{"key": UNHEALTHY, "effect": "NoSchedule"}] if verb == "close" else []
        spec = msgspec.structs.replace(
            self.present[node].spec, taints=tuple(convert(Taint, each) for each in taints)
        )
        self.changes(node, spec=spec)

    def changes(self, node: str, **fields: Any) -> None:
        """The watch shows the node otherwise."""
        old = self.present[node]
        self.present[node] = msgspec.structs.replace(old, **fields)
        self.tell(NodeUpdated(old, self.present[node]))

    def falls_ill(self, node: str, status: str = "True", kind: str = "KernelDeadlock") -> None:
        """A condition of the node changes now."""
        now = datetime.fromtimestamp(self.clock.now(), UTC)
        found = NodeCondition(type=kind, status=status, last_transition_time=now)
        told = msgspec.structs.replace(self.present[node].status, conditions=(found,))
        self.changes(node, status=told)

    async def passes(self, seconds: float) -> None:
        """So many seconds, and the next look."""
        await self.clock.advance(seconds)
        await self.clock.advance(LOOK_S)
        await settled()

    @property
    def events(self) -> list[tuple[str, str, str]]:
        """Node, reason and text of each event on a node."""
        notes = (each for each in self.recorder.notes if each.regarding["kind"] == "Node")
        return [(each.regarding["name"], each.reason, each.text) for each in notes]


async def test_a_node_is_closed_and_opened_by_itself() -> None:
    """Each after the condition has held for its time; and the second time as the first."""
    ward = Ward()
    async with ward.running(policy(recoverySeconds=60)):
        for turn in range(1, 3):
            ward.falls_ill("b")
            await ward.passes(290)
            assert ward.unhealthy.done == [("close", "b"), ("reopen", "b")] * (turn - 1)
            await ward.passes(10)
            assert ward.unhealthy.done[2 * (turn - 1) :] == [("close", "b")]

            ward.falls_ill("b", "False")
            await ward.passes(40)
            assert ward.unhealthy.done[-1] == ("close", "b")
            await ward.passes(20)
            assert ward.unhealthy.done == [("close", "b"), ("reopen", "b")] * turn

    assert [(node, reason) for node, reason, _ in ward.events] == [
        ("b", "NodeClosed"),
        ("b", "NodeOpened"),
    ] * 2
    assert ward.events[0][2].startswith(
        f"policy {POLICY} places no pod on it: it has the condition KernelDeadlock=True since "
    )
    assert ward.closer.done == []


async def test_a_relapse_before_it_is_opened_keeps_it_closed() -> None:
    ward = Ward()
    async with ward.running(policy(recoverySeconds=60)):
        ward.falls_ill("b")
        await ward.passes(300)
        ward.falls_ill("b", "False")
        await ward.passes(30)
        ward.falls_ill("b")
        await ward.passes(200)

    assert ward.unhealthy.done == [("close", "b")]


async def test_at_most_so_many_and_the_next_when_one_is_gone() -> None:
    """Deleted, as an autoscaler replaces it: the machine that comes under the name is healthy."""
    ward = Ward()
    async with ward.running(policy()):
        ward.falls_ill("b")
        await ward.passes(10)
        ward.falls_ill("d")
        await ward.passes(400)
        assert ward.unhealthy.done == [("close", "b")]

        ward.tell(NodeDeleted(ward.present["b"]))
        await ward.passes(0)
        assert ward.unhealthy.done == [("close", "b"), ("close", "d")]
        ward.tell(NodeAdded(a_node("b")))
        await ward.passes(400)

    assert ward.unhealthy.done == [("close", "b"), ("close", "d")]


async def test_while_half_of_the_nodes_look_ill_nothing_changes() -> None:
    """One is closed already and stays so; the others are closed once most nodes are well again."""
    ward = Ward()
    async with ward.running(policy(maxNodes=3)) as scene:
        ward.falls_ill("a")
        await ward.passes(300)
        for node in "bcd":
            ward.falls_ill(node, "Unknown", kind="Ready")
        ward.falls_ill("e")
        await ward.passes(400)
        assert ward.unhealthy.done == [("close", "a")]
        rebalancing = ward.wing.configs.of(POLICY)
        assert rebalancing is not None
        assert rebalancing.hold is not None
        assert rebalancing.hold.reason == "NodesUnhealthy"
        assert rebalancing.hold.message.startswith("5 nodes of 5 look unhealthy")
        await scene.run()
        assert "NodesUnhealthy" in ward.rebalancers.troubles(POLICY)

        for node in "bcd":
            ward.falls_ill(node, kind="Ready")
        await ward.passes(0)
        await scene.run()
        assert "NodesUnhealthy" not in ward.rebalancers.troubles(POLICY)

    assert ward.unhealthy.done == [("close", "a"), ("close", "e")]


@pytest.mark.parametrize("mode", ["DryRun", "Approve"])
async def test_only_who_enforces_closes(mode: str) -> None:
    ward = Ward()
    async with ward.running(policy(mode)):
        ward.falls_ill("b")
        await ward.passes(400)

    assert ward.unhealthy.done == []


async def test_a_policy_that_is_gone_leaves_no_node_closed() -> None:
    ward = Ward()
    async with ward.running():
        ward.rebalancers.configure([policy()])
        ward.falls_ill("b")
        await ward.passes(300)
        ward.rebalancers.configure([])
        await ward.passes(0)

    assert ward.unhealthy.done == [("close", "b"), ("reopen", "b")]


async def test_a_new_process_opens_nothing_before_it_knows_all_policies() -> None:
    ward = Ward()
    ward.told("close", "b")
    ward.rebalancers.are_all_known = False
    async with ward.running():
        await ward.passes(60)
        assert ward.unhealthy.done == []
        ward.falls_ill("b")
        ward.rebalancers.adopt(policy())
        ward.rebalancers.all_known()
        await ward.passes(400)
        assert ward.unhealthy.done == []
        ward.falls_ill("b", "False")
        await ward.passes(300)

    assert ward.unhealthy.done == [("reopen", "b")]


async def test_nothing_is_closed_while_the_stop_button_is_pressed() -> None:
    """What is closed stays so, and is opened when it has recovered."""
    ward = Ward()
    async with ward.running(policy(maxNodes=2)):
        ward.falls_ill("b")
        await ward.passes(300)
        stopped = {"name": "plimsoll", "annotations": {"plimsoll.dev/stop": "true"}}
        ward.cache.cluster.objects.namespaces["plimsoll"] = convert(Namespace, {"metadata": stopped})
        ward.falls_ill("c")
        await ward.passes(400)
        assert ward.unhealthy.done == [("close", "b")]
        ward.falls_ill("b", "False")
        await ward.passes(300)

    assert ward.unhealthy.done == [("close", "b"), ("reopen", "b")]


async def test_a_write_that_fails_is_tried_again_after_a_while() -> None:
    ward = Ward()
    ward.unhealthy.answer = WriteResult(WriteOutcome.REFUSED, "nodes is forbidden")
    async with ward.running(policy()):
        ward.falls_ill("b")
        await ward.passes(300)
        await ward.passes(10)
        assert ward.observer.failures == [("closing unhealthy node b", "nodes is forbidden")]
        ward.unhealthy.answer = WriteResult(WriteOutcome.DONE)
        await ward.passes(AGAIN_S)

    assert ward.unhealthy.done == [("close", "b")]


async def test_two_policies_share_the_bound_and_the_taint() -> None:
    """The node stays closed until neither wants it; a third one finds no room."""
    other = named(policy(unhealthyNodeConditions=[{"type": "GpuFailed"}], recoverySeconds=0), "other")
    ward = Ward()
    async with ward.running():
        ward.rebalancers.configure([policy(recoverySeconds=0), other])
        ward.falls_ill("b")
        await ward.passes(10)
        ward.falls_ill("c", kind="GpuFailed")
        await ward.passes(400)
        assert ward.unhealthy.done == [("close", "b")]
        ward.falls_ill("b", "False")
        await ward.passes(LOOK_S)

    assert ward.unhealthy.done == [("close", "b"), ("reopen", "b"), ("close", "c")]
