"""Closes unhealthy nodes to new pods by a taint, and opens them once they have recovered.

It does what the strategy RemovePodsFromUnhealthyNodes of a policy in mode Enforce says; the moves are those
of the policy's runs, and a run follows as soon as a node is closed. All state is in the nodes' conditions and
taints, so a new process goes on. A node that no policy wants closed any more is opened.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.framework import Node
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.taints import UNHEALTHY, is_marked_unhealthy
from plimsoll.planning.moves import RebalancingConfig
from plimsoll.ports.clock import Clock
from plimsoll.ports.events import EventNote, EventRecorder
from plimsoll.ports.objects import NodeCloser
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.runs.policy_configs import PolicyConfigs
from plimsoll.strategies.remove_pods_from_unhealthy_nodes import RemovePodsFromUnhealthyNodes
from plimsoll.toolkit.descheduling.unhealthy_nodes import NodeHealth

#: Seconds between two looks, while a policy has the strategy or a node has the taint.
LOOK_S = 5.0

#: Seconds after a failed write until the node is written again.
AGAIN_S = 60.0


@dataclass(eq=False)
class UnhealthyNodes:
    """Closes and opens unhealthy nodes."""

    cluster: Cluster
    policies: Mapping[str, SchedulingPolicy]  #: those that rebalance, keyed by name, at any moment
    configs: PolicyConfigs
    closer: NodeCloser
    are_all_known: Callable[[], bool]  #: whether all policies have been seen
    run_now: Callable[[str], None]  #: hastens a policy's next run
    recorder: EventRecorder
    clock: Clock
    observer: Observer
    #: of the latest look, by policy
    found: dict[str, NodeHealth] = field(default_factory=dict, init=False)
    _failed: dict[str, float] = field(default_factory=dict, init=False)  #: when a write failed, by node

    async def run(self) -> None:
        """Look after the nodes until cancelled."""
        while True:
            await self.clock.sleep(LOOK_S)
            try:
                await self.look()
            except Exception as exc:  # noqa: BLE001 - whatever one policy or node holds, the next look comes
                self.observer.failed("looking after unhealthy nodes", repr(exc))

    async def look(self) -> None:
        """Close the nodes that policies want closed, and open the others that have the taint."""
        wanted, self.found = dict[str, tuple[str, str]](), {}
        for name in [name for name, policy in self.policies.items() if _is_carried_out(policy)]:
            rebalancing = self.configs.of(name)
            if rebalancing is None:
                continue
            for health in self._judged(rebalancing, wanted):
                self.found[name] = health
                for node, why in health.closed.items():
                    if rebalancing.hold is None or self._is_closed(node):
                        wanted.setdefault(node, (name, why))
        for node, (policy, why) in wanted.items():
            if not self._is_closed(node) and self._may_write(node):
                await self._close(node, policy, why)
        marked = [each for each in self.cluster.nodes if is_marked_unhealthy(each)]
        for each in marked if self.are_all_known() else ():
            if each.name not in wanted and self._may_write(each.name):
                await self._open(each)

    def _judged(self, rebalancing: RebalancingConfig, also_closed: Collection[str]) -> list[NodeHealth]:
        now = datetime.fromtimestamp(self.clock.now(), UTC)
        return [
            each.judge(
                self.cluster.nodes, lambda node: rebalancing.nodes.matches(node.labels), now, also_closed
            )
            for each in rebalancing.strategies
            if isinstance(each, RemovePodsFromUnhealthyNodes)
        ]

    async def _close(self, node: str, policy: str, why: str) -> None:
        if self._is_done(node, await self.closer.close(node), "closing"):
            text = f"policy {policy} places no pod on it: it {why}"
            note = EventNote(self._reference(node), "NodeClosed", "Rebalancing", text, is_warning=True)
            self.recorder.record(note)
            self.run_now(policy)

    async def _open(self, node: Node) -> None:
        if self._is_done(node.name, await self.closer.reopen(node.name), "opening"):
            text = f"taint {UNHEALTHY} is removed: no policy asks for it"
            self.recorder.record(EventNote(self._reference(node.name), "NodeOpened", "Rebalancing", text))

    def _is_done(self, node: str, answer: WriteResult, what: str) -> bool:
        self._failed.pop(node, None)
        if answer.is_failure and answer.verdict is not WriteOutcome.GONE:
            self._failed[node] = self.clock.monotonic()
            self.observer.failed(f"{what} unhealthy node {node}", answer.message)
        return answer.is_done

    def _may_write(self, node: str) -> bool:
        failed = self._failed.get(node)
        return failed is None or self.clock.monotonic() - failed >= AGAIN_S

    def _is_closed(self, name: str) -> bool:
        row = self.cluster.rows.get(name)
        return row is not None and is_marked_unhealthy(self.cluster.nodes[row])

    def _reference(self, node: str) -> Mapping[str, str]:
        row = self.cluster.rows.get(node)
        uid = "" if row is None else self.cluster.nodes[row].metadata.uid
        return {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}


def _is_carried_out(policy: SchedulingPolicy) -> bool:
    spec = policy.spec.rebalancing
    name = RemovePodsFromUnhealthyNodes.name
    return (
        spec is not None and spec.mode is Mode.ENFORCE and any(each.name == name for each in spec.strategies)
    )
