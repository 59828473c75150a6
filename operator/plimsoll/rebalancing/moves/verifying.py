"""Follows evicted pods until their replacements are Ready, and records where they landed.

A replacement is a pod of the same controller that nobody knew when the eviction was sent. Each is
credited to one move only, the one that waits longest. Until it is Ready the move is in flight, so that the
next one of the workload waits, wherever the replacement runs.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain

from plimsoll.api.v1alpha1.eviction import Purpose, Replacement
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.framework import Pod
from plimsoll.model.kinds.watch_event import PodAdded, PodDeleted, PodUpdated, WatchEvent
from plimsoll.rebalancing.records.record import Record

#: Seconds that a replacement gets to run, and then again to become Ready.
PATIENCE_S = 300.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a move ended."""

    record: Record
    phase: Phase
    reason: str
    message: str
    replacement: Replacement | None = None


@dataclass(slots=True)
class _Awaited:
    record: Record
    since: float
    deadline: float
    replacement: str = ""  #: uid of the pod credited to this move
    pod: Pod | None = None
    was_running: bool = False  #: whether the time to become Ready has begun


@dataclass(slots=True)
class Verification:
    """Open moves whose eviction was accepted.

    Args:
        ended: Told of each move that has ended.
        credited: Told the pod that takes an evicted one's place, as soon as it is seen.
    """

    ended: Callable[[Outcome], None]
    credited: Callable[[Record, Pod], None]
    _awaited: dict[str, list[_Awaited]] = field(default_factory=dict)  #: by owner uid
    _siblings: dict[str, dict[str, Pod]] = field(default_factory=dict)  #: pods by owner uid, then uid
    _credited: dict[str, _Awaited] = field(default_factory=dict)  #: by replacement uid
    _spent: set[str] = field(default_factory=set)  #: replacements of moves that have ended, by uid

    def in_flight(self) -> dict[str, int]:
        """Moves that wait for their replacement, by owner uid."""
        return {owner: len(waiting) for owner, waiting in self._awaited.items() if waiting}

    def siblings(self, owner: str, before: datetime | None = None) -> frozenset[str]:
        """Uids of the pods that a controller has now; only of those created ``before``, if given."""
        return frozenset(
            uid
            for uid, pod in self._siblings.get(owner, {}).items()
            if before is None
            or pod.metadata.creation_timestamp is None
            or pod.metadata.creation_timestamp < before
        )

    def sibling(self, record: Record) -> Pod | None:
        """Some pod of the evicted pod's controller, None when there is none."""
        owner = record.spec.owner
        pods = self._siblings.get(owner.uid, {}).values() if owner is not None else ()
        return next((pod for pod in pods if pod.namespace == record.namespace), None)

    def expect(
        self,
        record: Record,
        known: frozenset[str],
        now: float,
        *,
        is_replaced: bool = True,
        waits: bool = False,
    ) -> None:
        """An eviction was accepted: wait for a pod of the owner that is not in ``known``.

        Args:
            record: Of the move.
            known: Uids of pods that replace nobody.
            now: Seconds of the monotonic clock.
            is_replaced: Whether a replacement is expected; pods that had ended get none.
            waits: Whether the pod itself may take its time to leave; ``due`` ends that.
        """
        owner = record.spec.owner
        if owner is None or not is_replaced:
            self.ended(
                Outcome(
                    record,
                    Phase.FAILED if is_replaced else Phase.SETTLED,
                    "NoReplacement",
                    "the pod has no controller that would replace it"
                    if owner is None
                    else "the pod had ended; nothing replaces it on a node",
                )
            )
            return
        awaited = _Awaited(record, now, math.inf if waits else now + PATIENCE_S)
        self._awaited.setdefault(owner.uid, []).append(awaited)
        for uid, pod in list(self._siblings.get(owner.uid, {}).items()):
            if (
                uid not in known
                and uid != record.spec.pod.uid
                and not self._is_taken(uid)
                and pod.namespace == record.namespace
                and pod.status.phase != "Failed"
            ):
                awaited.replacement = uid
                self._credited[uid] = awaited
                self.credited(record, pod)
                self._see(pod)
                break

    def due(self, record: Record, now: float) -> None:
        """The pod leaves: its replacement is to run in time from now on."""
        for awaited in chain.from_iterable(self._awaited.values()):
            if awaited.record.key == record.key:
                awaited.deadline = now + PATIENCE_S

    def remember(self, record: Record) -> None:
        """A move that ended in an earlier process: its replacement replaces nobody else."""
        if record.status.replacement is not None:
            self._spent.add(record.status.replacement.uid)

    def withdraw(self, record: Record) -> None:
        """The eviction was refused: wait no longer."""
        for waiting in list(self._awaited.values()):
            for awaited in list(waiting):
                if awaited.record.key == record.key:
                    self._forget(awaited)

    def observe(self, event: WatchEvent) -> None:
        """Something happened to a pod."""
        match event:
            case PodUpdated(old, pod):
                if old.metadata.controller != pod.metadata.controller:
                    self._lose(old)  # released, or adopted by another owner
                self._see(pod)
            case PodAdded(pod):
                self._see(pod)
            case PodDeleted(pod):
                self._lose(pod)
            case _:
                return

    def expire(self, now: float) -> None:
        """Give up on moves whose replacement was not there in time."""
        for waiting in list(self._awaited.values()):
            for awaited in list(waiting):
                pod = awaited.pod
                if pod is not None and not awaited.was_running and _runs(pod):
                    awaited.was_running, awaited.deadline = True, now + PATIENCE_S
                if now >= awaited.deadline:
                    self._give_up(awaited, pod)

    def _give_up(self, awaited: _Awaited, pod: Pod | None) -> None:
        within = f"within {PATIENCE_S:.0f} s"
        if pod is None:
            self._end(awaited, Phase.FAILED, "NoReplacement", f"no replacement ran {within}")
        elif not _runs(pod):
            story = f"no replacement ran {within}; pod {pod.name} is {pod.status.phase or 'Pending'}"
            self._end(awaited, Phase.FAILED, "ReplacementNotRunning", story)
        elif pod.node_name == awaited.record.spec.from_node and not _is_restart(awaited.record):
            story = f"the replacement runs on {pod.node_name} again, and was not Ready {within}"
            self._end(awaited, Phase.RETURNED, "SameNode", story, pod)
        else:
            story = f"pod {pod.name} runs on {pod.node_name}, and was not Ready {within}"
            self._end(awaited, Phase.FAILED, "ReplacementNotReady", story, pod)

    # ------------------------------------------------------------------------------------------------

    def _see(self, pod: Pod) -> None:
        owner = pod.metadata.controller
        if owner is None:
            return
        siblings = self._siblings.setdefault(owner.uid, {})
        is_new = pod.uid not in siblings
        siblings[pod.uid] = pod
        if is_new:
            for awaited in self._awaited.get(owner.uid, ()):
                # Owners keep to their namespace, but anybody may name one in a pod's metadata.
                if not awaited.replacement and pod.namespace == awaited.record.namespace:
                    awaited.replacement = pod.uid
                    self._credited[pod.uid] = awaited
                    self.credited(awaited.record, pod)
                    break
        credited = self._credited.get(pod.uid)
        if credited is None:
            return
        credited.pod = pod
        source = credited.record.spec.from_node
        if pod.status.phase == "Failed":
            self._spent.add(pod.uid)  # its owner makes another one
            self._take_back(pod)
        elif not _is_there(pod):
            return
        elif pod.node_name == source and not _is_restart(credited.record):
            self._end(
                credited, Phase.RETURNED, "SameNode", f"the replacement is ready on {source} again", pod
            )
        else:
            self._end(
                credited, Phase.SETTLED, "Verified", f"the replacement is ready on {pod.node_name}", pod
            )

    def _is_taken(self, uid: str) -> bool:
        return uid in self._credited or uid in self._spent

    def _lose(self, pod: Pod) -> None:
        owner = pod.metadata.controller
        if owner is None:
            return
        siblings = self._siblings.get(owner.uid)
        if siblings is not None:
            siblings.pop(pod.uid, None)
            if not siblings and owner.uid not in self._awaited:
                del self._siblings[owner.uid]
        self._spent.discard(pod.uid)
        self._take_back(pod)

    def _take_back(self, pod: Pod) -> None:
        """The pod replaces nobody after all."""
        credited = self._credited.pop(pod.uid, None)
        if credited is not None:
            credited.replacement, credited.pod = "", None

    def _end(
        self, awaited: _Awaited, phase: Phase, reason: str, message: str, pod: Pod | None = None
    ) -> None:
        self._forget(awaited)
        if pod is not None:
            self._spent.add(pod.uid)
        landed = None if pod is None else Replacement(name=pod.name, uid=pod.uid, node=pod.node_name or None)
        self.ended(Outcome(awaited.record, phase, reason, message, landed))

    def _forget(self, awaited: _Awaited) -> None:
        owner = awaited.record.spec.owner
        if owner is not None:
            waiting = self._awaited[owner.uid]
            waiting.remove(awaited)
            if not waiting:
                del self._awaited[owner.uid]
                if not self._siblings.get(owner.uid, True):
                    del self._siblings[owner.uid]
        self._credited.pop(awaited.replacement, None)


def _is_restart(record: Record) -> bool:
    """Whether a fresh pod was the point, so that it may be on the node that was left."""
    return record.spec.purpose is Purpose.RESTART


def _runs(pod: Pod) -> bool:
    return bool(pod.node_name) and pod.status.phase == "Running"


def _is_there(pod: Pod) -> bool:
    """Whether a replacement does its work, or has done it."""
    serves = pod.status.phase == "Running" and pod.is_ready and not pod.is_terminating
    return bool(pod.node_name) and (serves or pod.status.phase == "Succeeded")
