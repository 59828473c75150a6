"""The two replicas of a soak: started as users start them, probed each second, and failed over."""

from __future__ import annotations

import asyncio
import itertools
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import aiohttp

from soak.diary import FAIL_OVER, FAULT, Diary
from soak.processes import Life

#: Seconds until a process must be ready, also one that was restarted.
READY_S = 90.0
#: Seconds in which a probe must be answered (``timeoutSeconds`` of deploy/base/deployment.yaml).
PROBE_S = 5.0
#: Seconds for which a leader is paused: longer than its lease.
PAUSE_S = 20.0
#: Ways to end a leader, in turn, and the exit status that each must have.
WAYS = {"killed": -signal.SIGKILL, "terminated": 0, "paused": 1}


class Replica:
    """One of them, through all its lives.

    Attributes:
        life: The present process.
        leads: Whether it said so when it was last asked.
        ready: Whether this life has been ready.
    """

    def __init__(
        self, name: str, port: int, kubeconfig: Path, folder: Path, program: tuple[str, ...]
    ) -> None:
        options = ("--kubeconfig", str(kubeconfig), "--bind-address", "127.0.0.1", "--log-format", "text")
        ports = ("--metrics-port", str(port), "--health-port", "0")
        self._command = (sys.executable, "-m", *program, "run", *options, *ports)
        self._log = folder / f"{name}.log"
        self._log.unlink(missing_ok=True)
        self.name, self.port = name, port
        self.life = Life(name, 1, self._command, self._log, port)
        self.leads = False
        self.ready = False
        self.slowest_probe_s = 0.0

    def restart(self) -> None:
        """Begin the next life."""
        number = self.life.number + 1
        self.leads = self.ready = False
        self.life = Life(self.name, number, self._command, self._log, self.port)

    def end(self) -> None:
        """End the present life."""
        self.life.end()

    async def ask(self, client: aiohttp.ClientSession, path: str) -> tuple[int, str]:
        """Status and body; 0 without an answer in time."""
        try:
            url = f"http://127.0.0.1:{self.port}{path}"
            async with client.get(url, timeout=aiohttp.ClientTimeout(total=PROBE_S)) as answer:
                return answer.status, await answer.text()
        except (aiohttp.ClientError, TimeoutError, OSError):
            return 0, ""


class Replicas:
    """Both, with those who watch them and end them."""

    def __init__(self, both: tuple[Replica, Replica], client: aiohttp.ClientSession, diary: Diary) -> None:
        self.both = both
        self.client = client
        self._diary = diary

    @property
    def leader(self) -> Replica | None:
        """The one that leads."""
        return next((each for each in self.both if each.leads and not each.life.expected), None)

    async def probe(self, replica: Replica) -> None:
        """Ask for readiness each second, for ever; restart a process that has ended."""
        failing = False
        while True:
            life, asked = replica.life, time.monotonic()
            status, text = await replica.ask(self.client, "/readyz")
            took_s = time.monotonic() - asked
            if life.ended and not life.expected:
                why = f"{life.name} ended by itself with {life.process.returncode}: {life.last_words()}"
                self._diary.note(FAULT, why)
                await asyncio.sleep(2)
                replica.restart()
            elif life is replica.life and not (life.expected or life.paused):
                failing = self._judge(replica, status, text, took_s, failing=failing)
            await asyncio.sleep(max(0.0, 1.0 - took_s))

    def _judge(self, replica: Replica, status: int, text: str, took_s: float, *, failing: bool) -> bool:
        life = replica.life
        if status == 200:
            if not replica.ready:
                self._diary.note("ready", f"{life.name}, life {life.number}, after {life.age_s:.1f} s")
            replica.ready, replica.leads = True, "leading as" in text
            replica.slowest_probe_s = max(replica.slowest_probe_s, took_s)
            return False
        is_late = not replica.ready and life.age_s > READY_S
        if not failing and (replica.ready or is_late):
            why = " ".join(text.split())[:200] or f"no answer within {took_s:.1f} s"
            self._diary.note(FAULT, f"a probe of {life.name} failed: {status} {why}")
        return replica.ready or is_late

    async def until_ready(self) -> None:
        """Wait until both are, and one leads."""
        async with asyncio.timeout(READY_S * 2):
            while not (all(each.ready for each in self.both) and self.leader):  # noqa: ASYNC110 - probes tell
                await asyncio.sleep(0.2)

    async def fail_over(self, way: str) -> None:
        """End the leader in one of the ways; the other must lead within a minute, and this one come back."""
        leader = self.leader
        if leader is None:
            self._diary.note(FAIL_OVER, "left out: no replica leads now")
            return
        life = leader.life
        self._diary.note(FAIL_OVER, f"{leader.name}, life {life.number}, {way} at {life.age_s:.0f} s")
        life.expected, leader.leads = True, False
        if way == "killed":
            life.process.kill()
        elif way == "terminated":
            life.process.terminate()
        else:
            life.paused = True
            life.process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(PAUSE_S)
            life.process.send_signal(signal.SIGCONT)
        with suppress(TimeoutError):
            async with asyncio.timeout(45):
                while not life.ended:  # noqa: ASYNC110 - a process's doing
                    await asyncio.sleep(0.1)
        if not life.ended:
            self._diary.note(FAULT, f"{leader.name} was {way} and did not end in 45 s")
            life.process.kill()
            life.process.wait()
        elif life.process.returncode != WAYS[way]:
            found = f"{life.process.returncode}, not {WAYS[way]}: {life.last_words()}"
            self._diary.note(FAULT, f"{leader.name} was {way} and ended with {found}")
        await asyncio.sleep(2)
        leader.restart()
        try:
            async with asyncio.timeout(60):
                while not self.leader:  # noqa: ASYNC110 - probes tell
                    await asyncio.sleep(0.2)
        except TimeoutError:
            self._diary.note(FAULT, "no replica leads a minute after the fail-over")

    async def fail_over_at(self, times: list[float]) -> None:
        """One after the other at these times of the diary, each in another way."""
        for at, way in zip(times, itertools.cycle(WAYS), strict=False):
            await asyncio.sleep(max(0.0, at - self._diary.at_s))
            await self.fail_over(way)


def times_of_fail_overs(begin_s: float, end_s: float) -> list[float]:
    """Every ten minutes in the first and in the last quarter; in between both processes live.

    A short soak has them closer together, at least 75 seconds apart.
    """
    span = end_s - begin_s
    every = min(600.0, max(75.0, span / 12))
    count = int(span / every)
    at = [number * every for number in range(1, count + 1)]
    return [begin_s + each for each in at if each <= span / 4 or span * 3 / 4 <= each <= span - every / 2]
