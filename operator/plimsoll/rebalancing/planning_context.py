"""PlanningContexts describe what surrounds the placed pods when a plan is made, or a move is judged again."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from plimsoll.cluster.pod_groups import Groups, gang_needs
from plimsoll.cluster.reservations import ReservationBook, ReservationReason
from plimsoll.framework.descheduling.measurements import Measurements
from plimsoll.planning.history import Memory
from plimsoll.planning.moves import Move, PlanningContext, RebalancingConfig
from plimsoll.planning.surges import Deployments
from plimsoll.ports.clock import Clock
from plimsoll.rebalancing.moves.machine import MoveMachine
from plimsoll.rebalancing.pending_pods import PendingPods
from plimsoll.rebalancing.records.history import recently_moved, sent_since
from plimsoll.rebalancing.records.store import EvictionRecordStore


class PlanningContexts:
    """Builds the PlanningContext of a plan, and of a move that is judged again.

    Args:
        book: The room that is reserved in the cluster.
        groups: The PodGroups.
        keeper: The records.
        machine: The moves under way.
        pending: The pods without a place.
        clock: Time.
        others: The live policies besides the one of this name; their strategies have a say, too.
    """

    def __init__(
        self,
        book: ReservationBook,
        groups: Groups,
        keeper: EvictionRecordStore,
        machine: MoveMachine,
        pending: PendingPods,
        clock: Clock,
        others: Callable[[str], Mapping[str, RebalancingConfig]],
    ) -> None:
        self._book = book
        self._groups = groups
        self._keeper = keeper
        self._machine = machine
        self._pending = pending
        self._clock = clock
        self._others = others
        self._measurements: dict[str, Measurements] = {}

    def learn(self, policy: str, measurements: Measurements) -> None:
        """What was measured for a policy's run; kept until the next one."""
        self._measurements[policy] = measurements

    def of(
        self,
        name: str,
        memory: Memory,
        asked: Move | None = None,
        deployments: Deployments | None = None,
    ) -> PlanningContext:
        """What surrounds the placed pods now, for a policy; a move that is asked about is not under way."""
        in_flight = self._machine.in_flight()
        served = {each.holder.key for each in self._book.of_reason(ReservationReason.ROOM)}
        if asked is not None:
            in_flight.pop(asked.workload.uid, None)
        now = self._clock.now()
        return PlanningContext(
            now=datetime.fromtimestamp(now, UTC),
            unplaced=tuple(pod for pod in self._pending.infos() if pod.uid not in served),
            in_flight=in_flight,
            memory=memory,
            measurements=self._measurements.get(name, Measurements()),
            recent=sent_since(self._keeper.known.values(), name, now - 60.0),
            deployments=deployments or Deployments(),
            others=self._others(name),
            moved=recently_moved(self._keeper.known.values(), now),
            gangs=gang_needs(self._groups, self._book.cache),
        )
