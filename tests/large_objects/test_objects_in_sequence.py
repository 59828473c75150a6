"""Pods just below the size of a large one come and go, and the bytes kept of them are bounded."""

import gc
import sys
from typing import Any

import pytest

from large_objects.stage import Stage, a_pod, encoded
from plimsoll.cluster import equal_parts
from plimsoll.engine.cache import node_columns, templates

ROUND = 40


def affinity(number: int, count: int) -> dict[str, Any]:
    """A node affinity of so many terms, each with a key of its own; 60 are 5 kB, and 300 kB of objects."""
    terms = [
        {"matchExpressions": [{"key": f"k{number}-{term}", "operator": "DoesNotExist"}]}
        for term in range(count)
    ]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


async def shown(stage: Stage, first: int, terms: int = 60) -> int:
    """Two pods of each of some templates are bound and go; returns the blocks in use afterwards."""
    for number in range(first, first + ROUND):
        pods = []
        for twin in range(2):
            name = f"p{number}-{twin}"
            pod, _ = await stage.schedule(encoded(a_pod(name, "tenant", affinity=affinity(number, terms))))
            assert stage.is_bound(pod)
            pods.append(pod)
        for pod in pods:
            stage.delete("pods", pod)
        stage.bookmark()
        stage.forget_messages()
    pods.clear()
    del pod
    gc.collect()
    return sys.getallocatedblocks()


async def test_what_is_kept_of_pods_in_sequence_has_a_bound_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results, columns, parts, and whatever else a cache holds; the bounds here are as small as the pods."""
    monkeypatch.setattr(templates, "CACHE_BYTES", 1_000_000)
    monkeypatch.setattr(node_columns, "COLUMN_BYTES", 200_000)
    monkeypatch.setattr(equal_parts, "_NEW_BYTES", 50_000)
    async with Stage(3, 6).running() as stage:
        await shown(stage, 0)
        before = await shown(stage, ROUND)
        after = await shown(stage, 2 * ROUND)

    assert (after - before) / ROUND < 60  # of about 600


async def test_no_results_of_large_pods_in_sequence_are_kept() -> None:
    """Those that depend on the constraints alone stayed until other objects changed, 32 MiB of them."""
    async with Stage(3, 6).running() as stage:
        await shown(stage, 0, 600)
        before = await shown(stage, ROUND, 600)
        after = await shown(stage, 2 * ROUND, 600)

    assert (after - before) / ROUND < 5
