"""The story, step by step: build, place, drift, mend, judge. Everything through the API server."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .balance import Balance, balance
from .client import Client, Obj
from .installation import example, install_scheduler
from .inventory import NAMESPACE, Inventory, priority_class_manifests
from .screen import Screen, move_table, node_table

#: Phases in which a record still waits for something.
OPEN_PHASES = ("", "Planned", "Evicting", "Evicted", "Surging")

#: Seconds between two runs of the rebalancing policy in the demo; the example's own schedule is nightly.
INTERVAL_S = 2

#: Runs that plan nothing before the story goes on: by count, for on a busy machine each of them takes longer.
QUIET_RUNS = 3

#: Seconds that moves under way get to finish when the policy is suspended at the end.
FINISHING_S = 10.0

#: A step that makes no progress for this many seconds is over.
STALLED_S = 6.0


@dataclass(slots=True)
class BudgetWatch:
    """Collects violations from every state that watched PodDisruptionBudgets go through.

    A budget is violated when, having been met, it has fewer healthy pods than it demands. Judging begins when
    the workloads stand: before that, budgets are unmet because their pods do not run yet, and preemption,
    which prefers to keep budgets but need not, makes room.

    Attributes:
        judging: Whether violations are recorded.
        met: Names of budgets that have been met since judging began.
        violations: One sentence for each state that broke a budget.
        seen: How many states were judged.
    """

    judging: bool = False
    met: set[str] = field(default_factory=set)
    violations: list[str] = field(default_factory=list)
    seen: int = 0

    def observe(self, budget: dict[str, Any]) -> None:
        """Judge one state of one budget."""
        name, status = budget["metadata"]["name"], budget.get("status", {})
        if status.get("observedGeneration") != budget["metadata"].get("generation"):
            return
        healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
        if not self.judging:
            return
        self.seen += 1
        if healthy >= desired:
            self.met.add(name)
        elif name in self.met:
            self.violations.append(f"{name}: {healthy} healthy pods where {desired} are demanded")


@dataclass(slots=True)
class Story:
    """What happened, for the summary."""

    placed: Balance | None = None
    drifted: Balance | None = None
    mended: Balance | None = None
    records: Sequence[Obj] = ()
    nodes: Sequence[Obj] = ()
    pods: Sequence[Obj] = ()
    drained: str = ""
    budgets: BudgetWatch = field(default_factory=BudgetWatch)
    placing_s: float = 0.0


class Scenario:
    """Plays the story on one API server.

    Args:
        client: Speaks to it.
        screen: Shows progress.
        inventory: What to build.
        examples: The folder of the example policies.
        alive: Raises when a process of the demo has died.
    """

    def __init__(
        self,
        client: Client,
        screen: Screen,
        inventory: Inventory,
        examples: Path,
        alive: Callable[[], None],
    ) -> None:
        self.client = client
        self.screen = screen
        self.inventory = inventory
        self.examples = examples
        self.story = Story()
        self._alive = alive

    async def build(self) -> None:
        """Install the scheduling policy and the nodes."""
        self.screen.say(f"- Creating {len(self.inventory.nodes)} nodes")
        await self.client.create_all(priority_class_manifests())
        await self.client.create_all(self.inventory.nodes)
        self.screen.say("- Applying a SchedulingPolicy, waiting until the operator serves it")
        await install_scheduler(self.client, self.examples, self._alive)
        self.screen.say(f"Built {len(self.inventory.nodes)} nodes from {self.inventory.source}.")
        self.screen.say("Plimsoll places the pods that have [bold]schedulerName: plimsoll[/].")

    async def place(self) -> None:
        """Submit the workloads and wait until every pod is placed or reported as unschedulable."""
        began = time.monotonic()
        await self.client.create_all(self.inventory.workloads)
        await self.client.create_all(self.inventory.budgets)
        step = self.screen.step("Placing pods", self.inventory.pods)

        def settled(now: Balance, pods: Sequence[Obj]) -> bool:
            step.update(now.bound, self.inventory.pods)
            self.screen.show(node_table(now))
            return len(pods) >= self.inventory.pods and all(_answered(pod) for pod in pods) and _started(pods)

        self.story.placed = await self._until(settled)
        self.story.placing_s = time.monotonic() - began

    async def drift(self) -> None:
        """Add nodes; drain one and bring it back; taint one; take a label off one."""
        self.story.budgets.judging = True
        placed = self.story.placed or (await self._measure())[0]
        occupied = sorted((use for use in placed.nodes if use.pods), key=lambda use: (-use.pods, use.name))
        labelled = {
            node["metadata"]["name"]: node["metadata"].get("labels", {})
            for node in await self.client.list("Node")
        }
        names = [use.name for use in occupied]
        relabelled = next((name for name in names if labelled[name].get("disk") == "ssd"), "")
        others = [name for name in names if name != relabelled]
        drained, tainted = (*others[:2], "", "")[:2]
        step = self.screen.step("Drifting out of balance", 4)
        await self.client.create_all(self.inventory.late_nodes)
        step.update(1, 4)
        if drained:
            await self._drain(drained)
            self.story.drained = drained
        step.update(2, 4)
        if tainted:
            taint = {"key": "dedicated", "value": "analytics", "effect": "NoSchedule"}
            await self.client.patch("Node", tainted, {"spec": {"taints": [taint]}})
        step.update(3, 4)
        if relabelled:
            await self.client.patch("Node", relabelled, {"metadata": {"labels": {"disk": "hdd"}}})
        step.update(4, 4)
        self.screen.say(
            f"Drift: {len(self.inventory.late_nodes)} nodes added, {drained or 'none'} drained and brought "
            f"back, {tainted or 'none'} tainted dedicated=analytics:NoSchedule, "
            f"{relabelled or 'none'} relabelled disk=hdd."
        )
        self.story.drifted = await self._until(
            lambda _, pods: all(_answered(pod) for pod in pods) and _started(pods)
        )

    async def mend(self, seconds: float) -> None:
        """Apply the rebalancing policy and watch until it has nothing left to move, or time is up."""
        policy = example(self.examples, "rebalance-enforce.yaml")
        rebalancing = policy["spec"]["rebalancing"]
        rebalancing["schedule"] = {"intervalSeconds": INTERVAL_S}
        rebalancing["limits"] = {
            "total": "100%",
            "perMinute": "100%",
            "perNode": "50%",
            "perNamespace": "100%",
            "perWorkload": 2,
        }
        rebalancing["evictor"].pop("minPodAge", None)
        await self.client.create(policy)
        step = self.screen.step("Mending: moves finished", 1)
        deadline = time.monotonic() + seconds
        known = -1
        quiet_runs = set[str]()
        while time.monotonic() < deadline:
            self._alive()
            records = await self.client.list("Eviction")
            phases = Counter(record.get("status", {}).get("phase", "") for record in records)
            unfinished = sum(phases[phase] for phase in OPEN_PHASES)
            step.update(len(records) - unfinished, len(records) or 1)
            self.screen.show(move_table(records))
            if unfinished or len(records) != known:
                known = len(records)
                quiet_runs.clear()
            quiet_runs |= await self._latest_run(policy["metadata"]["name"])
            if len(quiet_runs) > QUIET_RUNS:  # the first of them may have begun before
                break
            await asyncio.sleep(0.3)
        # The stop button: what is under way is seen to its end, nothing new begins.
        await self.client.patch("SchedulingPolicy", policy["metadata"]["name"], {"spec": {"suspend": True}})
        await self._until_finished()
        self.story.mended = await self._until(lambda _, pods: _started(pods))
        self.story.records = await self.client.list("Eviction")
        self.story.nodes = await self.client.list("Node")
        self.story.pods = await self.client.list("Pod")

    async def watch_budgets(self) -> None:
        """Judge every state of every budget, until cancelled."""
        async for budget in self.client.watch("PodDisruptionBudget", NAMESPACE):
            self.story.budgets.observe(budget)

    # ------------------------------------------------------------------------------------------------

    async def _latest_run(self, policy: str) -> set[str]:
        """When the policy's latest run began; empty before the first."""
        for each in await self.client.list("SchedulingPolicy"):
            if each["metadata"]["name"] == policy:
                run: Obj = each.get("status", {}).get("lastRun") or {}
                return {run["startTime"]} if run else set()
        return set()

    async def _until_finished(self) -> None:
        """Wait until no record waits for anything."""
        deadline = time.monotonic() + FINISHING_S
        while time.monotonic() < deadline:
            self._alive()
            records = await self.client.list("Eviction")
            self.screen.show(move_table(records))
            if not any(record.get("status", {}).get("phase", "") in OPEN_PHASES for record in records):
                return
            await asyncio.sleep(0.3)

    async def _drain(self, node: str) -> None:
        """Cordon, evict all pods as ``kubectl drain`` does, uncordon."""
        await self.client.patch("Node", node, {"spec": {"unschedulable": True}})
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline:
            self._alive()
            pods = await self.client.list("Pod", fields=f"spec.nodeName={node}")
            if not pods:
                break
            await asyncio.gather(
                *(self.client.evict(pod) for pod in pods if "deletionTimestamp" not in pod["metadata"])
            )
            await asyncio.sleep(0.2)
        await self.client.patch("Node", node, {"spec": {"unschedulable": None}})

    async def _until(self, settled: Callable[[Balance, Sequence[Obj]], bool]) -> Balance:
        """Measure until ``settled``, or until nothing has changed for a while."""
        last: tuple[int, int] = (-1, -1)
        changed = time.monotonic()
        while True:
            self._alive()
            began = time.monotonic()
            now, pods = await self._measure()
            if settled(now, pods):
                return now
            ended = time.monotonic()
            if (now.bound, len(pods)) != last:
                last, changed = (now.bound, len(pods)), ended
            elif ended - changed > STALLED_S:
                return now
            # Looking must not cost more than the cluster's own work: a large one is looked at less often.
            await asyncio.sleep(max(0.3, 4 * (ended - began)))

    async def _measure(self) -> tuple[Balance, Sequence[Obj]]:
        nodes, pods = await asyncio.gather(self.client.list("Node"), self.client.list("Pod"))
        return balance(nodes, pods), pods


def _answered(pod: Obj) -> bool:
    """Whether the scheduler has placed the pod or said why not."""
    return bool(pod["spec"].get("nodeName")) or any(
        condition["type"] == "PodScheduled" and condition.get("message")
        for condition in pod.get("status", {}).get("conditions", [])
    )


def _started(pods: Sequence[Obj]) -> bool:
    """Whether every placed pod runs and none is on its way out."""
    return all(
        pod["status"].get("phase") == "Running"
        for pod in pods
        if pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]
    ) and not any("deletionTimestamp" in pod["metadata"] for pod in pods)
