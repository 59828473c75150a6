"""Carries out the move machine's instructions about EvictionRequests, one call each."""

from collections.abc import Mapping, Sequence

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.planning.limits import LimitLevel
from plimsoll.planning.scope import never_evict
from plimsoll.ports.eviction_requests import EvictionRequest, EvictionRequester
from plimsoll.ports.writes import WriteOutcome
from plimsoll.rebalancing.breakers import STOP
from plimsoll.rebalancing.eviction_requests import transitions
from plimsoll.rebalancing.eviction_requests.probe import EvictionRequestProbe
from plimsoll.rebalancing.eviction_requests.transitions import NoteUnattended
from plimsoll.rebalancing.eviction_requests.watch import RequestWatch
from plimsoll.rebalancing.execution.executor import Awaited, Immediate, MoveExecutor
from plimsoll.rebalancing.moves.events import Event, EvictionAnswered, RequestProgressed, RequestReviewed
from plimsoll.rebalancing.moves.instructions import (
    InspectRequest,
    RequestEviction,
    ReviewRequest,
    WithdrawRequest,
)
from plimsoll.rebalancing.moves.recovery import RecoveryRule
from plimsoll.rebalancing.moves.sightings import Sightings
from plimsoll.rebalancing.moves.state import Landing
from plimsoll.rebalancing.ways import RequestNeeds


class EvictionsByRequest:
    """Evicts by EvictionRequest; see :class:`plimsoll.rebalancing.ways.RequestWay`.

    Args:
        requester: Calls the API server.
        needs: Objects of the rest of rebalancing.
    """

    def __init__(self, requester: EvictionRequester, needs: RequestNeeds) -> None:
        self._requester = requester
        self._needs = needs
        self.probe = probe = EvictionRequestProbe(needs.policies, requester, needs.clock, needs.changed)
        self.table = transitions.TABLE
        self.recovered: RecoveryRule = transitions.recovered
        self.sightings: Sequence[Sightings] = ()
        self.immediate: Mapping[type, Immediate] = {
            NoteUnattended: lambda order: probe.unattended(order.message),
            ReviewRequest: self._review,
        }
        self.awaited: Mapping[type, Awaited] = {
            RequestEviction: self._request,
            InspectRequest: self._inspect,
            WithdrawRequest: self._withdraw,
        }

    def watch(self, executor: MoveExecutor) -> RequestWatch:
        """Create the watch that mirrors the requests, reports their progress and clears up."""
        needs = self._needs
        return RequestWatch(
            executor, self._requester, self.probe, needs.cache, needs.timer, needs.clock, needs.observer
        )

    async def _request(self, order: RequestEviction) -> Event:
        answer = await self._requester.request(order.move.pod.pod, order.key.partition("/")[2])
        return EvictionAnswered(order.key, answer)

    async def _inspect(self, order: InspectRequest) -> Event:
        answer, requests = await self._requester.list()
        if answer.verdict is WriteOutcome.GONE:
            self.probe.withdrawn(answer.message)
            return RequestProgressed(order.key, None, (self.probe.reason, self.probe.problem))
        if not answer.is_done:
            self._needs.observer.failed("reading EvictionRequests", answer.message)
            return RequestProgressed(order.key, None, is_known=False)
        return RequestProgressed(order.key, next((each for each in requests if each.key == order.key), None))

    async def _withdraw(self, order: WithdrawRequest) -> None:
        namespace, _, name = order.key.partition("/")
        answer = await self._requester.withdraw(EvictionRequest(namespace, name, ""))
        if answer.is_failure and answer.verdict is not WriteOutcome.GONE:
            self._needs.observer.failed(f"withdrawing EvictionRequest {order.key}", answer.message)

    def _review(self, order: ReviewRequest) -> Sequence[Event]:
        policy = self._needs.policies.get(order.spec.policy)
        spec = None if policy is None else policy.spec.rebalancing
        call_off = self._call_off(order.spec.pod.uid)
        if spec is None:
            return (RequestReviewed(order.key, None, call_off=call_off),)
        timeout_s = float(spec.eviction_request_timeout_seconds)
        return (RequestReviewed(order.key, spec.mode, spec.evict_by, timeout_s, call_off),)

    def _call_off(self, pod: str) -> Landing | None:
        """Why a pod, by uid, must stay, whatever its policy says."""
        if self._needs.stop.is_pressed:
            return Landing(Phase.BLOCKED, LimitLevel.BUDGET.value, self._needs.stop.sentence, blocked_by=STOP)
        present = self._needs.cache.cluster.pods.get(pod)
        never = never_evict(present, self._needs.cache.cluster.objects) if present is not None else None
        return None if never is None else Landing(Phase.CANCELLED, never.reason, never.message)
