"""Schedules the waiting pods of a World with the engine's schedulers, until no further pod fits."""

import random
from collections.abc import Callable

from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PodInfo
from plimsoll.inspection.placement.fork_queue import GATED
from plimsoll.inspection.state import ClusterState
from plimsoll.simulation.world import UnplacedPod, World

#: Maximum number of rounds over all waiting pods at one moment; a placed or preempted pod starts another one.
_MOST_ROUNDS = 100


class SimulatedScheduling:
    """Places waiting pods, sorted by priority and then by arrival.

    Args:
        state: The state with the profiles.
        world: The cluster in which pods are placed.
        seed: Seed for ties among the best nodes.
        placed: Called with each placed pod and its waiting time.
        preempted: Called with each victim, before it leaves.
    """

    def __init__(
        self,
        state: ClusterState,
        world: World,
        seed: int,
        placed: Callable[[PodInfo, float], None],
        preempted: Callable[[PodInfo], None],
    ) -> None:
        self._world = world
        self._placed = placed
        self._preempted = preempted
        self._schedulers = {
            name: ProfileScheduler(profile, world.cluster, _ties(seed, name), world.nominator)
            for name, profile in state.profiles.items()
        }
        self._forecaster = ProfileScheduler(
            state.catalogue.forecast, world.cluster, _ties(seed, ""), world.nominator
        )
        #: Keys of pods that fit no node, with the version of the cluster at that time.
        self._refused: dict[tuple[str, bytes, int], int] = {}
        #: The scheduler's message for each of them.
        self._messages: dict[tuple[str, bytes, int], str] = {}

    def run(self, now: float) -> None:
        """Place the pods that fit; replacements of preempted pods are queued, too."""
        for _ in range(_MOST_ROUNDS):
            before = self._world.cluster.tick
            for waiting in sorted(self._world.waiting.values(), key=_importance):
                if waiting.pod.uid in self._world.waiting:
                    self._attempt(waiting, now)
            if self._world.cluster.tick == before:
                return

    def reason(self, pod: PodInfo) -> str:
        """Why a waiting pod has no node, according to its latest attempt."""
        if pod.pod.spec.scheduling_gates:
            return GATED
        return (
            "the pod is terminating" if pod.is_terminating else self._messages.get(_key(pod), "not tried yet")
        )

    def _attempt(self, waiting: UnplacedPod, now: float) -> None:
        pod, world = waiting.pod, self._world
        if pod.pod.spec.scheduling_gates or pod.is_terminating:
            return
        key = _key(pod)
        version = world.cluster.tick if _depends_on_pods(pod) else world.freed
        nominated = world.nominator.node_of(pod.uid)
        if not nominated and self._refused.get(key) == version:
            return
        scheduler = self._schedulers.get(pod.pod.spec.scheduler_name, self._forecaster)
        decision = schedule(scheduler, pod)
        if decision.outcome is AttemptOutcome.SCHEDULED:
            self._placed(world.place(pod, decision.node, now), now - waiting.since)
            return
        nomination = decision.nomination
        self._messages[key] = decision.message
        if nomination is None or not nomination.node or not nomination.victims:
            self._refused[key] = version
            return
        for victim in nomination.victims:
            self._preempted(victim)
        world.nominator.add(world.cluster.templates.at_priority(pod, nomination.priority), nomination.node)


def _key(pod: PodInfo) -> tuple[str, bytes, int]:
    """A key that pods share if they fit on no node for the same reason."""
    return pod.pod.spec.scheduler_name, pod.template.signature, pod.priority


def _importance(waiting: UnplacedPod) -> tuple[int, float, int]:
    return -waiting.pod.priority, waiting.since, waiting.number


def _depends_on_pods(pod: PodInfo) -> bool:
    """Whether other placed pods may make it feasible."""
    spec = pod.pod.spec
    return bool(spec.topology_spread_constraints) or (
        spec.affinity is not None and spec.affinity.pod_affinity is not None
    )


def _ties(seed: int, name: str) -> Callable[[int], int]:
    return random.Random(f"{seed}/{name}").randrange  # noqa: S311 - reproducible, no secret
