"""Builds every object of the operator and passes it down; :mod:`plimsoll.app.process` runs it.

This is the only module that may import every layer. It makes no decisions.
"""

import asyncio
import functools
from collections import Counter
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from plimsoll.api.v1alpha1.pod_group import PodGroupResourceStatus
from plimsoll.app.candidacy import candidacy, namespace_of
from plimsoll.app.installed_plugins import InstalledPlugins
from plimsoll.app.machine.machine import Machine, SideLoop
from plimsoll.app.memory.answers import MemoryAnswers
from plimsoll.app.process_observers import ProcessObservers
from plimsoll.app.rebalancing_wing import rebalancing_wing
from plimsoll.app.scheduling_wing import GangParts, PodPorts, SchedulingWing, WingParts
from plimsoll.app.settings import Settings
from plimsoll.app.shared_parts import SharedParts
from plimsoll.app.start_check import StartCheck
from plimsoll.app.startup import Startup
from plimsoll.app.supervision import Supervision
from plimsoll.cluster.cache import Cache
from plimsoll.cluster.pod_groups import Groups
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.kube.access_reviews import CallerReviews, permissions
from plimsoll.kube.adoption import AdmissionObjects
from plimsoll.kube.custom_resources import PodGroupResources, PolicyResources
from plimsoll.kube.metrics_api import UsageMeter
from plimsoll.kube.resource_claims import ResourceClaims
from plimsoll.kube.session.session import Session
from plimsoll.leadership.fence import Fence
from plimsoll.leadership.leader import Leadership
from plimsoll.leadership.work_under_way import WorkUnderWay
from plimsoll.load.summary import summary_of
from plimsoll.model.prices import prices_of
from plimsoll.planning.forecasts import Forecasts
from plimsoll.policies.profiles import PluginFailures, ProfileSchedulers
from plimsoll.policy_controller.controller import PolicyController
from plimsoll.policy_controller.relist import reconcile
from plimsoll.policy_controller.status import PolicyStatuses, RetriedStatuses
from plimsoll.ports.extenders import ExtenderPort
from plimsoll.ports.pod_writes import VictimEvictor
from plimsoll.scheduling.adoption import Adoption
from plimsoll.scheduling.extenders.client import ExtenderClient
from plimsoll.scheduling.orphaned_pods import OrphanedPods
from plimsoll.telemetry.scraped_state import Sources, StateCollector
from plimsoll.timing.signal import Signal
from plimsoll.timing.timer import Timer
from plimsoll.usage.load_feed import LoadFeed
from plimsoll.writers.events import EventPoster
from plimsoll.writers.pods import PodBinder, PodDocuments, PodPreemptor, PodStatusPatcher
from plimsoll.writers.volumes import VolumePatcher

if TYPE_CHECKING:
    from plimsoll.app.memory.live_views import LiveViews

#: Seconds without progress of the scheduling loop, despite pending work, after which it counts as hanging.
#: A Bind plugin that does not return holds a slot for that long.
HANGS_S = 900.0

#: Maximum wait in seconds, before pods are scheduled, for targets of earlier processes' moves to be reserved.
RECOVERY_S = 5.0


class Operator:
    """One operator process.

    Args:
        session: The session with the API server; its writes pass the fence.
        lease_session: A session for the election alone, on the thread's loop.
        thread: Runs the election and serves the probes.
        machine: The machine on which the process runs.
        extenders: Sends requests to HTTP extenders.
    """

    def __init__(
        self,
        settings: Settings,
        session: Session,
        lease_session: Session,
        thread: SideLoop,
        machine: Machine,
        extenders: ExtenderPort,
    ) -> None:
        self.settings, self.clock, self.fence = settings, machine.clock, Fence(machine.clock)
        self.conditions = Signal()
        plugins = InstalledPlugins()
        observers = ProcessObservers(settings, machine.clock, session, self.conditions)
        self.metrics, self.outages, self.notices = observers.metrics, observers.outages, observers.notices
        self.observer, self.access = observers.observer, observers.access
        left_out = plugins.load_others(self.observer)
        self.supervision = Supervision(machine, self.observer)
        observed = session.observed(self.observer).fenced(self.fence)
        self.session = session = observed.permitted(permissions(self.access))
        self.cache = Cache()
        self.parts = parts = self._shared_parts(machine)
        elections = lease_session.observed(self.observer)
        self.callers = CallerReviews(elections)
        work = WorkUnderWay()
        self.leadership: Leadership = candidacy(
            settings, elections, parts, thread, self.supervision, self.fence, work
        )
        statuses = RetriedStatuses(PolicyResources(session), self.clock)
        namespace = namespace_of(settings)
        self.rebalancing = rebalancing_wing(parts, plugins.strategies, statuses, namespace, settings)
        self.extenders = extenders
        extending = ExtenderClient(
            extenders,
            PodDocuments(session),
            fence=self.fence,
            clock=self.clock,
            observer=self.observer,
            conditions=self.conditions,
        )
        self.wing = _scheduling_wing(parts, self.rebalancing.victims, extending, work)
        self.queue, self.loop = self.wing.queue, self.wing.loop
        machine.watch_attempts(self.wing.timer.budget)
        self.memory = MemoryAnswers(self.queue, parts.book, self.clock, lambda: self.leadership.standing)
        self.orphans = OrphanedPods(parts.recorder, self.clock, self.observer, self.conditions)
        self.adoption = Adoption(
            AdmissionObjects(session), namespace, self.clock, self.observer, self.conditions
        )
        profiles = self._profiles(plugins, observers.failures, extending)
        self.policies = self._controller(profiles, statuses, left_out)
        self.start_check = StartCheck(
            session,
            self.access,
            self.cache.cluster,
            self.orphans,
            self.policies.degrade,
            self.observer,
            self.clock,
            settings.operator_name,
        )
        self.startup = Startup(
            parts,
            self.leadership,
            self.wing,
            self.rebalancing,
            (*self.rebalancing.subscribers, self.orphans),
            functools.partial(self.policies.were_served, PolicyResources(session)),
            plugins.declared(),
            lambda kind: observers.forgive(plugins.readers(kind)),
        )
        self.metrics.register(StateCollector(self._sources()))

    def _shared_parts(self, machine: Machine) -> SharedParts:
        session, clock, observer = self.session, self.clock, self.observer
        timer = Timer(clock, observer)
        return SharedParts(
            session=session,
            machine=machine,
            observer=observer,
            access=self.access,
            recorder=EventPoster(session, clock, f"plimsoll-{machine.hostname}", observer),
            timer=timer,
            book=ReservationBook(self.cache, timer),
            groups=Groups(),
            load=LoadFeed(UsageMeter(session, observer), self.cache.cluster, clock, observer),
            conditions=self.conditions,
            seed=self.settings.seed,
            forks_plans=self.settings.plans == "process",
            operator=self.settings.operator_name,
        )

    def _profiles(
        self, plugins: InstalledPlugins, failures: PluginFailures, extending: ExtenderClient
    ) -> ProfileSchedulers:
        parts = self.parts
        return ProfileSchedulers(
            registry=plugins.registry,
            defaults=plugins.defaults,
            cluster=self.cache.cluster,
            nominator=parts.book.nominator,
            randomness=parts.machine.randomness(parts.seed),
            failures=failures,
            extending=extending,
            observer=self.observer,
        )

    def _controller(
        self, profiles: ProfileSchedulers, statuses: RetriedStatuses, left_out: Mapping[str, str]
    ) -> PolicyController:
        rebalancers = self.rebalancing.rebalancers
        return PolicyController(
            profiles=profiles,
            rebalancing=rebalancers,
            statuses=PolicyStatuses(
                statuses,
                self.parts.recorder,
                self.access,
                self.clock,
                self.observer,
                advisers=(rebalancers, self.orphans),
                adoption=self.adoption.troubles,
                operator=self.settings.operator_name,
            ),
            observer=self.observer,
            access=self.access,
            serve=self._serve,
            conditions=self.conditions,
            left_out=left_out,
        )

    @property
    def live_views(self) -> "LiveViews":
        """The views of the live page."""
        from plimsoll.app.memory.live_views import LiveViews  # noqa: PLC0415 - where the page is served

        return LiveViews(
            self.queue,
            self.cache,
            self.policies,
            self.rebalancing.keeper.known,
            self.rebalancing.maintenances.given,
            self.clock,
            lambda: self.leadership.standing,
            lambda: (each.profile.groups for each in self.wing.served.schedulers.values()),
        )

    def _sources(self) -> Sources:
        cluster, cache, queue = self.cache.cluster, self.cache, self.queue
        return Sources(
            queues=queue.depths,
            cache=lambda: {
                "nodes": len(cluster),
                "pods": len(cluster.pods),
                "assumed_pods": len(cache.assumed),
            },
            rejections=lambda: ((queued.pod.pod.spec.scheduler_name, queued.rejected_by) for queued in queue),
            in_flight=lambda: self.loop.in_flight,
            calls=lambda: self.wing.timer.counts,
            events_dropped=lambda: self.parts.recorder.dropped,
            tasks=lambda: len(asyncio.all_tasks()),
            conditions=self.policies.conditions,
            degraded=self.policies.degradations,
            stalled=self._stalled,
            runs=self.rebalancing.statistics.figures,
            load=lambda: summary_of(cluster),
            maintenances=self.rebalancing.maintenances.given,
            unhealthy=lambda: self.rebalancing.unhealthy.found,
            prices=lambda: prices_of(cluster.nodes),
            shares=lambda: () if self.wing.shares is None else self.wing.shares.accounts(),
            groups=lambda: self.parts.groups,
        )

    def _stalled(self) -> Mapping[str, int]:
        """Stalled pods by profile; a standby schedules none."""
        if not self.leadership.acquired.is_set():
            return {}
        now = self.clock.monotonic()
        found = Counter(each.pod.pod.spec.scheduler_name for each in self.queue if each.is_stalled(now))
        return {name: found[name] for name in self.wing.served.schedulers}

    def _serve(self, schedulers: Mapping[str, ProfileScheduler], forecasts: Forecasts) -> None:
        self.parts.load.is_scored = any(each.profile.scores_load for each in schedulers.values())
        self.rebalancing.serve({name: each.profile for name, each in schedulers.items()}, forecasts)
        self.wing.serve(schedulers, self.policies.others)

    def unready(self) -> str:
        """Why the operator is not ready, "" when it is ready."""
        return self.supervision.unready() or self.startup.unready()

    def broken(self) -> str:
        """Why the process should be restarted, "" when it should not; called from the probes' thread."""
        if problem := self.supervision.problem():
            return problem
        overdue_s = self.leadership.overdue_s()
        if overdue_s > 2 * self.settings.leader_elect_retry_period:
            return f"the election's next step is {overdue_s:.0f} s overdue"
        waited_s = self.loop.waited_s(self.clock.monotonic())
        return f"the scheduling loop hangs for {waited_s:.0f} s" if waited_s > HANGS_S else ""

    @property
    def work(self) -> Mapping[str, Coroutine[Any, Any, None]]:
        """Long-running tasks of the process, keyed by name; :mod:`plimsoll.app.process` starts them."""
        policies = reconcile(self.policies, PolicyResources(self.session), self.clock, self.observer)
        return {
            "heartbeat": self.supervision.beat(),
            "outage log": self.outages.run(),
            "events": self.parts.recorder.run(),
            **({"notices": self.notices.run()} if self.notices else {}),
            "election": self.leadership.run(),
            **self.startup.work,
            "status of policies": self.policies.run(),
            "comparison of policies": policies,
            "decisions": self._decide(),
        }

    async def _decide(self) -> None:
        await self.access.begin()
        await self.startup.until_leading()
        self.conditions.notify()  # a standby writes no status
        async with asyncio.TaskGroup() as group:
            group.create_task(self.start_check.run())
            group.create_task(self.parts.timer.run(), name="timer")
            group.create_task(self.access.run(), name="access reviews")
            group.create_task(self.rebalancing.read(), name="readings of usage")
            if not self.settings.operator_name:  # records, taints and pods of no scheduler have one keeper
                group.create_task(self.orphans.run(self.policies.claimed), name="orphaned pods")
                group.create_task(self.rebalancing.run(), name="rebalancing")
                with suppress(TimeoutError):  # records may be unreadable; pods are scheduled nevertheless
                    async with asyncio.timeout(RECOVERY_S):
                        await self.rebalancing.recovered.wait()
            group.create_task(self.wing.run(), name="scheduling wing")
            group.create_task(self.adoption.run(self.policies.adopting), name="adoption")


def _scheduling_wing(
    parts: SharedParts, victims: VictimEvictor, extending: ExtenderClient, left: WorkUnderWay
) -> SchedulingWing:
    """The wing with its adapters to the API server."""
    session, clock = parts.session, parts.machine.clock
    groups = PodGroupResources(session, "podgroups", PodGroupResourceStatus)
    return SchedulingWing(
        parts.book,
        PodPorts(
            binder=PodBinder(session),
            volumes=VolumePatcher(session),
            claims=ResourceClaims(session),
            preemptor=PodPreemptor(session, clock),
            statuses=PodStatusPatcher(session, clock),
            recorder=parts.recorder,
        ),
        clock,
        # A separate source: measurements must not change decisions.
        parts.machine.randomness(parts.seed),
        parts.observer,
        WingParts(
            access=parts.access,
            evictor=victims,
            gangs=GangParts(parts.groups, groups, parts.timer),
            extending=extending,
            fair_share=True,
            refreshed=parts.load.refreshed,
            left=left,
        ),
    )
