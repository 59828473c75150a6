"""A pytest plugin that runs tests in several processes, forked from the one that has collected them.

Collecting takes seconds of processor time: with ``--workers N`` it is done once. N processes are forked then;
each asks for the next unit of tests when it has none, runs it, and sends the reports to the first process,
which prints them. A unit is a file, so that the fixtures of a file are made once; in the folders of
:data:`ALONE` it is a test, and each folder of :data:`TOGETHER` is one. A worker that dies fails the test that
it ran, and another one takes its place.
"""

from __future__ import annotations

import ctypes
import io
import os
import random
import selectors
import signal
import sys
import traceback
from collections.abc import Iterable, Iterator
from itertools import groupby
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Protocol

import pytest
from _pytest._io import TerminalWriter
from _pytest.junitxml import LogXML
from _pytest.terminal import TerminalReporter

from costs import spent_s
from forked import NURSERY, WORKER

#: Tests of these folders share servers only, which live as long as their worker.
ALONE = {"e2e"}
#: Files of these folders read the same, which one worker keeps: the syntax trees of the product.
TOGETHER = {"structure"}
#: Linux: ends a process when its parent ends (prctl(2)).
PR_SET_PDEATHSIG = 1


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    add = parser.getgroup("workers").addoption
    add("--workers", type=int, default=0, metavar="N", help="run in N forked processes; 0: in this one")
    add("--shuffle", type=int, default=None, metavar="SEED", help="run the files in a random order")


def pytest_configure(config: pytest.Config) -> None:
    """Register the runner where it is wanted."""
    if config.option.workers and not config.option.collectonly and not config.option.usepdb:
        config.pluginmanager.register(Runner(config), "workers-runner")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shuffle the files, if so wanted."""
    if config.option.shuffle is not None:
        units = [*units_of(items)]
        random.Random(config.option.shuffle).shuffle(units)
        items[:] = [item for unit in units for item in unit]


def units_of(items: Iterable[pytest.Item]) -> Iterator[list[pytest.Item]]:
    """The tests that one worker runs one after the other, in the order of their first."""
    files: dict[object, list[pytest.Item]] = {}
    for item in items:
        folder = item.path.parent
        key = item.nodeid if folder.name in ALONE else folder if folder.name in TOGETHER else item.path
        files.setdefault(key, []).append(item)
    yield from files.values()


class SessionOnly:
    """In place of the test that follows: pytest keeps the fixtures of the session, and ends all others."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session

    def listchain(self) -> list[Any]:
        """What the next test needs."""
        return [self._session]


class Worker:
    """A worker as the first process sees it."""

    def __init__(self, number: int, process: int, line: Connection) -> None:
        self.number, self.process, self.line = number, process, line
        self.running: pytest.Item | None = None
        self.unit: list[int] = []  #: the tests that it was given last


class Runner:
    """Hands units to workers and reports what they say."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._workers: dict[int, Worker] = {}
        self._units: list[list[int]] = []
        self._items: list[pytest.Item] = []
        self._started = 0

    @pytest.hookimpl
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Replace pytest's own loop."""
        if session.testsfailed and not self._config.option.continue_on_collection_errors:
            return None  # pytest says so
        self._items = session.items
        places = {item: place for place, item in enumerate(session.items)}
        self._units = [[places[item] for item in unit] for unit in units_of(session.items)]
        self._units.reverse()
        if reporter := self._config.pluginmanager.getplugin("terminalreporter"):
            reporter.showfspath = False  # the files' tests come in turn
        NURSERY.open()
        self._config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined] # before workers inherit it
        with selectors.DefaultSelector() as selector:
            if NURSERY.door is not None:
                selector.register(NURSERY.door, selectors.EVENT_READ)
            try:
                for _ in range(min(self._config.option.workers, len(self._units))):
                    self._start(session, selector)
                while self._workers:
                    for key, _ in selector.select():
                        if key.data is None:
                            selector.unregister(key.fileobj)
                            NURSERY.start()
                        else:
                            self._listen(session, selector, key.data)
            finally:
                for worker in self._workers.values():
                    os.kill(worker.process, signal.SIGKILL)
                    os.waitpid(worker.process, 0)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        return True

    def _start(self, session: pytest.Session, selector: selectors.BaseSelector) -> None:
        ours, theirs = Pipe()
        number, self._started = self._started, self._started + 1
        sys.stdout.flush()
        sys.stderr.flush()
        process = os.fork()
        if not process:
            ours.close()
            for other in self._workers.values():
                other.line.close()
            serve(session, number, theirs)
        theirs.close()
        worker = Worker(number, process, ours)
        self._workers[process] = worker
        selector.register(worker.line, selectors.EVENT_READ, worker)

    def _listen(self, session: pytest.Session, selector: selectors.BaseSelector, worker: Worker) -> None:
        try:
            messages = worker.line.recv()
        except (EOFError, ConnectionError):
            self._bury(session, selector, worker)
            return
        for kind, value in messages:
            self._take(session, worker, kind, value)

    def _take(self, session: pytest.Session, worker: Worker, kind: str, value: Any) -> None:
        hook = self._config.hook
        match kind:
            case "idle":
                is_over = bool(session.shouldfail or session.shouldstop)
                worker.unit = [] if is_over or not self._units else self._units.pop()
                worker.line.send(worker.unit)
            case "begins":
                worker.running = item = self._items[value]
                hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
            case "passed":
                hook.pytest_runtest_logreport(report=value)
            case "report":
                report = hook.pytest_report_from_serializable(config=self._config, data=value)
                hook.pytest_runtest_logreport(report=report)
            case "ends" if worker.running is not None:
                item, worker.running = worker.running, None
                hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
            case "spent":
                hook.pytest_unit_spent(path=value[0], seconds=value[1])
            case "unseen":
                hook.pytest_unseen_spent(seconds=value)
            case "broken":
                raise RuntimeError(f"a worker has failed:\n{value}")

    def _bury(self, session: pytest.Session, selector: selectors.BaseSelector, worker: Worker) -> None:
        """Wait for a worker that has ended; start another one if it died."""
        selector.unregister(worker.line)
        worker.line.close()
        del self._workers[worker.process]
        _, status = os.waitpid(worker.process, 0)
        if not (code := os.waitstatus_to_exitcode(status)):
            return
        if worker.running is not None:
            item = worker.running
            why = f"worker {worker.number} ended with {code} while it ran {item.nodeid}"
            report = pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")
            self._config.hook.pytest_runtest_logreport(report=report)
            if left := worker.unit[worker.unit.index(self._items.index(item)) + 1 :]:
                self._units.append(left)
        if self._units and not session.shouldfail:
            self._start(session, selector)


def serve(session: pytest.Session, number: int, line: Connection) -> None:
    """Be a worker: run units until there are no more, and end this process."""
    status = 1
    outbox = Outbox(line)
    try:
        become_worker(session.config, number, outbox)
        unit: list[int] = []
        while True:
            outbox.add("idle")
            outbox.send()
            if not (following := line.recv()):
                break
            unit = following
            for path, places in groupby(unit, lambda place: session.items[place].nodeid.partition("::")[0]):
                before = spent_s()
                run(session, [*places], outbox)
                outbox.add("spent", (path, spent_s() - before))
        if unit:
            before = spent_s()
            tear_down(session, session.items[unit[-1]])
            outbox.add("unseen", max(0.0, before - spent_s()))
            outbox.send()
        status = 0
    except (KeyboardInterrupt, EOFError, ConnectionError):
        pass  # the first process ends
    except BaseException:  # noqa: BLE001 - the first process says what it was
        outbox.add("broken", traceback.format_exc())
        outbox.send()
    finally:
        line.close()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def become_worker(config: pytest.Config, number: int, listener: Listener) -> None:
    """Give this process what workers must not share, and send its reports instead of printing them."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.environ[WORKER] = str(number)
    random.seed()
    NURSERY.leave()
    manager = config.pluginmanager
    for plugin in [*manager.get_plugins()]:
        if isinstance(plugin, Runner | TerminalReporter | LogXML):
            manager.unregister(plugin)
    manager.register(Silent(), "terminalreporter")
    capture = manager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    factory = config._tmp_path_factory  # type: ignore[attr-defined] # pytest has no public way
    factory._basetemp = factory.getbasetemp() / f"worker-{number}"
    factory._basetemp.mkdir()
    manager.register(Speaker(config, listener))


class Silent:
    """In place of the terminal reporter, where plugins look for a terminal."""

    def __init__(self) -> None:
        self._tw = TerminalWriter(io.StringIO())


class Listener(Protocol):
    """Takes what a worker says."""

    def add(self, kind: str, value: Any = None) -> None:
        """Take a message."""


class Outbox:
    """What a worker will say: a test's reports go with the word that the next test begins, in one piece."""

    def __init__(self, line: Connection) -> None:
        self._line = line
        self._messages: list[tuple[str, Any]] = []

    def add(self, kind: str, value: Any = None) -> None:
        """Keep a message."""
        self._messages.append((kind, value))

    def send(self) -> None:
        """Send what is kept."""
        messages, self._messages = self._messages, []
        self._line.send(messages)


class Speaker:
    """Says the reports of a worker."""

    def __init__(self, config: pytest.Config, listener: Listener) -> None:
        self._config, self._listener = config, listener

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Say one."""
        if report.passed and report.longrepr is None and not report.user_properties:
            self._listener.add("passed", report)  # nothing in it needs another form
            return
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._listener.add("report", data)


def run(session: pytest.Session, unit: list[int], outbox: Outbox) -> None:
    """Run the tests of a unit."""
    items = [session.items[place] for place in unit]
    followers = [*items[1:], SessionOnly(session)]
    for place, item, following in zip(unit, items, followers, strict=True):
        if session.shouldstop:
            break
        outbox.add("begins", place)
        outbox.send()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        outbox.add("ends", place)


def tear_down(session: pytest.Session, last: pytest.Item) -> None:
    """End the fixtures of the session; a failure counts as one of the last test's."""

    def end() -> None:
        session._setupstate.teardown_exact(None)

    call = pytest.CallInfo.from_call(end, "teardown")
    if call.excinfo is not None:
        report = pytest.TestReport.from_item_and_call(last, call)
        session.config.hook.pytest_runtest_logreport(report=report)
