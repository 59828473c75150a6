"""A claim too large for the cache is searched for in parts, and nothing of it is kept when it has gone."""

import gc
import sys

import pytest

from large_objects.fields import Steps
from large_objects.stage import Stage
from large_objects.trial import Variant, tried
from plimsoll.devices import node_answers
from plimsoll.model.heavy_objects import HEAVY_BYTES


async def test_the_search_for_a_large_claim_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """It began again with each part, so no other pod was tried for as long as the claim existed."""
    monkeypatch.setattr(node_answers, "STEPS_A_PART", 5)
    async with Stage(node_answers.FEW + 20, 0).running() as stage:
        steps = ("spec", "devices", "config")

        cost = await tried(stage, "resourceclaims", steps, Variant(""), 200_000, lambda: 0)

    assert cost.size > 150_000


#: Fields of claims: one that is requested, one that is written when it is allocated, and one of a volume's.
FIELDS = {
    "requested": ("resourceclaims", ("spec", "devices", "requests", "[]", "exactly", "selectors")),
    "allocated": (
        "resourceclaims",
        ("status", "allocation", "devices", "results", "[]", "bindingConditions"),
    ),
    "of a volume": ("persistentvolumeclaims", ("spec", "selector", "matchLabels")),
}


@pytest.mark.parametrize(("resource", "steps"), FIELDS.values(), ids=FIELDS)
async def test_large_claims_in_sequence_leave_nothing_behind(resource: str, steps: Steps) -> None:
    async with Stage(20, 40).running() as stage:
        stays = [await after(stage, resource, steps) for _ in range(4)]

    assert stays[3] - stays[0] <= 500, "blocks of memory, of which each of the claims has thousands"


async def after(stage: Stage, resource: str, steps: Steps) -> int:
    """The blocks of memory in use when one large claim has come and gone while a fork lived."""
    cost = await tried(stage, resource, steps, Variant(""), 100_000, int)
    assert cost.size > HEAVY_BYTES
    gc.collect()
    return sys.getallocatedblocks()
