"""Builds planning contexts: the input of a plan or judgement in addition to the placed pods."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from plimsoll.cluster.pending_pods import PendingPods
from plimsoll.cluster.pod_groups import Groups, gang_needs
from plimsoll.cluster.reservations import ReservationBook, ReservationReason
from plimsoll.framework import Pod
from plimsoll.framework.descheduling.measurements import Measurements
from plimsoll.planning.history import MoveHistory, UnreadyReplacement
from plimsoll.planning.moves import Move, PlanningContext, RebalancingConfig
from plimsoll.planning.surges import Deployments
from plimsoll.ports.clock import Clock
from plimsoll.records.history import recently_moved, touched_nodes, unready_replacements

if TYPE_CHECKING:
    from plimsoll.rebalancing.moves.machine import MoveMachine
    from plimsoll.rebalancing.records.store import EvictionRecordStore


@dataclass(eq=False)
class PlanningContexts:
    """Builds the PlanningContext of a plan, and of a move that is judged again."""

    book: ReservationBook  #: the reservations in the cluster
    groups: Groups
    keeper: "EvictionRecordStore"
    machine: "MoveMachine"
    pending: PendingPods  #: the pods without a place
    clock: Clock
    siblings: Callable[[str], Mapping[str, Pod]]  #: the pods of an owner, by its uid
    #: The other live policies; their strategies are consulted too.
    others: Callable[[str], Mapping[str, RebalancingConfig]]
    _measurements: dict[str, Measurements] = field(default_factory=dict, init=False)

    def learn(self, policy: str, measurements: Measurements) -> None:
        """Record the measurements of a policy's run, until the next run."""
        self._measurements[policy] = measurements

    def of(
        self,
        name: str,
        memory: MoveHistory,
        asked: Move | None = None,
        deployments: Deployments | None = None,
    ) -> PlanningContext:
        """The present context for a policy; the move ``asked`` about does not count as under way."""
        in_flight = self.machine.in_flight()
        served = {each.holder.key for each in self.book.of_reason(ReservationReason.ROOM)}
        if asked is not None:
            in_flight.pop(asked.workload.key, None)
        now = self.clock.now()
        return PlanningContext(
            now=datetime.fromtimestamp(now, UTC),
            unplaced=tuple(pod for pod in self.pending.infos() if pod.uid not in served),
            in_flight=in_flight,
            memory=memory,
            measurements=self._measurements.get(name, Measurements()),
            recent=self.keeper.sent_within(name, 60.0),
            deployments=deployments or Deployments(),
            others=self.others(name),
            moved=recently_moved(self.keeper.known.values(), now) | self.machine.replacements(),
            gangs=gang_needs(self.groups, self.book.cache),
            touched=touched_nodes(self.keeper.known.values(), now),
            unready=self.unready(),
            monotonic=self.clock.monotonic,
        )

    def unready(self) -> dict[str, UnreadyReplacement]:
        """By workload key, the replacement of an earlier move that is still not ready."""
        return unready_replacements(
            self.keeper.known.values(),
            lambda owner: self.siblings(owner).values(),
            self.machine.replacements(),
        )
