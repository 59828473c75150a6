"""Is the replacement of a surge ready, and has the old pod gone? Follows rollouts until they are over.

A surge's replacement bears its mark (:data:`plimsoll.model.kinds.deployment.SURGED`), belongs to another
ReplicaSet of the same Deployment, and is credited to that surge only. Anybody who may create pods in the
namespace may write the mark, nobody can make a ReplicaSet of theirs the Deployment's.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from plimsoll.api.v1alpha1.eviction import Replacement
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.framework import ClusterObjects, Pod
from plimsoll.model.kinds.deployment import SURGED, deployment_name_of, mark_of
from plimsoll.model.kinds.watch_event import (
    ObjectAdded,
    ObjectUpdated,
    PodAdded,
    PodDeleted,
    PodUpdated,
    WatchEvent,
)
from plimsoll.model.kinds.workload import ReplicaSet
from plimsoll.rebalancing.moves.verifying import PATIENCE_S, Outcome
from plimsoll.rebalancing.records.record import Record

#: Seconds that the old pod gets to go, once its replacement is ready: ``minReadySeconds`` of the Deployment
#: and its own grace period are in there.
LEAVING_S = 900.0


@dataclass(slots=True)
class _Followed:
    record: Record
    mark: str
    uid: str  #: of the Deployment
    patience_s: float
    deadline: float
    is_gone: bool  #: whether the old pod has left
    replacement: Pod | None = None
    was_running: bool = False
    was_ready: bool = False
    is_closing: bool = False  #: whether it is being taken back at this moment


@dataclass(slots=True)
class Following:
    """Surges under way.

    Args:
        objects: Where ReplicaSets are looked up.
        ended: Told of each surge that has ended.
        credited: Told the replacement, as soon as it is seen.
        time: Seconds of the monotonic clock.
    """

    objects: ClusterObjects
    ended: Callable[[Outcome], None]
    credited: Callable[[Record, Pod], None]
    time: Callable[[], float]
    _followed: dict[str, _Followed] = field(default_factory=dict)  #: by record
    _marked: dict[str, Pod] = field(default_factory=dict)  #: pods with a mark, by uid

    def in_flight(self) -> dict[str, int]:
        """Surges under way, by uid of the Deployment."""
        return {each.uid: 1 for each in self._followed.values()}

    def expect(self, record: Record, *, stands: bool, patience_s: float = PATIENCE_S) -> None:
        """A rollout is about to be started, or was.

        Args:
            record: Of the surge.
            stands: Whether the old pod is there.
            patience_s: Seconds that the replacement gets to run, and then again to become ready.
        """
        if record.spec.surge is None:
            return
        mark = mark_of(record.name, record.spec.from_node)
        self._followed[record.key] = followed = _Followed(
            record, mark, record.spec.surge.uid, patience_s, self.time() + patience_s, is_gone=not stands
        )
        self._look(followed)

    def hasten(self, record: Record, patience_s: float) -> None:
        """The Deployment's author gives a rollout no more time than this."""
        followed = self._followed.get(record.key)
        if followed is not None and not followed.was_running and patience_s < followed.patience_s:
            followed.deadline -= followed.patience_s - patience_s
            followed.patience_s = patience_s

    def withdraw(self, record: Record) -> None:
        """Follow it no longer."""
        self._followed.pop(record.key, None)

    def observe(self, event: WatchEvent) -> None:
        """Something happened to a pod, or a ReplicaSet has come into sight."""
        match event:
            case PodAdded(pod) | PodUpdated(_, pod):
                if SURGED in pod.metadata.annotations:
                    self._marked[pod.uid] = pod
                elif pod.uid in self._marked:
                    del self._marked[pod.uid]
                self._happened(pod, is_gone=pod.is_terminal)
            case PodDeleted(pod):
                self._marked.pop(pod.uid, None)
                self._happened(pod, is_gone=True)
            case ObjectAdded(ReplicaSet() as found) | ObjectUpdated(_, ReplicaSet() as found):
                for followed in self._of(found.metadata.namespace):
                    self._look(followed)
            case _:
                return

    def overdue(self) -> list[tuple[Record, str]]:
        """Surges whose replacement was not ready in time, and what is wrong with it.

        Nothing that happens from now on ends them, until they are withdrawn or resumed.
        """
        now, found = self.time(), []
        for followed in list(self._followed.values()):
            if now < followed.deadline or followed.is_closing:
                continue
            if followed.was_ready:
                name = followed.record.spec.pod.name
                self._end(
                    followed,
                    Phase.FAILED,
                    "OldPodStays",
                    f"the replacement was ready, and pod {name} had not gone {LEAVING_S:.0f} s later; its"
                    " Deployment's rollout is left as it is",
                )
            else:
                followed.is_closing = True
                found.append((followed.record, _unready(followed)))
        return found

    def resume(self, record: Record) -> None:
        """It could not be taken back: maybe it is well by now, else it is overdue again."""
        followed = self._followed.get(record.key)
        if followed is not None:
            followed.is_closing = False
            self._look(followed)

    def replacement_of(self, record: Record) -> Replacement | None:
        """The pod that was to take the old one's place, as far as there was one."""
        followed = self._followed.get(record.key)
        return None if followed is None else _landed(followed.replacement)

    # ------------------------------------------------------------------------------------------------

    def _of(self, namespace: str) -> list[_Followed]:
        return [each for each in self._followed.values() if each.record.namespace == namespace]

    def _happened(self, pod: Pod, *, is_gone: bool) -> None:
        for followed in self._of(pod.namespace):
            if pod.uid == followed.record.spec.pod.uid:
                followed.is_gone = followed.is_gone or is_gone
                self._look(followed)
            elif pod.metadata.annotations.get(SURGED) == followed.mark:
                self._look(followed)

    def _look(self, followed: _Followed) -> None:
        """See how far a surge is."""
        if followed.is_closing:
            return
        pod = self._present(followed)
        is_new = pod is not None and (followed.replacement is None or followed.replacement.uid != pod.uid)
        followed.replacement = pod
        if pod is None:
            return
        if is_new:
            self.credited(followed.record, pod)
        now = self.time()
        if pod.node_name and pod.status.phase == "Running" and not followed.was_running:
            followed.was_running = True
            followed.deadline = max(followed.deadline, now + followed.patience_s)
        if not pod.node_name or not pod.is_ready or not self._is_proved(pod, followed):
            return
        if pod.node_name == followed.record.spec.from_node:
            self._end(
                followed, Phase.RETURNED, "SameNode", f"the replacement is ready on {pod.node_name} again"
            )
        elif followed.is_gone:
            message = f"the replacement is ready on {pod.node_name}, and the old pod has gone"
            self._end(followed, Phase.SETTLED, "Verified", message)
        elif not followed.was_ready:
            followed.was_ready = True
            followed.deadline = now + LEAVING_S

    def _present(self, followed: _Followed) -> Pod | None:
        """The replacement as it is now: the one that is known already, as long as it lives."""
        living = [
            pod
            for pod in self._marked.values()
            if pod.metadata.annotations.get(SURGED) == followed.mark
            and pod.uid != followed.record.spec.pod.uid
            and not pod.is_terminal
            and not pod.is_terminating
            and self._may_belong(pod, followed)
        ]
        known = followed.replacement
        return next((pod for pod in living if known and pod.uid == known.uid), next(iter(living), None))

    def _may_belong(self, pod: Pod, followed: _Followed) -> bool:
        """Whether nothing speaks against the pod; its ReplicaSet may be seen later than the pod is."""
        surge, owner = followed.record.spec.surge, pod.metadata.controller
        if surge is None or owner is None or pod.namespace != followed.record.namespace:
            return False
        former = followed.record.spec.owner
        is_other = former is None or owner.uid != former.uid
        is_unseen = f"{pod.namespace}/{owner.name}" not in self.objects.replica_sets
        return (
            is_other
            and deployment_name_of(pod) == surge.deployment
            and (is_unseen or self._is_proved(pod, followed))
        )

    def _is_proved(self, pod: Pod, followed: _Followed) -> bool:
        """Whether the pod's ReplicaSet is the Deployment's."""
        above = self.objects.above(pod)
        return above is not None and above.uid == followed.uid

    def _end(self, followed: _Followed, phase: Phase, reason: str, message: str) -> None:
        self._followed.pop(followed.record.key, None)
        self.ended(Outcome(followed.record, phase, reason, message, _landed(followed.replacement)))


def _landed(pod: Pod | None) -> Replacement | None:
    return None if pod is None else Replacement(name=pod.name, uid=pod.uid, node=pod.node_name or None)


def _unready(followed: _Followed) -> str:
    """What is wrong with a replacement."""
    pod = followed.replacement
    if pod is None:
        return f"no replacement came within {followed.patience_s:.0f} s"
    state = "not ready" if pod.status.phase == "Running" else pod.status.phase or "Pending"
    return f"the replacement was not ready within {followed.patience_s:.0f} s; pod {pod.name} is {state}"
