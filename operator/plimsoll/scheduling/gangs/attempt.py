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
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from plimsoll.cluster.cache import Cache
from plimsoll.cluster.group_units import unit_of
from plimsoll.cluster.pod_groups import Group, shortage
from plimsoll.devices.book import DeviceBook
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.extender import interested
from plimsoll.engine.gangs.composite import Branch, Leaf, place_unit
from plimsoll.engine.gangs.joint_decision import GangDecision
from plimsoll.engine.gangs.topology_domains import TopologyPlacement, never_fits
from plimsoll.engine.plugin_calls import GANG_BUDGET_S, METER, UNBOUNDED, OverBudgetError
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import SUCCESS, Code, Nomination, PodInfo, Status, unschedulable
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.counted import agreeing, counted
from plimsoll.model.kinds.owned_group import title_of
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
        if group is None or (not near and self._oversight.joins_alone(group)):
            return False
        schedulers = self._served.schedulers
        parts = self._oversight.groups.parts(group.key)
        taken = [queued]
        for pod in (pod for part in parts for pod in part.waiting()):
            sibling = self._queue.take(pod.uid) if pod.uid != queued.pod.uid else None
            if sibling is not None:
                taken.append(sibling)
        try:
            self._decide(group, taken, schedulers)
        except Exception:
            for each in taken:  # requeue those whose binding has not begun
                self._cache.forget(each.pod.uid)
                self._queue.add_unschedulable_if_not_present(each.pod.uid, self._clock.monotonic())
            raise
        for part in parts:
            self._oversight.changed(part.key)
        return True

    def _decide(
        self,
        group: Group,
        taken: list[QueuedPod],
        schedulers: Mapping[str, ProfileScheduler],
    ) -> None:
        cluster = self._cache.cluster
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
        unit = self._unit(group, members)
        decision = self._placed(unit, cluster)
        by_uid = {queued.pod.uid: queued for queued in taken}
        if decision.is_feasible:
            self._start(group, decision, by_uid, schedulers, began, unit)
            return
        seconds = (self._clock.monotonic() - began) / len(taken)
        for _, scheduler in members:
            name = scheduler.profile.scheduler_name
            self._observer.attempt_ended(name, AttemptOutcome.UNSCHEDULABLE.value, seconds)
        if self._was_costly(group, taken, decision):
            return
        parts = self._oversight.groups.parts(group.key)
        rescue, message = decision, decision.message(len(self._oversight.placed(group)), group.min_member)
        never = "" if unit.labels else never_fits([pod for pod, _ in members], cluster, max(unit.fewest, 1))
        if never:
            message = f"{message} {never[0].upper()}{never[1:]}."
        elif all(part.may_preempt for part in parts):
            members = [(self._outranking(pod), scheduler) for pod, scheduler in members]
            rescue = self._placed(self._unit(group, members), cluster, is_preempting=True)
        if rescue.is_feasible:
            self._preempt(group, rescue, by_uid, message)
            return
        if self._was_costly(group, taken, rescue):
            return
        plugins = decision.plugins
        # While the victims of a sibling are being removed, the room that others have for it is kept, too.
        waiting = (each.uid for part in parts for each in part.waiting())
        places = (self._queue.whereabouts(uid) for uid in waiting if uid not in by_uid)
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

    def _unit(self, group: Group, members: Sequence[Member]) -> Leaf | Branch:
        """The group with these members, or the whole tree that it is part of."""
        return unit_of(self._oversight.groups, group, members, self._oversight.placed)

    def _placed(self, unit: Leaf | Branch, cluster: Cluster, *, is_preempting: bool = False) -> GangDecision:
        """Decide within a budget of processor time: members are given up once it is spent."""
        calls = METER.get()
        budget = UNBOUNDED if calls is None else calls.budget
        first = next((pod.uid for leaf in unit.leaves for pod, _ in leaf.waiting), "")
        budget.begin(first, GANG_BUDGET_S)
        try:
            return place_unit(unit, cluster, is_preempting=is_preempting)
        finally:
            budget.end()

    def _outranking(self, pod: PodInfo) -> PodInfo:
        """A member as it preempts: with the priority of its group or of one above, if it is higher."""
        groups = self._oversight.groups
        group = groups.of(pod.pod)
        given = [each.object.spec.priority for each in (groups.above(group.key) if group else ())]
        if group is not None and group.object is not None:
            given.append(group.object.spec.own_priority)
        priority = max((each for each in given if each is not None), default=None)
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
        root, is_news = self._oversight.refuse(group.key, message)
        if is_news:
            self._oversight.note(root, "Unschedulable", message, is_warning=True)
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
        refusal = f"{message}; {counted(victims, 'pod')} {agreeing(victims, 'is', 'are')} preempted"
        self._oversight.note(self._oversight.refuse(group.key, refusal)[0], "Preempting", refusal)
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
            own = self._oversight.groups.of(queued.pod.pod) or group
            self._oversight.reserve(
                placement.decision.pod, placement.node, own, keeps=self._oversight.keeps_room(uid)
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
        unit: Leaf | Branch,
    ) -> None:
        """Assume all that fit, or none; then bind them."""
        groups = self._oversight.groups
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
        starting = unit.ready({queued.pod.uid for queued, _ in begun}) or frozenset()
        why, going = SUCCESS, [each for each in begun if groups.key_of(each[0].pod.pod) in starting]
        if len(going) < len(begun) or not begun:
            reasons = "; ".join(sorted({status.message for _, _, status in stopped}))
            text = (
                f"{len(begun)} of the {max(unit.fewest, 1)} members that {title_of(unit.key)} needs may"
                f" start: {reasons}"
            )
            why = unschedulable(text).by(PLUGIN)
            stopped += [(*each, why) for each in begun if groups.key_of(each[0].pod.pod) not in starting]
        for queued, attempt, status in stopped:
            self._pipeline.unbound(queued, attempt, status)
        for refused in decision.refused:
            plugins = refused.diagnosis.plugins if refused.diagnosis is not None else frozenset({PLUGIN})
            reason = NOT_READY if refused.no_node_helps else UNSCHEDULABLE
            self._explanations.explain(refused.pod.pod, reason, refused.message, "")
            self._queue.add_unschedulable_if_not_present(refused.pod.uid, self._clock.monotonic(), plugins)
        self._leave_out(decision, by_uid, unit)
        if not going:
            self._oversight.refuse(group.key, sentence(self._cache, why.message))
            return
        self._oversight.begins(going, unit)
        self._pipeline.start(self._bind_together(group.key, going, unit, timeout_s(group)))

    def _leave_out(
        self, decision: GangDecision, by_uid: Mapping[PodUid, QueuedPod], unit: Leaf | Branch
    ) -> None:
        """Requeue the members of groups that do not start with the others of their composite group."""
        told = {each.decision.pod.uid for each in decision.placements}
        told |= {each.pod.uid for each in decision.refused}
        for uid, queued in by_uid.items():
            if uid not in told:
                mine = title_of(self._oversight.groups.key_of(queued.pod.pod))
                text = sentence(self._cache, f"{mine} does not fit with others of {title_of(unit.key)}")
                self._explanations.explain(queued.pod.pod, UNSCHEDULABLE, text, "")
                plugins = decision.plugins or frozenset({TopologyPlacement.name})
                self._queue.add_unschedulable_if_not_present(uid, self._clock.monotonic(), plugins)

    async def _bind_together(
        self, key: str, begun: Sequence[Begun], unit: Leaf | Branch, patience_s: float
    ) -> None:
        """Bind the members once enough of them are permitted, or none."""
        permitted, starting = await release(self._pipeline, self._clock, begun, unit, patience_s)
        if not starting:
            self._oversight.refuse(key, sentence(self._cache, too_few(unit, permitted)))
        for part in self._oversight.groups.parts(key):
            self._oversight.changed(part.key)


def _veto(members: Sequence[Member]) -> str:
    """An extender that must approve a member's node or its preemption; "" without one."""
    for pod, scheduler in members:
        for each in interested(scheduler.profile.extenders, pod):
            if each.filter_verb or each.preempt_verb:
                return each.name
    return ""
