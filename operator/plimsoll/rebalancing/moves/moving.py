"""Making one move: asked again of the present cluster, kept within budgets that have opened, then sent.

Beside it, what surrounds the placed pods when a plan is made: pods without a place, moves under way.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.cluster.cache import Cache
from plimsoll.cluster.pod_groups import Groups, gang_needs
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.framework import Pod, PodInfo
from plimsoll.framework.descheduling.measurements import Measurements
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.model.kinds.watch_event import PodAdded, PodDeleted, PodUpdated, WatchEvent
from plimsoll.planning.history import Memory
from plimsoll.planning.limits import LimitLevel
from plimsoll.planning.moves import Circumstances, Move, Rebalancing, workload_of
from plimsoll.planning.planners import ask_again
from plimsoll.planning.populations import Populations
from plimsoll.planning.surges import Deployments
from plimsoll.ports.clock import Clock
from plimsoll.rebalancing.holding import Holds
from plimsoll.rebalancing.moves.sending import Sender
from plimsoll.rebalancing.moves.verifying import Verification
from plimsoll.rebalancing.records.drafts import surge_reference
from plimsoll.rebalancing.records.history import recently_moved, sent_since
from plimsoll.rebalancing.records.record import Record
from plimsoll.rebalancing.records.store import RecordKeeper
from plimsoll.rebalancing.rooms import Rooms
from plimsoll.rebalancing.surges.surging import Surges

#: Reason and sentence of a record whose policy wants something else by now.
POLICY_CHANGED = ("PolicyChanged", "the policy was changed, suspended or deleted")

#: Reason and sentence of a record that says how a pod was going to leave, when it would leave otherwise.
OTHERWISE = (
    "Changed",
    "its owner or its best place has changed since the plan; the next run decides afresh",
)


#: Phases of a move that is under way.
MOVING = frozenset((Phase.EVICTING, Phase.EVICTED, Phase.SURGING))


class Mover:
    """Makes moves, one at a time for each policy.

    Args:
        others: The live policies besides the one of this name, by name; their strategies have a say, too.

    Attributes:
        rooms: What is kept for pending pods meanwhile.
    """

    def __init__(
        self,
        *,
        cache: Cache,
        keeper: RecordKeeper,
        verification: Verification,
        holds: Holds,
        sender: Sender,
        surges: Surges,
        clock: Clock,
        book: ReservationBook,
        groups: Groups,
        others: Callable[[str], Mapping[str, Rebalancing]] = lambda _: {},
    ) -> None:
        self._groups = groups
        self.rooms = Rooms(cache, book, self.find)
        self._book = book
        self._cache = cache
        self._keeper = keeper
        self._verification = verification
        self._holds = holds
        self._sender = sender
        self._surges = surges
        self._clock = clock
        self._others = others
        self._unplaced: dict[str, Pod] = {}
        self._measurements: dict[str, Measurements] = {}

    def learn(self, policy: str, measurements: Measurements) -> None:
        """What was measured for a policy's run; kept until the next one."""
        self._measurements[policy] = measurements

    def observe(self, event: WatchEvent) -> None:
        """Pods that hold no place come and go."""
        self.rooms.observe(event)
        match event:
            case PodAdded(pod) | PodUpdated(_, pod):
                if pod.is_terminal or not pod.node_name:
                    self._unplaced[pod.uid] = pod
                else:
                    self._unplaced.pop(pod.uid, None)
            case PodDeleted(pod):
                self._unplaced.pop(pod.uid, None)
            case _:
                return

    def in_flight(self) -> dict[str, int]:
        """Moves under way, by workload uid."""
        found = Counter(self._verification.in_flight()) + Counter(self._surges.following.in_flight())
        return dict(found + self._holds.beginning())

    def circumstances(
        self,
        name: str,
        memory: Memory,
        asked: Move | None = None,
        deployments: Deployments | None = None,
    ) -> Circumstances:
        """What surrounds the placed pods now, for a policy; a move that is asked about is not under way."""
        in_flight, served = self.in_flight(), self.rooms.served()
        if asked is not None:
            in_flight.pop(asked.workload.uid, None)
        return Circumstances(
            now=datetime.fromtimestamp(self._clock.now(), UTC),
            unplaced=tuple(pod for pod in self._unplaced_infos() if pod.uid not in served),
            in_flight=in_flight,
            memory=memory,
            measurements=self._measurements.get(name, Measurements()),
            recent=sent_since(self._keeper.known.values(), name, self._clock.now() - 60.0),
            deployments=deployments or Deployments(),
            others=self._others(name),
            moved=recently_moved(self._keeper.known.values(), self._clock.now()),
            gangs=gang_needs(self._groups, self._cache),
        )

    def find(self, uid: str) -> PodInfo | None:
        """A pod by uid, placed or not."""
        placed = self._cache.cluster.pods.get(uid)
        return placed or next((pod for pod in self._unplaced_infos() if pod.uid == uid), None)

    def waiting(self) -> list[Pod]:
        """Pods that hold no place and want one."""
        return [
            pod for pod in self._unplaced.values() if not pod.is_terminal and not self._cache.node_of(pod.uid)
        ]

    def node_of(self, uid: str) -> str:
        """The node of a pod, "" when it has none."""
        return self._cache.node_of(uid)

    def is_asked(self, pod: str) -> bool:
        """Whether this pod (by uid) has been asked to leave, and is still there."""
        return self._sender.is_asked(pod)

    async def make(
        self,
        record: Record,
        move: Move,
        configured: Callable[[], Rebalancing | None],
        memory: Memory,
        evicted: int,
    ) -> bool:
        """Ask again, then make one move; whether the eviction was accepted.

        Args:
            record: Of the move, Planned.
            move: As planned.
            configured: What the policy asks for at this moment, None when it has changed since the plan.
            memory: What past moves teach.
            evicted: Evictions of this run so far.
        """
        try:
            rebalancing = configured()
            if rebalancing is None:
                await self._keeper.cancel(record, *POLICY_CHANGED)
                return False
            deployments = await self._surges.present(move)
            # Pods on their way out still take their room: a replacement that needs it would not find it.
            present = ask_again(
                move,
                rebalancing,
                self._book.claimed(),
                self.circumstances(record.spec.policy, memory, move, deployments),
            )
        except Exception as exc:
            await self._keeper.cancel(
                record, "NotRevalidated", f"the move could not be judged again: {exc!r}"
            )
            raise
        if not isinstance(present, Refusal):
            # Nothing is awaited from here until the room is held: policies make moves at the same time.
            present = self._clash(record, present, rebalancing) or present
        if isinstance(present, Refusal):
            await self._keeper.cancel(record, present.reason, present.message)
            return False
        if not _is_as_recorded(present, record):
            await self._keeper.cancel(record, *OTHERWISE)
            return False
        closed = self._closed_budget(rebalancing, evicted)
        if closed:
            await self._keeper.advance(
                record,
                Phase.BLOCKED,
                reason=LimitLevel.BUDGET.value,
                message=f'budget "{closed}" of the policy allows no further eviction now',
                blocked_by=closed,
            )
            return False
        if present.surge is not None:
            return await self._surges.send(record, present)
        answer = await self._sender.send(record, present)
        return answer is not None and answer.is_done

    def _clash(self, record: Record, move: Move, rebalancing: Rebalancing) -> Refusal | None:
        """Why the moves under way of other policies leave no room for this one, None when they do."""
        others, all_of_them = 0, 1
        for each in self._keeper.unfinished():
            if each.phase not in MOVING or each.key == record.key:
                continue
            is_other = each.spec.policy != record.spec.policy
            if is_other and each.spec.pod.uid == move.pod.uid:
                story = f"policy {each.spec.policy} moves the pod (record {each.key})"
                return Refusal("AlreadyMoving", story)
            if _workload(each) == move.workload.uid:
                all_of_them += 1
                others += is_other
        ceiling = rebalancing.limits.per_workload
        most = ceiling.of(self._replicas(move)) if others else None
        if most is None or all_of_them <= most:
            return None
        return Refusal(
            LimitLevel.WORKLOAD.value,
            f"at most {most} at a time of {move.workload.name}, and other policies move {others} of its pods",
        )

    def _replicas(self, move: Move) -> int:
        return sum(workload_of(pod) == move.workload for pod in self._cache.cluster.pods.values())

    def _closed_budget(self, rebalancing: Rebalancing, evicted: int) -> str:
        """The budget that opened since the plan was made and allows no further eviction, "" for none."""
        populations = Populations(self._cache.cluster, rebalancing.evictors, rebalancing.nodes)
        for name, ceiling in rebalancing.limits.budgets:
            most = ceiling.of(0 if ceiling.percent is None else populations(LimitLevel.BUDGET, ""))
            if most is not None and evicted >= most:
                return name
        return ""

    def _unplaced_infos(self) -> list[PodInfo]:
        waiting = self._unplaced.values()
        return [self._cache.info(pod) for pod in waiting if not self._cache.node_of(pod.uid)]


def _workload(record: Record) -> str:
    """Uid of the workload whose pod a record is about."""
    surge, owner = record.spec.surge, record.spec.owner
    return surge.uid if surge is not None else owner.uid if owner is not None else record.spec.pod.uid


def _is_as_recorded(move: Move, record: Record) -> bool:
    """Whether the move, asked again, is by the eviction or the very rollout that is on record."""
    surge = record.spec.surge
    if surge_reference(move.surge) != surge:
        return False
    return surge is None or move.target == record.spec.target_node
