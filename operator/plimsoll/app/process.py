"""Runs the operator until SIGTERM, or until a task that it depends on ends.

The reason is reported in one line; then Kubernetes restarts the container.
"""

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from prometheus_client import disable_created_metrics, generate_latest

import plimsoll.telemetry  # noqa: F401 - first: it decides what structlog imports
from plimsoll.answers.operator_memory import NodeMemory, PodMemory
from plimsoll.app.endpoints import PROBES, Endpoints, serving
from plimsoll.app.machine.descriptors import raise_limit
from plimsoll.app.machine.garbage import collect_until, trim_until
from plimsoll.app.machine.loop_thread import LoopThread
from plimsoll.app.machine.machine import Machine
from plimsoll.app.memory.caller_gate import CallerGate
from plimsoll.app.memory.endpoint import ExplainEndpoint
from plimsoll.app.operator import Operator
from plimsoll.app.settings import Settings
from plimsoll.engine.kernel import library as kernel
from plimsoll.framework.errors import PlimsollError
from plimsoll.http_services.extenders import HTTPExtenders
from plimsoll.kube.session.session import connected
from plimsoll.leadership.leader import LeadershipLost
from plimsoll.model import heavy_memory
from plimsoll.telemetry import structlog
from plimsoll.telemetry.logs import configure
from plimsoll.telemetry.outages import KopfLines
from plimsoll.version import __version__

if TYPE_CHECKING:
    from plimsoll.app.memory.live_page import LivePage
    from plimsoll.app.memory.live_view import LiveView
    from plimsoll.app.memory.live_views import NodeRow

#: Allocations before a collection of the youngest generation, such collections before one of the middle
#: generation, and those before one of the oldest. Python's defaults are 700, 10 and 10.
THRESHOLDS = (20_000, 20, 20)

#: Seconds for kopf to end.
KOPF_END_S = 10.0


CarryPolicies = Callable[[asyncio.Event], Awaitable[asyncio.Task[None]]]


class TaskEnded(PlimsollError):
    """A task that must run as long as the process has ended."""


class OperatorProcess:
    """One run of an operator."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator

    async def run(self, thread: LoopThread) -> None:
        """Run until SIGTERM or SIGINT; raises the exceptions of :func:`run`."""
        log = structlog.get_logger("plimsoll")
        operator, stop = self._operator, asyncio.Event()
        heed_signals(stop)
        operator.access.is_pending = True
        settings, endpoints = operator.settings, self._endpoints()
        async with AsyncExitStack() as stack:
            pages = serving(settings.bind_address, [settings.metrics_port], endpoints)
            served = await stack.enter_async_context(thread.entered(pages))
            if settings.health_port:
                probes_thread = await stack.enter_async_context(LoopThread("probes"))
                probes = serving(settings.bind_address, [settings.health_port], endpoints.probes, PROBES)
                await stack.enter_async_context(probes_thread.entered(probes))
            measuring = asyncio.create_task(thread.run(operator.supervision.measure()), name="loop lag")
            log.info(
                "started",
                version=__version__,
                server=operator.session.address,
                port=served[0],
                kernel=kernel.described(),
            )
            try:
                await self.live(stop, self._begin_kopf)
            finally:
                measuring.cancel()
                await asyncio.gather(measuring, return_exceptions=True)
        log.info("stopped")

    async def live(self, stop: asyncio.Event, carry_policies: CarryPolicies) -> None:
        """Do the operator's work until ``stop`` is set or one of its tasks ends; raises the cause.

        Args:
            stop: Set to end the work; also set at its end.
            carry_policies: Begins to pass policies to the operator; returns the task that does this, which
                ends when
                ``stop`` is set.
        """
        operator, supervision = self._operator, self._operator.supervision
        front: asyncio.Task[None] | None = None
        try:
            for name, work in operator.work.items():
                supervision.begin(name, work)
            front = await carry_policies(stop)
            await supervision.until_one_ends(stop)
            ended, failure = ([], "") if stop.is_set() else (supervision.ended, supervision.failure)
        finally:
            supervision.end()
            stop.set()
            await self._end_tasks()
            await operator.leadership.release()
            await operator.extenders.retain(())
            if front is not None:
                await _settled(front, KOPF_END_S)
        if failure:
            raise TaskEnded(f"kopf cannot go on: {failure}")
        raise_first(ended)

    async def _begin_kopf(self, stop: asyncio.Event) -> asyncio.Task[None]:
        """Start kopf, which is imported in a thread: meanwhile the first watches are on their way."""
        front = await asyncio.to_thread(import_module, "plimsoll.app.kopf_session")
        task: asyncio.Task[None] = await front.begin(self._operator, stop, self._end_tasks)
        heed_signals(stop)  # in place of kopf's handlers, which fail at a second signal
        return task

    def _endpoints(self) -> Endpoints:
        here = asyncio.get_running_loop()
        # Affects the whole process. These series double every counter and histogram, and no rule or dashboard
        # uses
        # them.
        disable_created_metrics()  # type: ignore[no-untyped-call]

        async def shown() -> bytes:
            return generate_latest(self._operator.metrics)

        async def metrics() -> bytes:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(shown(), here))

        memory = self._operator.memory

        async def pod_memory(namespace: str, name: str) -> PodMemory:
            return memory.pod(namespace, name)

        async def pod(namespace: str, name: str) -> PodMemory:
            work = asyncio.run_coroutine_threadsafe(pod_memory(namespace, name), here)
            return await asyncio.wrap_future(work)

        async def node_memory(name: str) -> NodeMemory:
            return memory.node(name)

        async def node(name: str) -> NodeMemory:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(node_memory(name), here))

        gate = CallerGate(self._operator.callers, self._operator.clock)
        return Endpoints(
            unready=self._operator.unready,
            broken=self._operator.broken,
            standing=lambda: self._operator.leadership.standing,
            metrics=metrics,
            explain=ExplainEndpoint(gate, pod, node),
            live=self._live_page(gate, here) if self._operator.settings.ui else None,
        )

    def _live_page(self, gate: CallerGate, here: asyncio.AbstractEventLoop) -> "LivePage":
        from plimsoll.app.memory.live_page import LivePage  # noqa: PLC0415 - where it is served

        views = self._operator.live_views

        async def view(seen: "Mapping[str, NodeRow] | None") -> "tuple[LiveView, dict[str, NodeRow]]":
            return views.since(seen)

        async def look(seen: "Mapping[str, NodeRow] | None") -> "tuple[LiveView, dict[str, NodeRow]]":
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(view(seen), here))

        return LivePage(gate, look)

    async def _end_tasks(self) -> None:
        """End our tasks; kopf calls it again, since it would wait five seconds for tasks not its own."""
        self._operator.supervision.end()
        await self._operator.leadership.drain()
        await self._operator.supervision.cancel()


def heed_signals(stop: asyncio.Event) -> None:
    """Set ``stop`` on SIGTERM and SIGINT."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)


async def _settled(task: asyncio.Task[None], patience_s: float) -> None:
    """Wait until a task has ended in any way."""
    await asyncio.wait([task], timeout=patience_s)
    if task.done() and not task.cancelled():
        task.exception()


def raise_first(ended: list[tuple[str, asyncio.Task[object]]]) -> None:
    """Raise the error that ended the process; nothing if a signal ended it."""
    for name, task in ended:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, LeadershipLost):
            raise error
        why = "cancelled" if task.cancelled() else repr(error) if error else "without an error"
        raise TaskEnded(f"{name} has ended: {why}") from error


async def run(settings: Settings, log: logging.Handler) -> None:
    """Connect and run one operator.

    Raises:
        APIError: There is no usable configuration.
        AddressTaken: A port cannot be listened on.
        LeadershipLost: This process led, and could not renew its lease in time.
        TaskEnded: A task of ours, or kopf, has ended.
    """
    async with (
        connected(settings.kubeconfig, own_client=settings.http_client == "plimsoll") as session,
        LoopThread("election") as thread,
        thread.entered(connected(settings.kubeconfig)) as lease_session,
    ):
        operator = Operator(settings, session, lease_session, thread, Machine(), HTTPExtenders())
        log.addFilter(KopfLines(operator.outages, operator.supervision.fail))
        await OperatorProcess(operator).run(thread)


def loop_factory(wanted: Literal["auto", "asyncio"]) -> Callable[[], asyncio.AbstractEventLoop]:
    """The factory of the event loop: ``auto`` is uvloop's where it is installed."""
    if wanted == "auto":
        try:
            import uvloop  # noqa: PLC0415 - not available on every platform
        except ImportError:
            pass
        else:
            return uvloop.new_event_loop
    return asyncio.new_event_loop


def run_to_end(work: Coroutine[Any, Any, None], wanted: Literal["auto", "asyncio"]) -> None:
    """Run the process's work in a new event loop."""
    gc.enable()  # the command line disables it while it imports
    gc.set_threshold(*THRESHOLDS)
    stopped = threading.Event()
    for name, tidy in (("garbage", collect_until), ("freed pages", trim_until)):
        threading.Thread(target=tidy, args=(stopped.wait,), name=name, daemon=True).start()
    try:
        with asyncio.Runner(loop_factory=loop_factory(wanted)) as runner:
            runner.run(work)
    finally:
        stopped.set()


def main(settings: Settings) -> int:
    """Run in a new event loop; returns the exit status."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    log = configure(settings.log_format, settings.log_level, settings.cluster_name)
    raise_limit()
    heavy_memory.use()
    try:
        run_to_end(run(settings, log), settings.event_loop)
    except PlimsollError as exc:
        cause = exc.__cause__ if isinstance(exc, TaskEnded) else None
        kopf = sys.modules.get("kopf")
        bug = None if kopf is not None and isinstance(cause, kopf.LoginError) else cause
        structlog.get_logger("plimsoll").error(str(exc), exc_info=bug)
        return 1
    return 0
