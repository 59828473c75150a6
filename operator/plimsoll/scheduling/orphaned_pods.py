"""Finds pending pods whose scheduler name no scheduler serves, and reports so on the pod, once.

Such a name is usually mistyped.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from plimsoll.cluster.ingestion import PlacedPodsSubscriber
from plimsoll.cluster.watch_events import PodAdded, PodDeleted, PodUpdated, WatchEvent
from plimsoll.framework import Pod
from plimsoll.model.kinds.pod import DEFAULT_SCHEDULER
from plimsoll.policies.conditions import near
from plimsoll.policies.scheduler_names import (
    PATIENCE_S,
    Claims,
    is_served,
    may_wait,
    sentence,
)
from plimsoll.ports.clock import Clock
from plimsoll.ports.events import EventNote, EventRecorder
from plimsoll.ports.observer import Observer
from plimsoll.ports.pod_writes import pod_reference
from plimsoll.timing.signal import Signal

#: Seconds between two passes.
LOOK_S = 15.0

#: Maximum number of events per pass.
MOST_EVENTS = 100

#: Condition and reason of a policy whose scheduler name pending pods seem to mean.
ORPHANED, NEAR_MISS = "PodsOrphaned", "SchedulerNameUnknown"


class OrphanedPods(PlacedPodsSubscriber):
    """Finds pending pods of unknown schedulers; notifies ``conditions`` when the policies meant change."""

    def __init__(
        self,
        recorder: EventRecorder,
        clock: Clock,
        observer: Observer,
        conditions: Signal,
    ) -> None:
        self._recorder = recorder
        self._clock = clock
        self._observer = observer
        self._conditions = conditions
        self._pending: dict[str, tuple[float, Pod]] = {}
        self._told: set[str] = set()
        self._seen = {DEFAULT_SCHEDULER}
        self._served: set[str] = set()
        self._meant: dict[str, str] = {}

    def observe(self, event: WatchEvent) -> None:
        """Handle pods that are added, get their nodes, or are deleted."""
        match event:
            case PodAdded(pod) | PodUpdated(_, pod):
                self._look_at(pod)
            case PodDeleted(pod):
                self._drop(pod.uid)
            case _:
                return

    def observe_placed(self, pods: Sequence[Pod]) -> None:
        """Record the schedulers of added pods that have nodes as working."""
        self._seen |= {pod.spec.scheduler_name for pod in pods}
        for pod in pods if self._pending or self._told else ():
            self._drop(pod.uid)

    @property
    def pending(self) -> Sequence[Pod]:
        """Pods without a node, of any scheduler."""
        return [pod for _, pod in self._pending.values()]

    @property
    def seen(self) -> Collection[str]:
        """Scheduler names that were seen to work."""
        return self._seen

    def _look_at(self, pod: Pod) -> None:
        name = pod.spec.scheduler_name
        if is_served(pod):
            self._seen.add(name)
        if not may_wait(pod):
            self._drop(pod.uid)
        else:
            since = self._pending[pod.uid][0] if pod.uid in self._pending else self._clock.monotonic()
            self._pending[pod.uid] = (since, pod)

    def _drop(self, uid: str) -> None:
        self._pending.pop(uid, None)
        self._told.discard(uid)

    def advice(self, policy: str) -> dict[str, tuple[str, str]]:
        """The condition of a policy whose name pending pods seem to mean: type, reason and sentence."""
        return {ORPHANED: (NEAR_MISS, self._meant[policy])} if policy in self._meant else {}

    async def run(self, claimed: Callable[[], Claims]) -> None:
        """Search until cancelled; ``claimed`` maps scheduler names to the policies that claim them."""
        while True:
            await self._clock.sleep(LOOK_S)
            try:
                self.look(claimed())
            except Exception as exc:  # noqa: BLE001 - whatever one look finds, the next one comes
                self._observer.failed("looking for pods without a scheduler", repr(exc))

    def look(self, claimed: Claims) -> None:
        """Find orphaned pods; report once to each, and to the policy whose name it seems to mean."""
        now = self._clock.monotonic()
        serving = {name for name, (_, problem) in claimed.items() if not problem}
        self._seen -= self._served - serving  # we were the scheduler that was seen
        self._served = serving
        orphans: dict[str, list[Pod]] = {}
        for since, pod in self._pending.values():
            name = pod.spec.scheduler_name
            if name not in serving and name not in self._seen and now - since >= PATIENCE_S:
                orphans.setdefault(name, []).append(pod)
        left = MOST_EVENTS
        for name, pods in orphans.items():
            text = sentence(name, claimed)
            for pod in [each for each in pods if each.uid not in self._told][:left]:
                self._told.add(pod.uid)
                left -= 1
                self._recorder.record(
                    EventNote(pod_reference(pod), "FailedScheduling", "Scheduling", text, is_warning=True)
                )
        meant = _meant(orphans, claimed)
        if meant != self._meant:
            self._meant = meant
            self._conditions.notify()


def _meant(orphans: Mapping[str, list[Pod]], claimed: Claims) -> dict[str, str]:
    """The sentences for policies whose scheduler name is close to that of an orphaned pod."""
    found: dict[str, list[str]] = {}
    for name, pods in sorted(orphans.items()):
        for known, (policy, _) in claimed.items():
            if known != name and near(name, [known]):
                found.setdefault(policy, []).append(
                    f'{len(pods)} pending with schedulerName "{name}", such as {pods[0].key}'
                )
    return {
        policy: f"pods seem to mean this policy's scheduler and name another one: {', '.join(parts)}"
        for policy, parts in found.items()
    }
