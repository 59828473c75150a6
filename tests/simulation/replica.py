"""A replica of the operator under simulation: its own code, over a simulated machine and network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from random import Random
from typing import Any, TypeVar

import msgspec
import orjson

from plimsoll.app.machine.clock import SeededRandomness
from plimsoll.app.machine.machine import Machine
from plimsoll.app.operator import Operator
from plimsoll.app.process import OperatorProcess, TaskEnded
from plimsoll.app.settings import Settings
from plimsoll.kube.custom_resources import GROUP
from plimsoll.kube.session.credentials import Credentials, Loaded
from plimsoll.kube.session.errors import APIError
from plimsoll.kube.session.session import Session
from plimsoll.leadership.leader import LeadershipLost
from plimsoll.testing.fakes import InlineComputer
from simulation.extenders import ExtenderServer, SimulatedExtenders
from simulation.loop import PROCESS, VirtualLoop
from simulation.network import Network

T = TypeVar("T")

#: Seconds since the epoch at which a simulation begins.
EPOCH = 1_800_000_000.0

#: Seconds until a container that has ended is started again.
RESTART_S = 1.0

POLICIES = f"{GROUP}/schedulingpolicies"


class ReplicaClock:
    """The clocks of one machine: virtual time, from which the wall clock may differ.

    Attributes:
        ahead_s: How far the wall clock is ahead.
        rate: Seconds that pass here in one virtual second.
    """

    def __init__(self, loop: VirtualLoop, ahead_s: float, rate: float) -> None:
        self._loop = loop
        self.ahead_s = ahead_s
        self.rate = rate
        self._from, self._base = 0.0, 0.0  #: virtual time since which the rate holds, and what it was here
        self._slow: tuple[int, float, Callable[[], object]] | None = None
        self._busy_until = 0.0  #: virtual time at which the step that runs now is over

    def run_at(self, rate: float) -> None:
        """Go faster or slower from now on."""
        self._base, self._from = self._reading(), max(self._loop.time(), self._busy_until)
        self.rate = rate

    def slow_down(self, reads: int, seconds: float, then: Callable[[], object]) -> None:
        """Let so many seconds pass right before the nth read of the clock by the process."""
        self._slow = (reads, seconds, then)

    def catch_up(self) -> None:
        """A process begins: no step of its predecessor's holds up the time."""
        self._busy_until = 0.0

    def now(self) -> float:
        """Seconds since the epoch."""
        return EPOCH + self.monotonic() + self.ahead_s

    def monotonic(self) -> float:
        """Seconds that never go back."""
        if self._slow is not None and PROCESS.get() is not None:
            left, seconds, then = self._slow
            self._slow = None if left <= 1 else (left - 1, seconds, then)
            if left <= 1:
                self._busy_until = self._loop.time() + seconds
                then()
        return self._reading()

    def _reading(self) -> float:
        return self._base + (max(self._loop.time(), self._busy_until) - self._from) * self.rate

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds / self.rate)


class SameLoop:
    """A side loop that is the main loop: :class:`plimsoll.app.machine.machine.SideLoop`."""

    def call(self, function: Callable[[], object]) -> None:
        """Call a function soon."""
        asyncio.get_running_loop().call_soon(function)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine; one that is cancelled has ended when this returns."""
        return await work


class PolicyFeed:
    """Hands policies to the operator, as kopf does: a list, then a watch, for ever."""

    def __init__(self, operator: Operator, session: Session, clock: ReplicaClock) -> None:
        self._policies = operator.policies
        self._session = session
        self._clock = clock

    async def begin(self, stop: asyncio.Event) -> asyncio.Task[None]:
        """The task; it ends when ``stop`` is set."""
        return asyncio.create_task(self._until(stop), name="policies")

    async def _until(self, stop: asyncio.Event) -> None:
        feeding = asyncio.create_task(self._feed(), name="policies are fed")
        await stop.wait()
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)

    async def _feed(self) -> None:
        while True:
            try:
                listed = await self._session.object("GET", POLICIES)
                if "items" not in listed:  # the page of a proxy
                    await self._clock.sleep(1.0)
                    continue
                for document in listed["items"]:
                    await self._policies.set(document)
                params = {
                    "watch": "true",
                    "resourceVersion": listed["metadata"]["resourceVersion"],
                    "timeoutSeconds": "290",
                }
                async with self._session.stream(POLICIES, params, 320.0) as batches:
                    async for lines in batches:
                        for line in lines:
                            await self._take(orjson.loads(line))
            except (APIError, orjson.JSONDecodeError, msgspec.MsgspecError):
                await self._clock.sleep(1.0)

    async def _take(self, event: dict[str, Any]) -> None:
        document = event["object"]
        if event["type"] == "DELETED":
            await self._policies.remove(document["metadata"]["name"])
        elif event["type"] in ("ADDED", "MODIFIED"):
            await self._policies.set(document)


def _later(loop: VirtualLoop, seconds: float, call: Callable[[], object]) -> None:
    loop.call_later(seconds, call)


class Life:
    """One life of a replica: a process from its start to its end.

    Attributes:
        identity: In the election.
        ended: How it has ended, "" while it lives.
    """

    def __init__(self, name: str, number: int) -> None:
        self.name = f"{name}.{number}"
        self.identity = f"{name}_{number}"
        self.is_held = False
        self.is_dead = False
        self.held: list[asyncio.Handle] = []
        self.ended = ""
        self.operator: Operator | None = None
        self.stop: asyncio.Event | None = None
        self.task: asyncio.Task[None] | None = None


class Replica:
    """A replica of the operator's Deployment: when one life has ended, the next begins.

    Args:
        mutate: Breaks an operator that was just built, to see that it is noticed.

    Attributes:
        life: The present one.
        lives: All of them.
    """

    def __init__(
        self,
        name: str,
        network: Network,
        random: Random,
        settings: Settings,
        extenders: ExtenderServer,
        mutate: Callable[[Operator], object] = lambda _: None,
    ) -> None:
        self.name = name
        self.clock = ReplicaClock(
            network.loop, random.uniform(-30.0, 30.0), random.choice((1.0, 1.0, 0.999, 1.002))
        )
        self.lives: list[Life] = []
        self._network = network
        self._random = random
        self._settings = settings
        self._extenders = extenders
        self._mutate = mutate
        self._is_wanted = True

    @property
    def life(self) -> Life:
        """The present one."""
        return self.lives[-1]

    def begin(self) -> None:
        """Start a process."""
        life = Life(self.name, len(self.lives))
        self.lives.append(life)
        self.clock.catch_up()
        context = self._network.context.copy()
        context.run(PROCESS.set, life)
        life.task = self._network.loop.create_task(self._live(life), name=life.name, context=context)
        life.task.add_done_callback(lambda _: self._end(life), context=self._network.context)

    def kill(self) -> None:
        """SIGKILL: no call of this process runs any more."""
        life = self.life
        if not life.is_dead:
            life.is_held = life.is_dead = True
            self._end(life, "killed")

    def stop(self) -> None:
        """SIGTERM."""
        if self.life.stop is not None:
            self.life.stop.set()

    def pause(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT later; also a processor so slow that one step takes that long."""
        life = self.life
        if life.is_held:
            return
        life.is_held = True

        def go_on() -> None:
            if not life.is_dead:
                self._network.loop.release(life)

        self._network.loop.call_later(seconds, go_on, context=self._network.context)

    def slow_step(self, seconds: float, reads: int) -> None:
        """One of the next steps takes long: its clock moves between two of its reads, and nothing else runs.

        What it sends at the end of that step leaves when the step is over.
        """
        network = self._network

        def began() -> None:
            network.late[self.life.name] = network.loop.time() + seconds
            self.pause(seconds)

        self.clock.slow_down(reads, seconds, began)

    def retire(self) -> None:
        """Start no further life."""
        self._is_wanted = False

    def _end(self, life: Life, how: str = "") -> None:
        if life.ended:
            return
        life.ended = how or "ended"
        life.is_dead = True
        if not how and life.task is not None and not life.task.cancelled():
            problem = life.task.exception()
            life.ended = repr(problem) if problem else "stopped"
        self._network.trace.tell(f"{self._network.loop.time():.6f} {life.name:<12} ended: {life.ended}")
        self._network.forget(life.name)
        if self._is_wanted:
            self._network.loop.call_later(RESTART_S, self._again, context=self._network.context)

    def _again(self) -> None:
        if self._is_wanted and self.life.ended:
            self.begin()

    async def _live(self, life: Life) -> None:
        clock, loop = self.clock, self._network.loop
        machine = Machine(
            clock=clock,
            randomness=lambda seed: SeededRandomness(self._random.getrandbits(64) if seed is None else seed),
            hostname=self.name,
            unique=lambda: life.identity.rpartition("_")[2],
            computer=InlineComputer(),
            forks=None,
            call_later=partial(_later, loop),
            terminate=lambda _: None if life.is_dead else self.kill(),
            used_s=lambda: 0.0,
            watch_attempts=lambda _: None,
            load=lambda: "no load",
        )
        async with self._session(life) as session, self._session(life) as lease_session:
            extenders = SimulatedExtenders(self._extenders, life.name)
            sessions = session, lease_session
            operator = life.operator = Operator(self._settings, *sessions, SameLoop(), machine, extenders)
            self._mutate(operator)
            life.stop = asyncio.Event()
            feed = PolicyFeed(operator, operator.session, clock)
            try:
                await OperatorProcess(operator).live(life.stop, feed.begin)
            except (LeadershipLost, TaskEnded) as exc:
                self._network.trace.tell(f"{loop.time():.6f} {life.name:<12} {exc!r} {exc.__cause__!r}")
                raise

    @asynccontextmanager
    async def _session(self, life: Life) -> AsyncIterator[Session]:
        async with self._network.transport(life.name) as transport:
            loaded = Loaded(transport.configuration)

            async def load() -> Loaded:
                return loaded

            yield Session(
                transport,
                Credentials(loaded, load, self.clock.now, self.clock.monotonic),
                self.clock.monotonic,
            )
