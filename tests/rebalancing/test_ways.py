"""Surges and eviction requests can be left out: the rest is imported, built and moves pods without them."""

import subprocess
import sys
from typing import Any

import pytest

from plimsoll.rebalancing.ways import WithoutRequests, WithoutSurges
from plimsoll.testing.fakes import settled
from rebalancing.scene import POLICY, Scene, a_policy
from rebalancing.surges.surge_scene import SurgeScene, a_surging_policy
from rebalancing.test_controller import OLD, replaced

IMPORT_ALL = """
import importlib, pkgutil, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "{package}" or name.startswith("{package}."):
            raise ModuleNotFoundError(f"{{name}} was left out")

sys.meta_path.insert(0, Absent())
import plimsoll.rebalancing

walk = pkgutil.walk_packages(plimsoll.rebalancing.__path__, "plimsoll.rebalancing.", lambda _: None)
found = [each.name for each in walk if not each.name.startswith("{package}")]
for name in found:
    importlib.import_module(name)
print(*found)
"""


@pytest.mark.parametrize("package", ["surges", "eviction_requests"])
def test_nothing_else_of_rebalancing_imports_it(package: str) -> None:
    """With the folder gone every other module is imported, the controller among them."""
    script = IMPORT_ALL.format(package=f"plimsoll.rebalancing.{package}")

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert done.stderr == ""
    assert {"plimsoll.rebalancing.controller", "plimsoll.rebalancing.moves.machine"} < set(
        done.stdout.split()
    )


@pytest.mark.parametrize(
    "left_out",
    [
        pytest.param({"surges": WithoutSurges()}, id="without-surges"),
        pytest.param({"requests": WithoutRequests}, id="without-eviction-requests"),
        pytest.param({"surges": WithoutSurges(), "requests": WithoutRequests}, id="without-both"),
    ],
)
async def test_moves_by_eviction_need_neither(left_out: dict[str, Any]) -> None:
    """Planned, evicted, replaced, settled."""
    scene = Scene(**left_out)

    async with scene.running(a_policy()):
        await scene.run()
        scene.gone(OLD)
        replaced(scene, "good")
        await settled()

    assert scene.phases == [["Planned", "Evicting", "Evicted", "Settled"]]


async def test_without_surges_a_protected_pod_stays() -> None:
    """The reason is in the policy's status; no Deployment is read."""
    scene = SurgeScene(surges=WithoutSurges())

    async with scene.running(a_surging_policy()):
        await scene.run()

    assert scene.records.documents == {}
    assert scene.rollouts.marks == []
    (refused,) = scene.statuses.statuses[POLICY]["counts"]["refused"]
    assert refused["reason"] == "NoSurge"
    assert "built without surges" in refused["message"]


async def test_without_surges_their_records_are_cancelled() -> None:
    """Of an earlier process that had them."""
    before = SurgeScene()
    async with before.running(a_surging_policy()):
        await before.run()
    scene = SurgeScene(*before.records.documents.values(), surges=WithoutSurges())

    async with scene.running(a_surging_policy()):
        await settled()

    assert (scene.record["status"]["phase"], scene.record["status"]["reason"]) == ("Cancelled", "Restarted")


async def test_without_eviction_requests_a_policy_that_wants_them_evicts_nothing() -> None:
    """Another way would break what it promises to the pods' responders; its condition says so."""
    scene = Scene(requests=WithoutRequests)

    async with scene.running(a_policy(evictBy="EvictionRequest")):
        await scene.run()
        troubles = dict(scene.rebalancers.troubles(POLICY))

    assert scene.evictor.evicted == []
    assert scene.records.documents == {}
    assert list(troubles) == ["EvictionRequestsNotOffered"]
    assert "built without eviction requests" in troubles["EvictionRequestsNotOffered"]
