"""Compares the breaker for displaced pods with a page of plain code that keeps all that ever was."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.model.kinds.pod import Pod
from plimsoll.rebalancing.breakers import ALLOWED, PATIENCE_S, SPACING_S, WINDOW_S, DisplacementBreaker
from plimsoll.testing.builders import a_pod
from plimsoll.testing.fakes import FakeClock

OWNERS, POLICIES, SERVED = ("a", "b", ""), ("one", "two"), "ours"
REASONS = ("Unschedulable", "Unschedulable", "NotReadyForScheduling", "SchedulingGated")
STEPS_S = (1.0, 1.0, PATIENCE_S, PATIENCE_S, SPACING_S - 1.0, SPACING_S, WINDOW_S / 2, WINDOW_S)


def born(clock: FakeClock) -> str:
    """The present second."""
    return datetime.fromtimestamp(clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Plain:
    """Pods, and each count that was due, with its time."""

    clock: FakeClock
    placed: dict[str, tuple[Pod, bool]] = field(default_factory=dict)  #: and whether it is leaving
    waiting: dict[str, Pod] = field(default_factory=dict)
    counts: dict[str, list[tuple[float, Counter[str]]]] = field(default_factory=dict)
    resting: set[str] = field(default_factory=set)

    def places(self) -> Counter[str]:
        """Pods with a place by owner."""
        stays = [pod for pod, is_leaving in self.placed.values() if not is_leaving]
        return Counter(pod.metadata.owner.uid for pod in stays if pod.metadata.owner)

    def before_move(self, name: str) -> None:
        """One count in five minutes is enough."""
        taken = self.counts.setdefault(name, [])
        if all(self.clock.time - at >= SPACING_S for at, _ in taken):
            taken.append((self.clock.time, self.places()))

    def displaced(self, name: str) -> list[str]:
        """The keys of pods whose owners had more places when the moves of the last half hour began."""
        lately = [places for at, places in self.counts.get(name, ()) if self.clock.time - at < WINDOW_S]
        found = []
        for owner, count in lately[0].items() if lately else ():
            stuck = sorted(pod.key for pod in self.waiting.values() if self.is_stuck(pod, owner))
            found += stuck[: max(0, count - self.places()[owner])]
        return sorted(found)

    def is_stuck(self, pod: Pod, owner: str) -> bool:
        """Whether a pod of an owner has been refused by our scheduler, and is a minute old."""
        told, created = pod.status.conditions[0], pod.metadata.creation_timestamp
        assert created is not None
        return (
            pod.metadata.owner is not None
            and pod.metadata.owner.uid == owner
            and told.reason != "SchedulingGated"
            and pod.spec.scheduler_name == SERVED
            and self.clock.now() - created.timestamp() >= PATIENCE_S
        )

    def look(self, name: str) -> list[str]:
        """Why a policy rests: it begins with more pods than are allowed, and ends with the last."""
        found = self.displaced(name)
        rests = bool(found) and (name in self.resting or len(found) > ALLOWED)
        self.resting = self.resting | {name} if rests else self.resting - {name}
        return found if rests else []


def waiting(number: int, random: Random, clock: FakeClock) -> Pod:
    """A pod without a place."""
    condition = {"type": "PodScheduled", "status": "False", "reason": random.choice(REASONS)}
    return a_pod(
        f"w{number}",
        owner=random.choice(("ReplicaSet/a", "ReplicaSet/a", "ReplicaSet/b", "")),
        status={"phase": "Pending", "conditions": [condition]},
        metadata={"creationTimestamp": born(clock)},
        schedulerName=random.choice((SERVED, SERVED, "another")),
    )


@pytest.mark.parametrize("seed", range(12))
def test_a_policy_rests_when_plain_code_says_so(seed: int) -> None:
    """Pods are placed, leave, wait and are placed again; two policies move, are looked at and change."""
    random, clock = Random(seed), FakeClock()
    model = Plain(clock)
    infos: Any = SimpleNamespace(pods={})
    breaker = DisplacementBreaker(infos, model.waiting.values, clock)
    breaker.served = {SERVED}
    for number in range(-12, 0):
        pod = a_pod(f"p{number}", owner="ReplicaSet/a", node="n")
        model.placed[pod.uid] = pod, False
    rested = 0
    for number in range(260):
        name = random.choice(POLICIES)
        match random.randrange(10):
            case 0 | 1 | 2 if model.placed:  # displaced, or replaced while it leaves
                uid = random.choice(list(model.placed))
                pod, is_leaving = model.placed.pop(uid)
                if not is_leaving and random.random() < 0.3:
                    model.placed[uid] = pod, True
                pod = waiting(number, random, clock)
                model.waiting[pod.uid] = pod
            case 3 | 4:
                owner = random.choice(("ReplicaSet/a", "ReplicaSet/a", "ReplicaSet/b"))
                pod = a_pod(f"p{number}", owner=owner, node="n")
                model.placed[pod.uid] = pod, False
            case 5 if model.waiting:
                del model.waiting[random.choice(list(model.waiting))]
            case 6:
                clock.time += random.choice(STEPS_S)
            case 7 | 8:
                breaker.before_move(name)
                model.before_move(name)
            case 9 if random.random() < 0.1:
                breaker.forget(name)
                model.counts.pop(name, None)
                model.resting.discard(name)
        infos.pods = {
            uid: SimpleNamespace(pod=pod, is_terminating=is_leaving)
            for uid, (pod, is_leaving) in model.placed.items()
        }
        breaker.look(name)
        expected = model.look(name)
        said = breaker.sentence(name)
        assert bool(said) == bool(expected), (number, said, expected)
        if expected:
            rested += 1
            assert f": {len(expected)} now, such as {', '.join(expected[:3])};" in said
    assert rested
