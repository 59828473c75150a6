"""The story of the GPUs: services are placed, a training job finds no node, room is made for it, it runs."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .client import Client, Obj
from .devices import (
    GPUS,
    SERVICES,
    TRAINING,
    NodeGpus,
    gpus_by_node,
    service_manifests,
    training_manifests,
    twice,
)
from .installation import example, install_scheduler
from .inventory import NAMESPACE
from .scenario import OPEN_PHASES, BudgetWatch
from .screen import Screen, gpu_table, move_table

#: Nodes of the story, each with eight GPUs.
NODES = 4

#: Seconds between two runs of the policy that makes room.
INTERVAL_S = 2

#: Seconds for each step of the story; a busy machine needs some of them.
STEP_S = 60.0


@dataclass(slots=True)
class DeviceWatch:
    """Judges every state of the claims that a watch shows: no GPU may be held by two of them.

    Attributes:
        claims: The latest state of each claim.
        violations: One sentence for each GPU and state in which it was held twice.
        seen: How many states were judged.
    """

    claims: dict[str, Obj] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    seen: int = 0

    def observe(self, claim: Obj) -> None:
        """Judge one state of one claim."""
        self.seen += 1
        self.claims[claim["metadata"]["uid"]] = claim
        self.violations += [one for one in twice(self.claims.values()) if one not in self.violations]


@dataclass(slots=True)
class TrainingStory:
    """What happened, for the summary.

    Attributes:
        before: The GPUs when the job found no node.
        after: The GPUs when it ran.
        refusal: Why it found none, in the scheduler's words.
        records: The Eviction records.
        pods: At the end.
        waited_s: From the job's creation until it ran, in seconds.
        budgets: What became of the budgets.
        devices: What became of the claims.
    """

    before: tuple[NodeGpus, ...] = ()
    after: tuple[NodeGpus, ...] = ()
    refusal: str = ""
    records: Sequence[Obj] = ()
    pods: Sequence[Obj] = ()
    waited_s: float = 0.0
    budgets: BudgetWatch = field(default_factory=BudgetWatch)
    devices: DeviceWatch = field(default_factory=DeviceWatch)


class TrainingScenario:
    """Plays the story on one API server.

    Args:
        client: Speaks to it.
        screen: Shows progress.
        examples: The folder of the example policies.
        alive: Raises when a process of the demo has died.
    """

    def __init__(self, client: Client, screen: Screen, examples: Path, alive: Callable[[], None]) -> None:
        self.client = client
        self.screen = screen
        self.examples = examples
        self.story = TrainingStory()
        self._alive = alive
        self._submitted = 0.0

    async def tell(self) -> None:
        """Play all of it."""
        await self.build()
        watches = [asyncio.create_task(each) for each in (self._watch_budgets(), self._watch_claims())]
        try:
            await self.place()
            await self.wait()
            await self.make_room()
        finally:
            for watch in watches:
                watch.cancel()
            await asyncio.gather(*watches, return_exceptions=True)

    async def build(self) -> None:
        """Install the scheduling policy, and wait until the driver has published the GPUs."""
        self.screen.say("- Applying a SchedulingPolicy, waiting until the operator serves it")
        await install_scheduler(self.client, self.examples, self._alive)
        self.screen.say(f"- Waiting for the driver of the GPUs of {NODES} nodes")
        slices: Sequence[Obj] = ()
        while len(slices) < NODES:
            self._alive()
            await asyncio.sleep(0.1)
            slices = await self.client.list("ResourceSlice")
        self.screen.say(f"Built {NODES} nodes; a driver publishes {GPUS} GPUs of each, linked in fours.")

    async def place(self) -> None:
        """Submit the services, and wait until all of their pods run."""
        for service in SERVICES:
            await self.client.create_all(service_manifests(service))
        wanted = sum(service.replicas for service in SERVICES)
        step = self.screen.step("Placing services with GPUs", wanted)

        async def placed() -> bool:
            running = [pod for pod in await self.client.list("Pod", NAMESPACE) if _runs(pod)]
            step.update(len(running), wanted)
            self.screen.show(gpu_table(await self._gpus()))
            return len(running) == wanted

        await self._until(placed)
        self.story.budgets.judging = True
        pods = ", ".join(
            f"{service.replicas} pods of {service.name} with {service.gpus}" for service in SERVICES
        )
        self.screen.say(f"Placed {pods} GPUs each.")

    async def wait(self) -> None:
        """Submit the training job, and wait until the scheduler says why it finds no node."""
        await self.client.create_all(training_manifests())
        self._submitted = time.monotonic()
        step = self.screen.step("The training job looks for a node", 1)

        async def refused() -> bool:
            for pod in await self._training():
                self.story.refusal = _refusal(pod)
            return bool(self.story.refusal)

        await self._until(refused)
        step.update(1, 1)
        self.story.before = await self._gpus()
        free = sum(node.free for node in self.story.before)
        self.screen.say(
            f"The training job waits for {GPUS} GPUs of one node; {free} are free, but scattered:"
        )
        self.screen.say(f"  {self.story.refusal}")

    async def make_room(self) -> None:
        """Apply a policy that makes room, and wait until the job runs and all that was moved runs again."""
        policy = self._policy()
        await self.client.create(policy)
        wanted = 1 + sum(service.replicas for service in SERVICES)
        step = self.screen.step("Making room by proven moves", wanted)
        self.screen.say("A policy with MakeRoomForPending moves pods for it; each move is proven before.")

        async def runs() -> bool:
            self.story.records = await self.client.list("Eviction")
            pods = await self.client.list("Pod", NAMESPACE)
            step.update(sum(map(_runs, pods)), wanted)
            self.screen.show(move_table(self.story.records))
            if any(map(_runs, await self._training())) and not self.story.waited_s:
                self.story.waited_s = time.monotonic() - self._submitted
            phases = [record.get("status", {}).get("phase", "") for record in self.story.records]
            finished = not any(phase in OPEN_PHASES for phase in phases)
            return bool(self.story.waited_s) and finished and len(pods) == wanted == sum(map(_runs, pods))

        await self._until(runs)
        name = policy["metadata"]["name"]
        await self.client.patch("SchedulingPolicy", name, {"spec": {"suspend": True}})
        self.story.after = await self._gpus()
        self.story.pods = await self.client.list("Pod", NAMESPACE)

    # ------------------------------------------------------------------------------------------------

    def _policy(self) -> dict[str, Any]:
        """The example's policy with one strategy, without its schedule and limits."""
        policy = example(self.examples, "rebalance-enforce.yaml")
        rebalancing = policy["spec"]["rebalancing"]
        rebalancing["schedule"] = {"intervalSeconds": INTERVAL_S}
        rebalancing["strategies"] = [{"name": "MakeRoomForPending"}]
        rebalancing["limits"] = {"total": "100%", "perMinute": "100%"}
        # Pods with resource claims are protected unless the policy says which pods are.
        rebalancing["evictor"] = {"podProtections": {"extraEnabled": ["PodsWithPVC"]}}
        return policy

    async def _until(self, done: Callable[[], Any]) -> None:
        """Look again and again, until it is done or the time of a step is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STEP_S):
                while not await done():
                    self._alive()
                    await asyncio.sleep(0.2)

    async def _training(self) -> list[Obj]:
        pods = await self.client.list("Pod", NAMESPACE)
        return [pod for pod in pods if pod["metadata"].get("labels", {}).get("app") == TRAINING]

    async def _gpus(self) -> tuple[NodeGpus, ...]:
        slices, claims = await asyncio.gather(
            self.client.list("ResourceSlice"), self.client.list("ResourceClaim", NAMESPACE)
        )
        return gpus_by_node(slices, claims)

    async def _watch_budgets(self) -> None:
        async for budget in self.client.watch("PodDisruptionBudget", NAMESPACE):
            self.story.budgets.observe(budget)

    async def _watch_claims(self) -> None:
        async for claim in self.client.watch("ResourceClaim", NAMESPACE):
            self.story.devices.observe(claim)


def _runs(pod: Obj) -> bool:
    return pod.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


def _refusal(pod: Obj) -> str:
    """Why the scheduler has found no node, "" while it has not said so: its first sentence."""
    for condition in pod.get("status", {}).get("conditions", []):
        if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
            return str(condition.get("message", "")).partition(". ")[0].removesuffix(".")
    return ""
