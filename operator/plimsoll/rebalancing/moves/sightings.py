"""Finds the replacements of moved pods, and decides whether each is seen, running, ready or returned.

A replacement is a pod of the same controller that did not exist when its predecessor's eviction was sent.
Each is credited to one move only, the one that waits longest. A credited pod that fails, is terminating or
gets another owner loses the credit; the next pod that its controller creates gets it. Until then, the credit
goes to a pod that was created in the meantime, has no credit and is not ready yet: someone may have created a
pod for the owner, which then deleted one instead of creating the replacement.

A pod that was seen before its predecessor was seen terminating is an early one: the workload may have been
scaled up at that moment, or a live migration starts the replacement first, or a list
after a gap has shown both in the order of their names. It has the credit until a later pod is seen.

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
from plimsoll.framework import Pod
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
    def waits_for_new(self) -> bool:
        """Whether the next created pod is credited to it."""
        return self.reported is None or (self.is_early and self.has_left)


class ReplacementSightings(Struct):
    """Credits pods to the moves whose pods they replace."""

    _siblings: dict[str, dict[str, Pod]] = field(default_factory=dict)  #: pods by owner uid, then uid
    _waiting: dict[str, list[Followed]] = field(default_factory=dict)  #: by owner uid, the longest first
    _credited: dict[str, Followed] = field(default_factory=dict)  #: by uid of the replacement
    _spent: set[str] = field(default_factory=set)  #: uids of pods that replace no other pod

    # -- for the executor ----------------------------------------------------------------------------

    def follow(self, instruction: FollowReplacement) -> tuple[events.ReplacementEvent, ...]:
        """Follow the owner's pods that do not exist yet, or were created after ``instruction.since``.

        Of the latter the oldest is credited: a younger one may be needed for a later eviction. Rollouts are
        followed elsewhere, by their mark.
        """
        owner, surge = instruction.spec.owner, instruction.spec.surge
        if owner is None or (surge is not None and surge.replicas is None):
            return ()
        moved = self._siblings.get(owner.uid, {}).get(instruction.spec.pod.uid)
        followed = Followed(instruction, has_left=moved is None or moved.is_terminating)
        self._waiting.setdefault(owner.uid, []).append(followed)
        made_since = [
            pod
            for uid, pod in self._siblings.get(owner.uid, {}).items()
            if _is_newer(pod, instruction.since)
            and followed.may_be_replaced_by(pod)
            and uid not in self._credited
            and uid not in self._spent
            and pod.status.phase != "Failed"
            and not pod.is_terminating
        ]
        if not made_since:
            return ()
        return self._credit(followed, min(made_since, key=lambda pod: str(pod.metadata.creation_timestamp)))

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

    def _offer(self, owner: str, pod: Pod) -> tuple[events.ReplacementEvent, ...]:
        """Credit a pod to the longest waiting move; it replaces an early one, which the next move gets."""
        for followed in self._waiting.get(owner, ()):
            if not followed.waits_for_new or not followed.may_be_replaced_by(pod):
                continue
            early = followed.reported and self._siblings[owner].get(followed.reported.uid)
            if not early:
                return self._credit(followed, pod)
            lost = self._take_back(early)
            return (*lost, *self._credit(followed, pod), *self._offer(owner, early))
        for followed in self._waiting.get(owner, ()):
            followed.passed_over.append(pod.uid)
        return ()

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
        return (*lost, *self._offer_passed_over(followed, owner.uid))

    def _take_back(self, pod: Pod) -> tuple[events.ReplacementEvent, ...]:
        """Remove a pod's credit."""
        followed = self._credited.pop(pod.uid, None)
        if followed is None:
            return ()
        followed.reported = None
        return (events.ReplacementLost(followed.key, facts_of(pod)),)

    def _forget(self, followed: Followed) -> None:
        owner = followed.instruction.spec.owner
        if owner is None:
            return
        waiting = self._waiting[owner.uid]
        waiting.remove(followed)
        if not waiting:
            del self._waiting[owner.uid]
        if followed.reported is not None:
            self._credited.pop(followed.reported.uid, None)


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


def _is_newer(pod: Pod, moment: datetime | None) -> bool:
    """Whether a pod was created at that moment or later; False for unknown times."""
    created = pod.metadata.creation_timestamp
    return moment is not None and created is not None and created >= moment
