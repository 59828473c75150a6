"""Gives pods that a plan wants gone the least cost of deletion, so that what shrinks deletes them first.

A policy with ``deletionCosts`` in mode Approve or Enforce says after each run which pods it would rather see
go (:mod:`plimsoll.planning.unwanted`). All state is in the pods: the annotation that names the policy marks
what is ours, and is written and removed together with the cost. So a new process takes away what no policy
asks for any more; what a policy asked for stays until its first run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.watch_events import PodAdded, PodDeleted, PodUpdated, WatchEvent
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

#: Writes of one look, at most.
MOST_WRITES = 20

#: Seconds after a failed write until the pod is written again.
AGAIN_S = 60.0


@dataclass(eq=False)
class DeletionCosts:
    """Writes costs of deletion, and takes them away."""

    cluster: Cluster
    policies: Mapping[str, SchedulingPolicy]  #: those that rebalance, keyed by name, at any moment
    writer: CostWriter
    are_all_known: Callable[[], bool]  #: whether all policies have been seen
    is_stopped: Callable[[], bool]  #: whether the stop button is pressed
    clock: Clock
    observer: Observer
    _wanted: dict[str, tuple[str, ...]] = field(default_factory=dict, init=False)  #: uids by policy
    _marked: dict[str, Pod] = field(default_factory=dict, init=False)  #: pods with our mark, by uid
    _failed: dict[str, float] = field(default_factory=dict, init=False)  #: when a write failed, by uid

    def learn(self, name: str, plan: EvictionPlan) -> None:
        """Take over what the latest run of a policy wants gone."""
        self._wanted[name] = plan.unwanted

    def forget(self, name: str) -> None:
        """Forget a policy that no longer rebalances."""
        self._wanted.pop(name, None)

    def observe(self, event: WatchEvent) -> None:
        """Follow which pods have our mark, including those that an earlier process has marked."""
        match event:
            case PodAdded(pod) | PodUpdated(_, pod) if WANTED_GONE in pod.metadata.annotations:
                self._marked[pod.uid] = pod
            case PodUpdated(_, pod) if self._marked:
                self._marked.pop(pod.uid, None)
            case PodDeleted(pod):
                self._marked.pop(pod.uid, None)
                self._failed.pop(pod.uid, None)
            case _:
                return

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
        asking = {name for name, policy in self.policies.items() if _asks(policy)}
        if self.is_stopped():
            asking.clear()
        wanted = {uid: name for name in sorted(asking) for uid in self._wanted.get(name, ())}
        writes = 0
        for uid, pod in list(self._marked.items()):
            if writes < MOST_WRITES and self._is_over(pod, wanted, asking) and self._may_write(uid):
                writes += 1
                await self._write(pod, "")
        for uid, policy in wanted.items():
            if writes >= MOST_WRITES:
                return
            standing = self.cluster.pods.get(uid)
            if standing is not None and self._is_free(standing.pod) and self._may_write(uid):
                writes += 1
                await self._write(standing.pod, policy)

    def _is_over(self, pod: Pod, wanted: Mapping[str, str], asking: set[str]) -> bool:
        """Whether nothing asks for the mark of the pod any more."""
        policy = pod.metadata.annotations[WANTED_GONE]
        if pod.is_terminating or pod.uid in wanted:
            return False
        if policy in asking:
            return policy in self._wanted  # its first run in this process is still to come
        return self.are_all_known()

    def _is_free(self, pod: Pod) -> bool:
        """Whether nobody, ourselves included, has said what it costs to delete the pod."""
        annotations = pod.metadata.annotations
        is_said = DELETION_COST in annotations or WANTED_GONE in annotations or pod.uid in self._marked
        return not is_said and not pod.is_terminating

    def _may_write(self, uid: str) -> bool:
        failed = self._failed.get(uid)
        return failed is None or self.clock.monotonic() - failed >= AGAIN_S

    async def _write(self, pod: Pod, policy: str) -> None:
        self._failed.pop(pod.uid, None)
        answer = await self.writer.want_gone(pod.namespace, pod.name, pod.uid, policy)
        if answer.is_done:
            return  # the watch shows it
        self._failed[pod.uid] = self.clock.monotonic()
        is_expected = answer.verdict in (
            WriteOutcome.CONFLICT,
            WriteOutcome.GONE,
        )  # another's cost, or too late
        if answer.is_failure and not is_expected:
            self.observer.failed(f"writing the cost of deletion of pod {pod.key}", answer.message)


def _asks(policy: SchedulingPolicy) -> bool:
    spec = policy.spec.rebalancing
    return spec is not None and spec.deletion_costs and spec.mode is not Mode.DRY_RUN
