"""The largest object for every field of every kind costs what its size explains, and nothing when it is gone.

The fields come from the schemas of the API (``fields``), so a new one is tried on the day it appears. Here
the objects are small: a field is suspected if one took long, and convicted if four times as much takes far
more than four times as long. ``make bench-one-object`` tries the largest objects at 5,000 nodes.
"""

import gc
import sys
from typing import Any

import pytest

from large_objects.fields import Steps, large_fields, schema
from large_objects.largest import LONGEST_TEXTS, Writer, is_read
from large_objects.stage import Stage
from large_objects.trial import BASES, Cost, Variant, base, tried, variants
from plimsoll.cluster import equal_parts
from plimsoll.cluster.watched_resources import DEVICES, WATCHED
from plimsoll.devices import pod_devices
from plimsoll.model import selectors
from plimsoll.model.columns import pod_counts, term_counts
from plimsoll.model.columns.columns import NameCounts
from plimsoll.model.columns.term_counts import TermCounts
from plimsoll.model.kinds import pod_info
from plimsoll.plugins.node_resources_fit import NodeResourcesFit
from roadstead.schemas.fields import struct

#: Bytes of the object, for fields that the operator reads and for others.
SIZE, UNREAD_SIZE = 8_000, 1_000
#: The same for slices: what is quadratic in their selectors is too fast to be seen at a tenth of that.
SLICE_SIZE = 80_000
SUSPECT_S = 0.015
#: How much longer than an object of a quarter of its size it may take, in CPU time.
MOST_TIMES = 8.0
#: Blocks of memory that may stay in use per byte of the object, and in addition.
KEPT_A_BYTE, KEPT_BESIDES = 0.01, 150
MOUNTED = ("spec", "template")

KINDS = ("pods", "nodes", "podgroups", *BASES)


def blocks() -> int:
    """Blocks of memory in use: every object has one at least."""
    gc.collect()
    return sys.getallocatedblocks()


def roles(resource: str, steps: Steps) -> tuple[Variant, ...]:
    """A field that the operator does not read is tried in one role only."""
    return variants(resource) if is_read(resource, steps) else variants(resource)[:1]


async def examined(stage: Stage, resource: str, steps: Steps, variant: Variant, size: int = 0) -> str:
    """Try one field; returns what is wrong with it, or ""."""
    is_of_model = is_read(resource, steps)
    if not size:
        of_model = SLICE_SIZE if resource == "resourceslices" else SIZE
        size = of_model if is_of_model else UNREAD_SIZE
    # What is not read is not kept: it suffices to look at the blocks after the next field that is read.
    first = await tried(stage, resource, steps, variant, size, blocks if is_of_model else int)
    if first.worst_s <= SUSPECT_S and is_let_go(first):
        return ""
    large = [first, *[await tried(stage, resource, steps, variant, size, blocks) for _ in range(2)]]
    if not any(is_let_go(each) for each in large):
        return f"{first.field}: {min(each.kept for each in large)} blocks of memory stay in use"
    small = [await tried(stage, resource, steps, variant, size // 4, blocks) for _ in range(3)]
    for name in ("mirror_s", "attempt_s", "next_s"):
        one, four = (min(getattr(each, name) for each in some) for some in (small, large))
        if four > SUSPECT_S and four > MOST_TIMES * one:
            return f"{first.field}: {name} is {four:.4f}, and {one:.4f} for a quarter of its size"
    return ""


def is_let_go(cost: Cost) -> bool:
    """Whether what stays in use is not explained by the object."""
    return cost.kept <= KEPT_A_BYTE * cost.size + KEPT_BESIDES


@pytest.fixture
def scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    """What may be kept is as small as the objects; what exists already is not searched for garbage again."""
    monkeypatch.setattr(pod_info, "HEAVY_BYTES", UNREAD_SIZE // 4)
    monkeypatch.setattr(equal_parts, "_HEAVY", UNREAD_SIZE // 4)
    monkeypatch.setattr(equal_parts, "_FIRST_SWEEP", 16)
    monkeypatch.setattr(pod_devices, "LARGEST_SHAPE", UNREAD_SIZE // 4)
    monkeypatch.setattr(selectors, "LARGEST_KEPT", 0)
    monkeypatch.setattr(term_counts, "FEWEST_UNUSED", 4)
    monkeypatch.setattr(pod_counts, "MOST_CLASSES", 16)
    gc.collect()
    gc.freeze()


def test_every_kind_that_is_watched_is_tried() -> None:
    """A kind that a release adds is tried on the day it appears."""
    assert {each.name for each in (*WATCHED, *DEVICES)} == set(KINDS)


def test_texts_are_no_longer_than_an_api_server_takes() -> None:
    """What it refuses is no attack: names of 1.4 MB of a slice, its pool and its devices were tried."""
    written, writer = (
        base("resourceslices", "t", variants("resourceslices")[0]),
        Writer("resourceslices", "t"),
    )
    for steps in (("driver",), ("pool", "name"), ("devices", "[]", "name")):
        written = writer.write(written, ("spec", *steps), SIZE)

    spec = written["spec"]
    lengths = [len(each) for each in (spec["driver"], spec["pool"]["name"], spec["devices"][0]["name"])]
    assert lengths == [63, 253, 63]


def test_every_limit_is_of_a_field_of_the_schemas() -> None:
    """One that a release renames would hold nothing."""
    fields = {(kind, name) for kind, name in LONGEST_TEXTS if name in struct(kind).fields}

    assert fields == LONGEST_TEXTS.keys()


@pytest.mark.usefixtures("scaled")
async def test_every_field_costs_what_its_size_explains() -> None:
    """Lists, maps and free text of every kind that a decision reads, one at a time."""
    found, count = [], 0
    async with Stage(30, 60).running() as stage:
        for resource in KINDS:
            for steps in large_fields(schema(resource), each_once=True):
                if steps[:2] == MOUNTED:
                    continue
                for variant in roles(resource, steps):
                    count += 1
                    found.append(await examined(stage, resource, steps, variant))
    assert count > 500
    assert [each for each in found if each] == []


def a_column_per_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NameCounts, "__contains__", lambda *_: True)


def a_cache_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TermCounts, "_drop", lambda *_: None)


def a_quadratic_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = NodeResourcesFit._compiled

    def slowly(self: NodeResourcesFit, requests: dict[str, int]) -> Any:
        names = list(requests)
        for _ in range(4):  # else the linear part of an attempt hides it until there are many names
            assert all(names.index(each) == names.index(each) for each in names)
        return compiled(self, requests)

    monkeypatch.setattr(NodeResourcesFit, "_compiled", slowly)


NODES = (
    "spec",
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
)
AWAY = ("spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
REQUESTS = ("spec", "containers", "[]", "resources", "requests")


@pytest.mark.usefixtures("scaled")
@pytest.mark.parametrize(
    ("plant", "steps", "role", "size"),
    [
        (a_column_per_name, (*NODES, "[]", "matchExpressions"), 0, SIZE),
        (a_cache_without_bound, AWAY, 2, SIZE),
        (a_quadratic_loop, REQUESTS, 1, 4 * SIZE),
    ],
)
async def test_a_planted_fault_is_found(
    plant: Any, steps: Steps, role: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column for each name, a cache without bound, and a quadratic loop."""
    async with Stage(30, 60).running() as stage:
        variant = variants("pods")[role]
        before = [await examined(stage, "pods", steps, variant, size) for _ in range(2)]
        plant(monkeypatch)
        found: list[str] = []
        while not any(found) and len(found) < 4:  # under load the linear part may hide it
            found.append(await examined(stage, "pods", steps, variant, size))

    assert before == ["", ""]
    assert any(found)
