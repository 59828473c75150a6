"""A batch of pods is decided as if each were decided by itself."""

import random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.engine.attempt import schedule
from plimsoll.engine.batch import schedule_alike
from plimsoll.engine.decision import Decision
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.conformance import LAWFUL, some_cluster, some_pod

PROFILE = build_profile(
    ProfileConfig("default-scheduler"),
    Registry(IN_TREE),
    [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()],
)


@settings(parent=LAWFUL)
@given(
    there=some_cluster(),
    shapes=st.lists(some_pod(), min_size=1, max_size=2),
    runs=st.lists(st.tuples(st.integers(0, 1), st.integers(1, 5)), max_size=5),
    plain=st.booleans(),
    seed=st.integers(0, 99),
)
def test_a_batch_equals_attempts(there: Any, shapes: Any, runs: Any, plain: bool, seed: int) -> None:
    """Of one template, and of several in runs; nodes, totals, ties, messages, random numbers."""
    shapes = [a_pod(cpu="100m"), a_pod(memory="64Mi")] if plain else shapes
    pods = [shapes[shape % len(shapes)] for shape, count in runs for _ in range(count)]
    schedulers = [
        ProfileScheduler(PROFILE, a_cluster(*there), random.Random(seed).randrange) for _ in range(2)
    ]
    told = [
        [_placed(scheduler, decision) for decision in decide(scheduler, _infos(scheduler, pods))]
        for scheduler, decide in zip(schedulers, (_one_by_one, schedule_alike), strict=True)
    ]

    assert told[0] == told[1]


def test_what_happens_between_two_decisions_is_seen() -> None:
    """A pod that is not placed, one that is, a node that comes."""
    cluster = a_cluster([a_node("n0", cpu="1")])
    scheduler = ProfileScheduler(PROFILE, cluster)
    batch = schedule_alike(scheduler, _infos(scheduler, [a_pod(cpu="800m")] * 4))

    assert next(batch).node == "n0"
    decision = next(batch)
    assert decision.node == "n0", "the first was not placed"
    cluster.place(decision.pod, "n0")
    assert next(batch).diagnosis is not None
    cluster.set_node(a_node("n1", cpu="1"))
    assert next(batch).node == "n1"


def _infos(scheduler: ProfileScheduler, pods: Any) -> list[Any]:
    templates = scheduler.cluster.templates
    named = [
        msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, name=uid, uid=uid))
        for uid, pod in zip("abcdefghijklmnopqrstuvwxyz", pods, strict=False)
    ]
    return [templates.info(pod) for pod in named]


def _one_by_one(scheduler: ProfileScheduler, pods: Any) -> Any:
    return (schedule(scheduler, pod) for pod in pods)


def _placed(scheduler: ProfileScheduler, decision: Decision) -> tuple[object, ...]:
    if decision.node:
        scheduler.cluster.place(decision.pod, decision.node)
    counts = decision.total, decision.feasible, decision.ties
    return decision.pod.uid, decision.outcome, decision.node, *counts, decision.message, decision.diagnosis
