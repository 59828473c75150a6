"""Builds the scheduling wing: queue, loop, binding pipeline and the optional parts that are enabled.

Every object receives its collaborators when it is built, so the order here is the order of dependencies.
Gangs, extenders and fair share are optional: a disabled one has no objects, and no other object refers to it.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from itertools import chain

from msgspec import Struct, field

from plimsoll.access.rights import Access
from plimsoll.cluster.ingestion import EventSubscriber, Ingestion, Mirror, OfTypes
from plimsoll.cluster.pod_groups import Groups
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.cluster.watch_events import (
    ObjectAdded,
    ObjectDeleted,
    ObjectUpdated,
    PodDeleted,
    PodUpdated,
    Synced,
)
from plimsoll.devices.book import DeviceBook
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import ActionType, ClusterEvent, EventResource, NoArgs
from plimsoll.leadership.work_under_way import WorkUnderWay
from plimsoll.plugins.priority_sort import PrioritySort
from plimsoll.policy_controller.served_profiles import ServedProfiles
from plimsoll.ports.clock import Clock, Randomness
from plimsoll.ports.events import EventRecorder
from plimsoll.ports.objects import VolumeWriter
from plimsoll.ports.observer import Observer
from plimsoll.ports.pod_writes import PodBinding, PodStatusWriter, Preemptor, VictimEvictor
from plimsoll.ports.resource_claims import ClaimWriter
from plimsoll.scheduling.binding.cycle import BindingCycle
from plimsoll.scheduling.binding.pipeline import BindingHook, BindingPipeline
from plimsoll.scheduling.binding.volume_claims import ClaimBinder
from plimsoll.scheduling.conditions import Explanations
from plimsoll.scheduling.devices.device_claims import DeviceClaims
from plimsoll.scheduling.extenders.attempt import ExtenderAttempts
from plimsoll.scheduling.extenders.client import ExtenderClient
from plimsoll.scheduling.failures import AttemptFailures
from plimsoll.scheduling.fair_share.shares import FairShares
from plimsoll.scheduling.gangs.attempt import GangAttempts
from plimsoll.scheduling.gangs.gates import GangGate
from plimsoll.scheduling.gangs.oversight import GangOversight
from plimsoll.scheduling.gangs.status import GroupReports, PodGroupStatusWriter
from plimsoll.scheduling.kubelet_rejections import KubeletRejections
from plimsoll.scheduling.leaving_victims import LeavingVictims
from plimsoll.scheduling.loop import AttemptTaker, SchedulingLoop
from plimsoll.scheduling.plugin_timing import PluginTimer
from plimsoll.scheduling.preemption import Preemption
from plimsoll.scheduling.queue.cooled_nodes import CooledNodes
from plimsoll.scheduling.queue.feed import QueueFeed
from plimsoll.scheduling.queue.queue import SchedulingQueue
from plimsoll.scheduling.queue.queue_plugins import QueueGate, QueuePlugins
from plimsoll.scheduling.rights_gate import RightsGate
from plimsoll.timing.signal import Signal
from plimsoll.timing.timer import Timer

#: A pod at which a process has ended waits as after one more than so many attempts that took too much:
#: for four minutes, then for eight, and so on.
FIRST_ASIDE = 2


class PodPorts(Struct, frozen=True):
    """The wing's writers to the API server."""

    binder: PodBinding
    volumes: VolumeWriter
    preemptor: Preemptor
    statuses: PodStatusWriter
    recorder: EventRecorder
    claims: ClaimWriter


class GangParts(Struct, frozen=True):
    """The parts that gangs need."""

    groups: Groups
    writer: PodGroupStatusWriter
    timer: Timer


class WingParts(Struct, frozen=True):
    """The optional parts.

    Attributes:
        evictor: Evicts victims for policies that do not delete them.
        gangs: Decides which pods start together; None to schedule each pod by itself.
        extending: Calls the extenders of profiles; None if profiles have none.
        fair_share: Whether FairShare plugins order what the queue pops.
        refreshed: Notified when the load book has been refreshed; None without a load book.
        left: The work at which earlier processes have ended; the wing tells it about its own.
    """

    access: Access | None = None
    evictor: VictimEvictor | None = None
    gangs: GangParts | None = None
    extending: ExtenderClient | None = None
    fair_share: bool = False
    refreshed: Signal | None = None
    left: WorkUnderWay = field(default_factory=WorkUnderWay)


class QueueParts:
    """The queue, and what decides when a pod is tried."""

    def __init__(
        self, book: ReservationBook, ports: PodPorts, clock: Clock, observer: Observer, parts: WingParts
    ) -> None:
        self._clock, self._cache, cluster = clock, book.cache, book.cache.cluster
        self.served = ServedProfiles()
        self.mirror = Mirror(book.cache, observer)
        self.work = Signal()
        self.explanations = Explanations(ports.statuses, ports.recorder, clock, observer, self._is_waiting)
        explain, gangs = self.explanations.explain, parts.gangs
        self.rights = None if parts.access is None else RightsGate(parts.access, explain)
        self._groups = None if gangs is None else gangs.groups
        self.gang_gate = None if gangs is None else GangGate(gangs.groups, book, self.explanations)
        gates: list[QueueGate] = [each for each in (self.rights, self.gang_gate) if each is not None]
        self.plugins = QueuePlugins(PrioritySort(NoArgs()), clock, observer, gates, cluster=cluster)
        self.queue = SchedulingQueue(
            self.plugins.sort_key,
            observer,
            gate=self.plugins.gate,
            ask=self.plugins.hint,
            objects=cluster.objects,
            work=self.work,
        )
        self.feed = QueueFeed(self.mirror, self.queue, self.served, book, clock, observer)
        self.cooled = None if parts.refreshed is None else CooledNodes(self.feed, cluster, parts.refreshed)
        self.shares = FairShares(book.cache, self.queue, clock, observer) if parts.fair_share else None

    def _is_waiting(self, uid: str) -> bool:
        """Whether a pod of ours has no node and wants one."""
        pod = self._cache.waiting.get(uid)
        return (
            pod is not None
            and not pod.is_terminating
            and self.served.serves(pod)
            and not self._cache.node_of(uid)
        )

    def serve(self, schedulers: Mapping[str, ProfileScheduler]) -> None:
        """Set the served profiles."""
        self.served.replace(schedulers)
        if self._groups is not None:
            deriving = (name for name, each in schedulers.items() if each.profile.groups.derives)
            placed = (each.pod for each in self._cache.cluster.pods.values())
            self._groups.derive_for(frozenset(deriving), chain(self._cache.waiting.values(), placed))
        hints, changed = self.plugins.serve(schedulers)
        self.queue.use(hints, changed, self._clock.monotonic())
        self.plugins.sort_by_profiles()
        if self.shares is not None:
            self.shares.serve(schedulers, self._cache.waiting.values())
        else:
            self.queue.resort()
        for pod in self._cache.waiting.values():
            if not self.served.serves(pod):
                self.plugins.release(pod)
        self.feed.requeue_all()


class BindingParts:
    """What binds the pods that have a node."""

    def __init__(
        self,
        book: ReservationBook,
        ports: PodPorts,
        clock: Clock,
        observer: Observer,
        parts: WingParts,
        waiting: QueueParts,
    ) -> None:
        cluster, gangs, queue = book.cache.cluster, parts.gangs, waiting.queue
        self.rejections = KubeletRejections(
            waiting.served, ports.recorder, clock, observer, lambda uid: uid in cluster.pods
        )
        self.reports: GroupReports | None = None
        self.oversight: GangOversight | None = None
        if gangs is not None and waiting.gang_gate is not None:
            self.reports = GroupReports(gangs.groups, gangs.writer, clock, observer)
            self.oversight = GangOversight(
                gangs.groups,
                queue,
                book,
                waiting.gang_gate,
                self.reports.touch,
                ports.recorder,
                clock,
                gangs.timer,
            )
        optional = (self.rejections, self.oversight, parts.extending)
        hooks: list[BindingHook] = [each for each in optional if each is not None]

        def freed(change: ClusterEvent) -> None:
            """Handle devices that were promised to a pod and are free again without a write."""
            queue.move_all_to_active_or_backoff_queue(change, clock.monotonic(), is_ours=True)

        volumes = ClaimBinder(book.cache, ports.volumes, clock)
        self.devices = DeviceClaims(cluster, ports.claims, clock, observer, ports.recorder, freed)
        self.cycle = BindingCycle(
            ports.binder, ports.statuses, volumes, self.devices, clock, observer, ports.recorder
        )
        self.pipeline = BindingPipeline(
            book, queue, self.cycle, waiting.explanations, ports.recorder, clock, observer, hooks
        )


class SchedulingWing:
    """The objects of the wing.

    Attributes:
        shares: Orders what the queue pops; None without fair share.
        reports: Writes the status of PodGroups; None without gangs.
        subscribers: The observers of events, in order, including the mirror.
    """

    def __init__(
        self,
        book: ReservationBook,
        ports: PodPorts,
        clock: Clock,
        randomness: Randomness,
        observer: Observer,
        parts: WingParts | None = None,
    ) -> None:
        parts = parts or WingParts()
        self._clock, self._cache = clock, book.cache
        self._waiting = waiting = QueueParts(book, ports, clock, observer, parts)
        binding = BindingParts(book, ports, clock, observer, parts, waiting)
        self.served, self.queue, self.mirror = waiting.served, waiting.queue, waiting.mirror
        self.explanations, self.shares = waiting.explanations, waiting.shares
        self.devices, self.reports, self.pipeline = binding.devices, binding.reports, binding.pipeline
        self.cycle = binding.cycle
        leaving = LeavingVictims(self.queue, book.cache, clock)
        preemption = Preemption(
            ports.preemptor, ports.recorder, observer, self.cycle.call_off, leaving, parts.evictor
        )
        self.failures = failures = AttemptFailures(
            self.served, self.queue, book, self.pipeline, preemption, self.explanations, clock, observer
        )
        takers: list[AttemptTaker] = []
        if binding.oversight is not None:
            takers.append(
                GangAttempts(
                    binding.oversight,
                    self.served,
                    self.queue,
                    self.pipeline,
                    failures,
                    self.explanations,
                    clock,
                    observer,
                )
            )
        if parts.extending is not None:
            takers.append(
                ExtenderAttempts(parts.extending, self.served, self.queue, failures, self.pipeline, clock)
            )
        self.timer = PluginTimer(clock, randomness, observer)
        self._left = parts.left
        self._left.attempt = self.timer.budget.under_way
        self.loop = SchedulingLoop(
            self.queue, waiting.work, self.served, failures, self.pipeline, self.timer, clock, takers
        )
        ends = (self.explanations, waiting.rights, self.cycle, binding.rejections, leaving)
        optional = (
            None if parts.gangs is None else parts.gangs.groups,
            self.mirror,
            waiting.feed,
            self.shares,
            binding.oversight,
            OfTypes((ObjectAdded, ObjectUpdated, ObjectDeleted, Synced), (self.devices,)),
            OfTypes((PodUpdated, PodDeleted), tuple(each for each in ends if each is not None)),
        )
        self.subscribers: tuple[EventSubscriber | OfTypes, ...] = tuple(
            each for each in optional if each is not None
        )

    def ingestion(self, others: Sequence[EventSubscriber | OfTypes], observer: Observer) -> Ingestion:
        """The ingestion of events into the wing and the other subscribers."""
        return Ingestion((*self.subscribers, *others), observer)

    def serve_devices(self, *, is_served: bool, why_not: str = "") -> None:
        """Start or stop serving claims; pods with claims are tried again."""
        objects = self._cache.cluster.objects
        objects.ledger(DeviceBook).serve(is_served=is_served, why_not=why_not)
        objects.version += 1
        change = ClusterEvent(EventResource.RESOURCE_SLICE, ActionType.ADD, None, None, objects.read_only)
        self.queue.move_all_to_active_or_backoff_queue(change, self._clock.monotonic())

    def serve(self, schedulers: Mapping[str, ProfileScheduler], others: Collection[str] = ()) -> None:
        """Set the served profiles, and the scheduler names that other operators serve."""
        if self.reports is not None:
            self.reports.others = others
        self._waiting.serve(schedulers)

    def take_over(self) -> None:
        """Begin to lead."""
        self._waiting.feed.take_over()
        for uid, ends in self._left.left.items():
            self._set_aside(uid, ends)

    def _set_aside(self, uid: str, ends: int) -> None:
        """Try a pod last, because so many processes have ended while they tried it."""
        pod = self._cache.waiting.get(uid)
        if pod is None:
            return
        self.queue.set_aside(uid, ends + FIRST_ASIDE, self._clock.monotonic())
        times = "once" if ends == 1 else f"{ends} times in a row"
        self.explanations.explain(
            pod,
            "SchedulerError",
            f"the operator ended {times} while it tried this pod; other pods go first, and it is tried later",
        )

    async def run(self) -> None:
        """Place pods until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.explanations.run(), name="conditions")
            group.create_task(self.loop.run(), name="scheduling")
            if self._waiting.cooled is not None:
                group.create_task(self._waiting.cooled.run(), name="cooled nodes")
            if self._waiting.rights is not None:
                rights = self._waiting.rights.run(self.queue, self._clock)
                group.create_task(rights, name="rights of pods")
            if self.reports is not None:
                group.create_task(self.reports.run(), name="status of pod groups")
