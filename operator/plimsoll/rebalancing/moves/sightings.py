"""Finds the replacements of moved pods, and decides whether each is seen, running, ready or returned.

A replacement is a pod of the same controller that did not exist when its predecessor's eviction was sent.
Each is credited to one move only, the one that waits longest. A credited pod that fails, is terminating or
gets another owner loses the credit; the next pod that its controller creates gets it. Until then, the credit
goes to a pod that was created in the meantime, has no credit and is not ready yet: someone may have created a
pod for the owner, which then deleted one instead of creating the replacement.

A pod that was seen before its predecessor was seen terminating is an early one: the workload may have been
scaled up at that moment, or a live migration starts the replacement first, or a list
after a gap has shown both in the order of their names. It has the credit until a later pod is seen.

A controller of members of a group that leaves whole may be made again, as by a JobSet that starts over when
one pod is evicted. What was followed for the controller of that kind and name is then followed for the new
one; a pod of the group whose controller has another name is an early replacement. Of several members, the one
with the same number in its name is replaced first.

The first event of a replacement is ``ReplacementSeen``. Later events follow its changes; each is the
strongest that applies: ready or returned, running, seen. After ready or returned the move is no longer
followed.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct, field

from plimsoll.api.v1alpha1.eviction import Purpose
from plimsoll.cluster.watch_events import PodAdded, PodDeleted, PodUpdated, WatchEvent
from plimsoll.engine.gangs.ranks import number_of
from plimsoll.framework import Pod
from plimsoll.model.kinds.gang_marks import gangs_of
from plimsoll.model.kinds.metadata import OwnerReference
from plimsoll.model.names import NodeName, PodUid, RecordKey
from plimsoll.rebalancing.moves import events
from plimsoll.rebalancing.moves.instructions import FollowReplacement, StopFollowing
from plimsoll.rebalancing.moves.state import PodFacts
from plimsoll.toolkit.descheduling.disruption_signals import EVICTION_IN_PROGRESS


class Sightings(Protocol):
    """Finds the replacements of followed moves."""

    def follow(self, instruction: FollowReplacement) -> tuple[events.ReplacementEvent, ...]:
        """Follow the replacement of a moved pod."""

    def stop(self, instruction: StopFollowing) -> None:
        """Stop following."""

    def observe(self, event: WatchEvent) -> tuple[events.ReplacementEvent, ...]:
        """The events of followed moves that an event of the cluster causes."""

    def observe_placed(self, pods: Sequence[Pod]) -> tuple[events.ReplacementEvent, ...]:
        """The same for added pods that have nodes."""


class Followed(Struct):
    """A move whose replacement is followed."""

    instruction: FollowReplacement
    owner: str = ""  #: uid of the controller whose pods are credited
    moved: Pod | None = None  #: the pod that was moved, if it was seen
    reported: PodFacts | None = None  #: the last reported replacement; None while no pod is credited
    has_left: bool = False  #: whether its pod was seen terminating
    is_early: bool = False  #: whether the next pod that is seen gets the credit instead
    passed_over: list[str] = field(default_factory=list)  #: uids of pods created while another was credited

    @property
    def key(self) -> RecordKey:
        """The move's key."""
        return self.instruction.key

    @property
    def pod_uid(self) -> PodUid:
        """The moved pod's uid."""
        return PodUid(self.instruction.spec.pod.uid)

    def may_be_replaced_by(self, pod: Pod) -> bool:
        """Whether it is another pod of the record's namespace; pods elsewhere may name the same owner."""
        return pod.uid != self.pod_uid and pod.namespace == self.key.partition("/")[0]

    @property
    def group(self) -> str:
        """The group that leaves whole by the move and others, "" for none."""
        bundle = self.instruction.spec.bundle
        return (bundle.group if bundle is not None else None) or ""

    def is_owner_of(self, pod: Pod) -> bool:
        """Whether a pod belongs to the controller that is followed."""
        return pod.metadata.owner is not None and pod.metadata.owner.uid == self.owner

    def is_of_namesake(self, pod: Pod) -> bool:
        """Whether a pod's controller has the kind and name of the one that is followed."""
        former, owner = self.instruction.spec.owner, pod.metadata.owner
        if former is None or owner is None or not self.may_be_replaced_by(pod):
            return False
        return (former.kind, former.name) == (owner.kind, owner.name)

    def is_of_group(self, pod: Pod) -> bool:
        """Whether a pod names the group of the move."""
        return self.may_be_replaced_by(pod) and self.group in map(str, gangs_of(pod))

    def unlikeness(self, pod: Pod) -> tuple[bool, bool]:
        """Whether a pod differs from the moved member by requests, and by the number in its name."""
        if not self.group:
            return False, False
        requests_more_or_less = self.moved is not None and _resources(self.moved) != _resources(pod)
        return requests_more_or_less, number_of(self.instruction.spec.pod.name) != number_of(pod.name)

    def distance(self, pod: Pod) -> int:
        """How far a pod is from the target: 0 on it, 1 without a node, 2 on another one."""
        return 1 if not pod.node_name else 0 if pod.node_name == self.instruction.spec.target_node else 2

    @property
    def waits_for_new(self) -> bool:
        """Whether the next created pod is credited to it."""
        return self.reported is None or (self.is_early and self.has_left)


class ReplacementSightings(Struct):
    """Credits pods to the moves whose pods they replace."""

    _siblings: dict[str, dict[str, Pod]] = field(default_factory=dict)  #: pods by owner uid, then uid
    _waiting: dict[str, list[Followed]] = field(default_factory=dict)  #: by owner uid, the longest first
    _credited: dict[str, Followed] = field(default_factory=dict)  #: by uid of the replacement
    _whole: list[Followed] = field(default_factory=list)  #: of groups that leave whole, the longest first
    _spent: set[str] = field(default_factory=set)  #: uids of pods that replace no other pod

    # -- for the executor ----------------------------------------------------------------------------

    def follow(self, instruction: FollowReplacement) -> tuple[events.ReplacementEvent, ...]:
        """Follow the owner's pods that do not exist yet, or were created after ``instruction.since``.

        Of the latter, one on the target is credited first, and one on another node last: it may have the
        target of another move. Of equal ones the oldest is. Rollouts are followed elsewhere, by their mark.
        """
        owner, surge = instruction.spec.owner, instruction.spec.surge
        if owner is None or (surge is not None and surge.replicas is None):
            return ()
        siblings: Mapping[str, Pod] = self._siblings.get(owner.uid, {})
        moved = siblings.get(instruction.spec.pod.uid)
        has_left = moved is None or moved.is_terminating
        followed = Followed(instruction, owner.uid, moved, has_left=has_left)
        if followed.group:
            self._whole.append(followed)
            siblings = siblings or self._made_again(followed)
        self._waiting.setdefault(followed.owner, []).append(followed)
        made_since = [
            pod
            for uid, pod in siblings.items()
            if _is_newer(pod, instruction.since)
            and followed.may_be_replaced_by(pod)
            and uid not in self._credited
            and uid not in self._spent
            and pod.status.phase != "Failed"
            and not pod.is_terminating
        ]
        if not made_since:
            return ()
        nearest = min(
            made_since,
            key=lambda pod: (
                followed.unlikeness(pod),
                followed.distance(pod),
                str(pod.metadata.creation_timestamp),
            ),
        )
        found = self._credit(followed, nearest)
        followed.is_early = followed.is_early or not followed.is_owner_of(nearest)
        return found

    def stop(self, instruction: StopFollowing) -> None:
        """Stop following; the recorded replacement, if it still exists, replaces no other pod."""
        owners = {instruction.owner}
        for owner, waiting in list(self._waiting.items()):
            for followed in [each for each in waiting if each.key == instruction.key]:
                owners.add(owner)
                self._forget(followed)
        if any(instruction.spent in self._siblings.get(owner, {}) for owner in owners):
            self._spent.add(instruction.spent)

    def observe(self, event: WatchEvent) -> tuple[events.ReplacementEvent, ...]:
        """The events of replacements."""
        match event:
            case PodUpdated(old, pod) if old.metadata.owner != pod.metadata.owner:
                return (*self._lose(old), *self._see(pod))  # released, or adopted by another owner
            case PodAdded(pod) | PodUpdated(_, pod):
                return self._see(pod)
            case PodDeleted(pod):
                return self._lose(pod)
            case _:
                return ()

    def observe_placed(self, pods: Sequence[Pod]) -> tuple[events.ReplacementEvent, ...]:
        """The events of replacements."""
        if self._waiting or self._credited:
            return tuple(event for pod in pods for event in self._see(pod))
        owners: tuple[OwnerReference, ...] = ()
        siblings: dict[str, Pod] = {}
        for pod in pods:
            meta = pod.metadata
            if meta.owner_references is not owners or not owners:  # siblings share theirs
                owners, owner = meta.owner_references, meta.owner
                siblings = {} if owner is None else self._siblings.setdefault(owner.uid, {})
            siblings[meta.uid] = pod
        return ()

    # -- reads ---------------------------------------------------------------------------------------

    def siblings(self, owner: str) -> Mapping[str, Pod]:
        """The pods of a controller, by uid."""
        return self._siblings.get(owner, {})

    # ------------------------------------------------------------------------------------------------

    def _see(self, pod: Pod) -> tuple[events.ReplacementEvent, ...]:
        owner = pod.metadata.owner
        if owner is None:
            return ()
        siblings = self._siblings.setdefault(owner.uid, {})
        is_new = pod.uid not in siblings
        siblings[pod.uid] = pod
        if pod.is_terminating:
            self._leaves(owner.uid, pod)
        credited = self._credited.get(pod.uid)
        if credited is not None:
            return self._changed(credited, pod)
        return self._offer(owner.uid, pod) if is_new else ()

    def _leaves(self, owner: str, pod: Pod) -> None:
        """Handle a pod that is terminating or gone."""
        for followed in self._waiting.get(owner, ()):
            followed.has_left = followed.has_left or followed.pod_uid == pod.uid

    def _made_again(self, followed: Followed) -> Mapping[str, Pod]:
        """Pods of the controller that was made again meanwhile, else those of the group."""
        since = followed.instruction.since
        newer = {uid: pods for uid, pods in self._siblings.items() if _is_newer(_first(pods), since)}
        for uid, pods in newer.items():
            if followed.is_of_namesake(_first(pods)):
                followed.owner, followed.has_left = uid, True
                return pods
        others = [pods for uid, pods in newer.items() if uid not in self._waiting]
        ours = [pods for pods in others if followed.is_of_group(_first(pods))]
        return {uid: pod for pods in ours for uid, pod in pods.items()}

    def _inherit(self, pod: Pod, owner: str) -> None:
        """Follow for a controller that was made again what is followed for the former one of its name."""
        for followed in self._whole:
            if followed.owner != owner and followed.is_of_namesake(pod):
                self._unlist(followed)
                followed.owner, followed.has_left = owner, True
                self._waiting.setdefault(owner, []).append(followed)

    def _offer_to_group(self, pod: Pod) -> tuple[events.ReplacementEvent, ...]:
        """Credit a pod of another controller to a member of its group that has left."""
        waiting = [
            each for each in self._whole if each.reported is None and each.has_left and each.is_of_group(pod)
        ]
        if not waiting:
            return ()
        followed = min(waiting, key=lambda each: each.unlikeness(pod))
        found = self._credit(followed, pod)
        followed.is_early = True  # until its own controller creates one
        return found

    def _offer(self, owner: str, pod: Pod) -> tuple[events.ReplacementEvent, ...]:
        """Credit a pod to the longest waiting move; it replaces an early one, which the next move gets."""
        if self._whole:
            self._inherit(pod, owner)
            if owner not in self._waiting:
                return self._offer_to_group(pod)
        waiting = self._waiting.get(owner, ())
        for followed in sorted(waiting, key=lambda each: (not each.has_left, *each.unlikeness(pod))):
            if not followed.waits_for_new or not followed.may_be_replaced_by(pod):
                continue
            early = self._early(followed)
            if not early:
                return self._credit(followed, pod)
            given = (*self._take_back(early), *self._credit(followed, pod))
            former = early.metadata.owner
            return given if former is None else (*given, *self._offer(former.uid, early))
        for followed in self._waiting.get(owner, ()):
            followed.passed_over.append(pod.uid)
        return ()

    def _early(self, followed: Followed) -> Pod | None:
        """The pod that is credited until a later one is seen."""
        uid = "" if followed.reported is None else followed.reported.uid
        pods = self._siblings.get(followed.owner, {})
        if uid and uid not in pods:  # of another controller
            pods = next((each for each in self._siblings.values() if uid in each), {})
        return pods.get(uid)

    def _offer_passed_over(self, followed: Followed, owner: str) -> tuple[events.ReplacementEvent, ...]:
        """Credit the first pod that was created during another's credit; the next new pod replaces it."""
        for uid in followed.passed_over:
            pod = self._siblings.get(owner, {}).get(uid)
            if pod is None or uid in self._credited or uid in self._spent or pod.is_terminating:
                continue
            if followed.may_be_replaced_by(pod) and pod.status.phase != "Failed" and not is_there(pod):
                found = self._credit(followed, pod)
                followed.is_early = True
                return found
        return ()

    def _credit(self, followed: Followed, pod: Pod) -> tuple[events.ReplacementEvent, ...]:
        facts = facts_of(pod)
        followed.reported, followed.is_early = facts, not followed.has_left
        self._credited[pod.uid] = followed
        further = self._changed(followed, pod, is_first=True)
        return (events.ReplacementSeen(followed.key, facts), *further)

    def _changed(
        self, followed: Followed, pod: Pod, *, is_first: bool = False
    ) -> tuple[events.ReplacementEvent, ...]:
        """The strongest event that applies to a credited pod; none if it was reported."""
        key, facts = followed.key, facts_of(pod)
        is_as_reported = facts == followed.reported
        if pod.status.phase == "Failed" or pod.is_terminating:
            self._spent.add(pod.uid)  # its owner creates another one, maybe before this one is gone
            return self._lost(pod)
        if is_there(pod):
            self._spent.add(pod.uid)
            self._forget(followed)
            spec = followed.instruction.spec
            has_returned = pod.node_name == spec.from_node and spec.purpose is not Purpose.RESTART
            return (
                events.ReplacementReturned(key, facts)
                if has_returned
                else events.ReplacementReady(key, facts),
            )
        followed.reported = facts
        if facts.runs and (is_first or not is_as_reported):
            return (events.ReplacementRunning(key, facts),)
        return () if is_as_reported else (events.ReplacementSeen(key, facts),)

    def _lose(self, pod: Pod) -> tuple[events.ReplacementEvent, ...]:
        owner = pod.metadata.owner
        if owner is None:
            return ()
        self._leaves(owner.uid, pod)
        siblings = self._siblings.get(owner.uid, {})
        siblings.pop(pod.uid, None)
        if not siblings:
            self._siblings.pop(owner.uid, None)
        self._spent.discard(pod.uid)
        return self._lost(pod)

    def _lost(self, pod: Pod) -> tuple[events.ReplacementEvent, ...]:
        """Remove a pod's credit; another pod may get it."""
        followed, owner = self._credited.get(pod.uid), pod.metadata.owner
        lost = self._take_back(pod)
        if followed is None or owner is None:
            return lost
        return (*lost, *self._offer_passed_over(followed, followed.owner))

    def _take_back(self, pod: Pod) -> tuple[events.ReplacementEvent, ...]:
        """Remove a pod's credit."""
        followed = self._credited.pop(pod.uid, None)
        if followed is None:
            return ()
        followed.reported = None
        return (events.ReplacementLost(followed.key, facts_of(pod)),)

    def _forget(self, followed: Followed) -> None:
        self._unlist(followed)
        if followed.group:
            self._whole.remove(followed)
        if followed.reported is not None:
            self._credited.pop(followed.reported.uid, None)

    def _unlist(self, followed: Followed) -> None:
        waiting = self._waiting[followed.owner]
        waiting.remove(followed)
        if not waiting:
            del self._waiting[followed.owner]


def facts_of(pod: Pod) -> PodFacts:
    """The facts about a pod that the machine needs."""
    return PodFacts(
        uid=PodUid(pod.uid),
        name=pod.name,
        namespace=pod.namespace,
        node=NodeName(pod.node_name),
        phase=pod.status.phase or "Pending",
        ready=pod.is_ready,
        terminating=pod.is_terminating,
        in_progress=EVICTION_IN_PROGRESS in pod.metadata.annotations,
    )


def is_there(pod: Pod) -> bool:
    """Whether a replacement is ready, or has succeeded."""
    serves = pod.status.phase == "Running" and pod.is_ready and not pod.is_terminating
    return bool(pod.node_name) and (serves or pod.status.phase == "Succeeded")


def _first(pods: Mapping[str, Pod]) -> Pod:
    return next(iter(pods.values()))


def _resources(pod: Pod) -> list[object]:
    return [each.resources for each in pod.spec.containers]


def _is_newer(pod: Pod, moment: datetime | None) -> bool:
    """Whether a pod was created at that moment or later; False for unknown times."""
    created = pod.metadata.creation_timestamp
    return moment is not None and created is not None and created >= moment
