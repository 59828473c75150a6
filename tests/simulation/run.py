"""Runs one seed: two replicas and a cluster, faults for a while, then peace, then the verdict."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from random import Random
from typing import Any
from unittest import mock

from plimsoll.app.operator import Operator
from plimsoll.app.process import TaskEnded
from plimsoll.app.settings import Settings
from promises.checker import Checker
from promises.commits import UNKNOWN, Author, Commit
from promises.final_state import REPORTS
from promises.findings import Facts
from roadstead.store.api import Api
from roadstead.store.store import Change
from roadstead.values.resources import Obj, Resource
from simulation.cluster import RECORDS, SCHEDULER, SimulatedCluster, ended
from simulation.deeds.deeds import Deeds
from simulation.deeds.scene import Scene
from simulation.extenders import ExtenderServer, Manner
from simulation.faults import FaultPlan
from simulation.inspection import Fresh, Inspection
from simulation.loop import PROCESS, StandstillError, VirtualLoop
from simulation.network import Network
from simulation.replica import Life, Replica
from simulation.short_pages import ShortPages
from simulation.solver import timeless
from simulation.trace import Trace, logs_told
from simulation.transitions import counted, of_record
from simulation.wire.loop import WiredLoop, wired_loop
from simulation.wire.network import WireNetwork
from simulation.world.features import Feature, drawn_features, later_features, source_of
from simulation.world.happenings import Happening, Happenings
from simulation.world.world import World

REPLICAS = ("red", "blue")

#: Virtual seconds with faults.
FAULTY_S = 60.0

#: Seconds without a write of the operator's after which peace may end early, when nothing is left to do. What
#: is still to come then is the retry of unschedulable pods after five minutes.
RESTS_S = 90.0

#: Seconds more for one that is not still at its end: a pod that was tried in peace is tried again five
#: minutes later, within half a minute, and its message may be another one then.
RETRY_S = 400.0

#: Each run of so many has its whole peace.
WHOLE_PEACE = 8

#: Seconds between two looks whether peace may end early.
LOOK_S = 10.0


def unchanged(_operator: Operator) -> None:
    """Break nothing; a name, so that a plan can be sent to another process."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is simulated.

    Attributes:
        faulty_s: Virtual seconds with faults.
        peace_s: Those without, after which all must be well. The queue tries an unschedulable pod again after
            five minutes, as kube-scheduler's, and then writes what its message has become.
        still_s: At their end, those without a write.
        kinds: The kinds of faults that happen; None draws them.
        features: What the world has beyond the ordinary; None draws it.
        tells: Whether the story is kept.
        mutate: Breaks each operator.
        stops: Whether the first violation ends the run.
        is_whole: Whether peace lasts for ``peace_s`` though all is well and still before; None lets the seed
            choose.
        looks_inside: Whether processes at rest are looked into at the end.
        is_wired: Whether requests and answers are bytes between HTTP clients and a server.
        left_out: Names of objects that a run does not begin with, though they were drawn.
        faults: The single faults that happen, by their numbers in the order in which they are drawn; None for
            all.
    """

    seed: int
    faulty_s: float = FAULTY_S
    peace_s: float = 420.0
    still_s: float = 60.0
    kinds: Collection[StrEnum] | None = None
    features: Collection[Feature] | None = None
    tells: bool = False
    mutate: Callable[[Operator], object] = unchanged
    stops: bool = False
    is_whole: bool | None = None
    looks_inside: bool = True
    is_wired: bool = False
    left_out: frozenset[str] = frozenset()
    faults: frozenset[int] | None = None


@dataclass(slots=True)
class Outcome:
    """What has become of it.

    Attributes:
        digest: The hash of all that could be seen from outside.
        cpu_s: Processor time.
        transitions: Of records, moves and elections, by the names of :mod:`simulation.transitions`.
        objects: Names of what the run began with, in the order of their creation.
        drawn: How many single faults were drawn.
    """

    seed: int
    digest: str
    violations: list[str]
    faults: Counter[StrEnum]
    facts: Facts
    story: list[str]
    virtual_s: float
    steps: int
    cpu_s: float
    lives: list[str] = field(default_factory=list)
    features: frozenset[Feature] = frozenset()
    happened: Counter[Happening] = field(default_factory=Counter)
    transitions: Counter[str] = field(default_factory=Counter)
    objects: tuple[str, ...] = ()
    drawn: int = 0


class Simulation:
    """One run."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._random = Random(plan.seed)
        # Before the loop: a new loop numbers tasks and futures from the first on, and sets of them are in the
        # order of their numbers, so the first run of a process would differ from the others.
        self._fresh = fresh_tasks(is_wired=plan.is_wired) if plan.looks_inside else {}
        self.loop = self._loop()
        self.trace = Trace(self.loop.time, tells=plan.tells)
        self.faults = FaultPlan(self._source(), self.loop.time, plan.faulty_s, plan.kinds, plan.faults)
        self.replicas: list[Replica] = []
        # Of its own: runs without features are as they would be.
        self._world_source = Random(f"world {plan.seed}")
        self.features = drawn_features(self._world_source, plan.features)
        if plan.features is None:
            self.features |= later_features(plan.seed)
        self.checker = Checker()
        self.transitions: Counter[str] = Counter()
        self._latest = 0.0  #: the time of the operator's last write that is no lease and no report
        self._problem: Exception | None = None  #: why an operator could not be broken as planned
        self.tasks: Fresh = {}  #: of the processes at the end
        self._objects: dict[str, None] = {}
        self._edited: set[str] = set()  #: uids of records whose phase somebody else has written
        self._digest = ""
        self.happened: Counter[Happening] = Counter()
        self._lives: list[str] = []

    def _source(self) -> Random:
        """Random numbers of their own, so that a part that draws one more does not move the others."""
        return Random(self._random.getrandbits(64))

    def _loop(self) -> VirtualLoop:
        plan, order = self.plan, self._source()
        if not plan.is_wired:
            return VirtualLoop(order)
        loop = wired_loop(order, Random(f"wire {plan.seed}"), plan.faulty_s, plan.kinds)
        loop.most_steps *= 10  # each part of an answer is a step, and answers drip
        return loop

    def _network(self, cluster: SimulatedCluster) -> Network:
        pages = None
        if Feature.PAGES in self.features:
            pages = ShortPages(source_of(Feature.PAGES, self.plan.seed), lambda: self.faults.is_over)
        common = cluster.handler, self._source(), self.faults, self.trace, pages
        if isinstance(self.loop, WiredLoop):
            return WireNetwork(self.loop, *common)
        return Network(self.loop, *common)

    def run(self) -> Outcome:
        """Run to the end."""
        began = time.process_time()
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            with (
                logs_told(self.trace, self._speaker),
                counted(self.transitions),
                timeless(),
                # What an operator's first lists bring is garbage after the run, unlike what was there before.
                mock.patch.object(gc, "freeze"),
            ):
                violations = self._run()
        finally:
            forget_tasks()
            if was_enabled:
                gc.enable()
        return Outcome(
            seed=self.plan.seed,
            digest=self._digest,
            violations=violations,
            faults=self._counted(),
            facts=self.checker.facts,
            features=self.features,
            happened=self.happened,
            story=self.trace.story,
            virtual_s=self.loop.time(),
            steps=self.loop.steps,
            cpu_s=time.process_time() - began,
            lives=self._lives,
            transitions=self.transitions,
            objects=tuple(self._objects),
            drawn=self.faults.drawn,
        )

    def _counted(self) -> Counter[StrEnum]:
        """How often each kind of fault has happened."""
        found: Counter[StrEnum] = Counter()
        found.update(self.faults.counts)
        if isinstance(self.loop, WiredLoop):
            found.update(self.loop.weather.faults.counts)
        return found

    def _run(self) -> list[str]:
        try:
            try:
                self.loop.run_until_complete(self._story())
            except StandstillError as exc:
                self.checker.violations.append(f"{self.loop.time():.3f} {exc}")
            finally:
                self.checker.violations.extend(self.loop.unseen)
                self._tidy()
            if isinstance(self.loop, WiredLoop):
                self.checker.violations.extend([f"on the wire: {each!r}" for each in self.loop.problems])
        finally:
            self.loop.close()
        return self.checker.violations

    async def _story(self) -> None:
        cluster = SimulatedCluster(self.loop, self._source())
        network = self._network(cluster)

        def author() -> Author:
            exchange = network.carried_out
            if exchange is None:
                return UNKNOWN
            request = exchange.request
            return Author(
                exchange.sender,
                self._identities()[exchange.sender],
                request.method,
                request.path,
                request.body,
            )

        happenings = Happenings()
        self.happened = happenings.counts

        def committed(collection: str, change: Change) -> None:
            before, writer = None if change.previous is None else change.previous.obj, author()
            commit = Commit(collection, change.type, change.entry.obj, before, writer, self.loop.time())
            self.checker.judge(commit)
            happenings.see(commit)
            self.trace.note("api", f"{change.type} {collection} {change.revision}")
            if writer.name and collection not in REPORTS:
                self._latest = self.loop.time()
            if collection == RECORDS:
                self._count_record(change, is_ours=writer.name != "")

        network.before.append(lambda: self.checker.judge_request(author(), self.loop.time()))
        cluster.api.store.follow(committed)
        inspection = Inspection(cluster.api, self.loop)
        extenders = ExtenderServer(network, Random(f"extenders {self.plan.seed}"))
        world = World(cluster, extenders, self._world_source, self.features, self.plan.seed)
        with self._created(cluster.api):
            cluster.populate()
            world.begin()
        settings = Settings(seed=1)
        working = self.loop.create_task(cluster.run(), name="controllers and kubelets")
        self.replicas += [
            Replica(name, network, self._source(), settings, extenders, self._mutate) for name in REPLICAS
        ]
        await network.open()
        people = self.loop.create_task(world.run(), name="people")
        for replica in self.replicas:
            replica.begin()
        deeds = Deeds(Scene(cluster, network, self.replicas, self._source(), self.faults, self.checker.view))
        doing = self.loop.create_task(deeds.run(), name="deeds")
        if not await self._violated_within(self.plan.faulty_s):
            await ended(people)
            world.end()
            await deeds.end()
            if not await self._violated_in_peace():
                self.checker.judge_end(SCHEDULER, self.plan.still_s, self.loop.time(), self.plan.faulty_s)
                await self._look_inside(inspection)
        for replica in self.replicas:
            replica.retire()
        lives = [life for replica in self.replicas for life in replica.lives]
        self._lives = [f"{life.name}: {life.ended or 'lives'}" for life in lives]
        for life in lives:
            if life.ended.startswith(TaskEnded.__name__):
                self.checker.violations.append(f"{life.name} has ended by itself: {life.ended}")
        self._count_services(network, extenders)
        network.close()
        await ended(working, doing, people)
        self._digest = self.trace.digest

    def _count_services(self, network: Network, extenders: ExtenderServer) -> None:
        """What no commit shows."""
        asked = extenders.counts
        self.happened += Counter(
            {
                Happening.TOKEN_EXPIRED: network.pages.expired if network.pages is not None else 0,
                Happening.EXTENDER_ASKED: asked[Manner.GOOD],
                Happening.EXTENDER_FAILED: asked.total() - asked[Manner.GOOD],
                Happening.EXTENDER_BOUND: extenders.bound,
            }
        )

    @contextlib.contextmanager
    def _created(self, api: Api) -> Iterator[None]:
        """Note what is created, and leave out what the plan leaves out."""
        create = api.create

        def created(of: str | Resource, obj: Obj, *more: Any, **how: Any) -> Obj:
            name = obj["metadata"].get("name")
            if name in self.plan.left_out:
                return obj
            self._objects |= {name: None} if name else {}
            return create(of, obj, *more, **how)

        changed: Any = api
        changed.create = created
        try:
            yield
        finally:
            del changed.create

    def _mutate(self, operator: Operator) -> None:
        """Break an operator as planned; one that cannot be broken so must not look like a found bug."""
        try:
            self.plan.mutate(operator)
        except Exception as exc:
            self._problem = exc
            raise

    def _count_record(self, change: Change, *, is_ours: bool) -> None:
        """Count the transition of a record, as long as only the operator has written to it."""
        before = {} if change.previous is None else change.previous.obj
        phases = [(each.get("status") or {}).get("phase", "") for each in (before, change.entry.obj)]
        if phases[0] == phases[1]:
            return
        uid = change.entry.obj["metadata"]["uid"]
        if is_ours and uid not in self._edited:
            self.transitions[f"record: {of_record(*phases)}"] += 1
        else:
            self._edited.add(uid)

    async def _violated_within(self, seconds: float) -> bool:
        """Let the time pass; whether it was cut short."""
        until = self.loop.time() + seconds
        while (left_s := until - self.loop.time()) > 0.0:
            await asyncio.sleep(min(1.0, left_s))
            if self._problem is not None:
                raise self._problem
            if self.plan.stops and self.checker.violations:
                return True
        return False

    async def _violated_in_peace(self) -> bool:
        """Let peace pass, or as much of it as there is something to do in; whether it was cut short."""
        if await self._violated_in(self.plan.peace_s):
            return True
        if self.loop.time() - self._latest < self.plan.still_s:
            return await self._violated_in(RETRY_S)
        return False

    async def _violated_in(self, seconds: float) -> bool:
        plan, began = self.plan, self.loop.time()
        is_whole = plan.seed % WHOLE_PEACE == 0 if plan.is_whole is None else plan.is_whole
        while (left_s := began + seconds - self.loop.time()) > 0.0:
            if await self._violated_within(min(LOOK_S, left_s)):
                return True
            now = self.loop.time()
            if is_whole or now - max(began, self._latest) < RESTS_S:
                continue
            if not self.checker.unfinished(SCHEDULER, plan.still_s, now, plan.faulty_s):
                break
        return False

    async def _look_inside(self, inspection: Inspection) -> None:
        """Judge what processes hold, if they have had nothing to do for a while."""
        lives = [replica.life for replica in self.replicas]
        self.tasks = inspection.tasks(lives)
        if self.plan.looks_inside and self.loop.time() - self._latest >= self.plan.still_s:
            found = await inspection.lasting(lives, self._fresh)
            self.checker.violations.extend(f"{self.loop.time():.3f} {each}" for each in found)

    def _identities(self) -> dict[str, str]:
        return {life.name: life.identity for replica in self.replicas for life in replica.lives}

    @staticmethod
    def _speaker() -> str:
        life = PROCESS.get()
        return life.name if isinstance(life, Life) else "world"

    def _tidy(self) -> None:
        """End what all processes have begun, so that the garbage collector finds nothing."""
        self.loop.most_steps = math.inf  # of the run, which is over
        for replica in self.replicas:
            for life in replica.lives:
                life.is_dead, life.ended = True, life.ended or "the run is over"
                self.loop.release(life)
        for _ in range(20):
            tasks = [task for task in asyncio.all_tasks(self.loop) if not task.done()]
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            with contextlib.suppress(StandstillError):
                self.loop.run_until_complete(asyncio.wait(tasks, timeout=60.0))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())


def forget_tasks() -> None:
    """Let asyncio forget tasks that have ended, which wait for a garbage collection that does not come.

    Each run numbers its tasks from the first on, and the numbers are their hashes: those of a hundred runs
    would have to be compared with each new one.
    """
    inside: Any = asyncio.tasks
    for task in list(inside._all_tasks):
        if task.done():
            inside._unregister_task(task)


@cache
def fresh_tasks(*, is_wired: bool) -> Fresh:
    """The tasks of a leader and of a standby that have just begun, and to whom nothing has happened."""
    simulation = Simulation(
        Plan(
            1,
            faulty_s=0.0,
            peace_s=30.0,
            kinds=frozenset(),
            features=(),
            is_whole=True,
            looks_inside=False,
            is_wired=is_wired,
        )
    )
    simulation.run()
    return simulation.tasks


def simulated(plan: Plan) -> Outcome:
    """Run one seed."""
    return Simulation(plan).run()
