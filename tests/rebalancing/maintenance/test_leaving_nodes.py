"""Other policies move no pod to a node that is about to be emptied."""

from typing import Any

import pytest

from plimsoll.cluster.watch_events import NodeAdded, ObjectAdded, ObjectDeleted
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.ports.custom_resources import WatchedMaintenance
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.testing.builders import a_node
from rebalancing.scene import POLICY, Scene, a_policy
from rebalancing.test_bundles import Siblings
from rebalancing.test_closed_nodes import EMPTYING


def tomorrow(**spec: Any) -> WatchedMaintenance:
    """A maintenance whose window is closed for months."""
    window = {"schedule": "0 2 1 11 *", "duration": "1h"}
    metadata = ObjectMeta(name="kernel", uid="u1", generation=1)
    given = {"nodes": ["good"], "window": window, **spec}
    return WatchedMaintenance(
        metadata=metadata, spec={name: each for name, each in given.items() if each is not None}
    )


@pytest.mark.parametrize(
    ("maintenance", "evicted"),
    [(None, True), (tomorrow(), False), (tomorrow(suspend=True), True), (tomorrow(window={}), True)],
)
async def test_no_pod_is_moved_to_a_node_of_a_maintenance(
    maintenance: WatchedMaintenance | None, evicted: bool
) -> None:
    """Unless it begins nothing, as it is suspended or invalid; deleted, the node is a target again."""
    scene = Scene()

    async with scene.running(a_policy()):
        scene.wing.maintenances.take([ObjectAdded(maintenance)] if maintenance else [])
        await scene.clock.advance(5)
        await scene.run()
        assert bool(scene.evictor.evicted) == evicted
        if maintenance is not None and not evicted:
            scene.wing.maintenances.take([ObjectDeleted(maintenance)])
            await scene.run()

    assert scene.evictor.evicted == ["web-1"]


async def test_no_pod_is_moved_to_the_source_of_a_bundle_that_is_under_way() -> None:
    """Nor while the rest of it waits for its turn; a proposal alone keeps no pod off."""
    for mode, leaving in (("Enforce", {"idle"}), ("Approve", set())):
        scene = Siblings()
        scene.tell(NodeAdded(a_node("other")))
        policy = a_policy(mode, **EMPTYING)  # type: ignore[arg-type] # fields as in the API
        async with scene.running(policy):
            await scene.run()
            found = scene.wing.configs.of(POLICY)
            assert found is not None
            assert found.leaving == leaving
            assert scene.records.documents


@pytest.mark.parametrize("verdict", [WriteOutcome.REFUSED, WriteOutcome.UNKNOWN])
async def test_a_status_that_could_not_be_written_is_written_again(verdict: WriteOutcome) -> None:
    """It does not change any more; who waits for it would wait for ever."""
    scene = Scene()
    statuses: Any = scene.wing.maintenances.statuses
    write, answers = statuses.write_status, [WriteResult(verdict, "no")] * 2

    async def write_status(name: str, status: Any) -> WriteResult:
        return answers.pop() if answers else await write(name, status)

    statuses.write_status = write_status
    async with scene.running(a_policy()):
        scene.wing.maintenances.take([ObjectAdded(tomorrow(suspend=True))])
        await scene.clock.advance(300)

    assert statuses.statuses["kernel"]["phase"] == "Suspended"
    told = [each for each in scene.observer.failures if "NodeMaintenance kernel" in str(each)]
    assert len(told) == 2
