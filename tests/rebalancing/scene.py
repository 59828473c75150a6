"""A cluster of two nodes, one of them tainted, and the rebalancing of one policy, without a server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec

from cluster.invariants import check_book
from plimsoll.access.rights import Access
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.cache import Cache
from plimsoll.cluster.ingestion import Ingestion, Mirror
from plimsoll.cluster.pod_groups import Groups
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.cluster.watch_events import NodeAdded, PodAdded, PodDeleted, PodUpdated
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.framework import Registry
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.model.kinds.pod import Pod
from plimsoll.planning.forecasts import Forecasts
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.policies.rebalancing import Registries
from plimsoll.policy_controller.served_profiles import ServedProfiles
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.rebalancing.surges.rollouts import RolloutSurges
from plimsoll.rebalancing.wing import RebalancingPorts, RebalancingWing, Runtime
from plimsoll.scheduling.queue.feed import QueueFeed
from plimsoll.scheduling.queue.queue import SchedulingQueue
from plimsoll.strategies import EVICTORS
from plimsoll.strategies import IN_TREE as STRATEGIES
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import (
    FakeAccessReviewer,
    FakeClock,
    FakeCosts,
    FakeEvictor,
    FakeMeter,
    FakeNamespacedStatuses,
    FakeNodeCloser,
    FakePolicyStatuses,
    FakeRecorder,
    FakeRecords,
    FakeRollouts,
    InlineComputer,
    RememberingObserver,
    settled,
)
from plimsoll.timing.signal import Signal
from plimsoll.timing.timer import Timer
from plimsoll.usage.load_feed import LoadFeed
from rebalancing.moves.invariants import checked

POLICY = "tidy"


def a_policy(
    mode: str = "Enforce", *, scope: dict[str, Any] | None = None, **rebalancing: Any
) -> SchedulingPolicy:
    """Moves pods away from nodes whose taints they do not tolerate, every five minutes."""
    return SchedulingPolicy.model_validate(
        {
            "metadata": {"name": POLICY},
            "spec": {
                "scope": scope or {},
                "rebalancing": {
                    "mode": mode,
                    "strategies": [{"name": "RemovePodsViolatingNodeTaints"}],
                    **rebalancing,
                },
            },
        }
    )


def named(policy: SchedulingPolicy, name: str) -> SchedulingPolicy:
    """The same policy under another name."""
    return policy.model_copy(update={"metadata": policy.metadata.model_copy(update={"name": name})})


def status_of(node: str, phase: str = "Running", ready: bool = True) -> dict[str, Any]:
    """The status of a pod that is on a node, or waits."""
    if not node:
        return {"phase": "Pending"}
    is_ready = ready and phase == "Running"
    return {"phase": phase, "conditions": [{"type": "Ready", "status": str(is_ready)}]}


def web(
    number: int,
    node: str = "",
    phase: str = "Running",
    created: str = "2025-12-31T00:00:00Z",
    *,
    ready: bool = True,
) -> Pod:
    """A pod of the ReplicaSet web."""
    return a_pod(
        f"web-{number}",
        owner="ReplicaSet/web",
        cpu="100m",
        node=node,
        status=status_of(node, phase, ready),
        metadata={"creationTimestamp": created},
    )


class Scene:
    """Everything around the rebalancers.

    Args:
        documents: Records of earlier processes, or a :class:`FakeRecords` that keeps them.
    """

    def __init__(
        self,
        *documents: Any,
        rollouts: Any = None,
        computer: Any = None,
        surges: Any = None,
        evictor: Any = None,
        forks: Any = None,
        meter: FakeMeter | None = None,
        audit: Any = None,
        places_by_load: bool = False,
    ) -> None:
        self.clock = FakeClock()
        kept = [each for each in documents if isinstance(each, FakeRecords)]
        self.records = kept[0] if kept else FakeRecords(*documents)
        self.evictor = evictor or FakeEvictor()
        self.closer, self.unhealthy = FakeNodeCloser(), FakeNodeCloser()
        self.costs = FakeCosts()
        self.rollouts = rollouts or FakeRollouts()
        self.recorder = FakeRecorder()
        self.statuses = FakePolicyStatuses()
        self.observer = RememberingObserver()
        self.meter = meter or FakeMeter()
        self.cache = Cache()
        self.timer = Timer(self.clock, self.observer)
        self.book = ReservationBook(self.cache, self.timer)
        self.nominator = self.book.nominator
        self.feed = LoadFeed(self.meter, self.cache.cluster, self.clock)
        self.groups = Groups()
        self.reviewer = FakeAccessReviewer()
        self.conditions = Signal()
        self.access = Access(self.reviewer, self.clock, self.observer)
        self.computer = computer or InlineComputer()
        self.keeper = EvictionRecordStore(self.records, self.clock, self.observer)
        registry = Registry(IN_TREE)
        defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items() if name in registry]
        defaults += [Enabled("NodeLoad", 3)] if places_by_load else []
        profile = build_profile(ProfileConfig("default-scheduler"), registry, defaults)
        self.wing = RebalancingWing(
            self.book,
            self.groups,
            self.keeper,
            Registries(StrategyRegistry(STRATEGIES), EvictorRegistry(EVICTORS)),
            self.access,
            RebalancingPorts(
                self.evictor,
                self.closer,
                self.unhealthy,
                self.costs,
                self.recorder,
                self.statuses,
                FakePolicyStatuses(),
                FakeNamespacedStatuses(),
                self.feed,
                self.meter,
                surges or RolloutSurges(self.rollouts, self.cache.cluster.objects),
                audit,
            ),
            Runtime(
                self.timer,
                self.clock,
                self.computer,
                self.observer,
                self.conditions,
                "plimsoll",
                forks,
                "west",
            ),
        )
        self.rebalancers, self.runs = self.wing.rebalancers, self.wing.runs
        checked(self.wing.executor.machine)
        self.forecasts = Forecasts(default=profile)
        self.wing.serve({"default-scheduler": profile}, self.forecasts)
        self.troubled: list[dict[str, str]] = []  #: sentences about the policy, after each change
        self.advised: list[list[str]] = []  #: further conditions of the policy, after each change
        queue = SchedulingQueue(lambda pod, since: (-pod.priority, since))
        mirror = Mirror(self.cache, self.observer)
        feed = QueueFeed(mirror, queue, ServedProfiles(), self.book, self.clock, self.observer)
        self.ingestion = Ingestion((self.groups, mirror, feed, *self.wing.subscribers), self.observer)
        self.tell(
            NodeAdded(a_node("bad", taints=["broken=yes:NoSchedule"])),
            NodeAdded(a_node("good")),
            PodAdded(web(1, "bad")),
            PodAdded(web(2, "good")),
        )

    def tell(self, *events: Any) -> None:
        """What the watches tell; afterwards no reservation may be out of place."""
        self.ingestion.apply(events)
        check_book(self.book)

    def gone(self, pod: Any) -> None:
        """The watch tells that a pod is gone."""
        self.tell(PodDeleted(pod))

    def on_record(self, document: dict[str, Any]) -> None:
        """An earlier process left this record."""
        meta = document["metadata"]
        self.records.documents[f"{meta['namespace']}/{meta['name']}"] = document
        self.keeper.notice(document)

    def leaving(self, pod: Any) -> None:
        """The watch tells that a pod's deletion has begun."""
        moment = datetime(2026, 1, 1, tzinfo=UTC)
        metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=moment)
        self.tell(PodUpdated(pod, msgspec.structs.replace(pod, metadata=metadata)))

    @asynccontextmanager
    async def running(self, policy: Any = None) -> AsyncIterator[Any]:
        """Rebalancers at work, after recovery; the policy is run by hand."""
        task = asyncio.create_task(self.wing.run())
        timer = asyncio.create_task(self.timer.run())
        readings = asyncio.create_task(self.wing.read())
        listener = asyncio.create_task(self._listen())
        await settled()
        if policy is not None:
            self.rebalancers.adopt(policy)  # the timetable has a clock of its own
        try:
            yield self
        finally:
            crashed = task.done()
            for each in (task, timer, readings, listener):
                each.cancel()
            await asyncio.gather(task, timer, readings, listener, return_exceptions=True)
            assert not crashed, "the rebalancers have ended"
            broken = [each for each in self.observer.failures if each[0] == "the move machine"]
            assert not broken, broken

    async def _listen(self) -> None:
        seen = self.conditions.count
        while True:
            seen = await self.conditions.wait(seen)
            self.troubled.append(dict(self.rebalancers.troubles(POLICY)))
            self.advised.append(list(self.rebalancers.advice(POLICY)))

    async def run(self, policy: str = POLICY) -> None:
        """One run of the policy."""
        await self.runs.rebalance(policy)
        await settled()

    @property
    def phases(self) -> list[list[str]]:
        """The phases that each record went through, sorted by record."""
        return [phases for _, phases in sorted(self.records.history.items())]

    @property
    def record(self) -> dict[str, Any]:
        """The only record."""
        (document,) = self.records.documents.values()
        return document
