"""Decides on the members of a PodGroup together, assumes them together, and binds them when enough may.

The loop passes on a popped member. Its siblings are taken out of the queue, and
:mod:`plimsoll.engine.gangs.placement` searches nodes for all of them on a fork.

* Enough fit: all that fit are assumed and reserved without awaiting in between. If plugins reject some of
  them now and too few remain, all are undone before anything else runs.
* Too few fit: members of higher priority may preempt if then all fit; otherwise nothing is assumed, and each
  member's condition reports how many fit and what the others lack.

Members wait for one another on Permit. A binding that fails afterwards unbinds no other: the member is tried
again, and its room is reserved until ``scheduleTimeoutSeconds`` after the decision. Once a group has started,
its further members are placed individually, except where all members share a topology domain: then any number
of them joins the others there, or near them where they prefer it.
"""

import asyncio
from collections.abc import Awaitable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from plimsoll.cluster.cache import Cache
from plimsoll.cluster.pod_groups import Group, shortage
from plimsoll.devices.book import DeviceBook
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.extender import interested
from plimsoll.engine.gangs.joint_decision import GangDecision
from plimsoll.engine.gangs.placement import place_together
from plimsoll.engine.gangs.topology_domains import never_fits
from plimsoll.engine.plugin_calls import GANG_BUDGET_S, METER, UNBOUNDED, OverBudgetError
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import SUCCESS, Code, Nomination, PodInfo, Status, unschedulable
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.counted import agreeing, counted
from plimsoll.model.kinds.resource_claim import ResourceClaim
from plimsoll.model.names import PodUid
from plimsoll.policy_controller.served_profiles import ServedProfiles
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.ports.pod_writes import NOT_READY, UNSCHEDULABLE
from plimsoll.scheduling.binding.cycle import BindingAttempt
from plimsoll.scheduling.binding.pipeline import BindingPipeline
from plimsoll.scheduling.conditions import Explanations
from plimsoll.scheduling.failures import AttemptFailures
from plimsoll.scheduling.gangs.gates import PLUGIN, sentence
from plimsoll.scheduling.gangs.oversight import GangOversight, timeout_s
from plimsoll.scheduling.gangs.release import Begun, release, too_few
from plimsoll.scheduling.queue.queue import SchedulingQueue
from plimsoll.scheduling.queue.queued_pod import QueuedPod

Member = tuple[PodInfo, ProfileScheduler]
"""A member with its scheduler."""


@dataclass(eq=False)
class GangAttempts:
    """Schedules gangs."""

    _oversight: GangOversight
    _served: ServedProfiles
    _queue: SchedulingQueue
    _pipeline: BindingPipeline
    _failures: AttemptFailures
    _explanations: Explanations
    _clock: Clock
    _observer: Observer

    @property
    def _cache(self) -> Cache:
        return self._oversight.book.cache

    def takes(self, queued: QueuedPod, scheduler: ProfileScheduler) -> bool:
        """Decide on a popped pod together with its siblings; False if the pod is to be tried individually."""
        group = self._oversight.groups.of(queued.pod.pod)
        near = () if group is None else group.near(scheduler.profile.groups)
        if group is None or (not (group.topology_key or near) and self._oversight.has_started(group)):
            return False
        schedulers = self._served.schedulers
        taken = [queued]
        for pod in group.waiting():
            sibling = self._queue.take(pod.uid) if pod.uid != queued.pod.uid else None
            if sibling is not None:
                taken.append(sibling)
        try:
            self._decide(group, taken, schedulers, near)
        except Exception:
            for each in taken:  # requeue those whose binding has not begun
                self._cache.forget(each.pod.uid)
                self._queue.add_unschedulable_if_not_present(each.pod.uid, self._clock.monotonic())
            raise
        self._oversight.changed(group.key)
        return True

    def _decide(
        self,
        group: Group,
        taken: list[QueuedPod],
        schedulers: Mapping[str, ProfileScheduler],
        near: Sequence[str],
    ) -> None:
        cluster = self._cache.cluster
        siblings = self._oversight.placed(group)
        placed = len(siblings)
        needed = max(group.min_member - placed, 1)
        obstacle = group.obstacle() or shortage(group, cluster)
        if obstacle:
            self._reject(group, taken, sentence(self._cache, obstacle), frozenset({PLUGIN}))
            return
        began = self._clock.monotonic()
        members = list(self._members(taken, schedulers))
        vetoes = _veto(members)
        if vetoes:
            text = (
                f"extender {vetoes} is asked about one pod at a time, and the members of {group.title}"
                " start together; give them a schedulerName whose policy has no such extender"
            )
            self._reject(group, taken, sentence(self._cache, text), frozenset({PLUGIN}), reason=NOT_READY)
            return
        uids, within = {pod.uid for pod in siblings}, group.topology_key
        decision = self._placed(members, cluster, needed, placed=uids, within=within, near=near)
        by_uid = {queued.pod.uid: queued for queued in taken}
        if decision.is_feasible:
            self._start(group, decision, by_uid, schedulers, began)
            return
        seconds = (self._clock.monotonic() - began) / len(taken)
        for _, scheduler in members:
            name = scheduler.profile.scheduler_name
            self._observer.attempt_ended(name, AttemptOutcome.UNSCHEDULABLE.value, seconds)
        if self._was_costly(group, taken, decision):
            return
        rescue, message = decision, decision.message(placed, group.min_member)
        never = "" if within else never_fits([pod for pod, _ in members], cluster, needed)
        if never:
            message = f"{message} {never[0].upper()}{never[1:]}."
        elif group.may_preempt:
            members = [(self._outranking(pod, group), scheduler) for pod, scheduler in members]
            rescue = self._placed(members, cluster, needed, is_preempting=True, placed=uids, within=within)
        if rescue.is_feasible:
            self._preempt(group, rescue, by_uid, message)
            return
        if self._was_costly(group, taken, rescue):
            return
        plugins = decision.plugins
        # While the victims of a sibling are being removed, the room that others have for it is kept, too.
        places = (self._queue.whereabouts(each.uid) for each in group.waiting() if each.uid not in by_uid)
        keeps = rescue.awaits_victims or any(place and place[0] == "in flight" for place in places)
        given = self._give_back(rescue)
        if given:
            self._pipeline.start(self._reject_after(given, group, taken, message, plugins, keeps=keeps))
        else:
            reason = NOT_READY if decision.no_node_helps else UNSCHEDULABLE
            self._reject(group, taken, message, plugins, keeps_nominations=keeps, reason=reason)

    def _members(
        self, taken: Sequence[QueuedPod], schedulers: Mapping[str, ProfileScheduler]
    ) -> Iterator[Member]:
        """The members with their schedulers; those that are no longer served leave the queue."""
        for queued in taken:
            scheduler = schedulers.get(queued.pod.pod.spec.scheduler_name)
            if scheduler is not None:
                yield queued.pod, scheduler
            else:
                self._queue.remove(queued.pod.uid)

    def _placed(
        self,
        members: Sequence[Member],
        cluster: Cluster,
        needed: int,
        *,
        is_preempting: bool = False,
        placed: Collection[str] = (),
        within: str = "",
        near: Sequence[str] = (),
    ) -> GangDecision:
        """Decide within a budget of processor time: members are given up once it is spent."""
        calls = METER.get()
        budget = UNBOUNDED if calls is None else calls.budget
        budget.begin(members[0][0].uid if members else "", GANG_BUDGET_S)
        try:
            return place_together(
                members,
                cluster,
                needed,
                is_preempting=is_preempting,
                placed=placed,
                within=within,
                near=near,
            )
        finally:
            budget.end()

    def _outranking(self, pod: PodInfo, group: Group) -> PodInfo:
        """A member as it preempts: with the priority of its group, if that has one and it is higher."""
        priority = None if group.object is None else group.object.spec.own_priority
        return self._cache.cluster.templates.at_priority(pod, priority)

    def _was_costly(self, group: Group, taken: Sequence[QueuedPod], decision: GangDecision) -> bool:
        """Whether the budget was spent; then all members back off for a minute, then two, up to an hour."""
        error = next(
            (each.error for each in decision.refused if isinstance(each.error, OverBudgetError)), None
        )
        for queued in taken:
            queued.costly_count = 0 if error is None else queued.costly_count + 1
        if error is not None:
            self._observer.failed("an attempt", f"{group.title}: {error}")
            self._reject(group, taken, str(error), frozenset(), reason="SchedulerError")
        return error is not None

    def _give_back(self, decision: GangDecision) -> list[Awaitable[str]]:
        """Give back unused allocations of claims that keep members from nodes."""
        book = self._cache.cluster.objects.known_ledger(DeviceBook)
        given, begun = set[str](), list[Awaitable[str]]()

        def is_due(claim: ResourceClaim | None) -> bool:
            # An allocation for an earlier member of the gang exists on the fork only.
            known = None if claim is None or book is None else book.claims.get(claim.key)
            if claim is None or known is None or known.status != claim.status or claim.key in given:
                return False
            given.add(claim.key)
            return True

        for refused in decision.refused:
            asked = refused.nomination or Nomination(SUCCESS)
            deallocates = asked.deallocates if is_due(asked.deallocates) else None
            deletes = asked.deletes if is_due(asked.deletes) else None
            due = Nomination(asked.status, deallocates=deallocates, deletes=deletes)
            begun += self._pipeline.give_back(refused.pod, due)
        return begun

    async def _reject_after(
        self,
        given: Sequence[Awaitable[str]],
        group: Group,
        taken: Sequence[QueuedPod],
        message: str,
        plugins: frozenset[str],
        *,
        keeps: bool,
    ) -> None:
        """Requeue the members after their claims are given back; back off briefly if that fails."""
        rejected_by = frozenset[str]()
        try:
            problems = [problem for problem in await asyncio.gather(*given) if problem]
            message = "; ".join((message, *problems))
            rejected_by = rejected_by if problems else plugins
        finally:
            self._reject(group, taken, message, rejected_by, keeps_nominations=keeps)
            self._oversight.changed(group.key)

    def _reject(
        self,
        group: Group,
        taken: Sequence[QueuedPod],
        message: str,
        plugins: frozenset[str],
        *,
        keeps_nominations: bool = False,
        reason: str = UNSCHEDULABLE,
    ) -> None:
        """Start no member: all get the same condition and back off together."""
        if message != group.refusal:
            self._oversight.note(group, "Unschedulable", message, is_warning=True)
        group.refusal = message
        now = self._clock.monotonic()
        attempts = max(queued.unschedulable_count for queued in taken)
        for queued in taken:
            keeps = keeps_nominations or self._oversight.keeps_room(queued.pod.uid)
            if not keeps:
                self._oversight.book.release_uid(queued.pod.uid)
            self._explanations.explain(queued.pod.pod, reason, message, None if keeps else "")
            queued.unschedulable_count = attempts
            self._queue.add_unschedulable_if_not_present(queued.pod.uid, now, plugins)

    def _preempt(
        self,
        group: Group,
        rescue: GangDecision,
        by_uid: Mapping[PodUid, QueuedPod],
        message: str,
    ) -> None:
        """Nominate every member to its node, and remove the victims."""
        victims = sum(len(each.victims) for each in rescue.placements)
        group.refusal = f"{message}; {counted(victims, 'pod')} {agreeing(victims, 'is', 'are')} preempted"
        self._oversight.note(group, "Preempting", group.refusal)
        placements = {each.decision.pod.uid: each for each in rescue.placements}
        for uid, queued in by_uid.items():
            placement = placements.get(uid)
            node = placement.node if placement else ""
            self._explanations.explain(queued.pod.pod, UNSCHEDULABLE, message, node)
            if placement is None:
                self._queue.add_unschedulable_if_not_present(
                    uid, self._clock.monotonic(), rescue.plugins or frozenset({PLUGIN})
                )
                continue
            # Before the next decision: no other pod may count on that room, or preempt the same victims.
            self._oversight.reserve(
                placement.decision.pod, placement.node, group, keeps=self._oversight.keeps_room(uid)
            )
            nomination = placement.decision.nomination or Nomination(node=placement.node)
            nomination = replace(nomination, node=placement.node, victims=placement.victims)
            if not placement.victims:
                self._queue.add_unschedulable_if_not_present(
                    uid, self._clock.monotonic(), frozenset({PLUGIN})
                )
                continue
            for outranked in nomination.outranked:
                self._oversight.book.release_uid(outranked.uid)
            self._failures.start_preemption(queued, nomination, frozenset({PLUGIN}), is_alone=False)

    def _start(
        self,
        group: Group,
        decision: GangDecision,
        by_uid: Mapping[PodUid, QueuedPod],
        schedulers: Mapping[str, ProfileScheduler],
        began: float,
    ) -> None:
        """Assume all that fit, or none; then bind them."""
        needed = decision.needed
        begun: list[Begun] = []
        stopped: list[tuple[QueuedPod, BindingAttempt, Status]] = []
        for placement in decision.placements:
            queued = by_uid[placement.decision.pod.uid]
            profile = schedulers[queued.pod.pod.spec.scheduler_name].profile
            attempt, status = self._pipeline.begin(queued, profile, placement.node, placement.state, began)
            if status.is_success or status.code is Code.WAIT:
                begun.append((queued, attempt))
            else:
                stopped.append((queued, attempt, status))
        why = SUCCESS
        if len(begun) < needed:
            reasons = "; ".join(sorted({status.message for _, _, status in stopped}))
            why = unschedulable(
                f"{len(begun)} of the {needed} members that {group.title} needs may start: {reasons}"
            ).by(PLUGIN)
            stopped += [(queued, attempt, why) for queued, attempt in begun]
        for queued, attempt, status in stopped:
            self._pipeline.unbound(queued, attempt, status)
        for refused in decision.refused:
            plugins = refused.diagnosis.plugins if refused.diagnosis is not None else frozenset({PLUGIN})
            reason = NOT_READY if refused.no_node_helps else UNSCHEDULABLE
            self._explanations.explain(refused.pod.pod, reason, refused.message, "")
            self._queue.add_unschedulable_if_not_present(refused.pod.uid, self._clock.monotonic(), plugins)
        if not why.is_success:
            group.refusal = sentence(self._cache, why.message)
            return
        group.refusal = ""
        self._oversight.note(
            group,
            "Scheduled",
            f"{counted(len(begun), 'member')} {agreeing(len(begun), 'starts', 'start')} together",
        )
        if group.started_at is None or needed == group.min_member:
            # Later tries of members whose bindings failed do not extend the time.
            self._oversight.started(group)
        self._pipeline.start(self._bind_together(group.key, begun, needed, timeout_s(group)))

    async def _bind_together(self, key: str, begun: Sequence[Begun], needed: int, patience_s: float) -> None:
        """Bind the members once enough of them are permitted, or none."""
        permitted = await release(self._pipeline, self._clock, key, begun, needed, patience_s)
        group = self._oversight.groups.find(key)
        if permitted < needed and group is not None:
            group.refusal = sentence(self._cache, too_few(key, permitted, needed))
        self._oversight.changed(key)


def _veto(members: Sequence[Member]) -> str:
    """An extender that must approve a member's node or its preemption; "" without one."""
    for pod, scheduler in members:
        for each in interested(scheduler.profile.extenders, pod):
            if each.filter_verb or each.preempt_verb:
                return each.name
    return ""
