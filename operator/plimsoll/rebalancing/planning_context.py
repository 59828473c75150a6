"""Builds planning contexts: the input of a plan or judgement in addition to the placed pods."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from plimsoll.cluster.pending_pods import PendingPods
from plimsoll.cluster.pod_groups import Groups, gang_needs
from plimsoll.cluster.reservations import ReservationBook, ReservationReason
from plimsoll.framework import Pod
from plimsoll.framework.descheduling.measurements import Measurements
from plimsoll.planning import context
from plimsoll.planning.context import RATE_S, PlanningFacts
from plimsoll.planning.history import MoveHistory, UnreadyReplacement
from plimsoll.planning.moves import Move, PlanningContext, RebalancingConfig
from plimsoll.planning.rebalancing_rules import HOUR_S
from plimsoll.planning.surges import Deployments
from plimsoll.ports.clock import Clock
from plimsoll.records.history import sent_moves, unready_replacements
from plimsoll.records.record import Record

if TYPE_CHECKING:
    from plimsoll.rebalancing.moves.machine import MoveMachine
    from plimsoll.rebalancing.records.store import EvictionRecordStore

#: No rounds in which nodes were over-used.
NONE_OVER: Mapping[tuple[str, str], int] = MappingProxyType({})


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
        over_for: Mapping[tuple[str, str], int] = NONE_OVER,
        due: int = 0,
    ) -> PlanningContext:
        """The present context for a policy; the move ``asked`` about does not count as under way.

        Then no pod counts as moving: its bundle is judged as it was planned.

        ``over_for`` are the rounds in which nodes were over-used, and ``due`` the moves that wait for their
        turn and count as sent.
        """
        in_flight = self.machine.in_flight()
        if asked is not None:
            in_flight.pop(asked.workload.key, None)
        return context.of(
            PlanningFacts(
                now=self.clock.now(),
                unplaced=self.pending.infos(),
                served={each.holder.key for each in self.book.of_reason(ReservationReason.ROOM)},
                moves=sent_moves(self.keeper.known.values()),
                in_flight=in_flight,
                followed=self.machine.replacements(),
                moving=self.machine.moving() if asked is None else frozenset(),
                memory=memory,
                recent=self.keeper.sent_within(name, RATE_S) + due,
                hourly=self.hourly(),
                unready=self.unready(),
                gangs=gang_needs(self.groups, self.book.cache),
                over_for=over_for,
                others=self.others(name),
                measurements=self._measurements.get(name, Measurements()),
                deployments=deployments or Deployments(),
                monotonic=self.clock.monotonic,
            )
        )

    def hourly(self) -> Mapping[str, int]:
        """Moves of all policies within the last hour, by namespace; empty while there are no rules."""
        return self.keeper.sent_by_namespace(HOUR_S) if self.ruled() else {}

    def ruled(self) -> frozenset[str]:
        """The namespaces with rules."""
        return frozenset(rule.namespace for rule in self.book.cache.cluster.objects.rules.values())

    def counts(self, record: Record) -> bool:
        """Whether a rule may count the record among the moves of the last hour."""
        return record.created >= self.clock.now() - HOUR_S and record.namespace in self.ruled()

    def unready(self) -> dict[str, UnreadyReplacement]:
        """By workload key, the replacement of an earlier move that is still not ready."""
        return unready_replacements(
            self.keeper.known.values(),
            lambda owner: self.siblings(owner).values(),
            self.machine.replacements(),
        )
