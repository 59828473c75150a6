"""The cluster of a recording, in which the operator's own parts rebalance.

Records, retries, the question whether the pod still stands, and the way from the server's answer to the
next decision are the operator's; only the API server is played, as the recording says that it behaves.
"""

import asyncio
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from plimsoll.access.rights import Access
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.cache import Cache
from plimsoll.cluster.ingestion import Ingestion
from plimsoll.cluster.pod_groups import Groups
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.cluster.watch_events import PodAdded, PodDeleted, PodUpdated
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.framework import Pod, PodInfo, Registry
from plimsoll.framework.descheduling.measurements import Measurements
from plimsoll.kube.session.errors import answer_of, error_of
from plimsoll.migration.descheduler_profiles import EVICTOR_CLASSES, STRATEGIES
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.forecasts import Forecasts
from plimsoll.planning.history import MoveHistory
from plimsoll.planning.moves import EvictionPlan
from plimsoll.planning.upstream.planner import UpstreamRun
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.policies.rebalancing import Registries
from plimsoll.ports.observer import Observer
from plimsoll.ports.usage import UsageReading
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.moves.state import TimerName
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.rebalancing.runs.plan_parcel import PlanParcel
from plimsoll.rebalancing.runs.plan_runner import PLANNING_S
from plimsoll.rebalancing.runs.status import RunTotals
from plimsoll.rebalancing.surges.rollouts import RolloutSurges
from plimsoll.rebalancing.wing import RebalancingPorts, RebalancingWing, Runtime
from plimsoll.testing.fakes import (
    FakeAccessReviewer,
    FakeClock,
    FakeCosts,
    FakeMeter,
    FakeNamespacedStatuses,
    FakeNodeCloser,
    FakePolicyStatuses,
    FakeRecorder,
    FakeRecords,
    FakeRollouts,
    InlineComputer,
)
from plimsoll.timing.signal import Signal
from plimsoll.timing.timer import Timer
from plimsoll.usage.load_feed import LoadFeed

Evicted = tuple[str, str, str, str]
"""Strategy, node, namespace and name of a pod whose eviction was accepted."""

#: Carries out runs that no SchedulingPolicy describes.
POLICY = SchedulingPolicy.model_validate(
    {
        "metadata": {"name": "recorded"},
        "spec": {"rebalancing": {"mode": "Enforce", "planner": "Upstream", "limits": {"total": "100%"}}},
    }
)

PROFILE = build_profile(
    ProfileConfig("default-scheduler"),
    Registry(IN_TREE),
    [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()],
)


class ImpatientClock(FakeClock):
    """Time that passes immediately."""

    async def sleep(self, seconds: float) -> None:
        """Move the time."""
        self.time += seconds


class RecordedServer:
    """Takes evictions as a recording says, and shows immediately what became of the pods.

    Args:
        cluster: The placed pods; it is only read.
        unplaced: All other pods.
        now: The time.
        measurements: What nodes and pods use.
        refusing: HTTP status by pod key, of evictions that are refused.
        terminates: Whether an evicted pod stays, with a deletion timestamp, instead of being gone.
    """

    def __init__(
        self,
        cluster: Cluster,
        unplaced: Sequence[PodInfo],
        now: datetime,
        *,
        measurements: Measurements,
        refusing: Mapping[str, int],
        terminates: bool,
    ) -> None:
        self._cache = Cache(cluster.fork())
        self._now = now
        self._refusing = refusing
        self._terminates = terminates
        self._clock = ImpatientClock(now.timestamp(), ahead_s=0)
        self._keeper = EvictionRecordStore(FakeRecords(), self._clock, Observer())
        self._accepted: list[Evicted] = []
        self._timer = _ImpatientTimer(self._clock, Observer())
        meter = _meter(measurements, now.timestamp())
        self._wing = RebalancingWing(
            ReservationBook(self._cache, self._timer),
            Groups(),
            self._keeper,
            Registries(STRATEGIES, EVICTOR_CLASSES),
            Access(FakeAccessReviewer(), self._clock, Observer()),
            RebalancingPorts(
                self,
                FakeNodeCloser(),
                FakeNodeCloser(),
                FakeCosts(),
                FakeRecorder(),
                FakePolicyStatuses(),
                FakePolicyStatuses(),
                FakeNamespacedStatuses(),
                LoadFeed(meter, self._cache.cluster, self._clock),
                meter,
                RolloutSurges(FakeRollouts(), self._cache.cluster.objects),
            ),
            Runtime(self._timer, self._clock, InlineComputer(), Observer(), Signal()),
        )
        self._rebalancers = self._wing.rebalancers
        self._ingestion = Ingestion(self._wing.subscribers, Observer())
        pods = [*cluster.pods.values(), *unplaced]
        self._wing.serve({pod.pod.spec.scheduler_name: PROFILE for pod in pods}, Forecasts(default=PROFILE))
        for pod in unplaced:
            self._ingestion.apply([PodAdded(pod.pod)])

    def carry_out(self, run: UpstreamRun) -> None:
        """Carry out a run to its end."""
        self._rebalancers.configure([POLICY])
        totals = RunTotals(POLICY, self._clock.now(), EvictionPlan((), ()), "recorded")
        parcel = PlanParcel("recorded", self._cache.cluster)
        asyncio.run(self._wing.upstream.carry_out(totals, run, MoveHistory(), parcel, PLANNING_S))

    def rebalance(self, policy: SchedulingPolicy) -> list[Evicted]:
        """Run a policy once; what was evicted, in order.

        Raises:
            ConfigurationError: The policy is not accepted.
        """
        self._rebalancers.check(policy)
        self._rebalancers.configure([policy])
        asyncio.run(self._wing.runs.rebalance(policy.metadata.name))
        return self._accepted

    async def standing(self, _pod: Pod) -> WriteResult:
        """The cluster is never behind."""
        return WriteResult(WriteOutcome.DONE)

    async def evict(self, pod: Pod) -> WriteResult:
        """Take an eviction, or refuse it."""
        status = self._refusing.get(f"{pod.namespace}/{pod.name}")
        if status is not None:
            answer = answer_of(error_of(f"POST {pod.name}/eviction", status, {"message": f"HTTP {status}"}))
            return replace(answer, verdict=WriteOutcome.BLOCKED) if status == 429 else answer
        *_, record = self._keeper.known.of_pod(pod.uid).values()
        spec = record.spec
        self._accepted.append((spec.strategy, spec.from_node, pod.namespace, pod.name))
        metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=self._now)
        ending = msgspec.structs.replace(pod, metadata=metadata)
        row = self._cache.cluster.row_of_pod(pod.uid)
        if row is None:
            self._ingestion.apply([PodUpdated(pod, ending) if self._terminates else PodDeleted(pod)])
        elif self._terminates:
            self._cache.set_placed(self._cache.info(ending), self._cache.cluster.nodes[row].name)
        else:
            self._cache.remove_pod(pod.uid)
        return WriteResult(WriteOutcome.DONE)


def _meter(measurements: Measurements, now: float) -> FakeMeter:
    """A meter that reads now what was measured."""
    meter = FakeMeter()
    meter.node_readings = [UsageReading(*each, now) for each in (measurements.nodes or {}).items()]
    meter.pod_readings = [UsageReading(*each, now) for each in (measurements.pods or {}).items()]
    meter.vectors = {query: list(samples) for query, samples in (measurements.samples or {}).items()}
    return meter


class _ImpatientTimer(Timer):
    """Ends the pauses between two tries immediately, and no other deadline: a recorded run has no time."""

    def set(self, key: Hashable, due: float, call: Callable[[], None]) -> None:
        """Call a function soon if it tries again."""
        if isinstance(key, tuple) and TimerName.RETRY in key:
            asyncio.get_running_loop().call_soon(call)
        else:
            super().set(key, due, call)
