"""Finds the replacements of surges: pods with the mark, of the Deployment that is rolled out.

A surge's replacement has its mark (:data:`plimsoll.model.kinds.deployment.SURGED`) and belongs to another
ReplicaSet of the same Deployment. Users who may create pods in the namespace can write the mark, but cannot
make their ReplicaSet the Deployment's: a pod counts as ready only when its ReplicaSet is proven to be.

A surge is followed until it has ended, because its replacement is ready before the old pod leaves.
"""

from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from plimsoll.cluster.watch_events import (
    ObjectAdded,
    ObjectUpdated,
    PodAdded,
    PodDeleted,
    PodUpdated,
    WatchEvent,
)
from plimsoll.framework import ClusterObjects, Pod
from plimsoll.model.kinds.deployment import SURGED, deployment_name_of, mark_of
from plimsoll.model.kinds.workload import ReplicaSet
from plimsoll.model.names import RecordKey
from plimsoll.rebalancing.moves.events import (
    ReplacementEvent,
    ReplacementLost,
    ReplacementReady,
    ReplacementReturned,
    ReplacementRunning,
    ReplacementSeen,
)
from plimsoll.rebalancing.moves.instructions import FollowReplacement, StopFollowing
from plimsoll.rebalancing.moves.sightings import Followed, facts_of


class SurgeSightings(Struct):
    """Credits the pods of rollouts to the surges that started them.

    Attributes:
        objects: The mirrored ReplicaSets.
    """

    objects: ClusterObjects
    _followed: dict[RecordKey, Followed] = field(default_factory=dict)  #: by key of the move
    _marked: dict[str, Pod] = field(default_factory=dict)  #: pods with a mark, by uid

    def follow(self, instruction: FollowReplacement) -> tuple[ReplacementEvent, ...]:
        """Follow the pod of a rollout; other moves are not followed here."""
        if instruction.spec.surge is None or instruction.spec.surge.replicas is not None:
            return ()
        self._followed[instruction.key] = followed = Followed(instruction)
        return self._look(followed)

    def stop(self, instruction: StopFollowing) -> None:
        """Stop following."""
        self._followed.pop(instruction.key, None)

    def observe(self, event: WatchEvent) -> tuple[ReplacementEvent, ...]:
        """The events of replacements, which a newly seen ReplicaSet may prove."""
        match event:
            case PodAdded(pod) | PodUpdated(_, pod):
                is_known = pod.uid in self._marked
                if SURGED in pod.metadata.annotations:
                    self._marked[pod.uid] = pod
                elif is_known:
                    del self._marked[pod.uid]
                else:
                    return ()
                return self._look_at_all(pod.namespace)
            case PodDeleted(pod):
                if self._marked.pop(pod.uid, None) is None:
                    return ()
                return self._look_at_all(pod.namespace)
            case ObjectAdded(ReplicaSet() as found) | ObjectUpdated(_, ReplicaSet() as found):
                return self._look_at_all(found.metadata.namespace)
            case _:
                return ()

    def observe_placed(self, pods: Sequence[Pod]) -> tuple[ReplacementEvent, ...]:
        """The events of replacements."""
        marked = [pod for pod in pods if SURGED in pod.metadata.annotations or pod.uid in self._marked]
        return tuple(event for pod in marked for event in self.observe(PodAdded(pod)))

    # ------------------------------------------------------------------------------------------------

    def _look_at_all(self, namespace: str) -> tuple[ReplacementEvent, ...]:
        followed = [each for each in self._followed.values() if each.key.startswith(f"{namespace}/")]
        return tuple(event for each in followed for event in self._look(each))

    def _look(self, followed: Followed) -> tuple[ReplacementEvent, ...]:
        """The progress of a surge's replacement, as far as it was not reported."""
        key, before, pod = followed.key, followed.reported, self._present(followed)
        if pod is None:
            followed.reported = None
            return () if before is None else (ReplacementLost(key, before),)
        is_proved = self._is_proved(pod, followed)
        facts = replace(facts_of(pod), ready=bool(pod.node_name) and pod.is_ready and is_proved)
        if facts == before:
            return ()
        followed.reported = facts
        events: list[ReplacementEvent] = []
        is_new = before is None or before.uid != facts.uid
        if is_new:
            events += [ReplacementLost(key, before)] if before is not None else []
            events.append(ReplacementSeen(key, facts))
        if facts.ready:
            has_returned = facts.node == followed.instruction.spec.from_node
            events.append(ReplacementReturned(key, facts) if has_returned else ReplacementReady(key, facts))
        elif facts.runs:
            events.append(ReplacementRunning(key, facts))
        elif not is_new:
            events.append(ReplacementSeen(key, facts))
        return tuple(events)

    def _present(self, followed: Followed) -> Pod | None:
        """The present replacement: the known one while it lives."""
        living = [
            pod
            for pod in self._marked.values()
            if pod.metadata.annotations.get(SURGED) == _mark(followed)
            and followed.may_be_replaced_by(pod)
            and not pod.is_terminal
            and not pod.is_terminating
            and self._may_belong(pod, followed)
        ]
        known = followed.reported
        return next((pod for pod in living if known and pod.uid == known.uid), next(iter(living), None))

    def _may_belong(self, pod: Pod, followed: Followed) -> bool:
        """Whether the pod may be the replacement; its ReplicaSet may be seen later than the pod."""
        spec, owner = followed.instruction.spec, pod.metadata.controller
        if spec.surge is None or owner is None:
            return False
        is_other = spec.owner is None or owner.uid != spec.owner.uid
        is_unseen = f"{pod.namespace}/{owner.name}" not in self.objects.replica_sets
        return (
            is_other
            and deployment_name_of(pod) == spec.surge.deployment
            and (is_unseen or self._is_proved(pod, followed))
        )

    def _is_proved(self, pod: Pod, followed: Followed) -> bool:
        """Whether the pod's ReplicaSet is the Deployment's."""
        above, surge = self.objects.above(pod), followed.instruction.spec.surge
        return above is not None and surge is not None and above.uid == surge.uid


def _mark(followed: Followed) -> str:
    """The mark of the rollout's pods."""
    return mark_of(followed.key.partition("/")[2], followed.instruction.spec.from_node)
