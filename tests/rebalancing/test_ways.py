"""Surges can be left out: the rest is imported, built and moves pods without them."""

import subprocess
import sys
from collections.abc import Mapping, Sequence

from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.planning.moves import Move
from plimsoll.planning.surges import Deployments
from plimsoll.rebalancing.execution.executor import Awaited, Immediate
from plimsoll.rebalancing.moves.events import ProcessRestarted
from plimsoll.rebalancing.moves.recovery import RecoveryRule
from plimsoll.rebalancing.moves.sightings import Sightings
from plimsoll.rebalancing.moves.transition import MoveTable, Step
from plimsoll.testing.fakes import settled
from rebalancing.scene import POLICY, Scene, a_policy
from rebalancing.surges.surge_scene import SurgeScene, a_surging_policy
from rebalancing.test_controller import OLD, replaced

IMPORT_ALL = """
import importlib, pkgutil, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == package or name.startswith(f"{package}."):
            raise ModuleNotFoundError(f"{name} was left out")

sys.meta_path.insert(0, Absent())
for package in sys.argv[1:]:
    for name in [name for name in sys.modules if name.partition(".")[0] == "plimsoll"]:
        del sys.modules[name]
    import plimsoll.rebalancing

    walk = pkgutil.walk_packages(plimsoll.rebalancing.__path__, "plimsoll.rebalancing.", lambda _: None)
    found = [each.name for each in walk if not each.name.startswith(package)]
    for name in found:
        importlib.import_module(name)
    print(*found)
"""


def _recovers_nothing(_step: Step, _event: ProcessRestarted) -> bool:
    return False


class WithoutSurges:
    """No pod is moved by a rollout."""

    trouble = ""

    def __init__(self) -> None:
        self.table = MoveTable(transitions={})
        self.recovered: RecoveryRule = _recovers_nothing
        self.sightings: Sequence[Sightings] = ()
        self.immediate: Mapping[type, Immediate] = {}
        self.awaited: Mapping[type, Awaited] = {}

    async def deployments(self) -> Deployments:
        """None, and why."""
        return Deployments(problem="built without surges")

    async def present(self, move: Move) -> Deployments:
        """None, and why, for a surge."""
        return Deployments(problem="built without surges" if move.surge is not None else "")

    async def inspect(self, key: str, spec: EvictionSpec) -> None:
        """Nothing is known of Deployments."""


def test_nothing_else_of_rebalancing_imports_them() -> None:
    """With their folder gone every other module is imported, the controller among them."""
    packages = ["plimsoll.rebalancing.surges"]

    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, *packages], capture_output=True, text=True, check=False
    )

    assert done.stderr == ""
    for package, line in zip(packages, done.stdout.splitlines(), strict=True):
        found = set(line.split())
        assert {"plimsoll.rebalancing.controller", "plimsoll.rebalancing.moves.machine"} < found
        assert package not in found


async def test_moves_by_eviction_need_no_surges() -> None:
    """Planned, evicted, replaced, settled."""
    scene = Scene(surges=WithoutSurges())

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
