"""A claim too large for the cache is searched for in parts, and the search goes on where it was."""

import pytest

from large_objects.stage import Stage
from large_objects.trial import Variant, tried
from plimsoll.devices import node_answers


async def test_the_search_for_a_large_claim_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """It began again with each part, so no other pod was tried for as long as the claim existed."""
    monkeypatch.setattr(node_answers, "STEPS_A_PART", 5)
    async with Stage(node_answers.FEW + 20, 0).running() as stage:
        steps = ("spec", "devices", "config")

        cost = await tried(stage, "resourceclaims", steps, Variant(""), 200_000, lambda: 0)

    assert cost.size > 150_000
