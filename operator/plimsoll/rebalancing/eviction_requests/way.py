"""EvictionsByRequest hands eviction requests to the controller: transitions, handlers, probe and watch."""

from collections.abc import Sequence

from plimsoll.ports.eviction_requests import EvictionRequester
from plimsoll.rebalancing.eviction_requests import transitions
from plimsoll.rebalancing.eviction_requests.handlers import RequestHandlers
from plimsoll.rebalancing.eviction_requests.probe import EvictionRequestProbe
from plimsoll.rebalancing.eviction_requests.watch import RequestWatch
from plimsoll.rebalancing.execution.executor import MoveExecutor
from plimsoll.rebalancing.moves.recovery import RecoveryRule
from plimsoll.rebalancing.moves.sightings import Sightings
from plimsoll.rebalancing.ways import RequestNeeds


class EvictionsByRequest:
    """Eviction requests; see :class:`plimsoll.rebalancing.ways.RequestWay`.

    Args:
        requester: Speaks to the API server.
        needs: The rest of rebalancing.
    """

    def __init__(self, requester: EvictionRequester, needs: RequestNeeds) -> None:
        self._requester = requester
        self._needs = needs
        self.probe = EvictionRequestProbe(needs.policies, requester, needs.clock, needs.conditions)
        handlers = RequestHandlers(
            requester=requester,
            offer=self.probe,
            policies=needs.policies,
            stop=needs.stop,
            cache=needs.cache,
            observer=needs.observer,
        )
        self.table = transitions.TABLE
        self.recovered: RecoveryRule = transitions.recovered
        self.sightings: Sequence[Sightings] = ()
        self.immediate = handlers.immediate
        self.awaited = handlers.awaited

    def watch(self, executor: MoveExecutor) -> RequestWatch:
        """What mirrors the requests, reports what becomes of them and clears up."""
        return RequestWatch(
            executor=executor,
            requester=self._requester,
            offer=self.probe,
            cache=self._needs.cache,
            timer=self._needs.timer,
            clock=self._needs.clock,
            observer=self._needs.observer,
        )
