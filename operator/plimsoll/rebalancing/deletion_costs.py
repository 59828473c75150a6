"""Gives pods that a plan wants gone the least cost of deletion, so that what shrinks deletes them first.

Nodes that it would empty but for a limit or a budget are avoided by new pods, such as those of a rollout.

A policy with ``deletionCosts`` in mode Approve or Enforce says after each run which pods it would rather see
go (:mod:`plimsoll.planning.unwanted`). All state is in the pods: the annotation that names the policy marks
what is ours, and is written and removed together with the cost. So a new process takes away what no policy
asks for any more; what a policy asked for stays until its first run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.framework import Pod
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.deployment import DELETION_COST, WANTED_GONE
from plimsoll.planning.moves import EvictionPlan
from plimsoll.ports.clock import Clock
from plimsoll.ports.objects import CostWriter
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import WriteOutcome

#: Seconds between two looks, while a policy asks for costs or a pod has one of ours.
LOOK_S = 5.0

#: The annotations that say what it costs to delete a pod.
SAID = frozenset((DELETION_COST, WANTED_GONE))

#: Writes of one look, at most.
MOST_WRITES = 20

#: Seconds after a failed write until the pod is written again.
AGAIN_S = 60.0


@dataclass(eq=False)
class DeletionCosts:
    """Writes costs of deletion, and takes them away."""

    cluster: Cluster
    policies: Mapping[str, SchedulingPolicy]  #: those that rebalance, keyed by name, at any moment
    plan_of: Callable[[str], EvictionPlan | None]  #: the plan of a policy's latest run in this process
    writer: CostWriter
    are_all_known: Callable[[], bool]  #: whether all policies have been seen
    is_stopped: Callable[[], bool]  #: whether the stop button is pressed
    avoid: Callable[[frozenset[str]], None]  #: has new pods prefer other nodes than these
    clock: Clock
    observer: Observer
    _is_clean: bool = field(default=False, init=False)  #: no pod has our mark, and none will get it
    _failed: dict[str, float] = field(default_factory=dict, init=False)  #: when a write failed, by uid

    async def run(self) -> None:
        """Look after the costs until cancelled."""
        while True:
            await self.clock.sleep(LOOK_S)
            try:
                await self.look()
            except Exception as exc:  # noqa: BLE001 - whatever one pod holds, the next look comes
                self.observer.failed("looking after costs of deletion", repr(exc))

    async def look(self) -> None:
        """Take away what nothing asks for, then write what is asked for; at most ``MOST_WRITES``."""
        asking = [] if self.is_stopped() else sorted(filter(self._asks, self.policies))
        plans = {name: self.plan_of(name) for name in asking}
        self.avoid(frozenset(name for plan in plans.values() if plan for name in self._present(plan)))
        if self._is_clean and not asking:
            return
        pods = (each.pod for each in self.cluster.pods.values())
        marked = {each.uid: each for each in pods if WANTED_GONE in each.metadata.annotations}
        self._is_clean = not marked and not asking and self.are_all_known()
        self._failed = {uid: when for uid, when in self._failed.items() if uid in self.cluster.pods}
        wanted = {uid: name for name, plan in plans.items() if plan for uid in plan.unwanted}
        writes = 0
        for uid, pod in marked.items():
            if writes < MOST_WRITES and self._is_over(pod, wanted, plans) and self._may_write(uid):
                writes += 1
                await self._write(pod, "")
        for uid, policy in wanted.items():
            if writes >= MOST_WRITES:
                return
            standing = self.cluster.pods.get(uid)
            if standing is not None and self._is_free(standing.pod) and self._may_write(uid):
                writes += 1
                await self._write(standing.pod, policy)

    def _present(self, plan: EvictionPlan) -> list[str]:
        """Names of the nodes that the plan would empty; one that was made again under its name is another."""
        nodes = self.cluster.nodes
        rows = ((self.cluster.rows.get(name), name, uid) for name, uid in plan.later)
        return [name for row, name, uid in rows if row is not None and nodes[row].uid == uid]

    def _asks(self, name: str) -> bool:
        spec = self.policies[name].spec.rebalancing
        return spec is not None and spec.deletion_costs and spec.mode is not Mode.DRY_RUN

    def _is_over(self, pod: Pod, wanted: Mapping[str, str], plans: Mapping[str, EvictionPlan | None]) -> bool:
        """Whether nothing asks for the mark of the pod any more."""
        policy = pod.metadata.annotations[WANTED_GONE]
        if pod.is_terminating or pod.uid in wanted:
            return False
        if policy in plans:
            return plans[policy] is not None  # else its first run in this process is still to come
        return self.are_all_known()

    def _is_free(self, pod: Pod) -> bool:
        """Whether no annotation, ours included, says what it costs to delete the pod."""
        return pod.metadata.annotations.keys().isdisjoint(SAID) and not pod.is_terminating

    def _may_write(self, uid: str) -> bool:
        failed = self._failed.get(uid)
        return failed is None or self.clock.monotonic() - failed >= AGAIN_S

    async def _write(self, pod: Pod, policy: str) -> None:
        self._failed.pop(pod.uid, None)
        answer = await self.writer.want_gone(pod.namespace, pod.name, pod.uid, policy)
        if answer.is_done:
            return  # the watch shows it
        self._failed[pod.uid] = self.clock.monotonic()
        if answer.is_failure and answer.verdict not in (WriteOutcome.CONFLICT, WriteOutcome.GONE):
            self.observer.failed(f"writing the cost of deletion of pod {pod.key}", answer.message)
