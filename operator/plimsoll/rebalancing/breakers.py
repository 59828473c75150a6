"""Decides when the moves of policies stop: the stop button, or pods that have lost their places.

A breaker refuses each move of a plan with its reason, and again right before each eviction.

A pod counts as displaced when it has waited for a minute, our scheduler finds no node for it, and its
workload had one more pod on a node before the policy's moves of the last half hour than it has now. So a
burst of new pods does not count, nor does a pod that moves make room for: they never had a place. With more
than ``ALLOWED`` displaced pods, whatever displaced them, the policy makes no move until all have a place
again. It resumes after half an hour in any case, when its moves are no longer a likely cause.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec

from plimsoll.api.v1alpha1.annotations import STOP, stop_sentence
from plimsoll.framework import Pod
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.ports.clock import Clock


class StopButton:
    """Stops the moves of all policies.

    Args:
        objects: The mirrored namespaces.
        namespace: The operator's own; "" has no button.
    """

    def __init__(self, objects: ClusterObjects, namespace: str) -> None:
        self._objects = objects
        self._namespace = namespace

    @property
    def is_pressed(self) -> bool:
        """Whether all moves are stopped."""
        namespace = self._objects.namespaces.get(self._namespace)
        return namespace is not None and namespace.metadata.annotations.get(STOP) == "true"

    @property
    def sentence(self) -> str:
        """Why all moves are stopped."""
        namespace = self._objects.namespaces.get(self._namespace)
        return stop_sentence(self._namespace, {} if namespace is None else namespace.metadata.annotations)


#: Number of displaced pods that do not stop a policy.
ALLOWED = 3

#: Seconds that a pod has waited before it counts, and the age of moves that count.
PATIENCE_S, WINDOW_S = 60.0, 1_800.0

#: Seconds between two counts of placed pods while a policy moves.
SPACING_S = 300.0


class _Count(msgspec.Struct, frozen=True):
    """Number of pods with a place by owner uid, at a moment in steady seconds."""

    taken: float
    placed: Mapping[str, int]


@dataclass(eq=False)
class DisplacementBreaker:
    """Rests policies when pods have lost their places."""

    cluster: Cluster  #: the placed pods
    waiting: Callable[[], Iterable[Pod]]  #: pods without a place
    clock: Clock
    #: scheduler names whose pods our scheduler places; set when policies change
    served: Collection[str] = field(default=(), init=False)
    #: by policy, the oldest first
    _counts: dict[str, deque[_Count]] = field(default_factory=dict, init=False)
    _since: dict[str, float] = field(default_factory=dict, init=False)  #: when the rest of a policy began
    _sentences: dict[str, str] = field(default_factory=dict, init=False)

    def forget(self, name: str) -> None:
        """Forget a policy that was changed or deleted."""
        self._counts.pop(name, None)
        self._since.pop(name, None)
        self._sentences.pop(name, None)

    def before_move(self, name: str) -> None:
        """Count the pods that have a place, as a policy is about to make a move."""
        now = self.clock.monotonic()
        counts = self._counts.setdefault(name, deque())
        if not counts or now - counts[-1].taken >= SPACING_S:
            counts.append(_Count(now, self._placed()))

    def sentence(self, name: str) -> str:
        """Why a policy rests, "" if it does not; as of the latest check."""
        return self._sentences.get(name, "")

    def look(self, name: str) -> None:
        """Count the displaced pods, and decide whether the policy rests."""
        now, steady = self.clock.now(), self.clock.monotonic()
        counts = self._counts.get(name, deque())
        while counts and steady - counts[0].taken >= WINDOW_S:
            counts.popleft()
        displaced = self._displaced(counts[0].placed, now) if counts else []
        if not displaced or (name not in self._since and len(displaced) <= ALLOWED):
            self._since.pop(name, None)
            self._sentences.pop(name, None)
            return
        since = self._since.setdefault(name, now)
        until = _clock(now + counts[-1].taken + WINDOW_S - steady)
        few = ", ".join(pod.key for pod in displaced[:3])
        self._sentences[name] = (
            f"since {_clock(since)} pods wait unschedulable whose workloads had a place for them when the"
            f" moves of the last half hour began: {len(displaced)} now, such as {few}; no pod is moved until"
            f" all have a place, or until {until}; give them room, or change the policy to go on immediately"
        )

    def _displaced(self, before: Mapping[str, int], now: float) -> list[Pod]:
        stuck: defaultdict[str, list[Pod]] = defaultdict(list)
        for pod in self.waiting():
            owner = pod.metadata.owner
            if owner is not None and owner.uid in before and self._is_stuck(pod, now):
                stuck[owner.uid].append(pod)
        if not stuck:
            return []
        placed = self._placed()
        found = []
        for uid, pods in stuck.items():
            missing = max(before[uid] - placed[uid], 0)
            found += sorted(pods, key=lambda pod: pod.key)[:missing]
        return sorted(found, key=lambda pod: pod.key)

    def _placed(self) -> Counter[str]:
        """Number of pods by owner that have a place and are not terminating."""
        owners = (pod.pod.metadata.owner for pod in self.cluster.pods.values() if not pod.is_terminating)
        return Counter(owner.uid for owner in owners if owner is not None)

    def _is_stuck(self, pod: Pod, now: float) -> bool:
        """Whether our scheduler has found no node for the pod, and it has waited long enough."""
        told, created = pod.condition("PodScheduled"), pod.metadata.creation_timestamp
        return (
            told is not None
            and told.status == "False"
            and told.reason in ("Unschedulable", "NotReadyForScheduling")
            and pod.spec.scheduler_name in self.served
            and not pod.is_terminating
            and (created is None or now - created.timestamp() >= PATIENCE_S)
        )


def _clock(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
