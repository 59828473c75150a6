"""Evicts pods through EvictionRequests; the pod's responders decide how and when it leaves.

Every request is ours alone and named as its record, so a later process finds it; requests of others for the
same pod are never touched. One look reads all of ours, and each move is judged by what it says: the pod has
left, is waited for, or stays. A request that no move waits for any more is withdrawn first and deleted later,
so that responders get to know.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import EvictBy, RebalancingSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.cache import Cache
from plimsoll.framework import PodInfo
from plimsoll.planning.limits import LimitLevel
from plimsoll.planning.moves import Move
from plimsoll.planning.scope import never_evict
from plimsoll.ports.clock import Clock
from plimsoll.ports.eviction_requests import EvictionRequest, EvictionRequester
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.breakers.stop_button import STOP, StopButton
from plimsoll.rebalancing.eviction_requests.probe import Offer
from plimsoll.rebalancing.eviction_requests.progress import NOT_TAKEN_UP, REQUESTED, Standing, standing
from plimsoll.rebalancing.moves.approving import APPROVED, REJECTED, Approvals, move_of
from plimsoll.rebalancing.moves.moving import POLICY_CHANGED
from plimsoll.rebalancing.moves.sending import MoveSender, refused
from plimsoll.rebalancing.records.record import Record
from plimsoll.rebalancing.records.store import RecordKeeper

#: Seconds between two looks at what has been asked for, and at what may have been left behind.
LOOK_S, SWEEP_S = 2.0, 15.0

#: Seconds from withdrawing a request to deleting it.
WITHDRAWN_S = 60.0

#: Seconds after the start in which a policy that is not known yet is not taken for deleted.
STARTING_S = 30.0

#: Tries to create or withdraw a request, and seconds between two.
TRIES, AGAIN_S = 4, 1.0


@dataclass(frozen=True, slots=True)
class _Asked:
    record: Record
    move: Move
    since: float  #: seconds since the epoch


class Requests:
    """Sends moves as EvictionRequests where a policy wants that, as evictions otherwise.

    Args:
        policies: Those that rebalance, by name, at any moment.
        sender: Sends evictions; keeps records, rooms and outcomes in step.
        requester: Speaks to the API server.
        offer: Whether it has the API.
        approvals: What people say of proposals.
        stop: While it is pressed nothing stays asked for.
        keeper: The records.
        cache: The cluster as it is.
        clock: Time.
        observer: Told of failures.
    """

    def __init__(
        self,
        *,
        policies: Mapping[str, SchedulingPolicy],
        sender: MoveSender,
        requester: EvictionRequester,
        offer: Offer,
        approvals: Approvals,
        stop: StopButton,
        keeper: RecordKeeper,
        cache: Cache,
        clock: Clock,
        observer: Observer,
    ) -> None:
        self._policies = policies
        self._sender = sender
        self._requester = requester
        self._offer = offer
        self._approvals = approvals
        self._stop = stop
        self._keeper = keeper
        self._cache = cache
        self._clock = clock
        self._observer = observer
        self._asked: dict[str, _Asked] = {}
        self._withdrawn: dict[str, float] = {}  #: when requests were seen withdrawn, by key
        self._swept = float("-inf")
        self._began = clock.monotonic()
        self._has_leftovers = True  #: earlier processes may have left some

    # -- asking --------------------------------------------------------------------------------------

    async def send(self, record: Record, move: Move) -> WriteResult | None:
        """Ask for one pod to leave; the server's answer, None when it was not asked."""
        spec = self._spec_of(record)
        if spec is None or spec.evict_by is not EvictBy.EVICTION_REQUEST:
            return await self._sender.send(record, move)
        if self.is_asked(move.pod.uid):
            await self._keeper.cancel(record, "AlreadyRequested", "the pod has been asked to leave already")
            return None
        problem = self._offer.problem
        if problem:
            await self._keeper.cancel(record, self._offer.reason, problem)
            return None
        message = f"EvictionRequest {record.name}: about to be made"
        begun = await self._sender.begin(record, move, REQUESTED, message, waits=True)
        if begun is None:
            return None
        answer = await self._request(begun, move)
        if answer.is_done:
            self._asked[begun.key] = _Asked(begun, move, self._clock.now())
            return answer
        # A request whose answer was lost is found by the next sweep, and withdrawn.
        self._has_leftovers = self._has_leftovers or answer.verdict is WriteOutcome.UNKNOWN
        self._sender.stays(begun)
        await refused(self._keeper, begun, answer)
        self._sender.finish(begun)
        return answer

    def is_asked(self, pod: str) -> bool:
        """Whether this pod (by uid) has been asked to leave, and is still there."""
        return any(asked.record.spec.pod.uid == pod for asked in self._asked.values())

    async def _request(self, record: Record, move: Move) -> WriteResult:
        """Create the request; again while no answer tells whether it is there. Never raises."""
        answer = WriteResult(WriteOutcome.UNKNOWN)
        try:
            for left in reversed(range(TRIES)):
                answer = await self._requester.request(move.pod.pod, record.name)
                if answer.verdict not in (WriteOutcome.UNKNOWN, WriteOutcome.BUSY) or not left:
                    return answer
                await self._clock.sleep(max(AGAIN_S, answer.retry_after_s))
        except Exception as exc:  # noqa: BLE001 - whatever broke, the record is carried to its end
            return WriteResult(WriteOutcome.UNKNOWN, f"creating the EvictionRequest broke: {exc!r}")
        return answer

    async def resume(self, record: Record, pod: PodInfo) -> bool:
        """Take over a record whose pod an earlier process asked to leave; false for other records."""
        if record.status.reason != REQUESTED:
            return False
        began = next(each.time for each in record.status.transitions if each.phase is Phase.EVICTING)
        # Without the API, or without a request of this name, the next look says so and ends it.
        move = move_of(record, pod)
        self._sender.resume(record, move, before=began, waits=True)
        self._asked[record.key] = _Asked(record, move, began.timestamp())
        return True

    # -- looking -------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Look until cancelled."""
        self._began = self._clock.monotonic()
        while True:
            await self._clock.sleep(LOOK_S)
            try:
                await self._offer.refresh()
                if self._asked or self._is_sweep_due():
                    await self.look()
            except Exception as exc:  # noqa: BLE001 - whatever one request holds, the next look comes
                self._observer.failed("looking after EvictionRequests", repr(exc))

    def _is_sweep_due(self) -> bool:
        due = self._clock.monotonic() - self._swept >= SWEEP_S
        return self._offer.is_served and self._has_leftovers and due

    async def look(self) -> None:
        """Read our requests, judge every move that waits, see to requests that none waits for."""
        waiting = list(self._asked.values())  # one that is made while we read is judged next time
        answer, requests = await self._requester.list()
        if answer.verdict is WriteOutcome.GONE:
            self._offer.withdrawn(answer.message)
        elif not answer.is_done:
            self._observer.failed("reading EvictionRequests", answer.message)
        by_key = {each.key: each for each in requests}
        for asked in waiting:
            try:
                await self._judge(asked, by_key.get(asked.record.key), answer)
            except Exception as exc:  # noqa: BLE001 - whatever one move does, the others are judged
                self._observer.failed(f"EvictionRequest {asked.record.key}", repr(exc))
        if answer.is_done:
            self._swept = self._clock.monotonic()
            self._has_leftovers = False
            for request in requests:
                if request.key not in self._asked:
                    await self._clear(request)

    async def _judge(self, asked: _Asked, request: EvictionRequest | None, answer: WriteResult) -> None:
        record = asked.record
        if self._has_left(record):  # as the watch tells; a status could be anybody's
            del self._asked[record.key]
            self._has_leftovers = True
            said = request.said if request is not None else ""
            await self._sender.leaves(record, asked.move, "Left", said)
            self._sender.finish(record)
            return
        end = self._called_off(record)
        if end is None and answer.is_done:
            end = standing(
                request,
                record.name,
                since=asked.since,
                now=self._clock.now(),
                timeout_s=self._timeout_s(record),
            )
        elif end is None and answer.verdict is WriteOutcome.GONE:
            end = Standing(Phase.CANCELLED, self._offer.reason, self._offer.problem)
        if end is None:
            return  # not known just now
        if end.goes_on:
            await self._keeper.explain(record, end.reason, end.message)
            return
        del self._asked[record.key]
        self._has_leftovers = True
        if end.reason == NOT_TAKEN_UP:
            self._offer.unattended(end.message)
        if request is not None:
            await self._withdraw(request)
        self._sender.stays(record)
        blocked_by = STOP if end.phase is Phase.BLOCKED else None
        await self._keeper.advance(
            record, end.phase, reason=end.reason, message=end.message, blocked_by=blocked_by
        )
        self._sender.finish(record)

    def _called_off(self, record: Record) -> Standing | None:
        """Why the pod shall not leave any more, None when it shall."""
        spec = self._spec_of(record)
        if spec is None and self._clock.monotonic() - self._began < STARTING_S:
            return None
        if spec is None or spec.mode is not record.spec.mode or spec.evict_by is not EvictBy.EVICTION_REQUEST:
            return Standing(Phase.CANCELLED, *POLICY_CHANGED)
        if record.key not in self._keeper.known:
            return Standing(Phase.CANCELLED, "RecordDeleted", "the record was deleted")
        if self._stop.is_pressed:
            return Standing(Phase.BLOCKED, LimitLevel.BUDGET.value, self._stop.sentence)
        if self._approvals.is_taken_back(record):
            return Standing(Phase.CANCELLED, REJECTED, f"somebody took {APPROVED}=true back")
        present = self._cache.cluster.pods.get(record.spec.pod.uid)
        never = never_evict(present, self._cache.cluster.objects) if present is not None else None
        return None if never is None else Standing(Phase.CANCELLED, never.reason, never.message)

    def _has_left(self, record: Record) -> bool:
        present = self._cache.cluster.pods.get(record.spec.pod.uid)
        return present is None or present.is_terminating

    def _timeout_s(self, record: Record) -> float:
        spec = self._spec_of(record)
        return math.inf if spec is None else float(spec.eviction_request_timeout_seconds)

    def _spec_of(self, record: Record) -> RebalancingSpec | None:
        policy = self._policies.get(record.spec.policy)
        return None if policy is None else policy.spec.rebalancing

    # -- clearing up ---------------------------------------------------------------------------------

    async def _clear(self, request: EvictionRequest) -> None:
        """See to a request that no move waits for: withdraw it, later delete it."""
        now = self._clock.monotonic()
        is_gone = request.pod_uid not in self._cache.cluster.pods
        if request.is_final or (is_gone and not self._awaits(request)):
            await self._drop(request)
        elif request.is_withdrawn:
            if now - self._withdrawn.setdefault(request.key, now) >= WITHDRAWN_S:
                await self._drop(request)
            else:
                self._has_leftovers = True
        elif is_gone or self._has_left_of(request):
            self._has_leftovers = True  # the responder may still tell how it ended
        else:
            await self._withdraw(request)
            self._has_leftovers = True

    def _awaits(self, request: EvictionRequest) -> bool:
        """Whether the record of a request is not finished: its controller may still be at it."""
        record = self._keeper.known.get(request.key)
        return record is not None and not record.is_finished

    def _has_left_of(self, request: EvictionRequest) -> bool:
        present = self._cache.cluster.pods.get(request.pod_uid)
        return present is not None and present.is_terminating

    async def _withdraw(self, request: EvictionRequest) -> None:
        if not request.is_withdrawn:
            self._tell(request, await self._requester.withdraw(request))

    async def _drop(self, request: EvictionRequest) -> None:
        self._withdrawn.pop(request.key, None)
        self._tell(request, await self._requester.drop(request))

    def _tell(self, request: EvictionRequest, answer: WriteResult) -> None:
        if not answer.is_done and answer.verdict is not WriteOutcome.GONE:
            self._has_leftovers = True
            self._observer.failed(f"clearing up EvictionRequest {request.key}", answer.message)
