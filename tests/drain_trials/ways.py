"""The ways to empty nodes that are compared: a NodeMaintenance, ``kubectl drain``, and Karpenter's rule."""

from __future__ import annotations

import asyncio
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from e2e.node_maintenances import maintenance, status
from e2e.polls import eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from drain_trials.world import World

ROOT = Path(__file__).parents[2]

#: Seconds between two attempts to evict a pod whose budget allows none; kubectl drain has the same.
RETRY_S = 5.0

#: Seconds in which the last moves end.
REST_S = 8.0

#: What Karpenter puts on a node that it is about to remove.
TAINT = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}


@dataclass(slots=True)
class Outcome:
    """What came of one way.

    Attributes:
        drained: Old nodes that nothing is left on.
        short: Pod seconds below the wanted ready replicas, by workload.
        below: Pod seconds below what budgets demand, and without a service of one replica, by workload.
        restarted: Pods of services that were started beyond those of the beginning.
        broken: Looks at which the gang had too few members before it ended.
        told: What was said beforehand.
        wrong: Sentences on what must not be.
    """

    drained: int = 0
    short: Mapping[str, float] = field(default_factory=dict)
    below: Mapping[str, float] = field(default_factory=dict)
    restarted: int = 0
    broken: int = 0
    wall_s: float = 0.0
    kills: int = 0
    told: str = ""
    wrong: list[str] = field(default_factory=list)

    def row(self, way: str) -> str:
        """A line of the table."""
        gang = "broken" if self.broken else "whole"
        short, below = sum(self.short.values()), sum(self.below.values())
        return (
            f"{way:14} {self.drained:>5} {short:>10.1f} {below:>10.1f} {self.restarted:>5} {gang:>6}"
            f" {self.wall_s:>7.0f} {self.kills:>5}"
            + "".join(f"\n  short: {app} {seconds:.1f}" for app, seconds in sorted(self.short.items()))
            + "".join(f"\n  {each}" for each in self.wrong)
        )

    def faults(self) -> list[str]:
        """What a maintenance must not do."""
        found = list(self.wrong)
        found += [f"{app} was short for {seconds:.1f} pod seconds" for app, seconds in self.below.items()]
        return [*found, *(("the gang was broken",) if self.broken else ())]


async def ours(world: World, _kubeconfig: Path, concurrent: int, within_s: float) -> Outcome:
    """A NodeMaintenance; when only the gang and the bare pod are left, they end, and their nodes follow."""
    scene, outcome = world.scene, Outcome()
    path = await maintenance(scene, *world.old, maxConcurrent=concurrent, maxConcurrentPerZone=concurrent)
    first = await eventually(
        lambda: status(scene, path),
        lambda found: any(each.get("moves") or each.get("reason") for each in found.get("nodes", ())),
        within_s,
    )
    named = {each["name"]: each.get("message", "") for each in first["nodes"] if each.get("reason")}
    outcome.told = f"beforehand: {named}"
    if set(named) != set(world.old[-2:]):
        outcome.wrong.append("what cannot leave was not named beforehand")
    if any(each["spec"]["mode"] == "Enforce" for each in await scene.records()):
        outcome.wrong.append("a move had begun before the plan was in the status")
    at_rest = len(world.old) - 2
    await eventually(lambda: status(scene, path), lambda found: found.get("drained") == at_rest, within_s)
    outcome.broken = world.ledger.broken
    await world.end_what_stays()
    await eventually(
        lambda: status(scene, path), lambda found: found.get("phase") in ("Drained", "Stopped"), within_s
    )
    await asyncio.sleep(REST_S)
    phases = [each["status"].get("phase") for each in await scene.records()]
    open_ones = [each for each in phases if each in ("Proposed", "Approved", "Evicted", "Evicting", None)]
    outcome.wrong += [f"a record is {each}" for each in open_ones]
    outcome.wrong += [f"a record is {each}" for each in phases if each in ("Failed", "Returned")]
    return await _counted(world, outcome, broken=outcome.broken)


async def kubectl_drain(world: World, kubeconfig: Path, concurrent: int, within_s: float) -> Outcome:
    """``kubectl drain``, as many at the same time, with the options that people type."""
    program = shutil.which("kubectl") or str(ROOT / ".tools/bin/kubectl")
    outcome, turns = Outcome(), asyncio.Semaphore(concurrent)
    refused: list[str] = []

    async def drain(node: str) -> None:
        options = ("--ignore-daemonsets", "--delete-emptydir-data", f"--timeout={within_s:.0f}s")
        async with turns:
            process = await asyncio.create_subprocess_exec(
                program,
                f"--kubeconfig={kubeconfig}",
                "drain",
                node,
                *options,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            said, _ = await process.communicate()
            if process.returncode:
                refused.append(f"{node}: {said.decode().strip().splitlines()[-1][:160]}")

    await asyncio.gather(*map(drain, world.old))
    await asyncio.sleep(REST_S)
    outcome.told = f"refused on the way: {refused}"
    return await _counted(world, outcome)


async def karpenter(world: World, _kubeconfig: Path, concurrent: int, within_s: float) -> Outcome:
    """Karpenter's rule, played: taint the node, evict all of its pods through their budgets, try again.

    Source: Karpenter's documentation on disruption (termination controller, v1.x). New capacity is there, so
    the replacement nodes that it would launch first are not waited for.
    """
    scene, turns, until = world.scene, asyncio.Semaphore(concurrent), time.monotonic() + within_s

    async def terminate(node: str) -> None:
        async with turns:
            await scene.change_node(node, {"spec": {"taints": [TAINT]}})
            while time.monotonic() < until:
                pods = await scene.items(scene.path("pods"), fieldSelector=f"spec.nodeName={node}")
                if not pods:
                    return
                for pod in pods:
                    await _evict(world, pod["metadata"]["name"])
                await asyncio.sleep(1.0)

    async def _evict(world: World, name: str) -> None:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        await world.scene.speaker.request("POST", world.scene.path(f"pods/{name}/eviction"), body)

    await asyncio.gather(*map(terminate, world.old))
    await asyncio.sleep(REST_S)
    return await _counted(world, Outcome(told="nothing is said beforehand"))


async def _counted(world: World, outcome: Outcome, *, broken: int | None = None) -> Outcome:
    """The outcome with what the ledger has."""
    left = await world.on_old_nodes(with_staying=True)
    pods = {each["metadata"]["name"]: each["spec"].get("nodeName") for each in await world.scene.pods()}
    outcome.drained = len(set(world.old) - {pods[name] for name in left if name in pods})
    outcome.short = {app: seconds for app, seconds in world.ledger.short.items() if seconds}
    outcome.below = {app: seconds for app, seconds in world.ledger.below.items() if seconds}
    outcome.restarted = world.ledger.restarted
    outcome.broken = world.ledger.broken if broken is None else broken
    return outcome


WAYS: dict[str, Callable[[World, Path, int, float], Awaitable[Outcome]]] = {
    "ours": ours,
    "kubectl-drain": kubectl_drain,
    "karpenter": karpenter,
}
