"""A virtual machine is migrated live while the whole operator goes on, in virtual time.

The facts are those of descheduler's issue 1397 and of KubeVirt v1.6: the eviction is denied with 429, the pod
is annotated, a second pod of the owner appears, and the first one ends. tests/e2e/test_migrating.py plays the
same over HTTP.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from cases.test_cases import NOW
from cases.world import World
from plimsoll.model.kinds.pod import Pod
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.toolkit.descheduling.disruption_signals import EVICTION_IN_PROGRESS

OWNER = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "vm", "uid": "vm"}
SOURCE: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {"name": "source", "ownerReferences": [{**OWNER, "controller": True}]},
    "spec": {"nodeName": "closed", "containers": [{"name": "compute", "image": "virt-launcher"}]},
}
OBJECTS = (
    {
        "kind": "Node",
        "metadata": {"name": "closed"},
        "spec": {"taints": [{"key": "old", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "8", "pods": "110"}},
    },
    {"kind": "Node", "metadata": {"name": "open"}, "status": {"allocatable": {"cpu": "8", "pods": "110"}}},
    SOURCE,
)
POLICY = {
    "kind": "SchedulingPolicy",
    "metadata": {"name": "p"},
    "spec": {
        "scheduling": {"schedulerName": "default-scheduler"},
        "rebalancing": {
            "mode": "Enforce",
            "strategies": [{"name": "RemovePodsViolatingNodeTaints"}],
            "evictor": {"minReplicas": 0},
        },
    },
}


class Migrating(World):
    """Denies every eviction as KubeVirt does, and counts the requests."""

    requests = 0

    async def evict(self, pod: Pod) -> WriteResult:
        self.requests += 1
        return WriteResult(WriteOutcome.DEFERRED, f"Eviction triggered evacuation of VMI {pod.key}")

    @property
    def records(self) -> list[tuple[str, str]]:
        """Phase and reason of every record."""
        found = [each["status"] for each in self._records.documents.values()]
        return [(each["phase"], each["reason"]) for each in found]


@pytest.mark.parametrize("seconds", [5, 600])
@pytest.mark.parametrize(("succeeds", "end"), [(True, "Settled"), (False, "Failed")])
async def test_a_migration_is_one_request_and_one_record(seconds: int, succeeds: bool, end: str) -> None:
    """Runs go on meanwhile; the record ends by what happens."""
    world = Migrating(NOW)
    source = copy.deepcopy(SOURCE)
    async with world.running():
        await world.set_policy(copy.deepcopy(POLICY))
        world.apply(*copy.deepcopy(OBJECTS))
        await world.rebalance("p")
        source["metadata"]["annotations"] = {EVICTION_IN_PROGRESS: "kubevirt"}
        world.apply(copy.deepcopy(source))
        target = copy.deepcopy(SOURCE)
        target["metadata"]["name"], target["spec"]["nodeName"] = "target", "open"
        world.apply(target)
        await world.wait(seconds)
        await world.rebalance("p")
        under_way = world.records
        if succeeds:
            world.apply({**copy.deepcopy(source), "status": {"phase": "Succeeded"}})
        else:
            del source["metadata"]["annotations"]
            world.apply(copy.deepcopy(source))
        await world.wait(150)

    assert under_way == [("Evicting", "Deferred")]
    assert [phase for phase, _ in world.records] == [end]
    assert world.requests == 1
