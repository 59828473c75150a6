"""Predictions beyond the records that a policy may keep: each is counted, and none is written."""

from typing import Any

import pytest

from plimsoll.cluster.watch_events import PodAdded
from rebalancing.scene import POLICY, Scene, a_policy, web

FREE = dict.fromkeys(("total", "perMinute", "perNode", "perNamespace", "perWorkload"), "100%")


@pytest.mark.parametrize("most", [1, 2, 3, 9])
async def test_each_prediction_without_room_is_counted(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the first run as in the second, whose predictions are the same."""
    scene = Scene()
    scene.tell(*(PodAdded(web(number, "bad")) for number in (3, 4, 5)))
    dropped: list[tuple[str, str]] = []
    monkeypatch.setattr(scene.observer, "record_dropped", lambda *said: dropped.append(said))
    policy: Any = a_policy("DryRun", limits=FREE, evictor={"minReplicas": 1}, records={"maxCount": most})

    async with scene.running(policy):
        for runs in (1, 2):
            await scene.run()
            predicted = 4
            assert len(scene.records.documents) == min(most, predicted)
            assert dropped == [(POLICY, "breaker")] * (runs * max(predicted - most, 0))
