"""A large object that has gone leaves none of its names behind, in whatever the operator keeps."""

import gc
from typing import Any

import pytest

from large_objects.fields import Steps
from large_objects.names_left import names_left
from large_objects.stage import Stage
from large_objects.trial import tried, variants
from plimsoll.cluster.shared_objects import SharedPods
from plimsoll.devices import book
from plimsoll.devices.book import DeviceBook
from plimsoll.model.columns.pod_counts import PodCounts

SIZE = 120_000
PREFERRED = ("spec", "affinity", "podAffinity", "preferredDuringSchedulingIgnoredDuringExecution")
SLICES = "resourceslices"

#: Plural name, field, and role: what each was kept by is in the comment.
FIELDS: tuple[tuple[str, Steps, int], ...] = (
    ("pods", PREFERRED, 0),  # classes of pods that are counted
    ("pods", ("spec", "topologySpreadConstraints"), 1),
    ("pods", ("spec", "containers"), 2),  # parts that pods share
    ("nodes", ("status", "allocatable"), 0),  # parts that nodes share
    ("nodes", ("status", "images"), 0),
    ("nodes", ("metadata", "labels"), 0),  # room of tables, as of the next two
    ("pods", ("metadata", "ownerReferences"), 0),
    ("pods", ("spec", "containers", "[]", "ports"), 2),
    ("namespaces", ("metadata", "labels"), 0),  # terms that concern a template
    ("services", ("spec", "selector"), 0),  # derived values
    ("deviceclasses", ("metadata", "labels"), 0),  # what a pod looks for
    *((SLICES, ("metadata", "labels"), role) for role in range(3)),  # results of searches
)


async def left(*fields: tuple[str, Steps, int]) -> dict[str, list[str]]:
    """What large objects leave, one for each of these fields, when each has come and gone."""
    async with Stage(30, 60).running() as stage:
        for resource, steps, role in fields:
            cost = await tried(stage, resource, steps, variants(resource)[role], SIZE, int)
            assert cost.size > SIZE // 2
        gc.collect()
        return names_left([stage])


async def test_no_name_of_a_large_object_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """One walk for all of them: it goes through all that the process holds."""
    monkeypatch.setattr(book, "LOG_LENGTH", 1)

    assert await left(*FIELDS) == {}


#: What lets go, and the field whose names stay if it does not.
LETS_GO: tuple[tuple[type[Any], str, tuple[str, Steps, int]], ...] = (
    (DeviceBook, "_let_go", FIELDS[-1]),  # first: later pods alone have it let go
    (SharedPods, "let_go", FIELDS[2]),
    (PodCounts, "trim", FIELDS[0]),
)


async def test_what_forgets_to_let_go_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three planted faults, each with an object whose names stay; one walk finds all."""
    for kind, method, _ in LETS_GO:
        monkeypatch.setattr(kind, method, lambda *_: None)

    assert len(await left(*(field for *_, field in LETS_GO))) == len(LETS_GO)
