"""Records have the time at which an eviction was announced, by the API server's clock."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.rebalancing.records.announcements import ANNOUNCER, announced_at
from rebalancing.scene import Scene, a_policy, web
from rebalancing.test_controller import a_record

ANNOUNCED = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
ENTRY = {"manager": ANNOUNCER, "operation": "Update", "time": "2026-01-01T12:00:00Z", "subresource": "status"}


async def test_phase_evicting_is_written_under_a_name_of_its_own() -> None:
    """Later phases must not take its time from it."""
    scene = Scene()

    async with scene.running(a_policy()):
        await scene.run()
        scene.gone(web(1, "bad"))

    assert {phase: manager for (_, phase), manager in scene.records.managers.items()} == {
        "Evicting": ANNOUNCER,
        "Evicted": "",
    }


@pytest.mark.parametrize(
    ("fields", "announced"),
    [
        ([{**ENTRY, "manager": "plimsoll", "time": "2026-01-01T13:00:00Z"}, ENTRY], ANNOUNCED),
        ([{**ENTRY, "manager": "plimsoll"}], None),
        ([{**ENTRY, "time": "soon"}], None),
        ([{**ENTRY, "time": "2026-01-01T12:00:00"}], None),
        ([7, None], None),
        ("none", None),
        (None, None),
    ],
)
def test_the_time_is_that_of_the_entry_of_its_manager(fields: Any, announced: datetime | None) -> None:
    """Records of earlier versions have none, and whatever somebody wrote is no error."""
    assert announced_at({"managedFields": fields}) == announced


async def test_a_new_process_takes_the_time_over() -> None:
    """From the record as the API server has it."""
    document = a_record("Evicted")
    document["metadata"]["managedFields"] = [ENTRY]
    scene = Scene(document)

    async with scene.running(a_policy()):
        (record,) = scene.keeper.known.values()

    assert record.announced == ANNOUNCED
