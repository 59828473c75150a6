"""The memory of a cluster does not grow with the number of pods that came and went."""

from __future__ import annotations

import functools
import gc
import operator
import sys
from collections import Counter, deque
from itertools import pairwise

import pytest

from roadstead.controllers import event_recorder
from roadstead.controllers.event_expiry import EventExpiry
from roadstead.store import store
from roadstead.store.store import EventType
from simulated_cluster import Simulation

#: Pods of one wave, and waves of one round.
REPLICAS, WAVES = 8, 10


def churned(simulation: Simulation, waves: int) -> None:
    """Replace the pods of the Deployment again and again, a wave every two seconds."""
    for number in range(waves):
        for pod in simulation.pods():
            simulation.api.delete("pods", "default", pod["metadata"]["name"])
        simulation.settle(1.0)
        simulation.bind_all(f"n{number % 2 + 1}")
        simulation.settle(1.0)


def kept() -> Counter[str]:
    """What this process holds, without caches of fixed size: objects by type, and entries of containers."""
    for name, module in list(sys.modules.items()):
        if name.startswith("roadstead."):
            for one in vars(module).values():
                if isinstance(one, functools._lru_cache_wrapper):
                    one.cache_clear()
    gc.collect()
    found = Counter[str]()
    for one in gc.get_objects():
        found[type(one).__name__] += 1
        if type(one) in (dict, list, set, deque):
            found[f"entries of {type(one).__name__}"] += len(one)
    return found


def test_a_cluster_keeps_nothing_of_pods_that_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes are kept for so many versions, Events for their time; all else goes with the pod."""
    gc.freeze()  # what other tests left is not looked at
    monkeypatch.setattr(store, "SPAN", 200)
    monkeypatch.setattr(event_recorder, "_REMEMBERED", 20)
    simulation = Simulation().with_controllers().with_kubelets(start_s=(0.1, 0.1), heartbeats=True)
    EventExpiry(simulation.context, ttl_s=5.0).start()
    simulation.nodes("n1", "n2")
    simulation.create("PodDisruptionBudget", "web", minAvailable=1, selector={"matchLabels": {"app": "web"}})
    simulation.workload("Deployment", "web", replicas=REPLICAS)
    simulation.settle()
    simulation.bind_all("n1")
    held = list[Counter[str]]()
    for _ in range(5):
        churned(simulation, WAVES)
        held.append(kept())

    # What is made once, or varies, does not grow in each round.
    grown = functools.reduce(operator.and_, (after - before for before, after in pairwise(held)))
    assert {name: count for name, count in grown.items() if count > WAVES * REPLICAS / 2} == {}


def test_a_collection_that_changes_seldom_keeps_no_old_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch that has seen its last change resumes all the same."""
    monkeypatch.setattr(store, "SPAN", 10)
    found = store.Store()
    for number in range(30):
        name = "seldom" if number % 6 == 0 else "often"
        found.commit(name, "ADDED", ("", str(number)), {"metadata": {}})

    seldom = found.collection("seldom")

    assert [change.revision for change in seldom.changes] == [20, 26]
    assert seldom.complete_since == 14
    assert [change.revision for change in found.collection("often").changes] == [
        *range(22, 26),
        *range(27, 32),
    ]


def test_a_deleted_object_is_kept_without_its_bytes() -> None:
    """The change is encoded for the watchers, and again for those that ask for it later."""
    found, lines = store.Store(), list[bytes]()
    collection = found.collection("configmaps")
    collection.subscribers.append(lambda change: lines.append(change.line))
    kinds: tuple[EventType, ...] = ("ADDED", "DELETED")
    for kind in kinds:
        found.commit(
            "configmaps",
            kind,
            ("a", "b"),
            {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "b"}},
        )

    assert [change.entry._raw for change in collection.changes] == [None, None]
    assert [change.line for change in collection.changes] == lines
