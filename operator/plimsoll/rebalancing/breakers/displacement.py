"""Pods that lose their place while a policy moves pods: when they grow in number, the policy rests.

A pod counts as displaced when it has waited for a minute, our scheduler finds no node for it, and its
workload had one more pod on a node before the policy's moves of the last half hour than it has now. So a
burst of new pods does not count, nor does a pod that room is made for: they never had a place.

More than ``ALLOWED`` of them, whoever displaced them, and the policy moves nothing until all have a place
again. It goes on after half an hour in any case: by then nothing speaks for its moves as the cause.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from plimsoll.framework import Pod
from plimsoll.model.columns.cluster import Cluster
from plimsoll.ports.clock import Clock

#: Displaced pods that do not stop a policy.
ALLOWED = 3

#: Seconds that a pod has waited before it counts, and that moves are looked back upon.
PATIENCE_S, WINDOW_S = 60.0, 1_800.0

#: Seconds between two counts of placed pods while a policy moves.
SPACING_S = 300.0


@dataclass(frozen=True, slots=True)
class _Count:
    """How many pods of each owner, by uid, had a place at a moment in seconds since the epoch."""

    taken: float
    placed: Mapping[str, int]


class DisplacementBreaker:
    """Which policies rest because pods have lost their places.

    Args:
        cluster: The placed pods.
        waiting: Pods without a place.
        serves: Whether our scheduler places the pods of a scheduler name.
        clock: Time.
    """

    def __init__(
        self,
        cluster: Cluster,
        waiting: Callable[[], Iterable[Pod]],
        serves: Callable[[str], bool],
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._waiting = waiting
        self._serves = serves
        self._clock = clock
        self._counts: dict[str, deque[_Count]] = {}  #: by policy, the oldest first
        self._since: dict[str, float] = {}  #: when a policy that rests began to
        self._sentences: dict[str, str] = {}

    def forget(self, name: str) -> None:
        """The policy was changed or is gone: what it did before counts no longer."""
        self._counts.pop(name, None)
        self._since.pop(name, None)
        self._sentences.pop(name, None)

    def before_move(self, name: str) -> None:
        """A policy is about to move a pod: count who has a place now."""
        now = self._clock.now()
        counts = self._counts.setdefault(name, deque())
        if not counts or now - counts[-1].taken >= SPACING_S:
            counts.append(_Count(now, self._placed()))

    def sentence(self, name: str) -> str:
        """Why a policy rests, "" when it does not; as of the last look."""
        return self._sentences.get(name, "")

    def look(self, name: str) -> None:
        """Count the displaced pods, and decide whether the policy rests."""
        now = self._clock.now()
        counts = self._counts.get(name, deque())
        while counts and now - counts[0].taken >= WINDOW_S:
            counts.popleft()
        displaced = self._displaced(counts[0].placed, now) if counts else []
        if not displaced or (name not in self._since and len(displaced) <= ALLOWED):
            self._since.pop(name, None)
            self._sentences.pop(name, None)
            return
        since = self._since.setdefault(name, now)
        until = _clock(counts[-1].taken + WINDOW_S)
        few = ", ".join(pod.key for pod in displaced[:3])
        self._sentences[name] = (
            f"since {_clock(since)} pods wait unschedulable whose workloads had a place for them when the"
            f" moves of the last half hour began: {len(displaced)} now, such as {few}; no pod is moved until"
            f" all have a place, or until {until}; give them room, or change the policy to go on immediately"
        )

    def _displaced(self, before: Mapping[str, int], now: float) -> list[Pod]:
        stuck: defaultdict[str, list[Pod]] = defaultdict(list)
        for pod in self._waiting():
            owner = pod.metadata.controller
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
        """How many pods of each owner have a place and stay."""
        owners = (
            pod.pod.metadata.controller for pod in self._cluster.pods.values() if not pod.is_terminating
        )
        return Counter(owner.uid for owner in owners if owner is not None)

    def _is_stuck(self, pod: Pod, now: float) -> bool:
        """Whether our scheduler has found no node for the pod, and it has waited for a while."""
        told, created = pod.condition("PodScheduled"), pod.metadata.creation_timestamp
        return (
            told is not None
            and told.status == "False"
            and told.reason == "Unschedulable"
            and self._serves(pod.spec.scheduler_name)
            and not pod.is_terminating
            and (created is None or now - created.timestamp() >= PATIENCE_S)
        )


def _clock(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
