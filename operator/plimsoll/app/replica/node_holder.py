"""Builds the parts that let several replicas bind simultaneously, each to its own share of the nodes."""

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from plimsoll.app.replica.role_duties import RoleDuties
from plimsoll.app.scheduling_wing import SchedulingWing
from plimsoll.app.shared_parts import SharedParts
from plimsoll.app.startup import Startup
from plimsoll.cluster.ingestion import OfTypes
from plimsoll.cluster.node_shares import NodeShares
from plimsoll.kube.pods import PodBinder, PodRequester
from plimsoll.leadership.fence import Fence, RoleFence
from plimsoll.model.kinds.watch_event import PodAdded, PodDeleted, PodUpdated
from plimsoll.ports.pods import PodBinding
from plimsoll.scheduling.binding.binder import ConfirmedBinder
from plimsoll.scheduling.shared_nodes.answers import RequestAnswers
from plimsoll.scheduling.shared_nodes.binder import SharedNodeBinder


class NodeHolder:
    """The nodes of this replica, and its communication with the replicas that hold the others.

    Attributes:
        shares: The nodes that this replica binds to.
        binder: Binds pods.
        rebalances: Set when this replica rebalances.
    """

    def __init__(self, parts: SharedParts, fence: Fence, *, is_shared: bool) -> None:
        self.shares = NodeShares()
        self.rebalances = asyncio.Event()
        self._is_shared = is_shared
        self._fence = fence
        self._parts = parts
        plain = PodBinder(parts.session)
        self._requests = PodRequester(parts.session, parts.clock)
        self._shared = SharedNodeBinder(plain, self._requests, self.shares, parts.clock)
        self.binder: PodBinding = self._shared if is_shared else plain
        self.shares.held = frozenset()

    @property
    def home(self) -> NodeShares | None:
        """The nodes that decisions prefer; None where one process does all the work."""
        return self.shares if self._is_shared else None

    @property
    def rebalancing_parts(self) -> SharedParts:
        """The parts of the rebalancing wing; its writes belong to the role of rebalancing."""
        if not self._is_shared:
            return self._parts
        only = RoleFence(self._fence, self.rebalances.is_set)
        return replace(self._parts, session=self._parts.session.fenced(only))

    def answers(self, wing: SchedulingWing) -> RequestAnswers:
        """The object that answers requests of other replicas."""
        confirmed = ConfirmedBinder(self._shared, self._parts.clock)
        return RequestAnswers(
            wing.served,
            self._parts.book,
            confirmed,
            self._requests,
            self.shares,
            wing.pipeline,
            self._parts.observer,
            self._parts.clock,
        )

    def subscribers(self, answers: RequestAnswers) -> Sequence[OfTypes]:
        """The subscribers to events, after the mirror."""
        if not self._is_shared:
            return ()
        return (
            OfTypes((PodUpdated, PodDeleted), (self._shared,)),
            OfTypes((PodAdded, PodUpdated, PodDeleted), (answers,)),
        )

    def duties(self, startup: Startup, wing: SchedulingWing, answers: RequestAnswers) -> RoleDuties:
        """The object that begins and ends the work of roles."""
        return RoleDuties(startup, wing, self.shares, self._shared, answers, self.rebalances, self._fence)
