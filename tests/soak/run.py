"""Runs a soak: starts a cluster and two operators, disturbs them for hours, measures, and lets them rest."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from plimsoll.kube.session.session import Session, connected
from soak.diary import FAULT, Diary
from soak.disturbances import Flaps, churn, cut, unless_it_fails
from soak.lease_watcher import LeaseWatcher
from soak.processes import Life
from soak.replicas import Replica, Replicas, times_of_fail_overs
from soak.samples import EVERY_S, Samples
from soak.scenery import APPS, DEPLOYMENTS, REPLICAS, furnish
from soak.severable import SeverableConnections
from soak.verdict import LOAD, REST_AFTER, REST_BEFORE, SERVER

#: Seconds in which all pods must run, at the start and after the load.
SETTLE_S = 180.0
#: Seconds after their last write until Events are deleted; an API server waits an hour.
EVENT_TTL_S = 600


@dataclass(frozen=True, slots=True)
class Plan:
    """What is soaked.

    Attributes:
        hours: From the first rest to the last one.
        nodes: Of the cluster.
        deletions: Pods deleted a second; each makes six pod events.
        program: The module that is run as the operator.
    """

    hours: float
    folder: Path
    nodes: int = 200
    deletions: float = 9.0
    program: tuple[str, ...] = ("plimsoll",)

    @property
    def rest_s(self) -> float:
        """Of each rest."""
        return min(90.0, max(30.0, self.hours * 3600 / 12))


async def soaked(plan: Plan) -> None:
    """Run it, or until SIGTERM; the curves are in the folder afterwards, and all processes have ended."""
    diary = Diary(plan.folder)
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        async with AsyncExitStack() as stack:
            await _run(plan, diary, stack)
    finally:
        diary.close()


async def _run(plan: Plan, diary: Diary, stack: AsyncExitStack) -> None:
    file = plan.folder / "kubeconfig"
    file.unlink(missing_ok=True)
    options = ("--kubeconfig", str(file), "--nodes", str(plan.nodes), "--heartbeats")
    command = (sys.executable, "-m", SERVER, *options, "--event-ttl-seconds", str(EVENT_TTL_S))
    server = Life(SERVER, 1, command, plan.folder / f"{SERVER}.log")
    stack.push_async_callback(asyncio.to_thread, server.end)
    while not file.exists():
        assert not server.ended, server.last_words()
        await asyncio.sleep(0.2)
    session = await stack.enter_async_context(connected(file, f"{SERVER}-http"))
    await furnish(session)
    config = yaml.safe_load(file.read_text(encoding="utf-8"))
    port = int(config["clusters"][0]["cluster"]["server"].rpartition(":")[2])
    connections = await stack.enter_async_context(SeverableConnections(port))
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{connections.port}"
    severable = plan.folder / "kubeconfig-severable"
    severable.write_text(yaml.safe_dump(config), encoding="utf-8")
    client = await stack.enter_async_context(
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True))
    )
    first, second = (
        Replica(f"replica-{letter}", free_port(), severable, plan.folder, plan.program) for letter in "ab"
    )
    for each in (first, second):
        # In a thread: the connections of both go through this event loop.
        stack.push_async_callback(asyncio.to_thread, each.end)
    replicas = Replicas((first, second), client, diary)
    lease = LeaseWatcher(session, diary)
    samples = Samples(session, replicas, server, lease, diary)
    watchers = [*(replicas.probe(each) for each in (first, second)), lease.watch()]
    async with running(watchers, diary):
        await replicas.until_ready()
        await settled(session, samples, diary)
        samples.phase = REST_BEFORE
        async with running([samples.take()], diary):
            await asyncio.sleep(plan.rest_s)
            samples.phase = LOAD
            await _load(plan, session, replicas, connections, diary)
            samples.phase = "settling"
            await settled(session, samples, diary)
            samples.phase = REST_AFTER
            await asyncio.sleep(plan.rest_s + 2 * EVERY_S)
        longest = ", ".join(f"{each.name} {each.slowest_probe_s:.2f} s" for each in (first, second))
        diary.note("summary", f"lease at most {lease.longest_s:.1f} s old; longest probes: {longest}")
        for each in (first, second):
            each.life.expected = True


async def _load(
    plan: Plan, session: Session, replicas: Replicas, connections: SeverableConnections, diary: Diary
) -> None:
    """Disturb until shortly before the end."""
    began = diary.at_s
    end = plan.hours * 3600 - plan.rest_s - 60
    fail_overs = asyncio.create_task(replicas.fail_over_at(times_of_fail_overs(began, end)))
    flaps = Flaps(session, diary)
    works = [
        unless_it_fails("pods", partial(churn, session, plan.deletions), diary),
        unless_it_fails("nodes", flaps.flap, diary),
        cut(connections, diary),
    ]
    async with running(works, diary):
        await asyncio.sleep(max(0.0, end - diary.at_s))
    await fail_overs
    await flaps.restore()
    diary.note("load", f"ended after {diary.at_s - began:.0f} s")


@asynccontextmanager
async def running(works: list[Coroutine[Any, Any, None]], diary: Diary) -> AsyncIterator[None]:
    """Tasks that must not end while the block runs, and are cancelled with it."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
        for task in tasks:
            if task.done() and not task.cancelled():
                diary.note(FAULT, f"a task of the soak has ended: {task.exception()!r}")
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def settled(session: Session, samples: Samples, diary: Diary) -> None:
    """Wait until all Deployments have their pods and no move is open; a fault if that takes too long."""
    began = time.monotonic()
    while True:
        listed = (await session.object("GET", DEPLOYMENTS))["items"]
        ready = sum(int((each.get("status") or {}).get("readyReplicas", 0)) for each in listed)
        await samples.take_once()
        missing = APPS * REPLICAS - ready
        open_records = samples.cluster.get("open_records", 0)
        if not (missing or samples.cluster.get("waiting") or open_records):
            diary.note("settled", f"{ready} pods are ready, after {time.monotonic() - began:.0f} s")
            return
        if time.monotonic() - began > SETTLE_S:
            diary.note(FAULT, f"{missing} pods are lost or not ready; {open_records} moves are open")
            return
        await asyncio.sleep(2)


def free_port() -> int:
    """A port that no process listens on now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
