"""Runs two operators on a cluster for some minutes with faults, then in peace, and reports the verdict."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from chaos.certificates import Authority
from chaos.deeds import ChaosDeeds
from chaos.faults import ChaosFaults, ChaosKind
from chaos.features import Features
from chaos.judge import SETTLING_S, STALE_S, Judge
from chaos.lives import Replica, Surroundings, Version
from chaos.passage import Passages
from chaos.planes import Plane, upstream
from chaos.preload import preloaded
from chaos.sightings import COLLECTIONS, Lookout, Sighting
from chaos.world import SCHEDULER, World
from e2e.speaker import speaking
from promises.checker import Checker
from promises.findings import Facts
from simulation.world.happenings import Happening

#: Seconds after the faults in which processes may still end for what happened before.
SHOCK_S = 60.0

#: Seconds until both operators are ready at the beginning.
READY_S = 90.0

#: Names of the recorded streams in the folder of a run.
COMMITS, REQUESTS, VERDICT = "commits.jsonl.gz", "requests.jsonl.gz", "verdict.json"


@dataclass(frozen=True, slots=True)
class ChaosPlan:
    """What is done.

    Attributes:
        faulty_s: Seconds with faults.
        peace_s: Those without, after which all must be well.
        still_s: At their end, those without a write.
        versions: Of the operator.
        stops: Whether the first violation ends the run.
    """

    folder: Path
    seed: int
    faulty_s: float
    peace_s: float
    still_s: float
    versions: Sequence[Version]
    nodes: int = 10
    apps: int = 10
    stops: bool = False


@dataclass(slots=True)
class ChaosOutcome:
    """What has become of it.

    Attributes:
        wrong: Violations, and what else must not be.
        by_feature: How often a kind of fault happened while something of a feature was under way.
        happened: What features led to.
        in_storms: Answers that storms gave.
        relists: How often a watch of the checker's had to begin again with a list.
        sizes: Memory and open files of each operator at the start and at the end.
    """

    wrong: list[str] = field(default_factory=list)
    relists: int = 0
    faults: Counter[ChaosKind] = field(default_factory=Counter)
    by_feature: Counter[tuple[ChaosKind, str]] = field(default_factory=Counter)
    happened: Counter[Happening] = field(default_factory=Counter)
    in_storms: int = 0
    requests: int = 0
    writes: int = 0
    commits: int = 0
    attributed: int = 0
    late: int = 0
    unclaimed: list[str] = field(default_factory=list)
    facts: Facts = field(default_factory=Facts)
    sizes: list[str] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)


class ChaosRun:
    """One run on one cluster."""

    def __init__(self, plan: ChaosPlan, plane: Plane) -> None:
        self._plan = plan
        self._plane = plane
        self._began = time.monotonic()
        self._faults = ChaosFaults(plan.seed)
        self._features = Features(plane.features, self._faults.random, self.now)
        self._faults.under_way, self._faults.about = self._features.under_way, self._features.about
        self._authority = Authority()
        self._checker = Checker(stale_s=STALE_S)
        self._outcome = ChaosOutcome(faults=self._faults.counts, facts=self._checker.facts)
        self._replicas: list[Replica] = []
        self._told = 0

    def now(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self._began

    async def run(self) -> ChaosOutcome:
        """From the first object to the verdict."""
        folder, outcome = self._plan.folder, self._outcome
        with (
            gzip.open(folder / COMMITS, "wt", compresslevel=1) as commits,
            gzip.open(folder / REQUESTS, "wt", compresslevel=1) as requests,
        ):
            passages = Passages(requests, self.now)
            judge = Judge(self._checker, SCHEDULER, passages.identities, passages.writes)

            def seen(sighting: Sighting) -> None:
                outcome.commits += 1
                self._features.see(sighting)
                judge.see(sighting)

            async with AsyncExitStack() as stack:
                speaker = await stack.enter_async_context(speaking(self._plane.kubeconfig))
                self._features.speaker = speaker
                world = World(speaker, self._faults.random, plays_kubelets=self._plane.plays_kubelets)
                stack.push_async_callback(world.clear)
                await world.make(self._plan.nodes, self._plan.apps, self._features)
                lookout = Lookout(speaker, self.now, commits, seen)
                await lookout.begin()
                around = Surroundings(
                    folder,
                    await upstream(self._plane.kubeconfig),
                    self._authority,
                    self._faults,
                    passages,
                    await asyncio.to_thread(preloaded, folder),
                    self._plan.versions,
                )
                self._replicas = [
                    Replica(name, around, version=version) for version, name in enumerate(("red", "blue"))
                ]
                tasks = [asyncio.create_task(lookout.watch(each), name=each) for each in COLLECTIONS]
                tasks += [asyncio.create_task(each.live(), name=each.name) for each in self._replicas]
                if self._plane.plays_kubelets:
                    tasks.append(asyncio.create_task(world.play_kubelets(), name="kubelets"))
                stack.push_async_callback(ended, *tasks)
                await self._story(world, judge, tasks)
                outcome.relists = lookout.relists
            outcome.requests, outcome.writes = passages.seen, len(passages.writes)
        outcome.by_feature, outcome.in_storms = self._faults.by_feature, self._faults.in_storms
        outcome.happened = judge.happenings.counts
        outcome.attributed, outcome.late = judge.attributed, judge.late
        outcome.unclaimed = judge.unclaimed
        outcome.wrong = self._checker.violations + [
            each for replica in self._replicas for each in replica.wrong
        ]
        outcome.ends = [each for replica in self._replicas for each in replica.ends]
        return outcome

    async def _story(self, world: World, judge: Judge, tasks: list[asyncio.Task[None]]) -> None:
        await self._ready()
        self._weigh("at the start")
        deeds = ChaosDeeds(world, self._features, self._plane, self._replicas, self._authority, self._faults)
        self._faults.is_over = False
        doing = asyncio.create_task(deeds.run(), name="deeds")
        try:
            await self._pass(self._plan.faulty_s, judge, [*tasks, doing])
        finally:
            doing.cancel()
            await asyncio.gather(doing, return_exceptions=True)
            self._faults.is_over = True
            await deeds.end()
            self._faults.storm = None
        peace = self.now()
        print(f"{peace:.0f} s: the faults are over", flush=True)
        await self._pass(min(SHOCK_S, self._plan.peace_s), judge, tasks)
        await self._features.late()
        lives = [each.count for each in self._replicas]
        await self._pass(self._plan.peace_s - SHOCK_S, judge, tasks)
        end = self.now()
        await self._pass(SETTLING_S, judge, tasks, settled=0.0)
        if self._plan.stops and self._checker.violations:
            return
        self._checker.judge_end(SCHEDULER, self._plan.still_s, end, peace + SHOCK_S)
        for replica, count in zip(self._replicas, lives, strict=True):
            if replica.count != count:
                replica.wrong.append(f"{replica.name} was started again in peace: {replica.ends[-1]}")
        await self._all_well()
        self._weigh("at the end")
        self._say()

    async def _pass(
        self,
        seconds: float,
        judge: Judge,
        tasks: Sequence[asyncio.Task[None]],
        settled: float = SETTLING_S,
    ) -> None:
        """Let time pass, and judge what has settled."""
        until = self.now() + seconds
        while self.now() < until and not (self._plan.stops and self._checker.violations):
            await asyncio.sleep(min(1.0, max(0.0, until - self.now())))
            judge.advance(self.now() - settled)
            self._say()
            for task in tasks:
                if task.done():
                    task.result()
                    raise RuntimeError(f"{task.get_name()} has ended")

    def _say(self) -> None:
        for each in self._checker.violations[self._told :]:
            print(f"VIOLATION {each}", flush=True)
        self._told = len(self._checker.violations)

    async def _ready(self) -> None:
        deadline = self.now() + READY_S
        while self.now() < deadline:
            await asyncio.sleep(0.5)
            if all([await self._answers(each) for each in self._replicas]):
                return
        raise RuntimeError(f"the operators are not ready: {self._plan.folder}")

    async def _answers(self, replica: Replica) -> bool:
        life = replica.life
        return life is not None and (await asyncio.to_thread(life.http.ask, "/readyz"))[0] == 200

    async def _all_well(self) -> None:
        """Both are ready, and one leads."""
        leaders = 0
        for replica in self._replicas:
            if not await self._answers(replica):
                replica.wrong.append(f"{replica.name} is not ready at the end")
            elif replica.life is not None:
                leaders += await asyncio.to_thread(lambda life=replica.life: life.http.leads)  # type: ignore[misc] # keeps the loop's variable
        if leaders != 1:
            self._replicas[0].wrong.append(f"{leaders} operators lead at the end")

    def _weigh(self, when: str) -> None:
        for replica in self._replicas:
            life = replica.life
            if life is not None:
                size = f"{life.memory_mb():.0f} MB, {life.files()} open files"
                self._outcome.sizes.append(f"{life.name} {when}: {size}")


async def ended(*tasks: asyncio.Task[None]) -> None:
    """Cancel tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
