"""Binds pods of other replicas to the nodes that this replica holds, or refuses if there is no room.

The filters of the pod's profile run for the one node in this replica's view, which includes all that it has
assumed and the requesting replica cannot see yet.

The requesting replica waits for a few seconds, and then decides again. An older request is refused: the
process that made it may have ended, and its decision may be outdated, for example that a gang fits. This
replica measures the age; a request that was there before it held a node may have any age.

This replica's view may be stale: the request may have been withdrawn, and another one made. So a response
names the resourceVersion of the pod, and the API server refuses it for any other version.
"""

import math
from dataclasses import dataclass, field

from plimsoll.cluster.node_shares import NodeShares
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Pod, PodInfo
from plimsoll.model.kinds.pod import PodCondition
from plimsoll.model.kinds.watch_event import PodAdded, PodDeleted, PodUpdated, WatchEvent
from plimsoll.policies.served_profiles import ServedProfiles
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.ports.pods import PodRequests
from plimsoll.ports.writes import WriteOutcome
from plimsoll.scheduling.binding.binder import ConfirmedBinder
from plimsoll.scheduling.binding.pipeline import BindingPipeline
from plimsoll.scheduling.shared_nodes.request import ANSWER_S, RequestReason, open_request


@dataclass(eq=False)
class RequestAnswers:
    """Responds to requests of other replicas; observes events after the mirror."""

    _served: ServedProfiles
    _book: ReservationBook
    _binder: ConfirmedBinder
    _requests: PodRequests
    _shares: NodeShares
    _pipeline: BindingPipeline
    _observer: Observer
    _clock: Clock
    #: each open request and when it was first seen, in monotonic seconds, by the uid of its pod
    _seen: dict[str, tuple[PodCondition, float]] = field(default_factory=dict, init=False)
    _answering: set[str] = field(default_factory=set, init=False)

    def observe(self, event: WatchEvent) -> None:
        """Handle a pod that may have a request."""
        match event:
            case PodAdded(pod) | PodUpdated(_, pod) if pod.status.conditions:
                self._look_at(pod)
            case PodDeleted(pod):
                self._seen.pop(pod.uid, None)

    def look_at_all(self) -> None:
        """Review all requests after this replica's nodes have changed."""
        for pod in list(self._book.cache.waiting.values()):
            self._look_at(pod)

    def _look_at(self, pod: Pod) -> None:
        asked = open_request(pod)
        if asked is None or pod.node_name or pod.is_terminal or pod.is_terminating:
            self._seen.pop(pod.uid, None)
            return
        node, since = asked.message, self._first_seen(pod.uid, asked)
        scheduler = self._served.elsewhere.get(pod.spec.scheduler_name)
        if scheduler is None or not self._shares.holds(node):
            return
        if pod.uid in self._answering or self._book.cache.node_of(pod.uid):
            return
        self._answering.add(pod.uid)
        if self._clock.monotonic() - since >= ANSWER_S:
            why = f"{node}: the request is older than {ANSWER_S:.0f} s"
            self._pipeline.start(self._refuse(pod, RequestReason.STALE, why))
            return
        info = self._book.cache.info(pod)
        if self._fits(scheduler, info, node):
            self._book.release_uid(pod.uid)
            self._book.cache.assume(info, node)
            self._pipeline.start(self._bind(info, node))
        else:
            why = f"{node}: no room is left for it"
            self._pipeline.start(self._refuse(pod, RequestReason.REFUSED, why))

    def _first_seen(self, uid: str, asked: PodCondition) -> float:
        known, since = self._seen.get(uid, (None, 0.0))
        if known != asked:
            since = self._clock.monotonic() if self._shares.held else -math.inf
            self._seen[uid] = asked, since
        return since

    def _fits(self, scheduler: ProfileScheduler, pod: PodInfo, node: str) -> bool:
        row = scheduler.cluster.rows.get(node)
        return row is not None and scheduler.holds(scheduler.filtered(pod, only=row), pod, row)

    async def _bind(self, pod: PodInfo, node: str) -> None:
        """Bind; if that fails, the other replica tries the pod again."""
        try:
            answer = await self._binder.bind(pod.pod, node, as_seen=True)
        except BaseException:
            self._undo(pod, node)
            raise
        facts = {"pod": pod.key, "node": node, "profile": pod.pod.spec.scheduler_name}
        self._observer.placement_told(pod.uid, f"bound for another replica: {answer.verdict.value}", facts)
        self._answering.discard(pod.uid)
        if answer.is_done:
            return
        self._undo(pod, node)
        if answer.verdict is WriteOutcome.CONFLICT:
            self._look_again(pod.pod)
        elif answer.verdict is not WriteOutcome.GONE:
            why = f"{node}: {answer.message}"
            await self._refuse(pod.pod, RequestReason.REFUSED, why)

    def _undo(self, pod: PodInfo, node: str) -> None:
        self._answering.discard(pod.uid)
        self._book.cache.forget(pod.uid)
        self._pipeline.free(pod, node)

    async def _refuse(self, pod: Pod, reason: RequestReason, why: str) -> None:
        try:
            await self._requests.request(pod, reason, why, is_open=False, as_seen=True)
        finally:
            self._answering.discard(pod.uid)
        self._look_again(pod)

    def _look_again(self, pod: Pod) -> None:
        """Check for another request that arrived during the response."""
        newer = self._book.cache.waiting.get(pod.uid)
        if newer is not None and newer.metadata.resource_version != pod.metadata.resource_version:
            self._look_at(newer)
