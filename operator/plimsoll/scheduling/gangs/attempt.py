"""Gangs: the members of a PodGroup are decided together, assumed in one turn, and bound when all may be.

The loop hands over a popped member; its siblings are taken out of the queue, and
:mod:`plimsoll.engine.gang` looks for places for all of them on a fork.

* Enough fit: all that fit are assumed and reserved in this turn of the event loop. Should a plugin refuse
  some of them now and too few be left, all is undone in the same turn.
* Too few fit: higher priority may preempt, if the whole then fits; otherwise nothing is assumed, and every
  member is told how many fit and what the others lack.

Members wait for one another on Permit. A binding that fails afterwards unbinds nobody: the member is tried
again, and its room is reserved until ``scheduleTimeoutSeconds`` after the decision. A group
that has started has no say any more in where its further members go.
"""

from collections.abc import Mapping, Sequence

from plimsoll.cluster.cache import Cache
from plimsoll.cluster.pod_groups import Group, Groups
from plimsoll.cluster.reservations import Reservation, ReservationBook, ReservationReason
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.extenders.extender import interested
from plimsoll.engine.gang import GangDecision, lacking_resources, place_together
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import SUCCESS, Code, Pod, PodInfo, Status, unschedulable
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod_group import DEFAULT_TIMEOUT_S
from plimsoll.model.kinds.pod_info import Holder, HolderKind
from plimsoll.model.kinds.watch_event import ClusterEvent
from plimsoll.model.quantity import QuantityError, milli, units
from plimsoll.ports.clock import Clock
from plimsoll.ports.events import EventNote, EventRecorder
from plimsoll.ports.observer import Observer
from plimsoll.scheduling.binding.cycle import Attempt, BindingCycle
from plimsoll.scheduling.gangs.gates import PLUGIN, GangGates
from plimsoll.scheduling.gangs.release import Begun, Hands, Releasing, too_few
from plimsoll.scheduling.queue.queue import SchedulingQueue, room_freed
from plimsoll.scheduling.queue.queued_pod import QueuedPod


class Gangs:
    """Starts gangs.

    Args:
        groups: Who belongs together.
        queue: Who waits.
        book: Where members' room is reserved; its cache knows who is placed.
        binding: Carries attempts out.
        hands: The loop's.
        recorder: Records events on PodGroups.
        clock: Time.
        observer: Told of attempts.

    Attributes:
        gates: Hold members back until they can be tried.
    """

    def __init__(
        self,
        groups: Groups,
        queue: SchedulingQueue,
        *,
        book: ReservationBook,
        binding: BindingCycle,
        hands: Hands,
        recorder: EventRecorder,
        clock: Clock,
        observer: Observer,
    ) -> None:
        self.groups = groups
        self._cache = book.cache
        self._book = book
        self._queue = queue
        self._binding = binding
        self._hands = hands
        self._recorder = recorder
        self._clock = clock
        self._observer = observer
        self._releasing = Releasing(binding, hands, clock)
        self.gates = GangGates(groups, queue, hands.explain, self._sentence, clock)

    def observe(self, event: ClusterEvent) -> None:
        """Something happened, and was applied."""
        self.gates.observe(event)

    def placed(self, group: Group) -> list[Pod]:
        """Members that have a node, bound or assumed, and those that have ended well."""
        return placed_members(group, self._cache)

    def _has_started(self, group: Group) -> bool:
        return group.object is not None and len(self.placed(group)) >= group.min_member

    # -- one attempt ---------------------------------------------------------------------------------

    def attempt(self, queued: QueuedPod, schedulers: Mapping[str, ProfileScheduler]) -> bool:
        """Decide on a popped pod together with its siblings; False when it is to be tried by itself."""
        group = self.groups.of(queued.pod.pod)
        if group is None or self._has_started(group):
            return False
        taken = [queued]
        for pod in group.waiting():
            sibling = self._queue.take(pod.uid) if pod.uid != queued.pod.uid else None
            if sibling is not None:
                taken.append(sibling)
        try:
            self._decide(group, taken, schedulers)
        except Exception:
            for each in taken:  # whoever is on no way yet is tried again
                self._cache.forget(each.pod.uid)
                self._queue.failed(each.pod.uid, self._clock.monotonic(), frozenset())
            raise
        self.gates.changed(group.key)
        return True

    def _decide(
        self, group: Group, taken: list[QueuedPod], schedulers: Mapping[str, ProfileScheduler]
    ) -> None:
        cluster = self._cache.cluster
        siblings = self.placed(group)
        placed = len(siblings)
        needed = group.min_member - placed
        obstacle = group.obstacle() or shortage(group, cluster)
        if obstacle:
            self._reject(group, taken, self._sentence(obstacle), frozenset({PLUGIN}))
            return
        began = self._clock.monotonic()
        members = []
        for queued in taken:
            scheduler = schedulers.get(queued.pod.pod.spec.scheduler_name)
            if scheduler is not None:
                members.append((queued.pod, scheduler))
            else:
                self._queue.remove(queued.pod.uid)
        vetoes = _veto(members)
        if vetoes:
            sentence = (
                f"extender {vetoes} is asked about one pod at a time, and the members of PodGroup {group.key}"
                " start together; give them a schedulerName whose policy has no such extender"
            )
            self._reject(group, taken, self._sentence(sentence), frozenset({PLUGIN}))
            return
        decision = place_together(members, cluster, needed)
        by_uid = {queued.pod.uid: queued for queued in taken}
        if decision.is_feasible:
            self._start(group, decision, by_uid, schedulers, began)
            return
        seconds = (self._clock.monotonic() - began) / len(taken)
        for _, scheduler in members:
            name = scheduler.profile.scheduler_name
            self._observer.attempt_ended(name, AttemptOutcome.UNSCHEDULABLE.value, seconds)
        uids = {pod.uid for pod in siblings}
        rescue = place_together(members, cluster, needed, is_preempting=True, placed=uids)
        if rescue.is_feasible:
            self._preempt(group, rescue, by_uid, decision.message(placed))
            return
        if not rescue.awaits_victims:
            for pod, _ in members:
                if not self._keeps_room(pod.uid):
                    self._book.release_uid(pod.uid)
        self._reject(
            group,
            taken,
            decision.message(placed),
            decision.plugins,
            keeps_nominations=rescue.awaits_victims,
        )

    def _sentence(self, obstacle: str) -> str:
        return f"0/{len(self._cache.cluster)} nodes are available: {obstacle}."

    def _reject(
        self,
        group: Group,
        taken: Sequence[QueuedPod],
        message: str,
        plugins: frozenset[str],
        *,
        keeps_nominations: bool = False,
    ) -> None:
        """Nobody starts: all are told the same, and back off as one."""
        if message != group.refusal:
            self._note(group, "Unschedulable", message, is_warning=True)
        group.refusal = message
        now = self._clock.monotonic()
        attempts = max(queued.unschedulable_count for queued in taken)
        for queued in taken:
            keeps = keeps_nominations or self._keeps_room(queued.pod.uid)
            self._hands.explain(queued.pod.pod, "Unschedulable", message, None if keeps else "")
            queued.unschedulable_count = attempts
            self._queue.failed(queued.pod.uid, now, plugins)

    def _preempt(
        self,
        group: Group,
        rescue: GangDecision,
        by_uid: Mapping[str, QueuedPod],
        message: str,
    ) -> None:
        """Nominate every member to its place, and let the victims go."""
        group.refusal = (
            f"{message}; {sum(len(each.victims) for each in rescue.placements)} pods are preempted"
        )
        self._note(group, "Preempting", group.refusal)
        placements = {each.decision.pod.uid: each for each in rescue.placements}
        for uid, queued in by_uid.items():
            placement = placements.get(uid)
            self._hands.explain(queued.pod.pod, "Unschedulable", message, placement.node if placement else "")
            if placement is None:
                self._queue.failed(uid, self._clock.monotonic(), rescue.plugins or frozenset({PLUGIN}))
                continue
            # Before the next decision: nobody else may count on that room, or preempt the same victims.
            self._reserve(queued.pod, placement.node, group, keeps=self._keeps_room(uid))
            nomination = placement.decision.nomination
            if nomination is None or not placement.victims:
                self._queue.failed(uid, self._clock.monotonic(), frozenset({PLUGIN}))
                continue
            for outranked in nomination.outranked:
                self._book.release_uid(outranked.uid)
            self._hands.make_room(queued, nomination, frozenset({PLUGIN}))

    # -- starting ------------------------------------------------------------------------------------

    def _start(
        self,
        group: Group,
        decision: GangDecision,
        by_uid: Mapping[str, QueuedPod],
        schedulers: Mapping[str, ProfileScheduler],
        began: float,
    ) -> None:
        """Assume all that fit, or nobody; then let them bind."""
        needed = decision.needed
        begun: list[Begun] = []
        stopped: list[tuple[QueuedPod, Attempt, Status]] = []
        for placement in decision.placements:
            queued = by_uid[placement.decision.pod.uid]
            scheduler = schedulers[queued.pod.pod.spec.scheduler_name]
            attempt, status = self._hands.begun(queued, scheduler, placement.node, placement.state, began)
            if status.is_success or status.code is Code.WAIT:
                begun.append((queued, attempt))
            else:
                stopped.append((queued, attempt, status))
        why = SUCCESS
        if len(begun) < needed:
            reasons = "; ".join(sorted({status.message for _, _, status in stopped}))
            why = unschedulable(
                f"{len(begun)} of the {needed} members that PodGroup {group.key} needs may start: {reasons}"
            ).by(PLUGIN)
            stopped += [(queued, attempt, why) for queued, attempt in begun]
        for queued, attempt, status in stopped:
            self._binding.permits.drop(attempt.pod.uid)
            self._hands.unbound(queued, attempt, status)
        for refused in decision.refused:
            plugins = refused.diagnosis.plugins if refused.diagnosis is not None else frozenset({PLUGIN})
            self._hands.explain(refused.pod.pod, "Unschedulable", refused.message, "")
            self._queue.failed(refused.pod.uid, self._clock.monotonic(), plugins)
        if not why.is_success:
            group.refusal = self._sentence(why.message)
            return
        group.refusal = ""
        self._note(group, "Scheduled", f"{len(begun)} members start together")
        if group.started_at is None or needed == group.min_member:
            # Not a further try for those whose bindings failed: that does not lengthen the time.
            group.started_at, group.overdue = self._clock.now(), False
            self._hands.beside(self._oversee(group.key, group.started_at, self._timeout(group)))
        self._hands.beside(self._release(group.key, begun, needed, self._timeout(group)))

    def _timeout(self, group: Group) -> float:
        return float(group.object.spec.schedule_timeout_seconds if group.object else DEFAULT_TIMEOUT_S)

    async def _release(self, key: str, begun: Sequence[Begun], needed: int, timeout_s: float) -> None:
        """Let them bind once enough members may, or nobody."""
        permitted = await self._releasing.release(key, begun, needed, timeout_s)
        group = self.groups.find(key)
        if permitted < needed and group is not None:
            group.refusal = self._sentence(too_few(key, permitted, needed))
        self.gates.changed(key)

    # -- after a failure -----------------------------------------------------------------------------

    def not_bound(self, pod: PodInfo, node: str, scheduler: ProfileScheduler | None) -> None:
        """A member's binding failed: while its group is short of members, its room is held for it."""
        group = self.groups.of(pod.pod)
        if group is None:
            return
        self.gates.changed(group.key)
        if (
            scheduler is None
            or group.started_at is None
            or self._has_started(group)
            or self._clock.now() - group.started_at >= self._timeout(group)
        ):
            return
        self._reserve(pod, node, group, keeps=True)

    def _reserve(self, pod: PodInfo, node: str, group: Group, *, keeps: bool) -> None:
        """Nominate a member; ``keeps``: until its group gives its room up, whatever an attempt says."""
        reason = ReservationReason.GANG if keeps else ReservationReason.NOMINATED
        self._book.reserve(Reservation(Holder(HolderKind.POD, pod.uid), pod, node, reason, group.key))

    def _keeps_room(self, uid: str) -> bool:
        """Whether a member whose binding failed has its room until the group gives it up."""
        held = self._book.held_by_pod(uid)
        return held is not None and held.reason is ReservationReason.GANG

    async def _oversee(self, key: str, started_at: float, timeout_s: float) -> None:
        """When the time for a start is over, hold no more room, and say who is missing."""
        await self._clock.sleep(timeout_s)
        for held in self._book.release_owner(key, ReservationReason.GANG):
            freed = room_freed(held.pod, self._cache.cluster.objects, held.node)
            self._queue.happened(freed, self._clock.monotonic(), but=held.pod.uid)
        self._hands.wake()
        group = self.groups.find(key)
        if group is None or group.started_at != started_at:
            return
        census = group.census()
        placed = census.scheduled + census.succeeded
        if not 0 < placed < group.min_member:
            return
        group.overdue = True
        self._note(
            group,
            "StartTimedOut",
            f"{placed} of {group.min_member} members are placed after {timeout_s:g} s; they stay, the "
            "others are tried again, and no room is held for them any more",
            is_warning=True,
        )
        self.gates.changed(key)

    def _note(self, group: Group, reason: str, text: str, *, is_warning: bool = False) -> None:
        if group.object is None:
            return
        metadata = group.object.metadata
        reference = {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "PodGroup",
            "namespace": metadata.namespace,
            "name": metadata.name,
            "uid": metadata.uid,
        }
        self._recorder.record(EventNote(reference, reason, "Scheduling", text[:1024], is_warning=is_warning))


def _veto(members: Sequence[tuple[PodInfo, ProfileScheduler]]) -> str:
    """An extender without whose consent some member may go nowhere, or drive nobody away; "" for none."""
    for pod, scheduler in members:
        for each in interested(scheduler.profile.extenders, pod):
            if each.filter_verb or each.preempt_verb:
                return each.name
    return ""


def placed_members(group: Group, cache: Cache) -> list[Pod]:
    """Members that have a node, bound or assumed, and those that have ended well."""
    return [
        pod
        for pod in group.counting()
        if pod.status.phase == "Succeeded" or cache.node_of(pod.uid) or pod.node_name
    ]


def shortage(group: Group, cluster: Cluster) -> str:
    """Which of a group's minResources the cluster lacks as a whole, in a sentence; "" when none."""
    assert group.object is not None
    try:
        wanted = {
            name: milli(amount) if name == "cpu" else units(amount)
            for name, amount in group.object.spec.min_resources.items()
        }
    except QuantityError as exc:
        return f"minResources of PodGroup {group.key} cannot be read: {exc}"
    own = [cluster.pods[pod.uid] for pod in group.counting() if pod.uid in cluster.pods]
    lacking = lacking_resources(cluster, wanted, own) if wanted else {}
    if not lacking:
        return ""
    amounts = ", ".join(
        f"{amount}m of cpu" if name == "cpu" else f"{amount} of {name}"
        for name, amount in sorted(lacking.items())
    )
    return f"minResources of PodGroup {group.key} are not free: the cluster lacks {amounts}"
