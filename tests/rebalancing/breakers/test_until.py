"""The time that a rest of a policy is announced to end at is when it ends."""

import pytest

from plimsoll.rebalancing.breakers import PATIENCE_S, SPACING_S, WINDOW_S, _clock
from rebalancing.breakers.test_displacement import LOST, Shop, moves
from rebalancing.scene import POLICY


@pytest.mark.parametrize("later_s", [0.0, 90.0, SPACING_S])
async def test_the_announced_end_is_half_an_hour_after_the_last_moves(later_s: float) -> None:
    """However late it is looked at; at that moment it goes on."""
    scene = Shop()

    async with scene.running(moves()):
        begun = scene.clock.now()
        await scene.run()
        scene.evicted_and_stuck(LOST)
        await scene.clock.advance(PATIENCE_S + later_s)
        await scene.run()
        sentence = scene.rebalancers.troubles(POLICY)["PodsDisplaced"]

    assert f"or until {_clock(begun + WINDOW_S)};" in sentence
