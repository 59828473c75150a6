"""The cluster of a recording, in which a run of planner Upstream evicts through production's own parts.

Records, retries, the question whether the pod still stands, and the way from the server's answer to the
next decision are those of the operator; only the API server is played, as the recording says it behaves.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

import msgspec

from plimsoll.adapters.answering import answer_of
from plimsoll.adapters.errors import error_of
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.control.approving import Approvals
from plimsoll.control.displacing import Displacements
from plimsoll.control.holding import Holds
from plimsoll.control.keeping import RecordKeeper
from plimsoll.control.moving import Mover
from plimsoll.control.offering import Offer
from plimsoll.control.ports import Answer, Verdict
from plimsoll.control.reporting import RunTotals
from plimsoll.control.requesting import Requests
from plimsoll.control.restraining import PLANNING_S, StopButton
from plimsoll.control.sending import MoveSender
from plimsoll.control.surging import Surges
from plimsoll.control.upstream_enforcement import UpstreamEnforcement
from plimsoll.control.verifying import Outcome, Verification
from plimsoll.engine.cycle import Nominations
from plimsoll.engine.memory import Memory
from plimsoll.engine.moves import EvictionPlan, Rebalancing
from plimsoll.engine.upstream_plan import UpstreamRun
from plimsoll.framework import Cluster, Pod, PodInfo
from plimsoll.framework.observer import Observer
from plimsoll.framework.strategy_context import Planner
from plimsoll.model.event import PodAdded, PodDeleted, PodUpdated
from plimsoll.state.cache import Cache
from plimsoll.testing.fakes import (
    FakeClock,
    FakeEvictionRequester,
    FakeRecorder,
    FakeRecords,
    FakeRollouts,
    InlineComputer,
)

POLICY = SchedulingPolicy.model_validate(
    {
        "metadata": {"name": "recorded"},
        "spec": {"rebalancing": {"mode": "Enforce", "planner": "Upstream", "strategies": []}},
    }
)


class ImpatientClock(FakeClock):
    """Time in which nobody waits: it passes at once."""

    async def sleep(self, seconds: float) -> None:
        """Move the time."""
        self.time += seconds


class RecordedServer:
    """Takes evictions as a recording says, and shows at once what became of the pods.

    Args:
        cluster: The placed pods; it is changed.
        unplaced: All other pods.
        now: The time.
        refusing: HTTP status by pod key, of evictions that are refused.
        terminates: Whether an evicted pod stays, with a deletion timestamp, instead of being gone.
    """

    def __init__(
        self,
        cluster: Cluster,
        unplaced: Iterable[PodInfo],
        now: datetime,
        *,
        refusing: Mapping[str, int],
        terminates: bool,
    ) -> None:
        self._cache = Cache(cluster)
        self._now = now
        self._refusing = refusing
        self._terminates = terminates
        self._clock = ImpatientClock(now.timestamp())
        self.records = FakeRecords()
        keeper = RecordKeeper(self.records, self._clock, Observer())
        nominations = Nominations()
        holds = Holds(self._cache, nominations)
        outcomes: list[Outcome] = []
        verification = Verification(outcomes.append, holds.hand_over)
        recorder, observer = FakeRecorder(), Observer()
        policies = {POLICY.metadata.name: POLICY}
        requester = FakeEvictionRequester()
        sender = MoveSender(
            cache=self._cache,
            keeper=keeper,
            verification=verification,
            holds=holds,
            evictor=self,
            recorder=recorder,
            clock=self._clock,
            passed_on=outcomes.append,
        )
        requests = Requests(
            policies=policies,
            sender=sender,
            requester=requester,
            offer=Offer(policies, requester, self._clock, observer),
            approvals=Approvals(keeper),
            stop=StopButton(cluster.objects, ""),
            keeper=keeper,
            cache=self._cache,
            clock=self._clock,
            observer=observer,
        )
        surges = Surges(
            cache=self._cache,
            keeper=keeper,
            holds=holds,
            rollouts=FakeRollouts(),
            recorder=recorder,
            clock=self._clock,
            ended=outcomes.append,
        )
        self._mover = Mover(
            cache=self._cache,
            keeper=keeper,
            verification=verification,
            holds=holds,
            sender=requests,
            surges=surges,
            clock=self._clock,
            nominations=nominations,
        )
        for pod in unplaced:
            self._mover.observe(PodAdded(pod.pod))
        self._enforcement = UpstreamEnforcement(
            policies=policies,
            asked_for=lambda _: Rebalancing((), (), {}, planner=Planner.UPSTREAM),
            keeper=keeper,
            mover=self._mover,
            displacements=Displacements(cluster, lambda: (), lambda _: False, self._clock),
            objects=cluster.objects,
            computer=InlineComputer(),
            clock=self._clock,
        )

    def carry_out(self, run: UpstreamRun) -> None:
        """Carry out a run to its end."""
        totals = RunTotals(POLICY, self._clock.now(), EvictionPlan((), ()), "recorded")
        asyncio.run(self._enforcement.carry_out(totals, run, Memory(), PLANNING_S))

    async def evict(self, pod: Pod) -> Answer:
        """Take an eviction, or refuse it."""
        status = self._refusing.get(f"{pod.namespace}/{pod.name}")
        if status is not None:
            answer = answer_of(error_of(f"POST {pod.name}/eviction", status, {"message": f"HTTP {status}"}))
            return replace(answer, verdict=Verdict.BLOCKED) if status == 429 else answer
        info = self._cache.info(self._marked(pod)) if self._terminates else None
        node = self._cache.cluster.row_of_pod(pod.uid)
        if node is None:
            self._mover.observe(PodDeleted(pod) if info is None else PodUpdated(pod, info.pod))
        elif info is None:
            self._cache.cluster.displace(pod.uid)
        else:
            self._cache.cluster.place(info, self._cache.cluster.nodes[node].name)
        return Answer(Verdict.DONE)

    def _marked(self, pod: Pod) -> Pod:
        metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=self._now)
        return msgspec.structs.replace(pod, metadata=metadata)
