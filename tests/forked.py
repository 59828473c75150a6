"""Runs ``plimsoll`` and ``roadstead`` in processes that are forked from one that has imported them.

A new interpreter takes more than a second of processor time until it has imported the operator, and the tests
start some two hundred. So a run of the tests starts this file once as a program: the nursery. It imports
the commands once and forks a child for each one that is to run. The child is a process like any other: it
has its own arguments, environment, signals and exit status, and ends as an interpreter does.

The processes that run tests (tests/workers.py) share the nursery; each has a connection of its own, by which
the nursery knows what it has started and how much processor time that took.

What starts processes itself, such as a shell or the demo, finds commands that have themselves forked
(tests/forked_command.py) in :attr:`Nursery.commands`.

The image and the wheel are tested with interpreters of their own.
"""

from __future__ import annotations

import ast
import asyncio
import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

#: Where the nursery's children live, and what it imports before it has any: also what commands import when
#: they use it, as each child would import it for itself.
ROOT = Path(__file__).parents[1]
#: The number of a process that runs tests, in its environment.
WORKER = "PLIMSOLL_TEST_WORKER"
#: The commands that programs of tests may start.
COMMANDS = ("python", "plimsoll", "kubectl-plimsoll", "kubectl_complete-plimsoll", "roadstead")
PRELOADED = (
    "plimsoll.app.process",
    "plimsoll.app.kopf_session",
    "plimsoll.cli.callers.proposal_answers",
    "plimsoll.cli.callers.leader",
    "plimsoll.cli.commands.explain",
    "plimsoll.cli.commands.plan",
    "plimsoll.app.command",
    "plimsoll.cli.connection",
    "plimsoll.cli.progress",
    "plimsoll.cli.views.explain_pod",
    "plimsoll.cli.views.plan",
    "dra_cel",
    "plimsoll.inspection.plans.plans",
    "plimsoll.snapshots.cluster_reader",
    "plimsoll.kube.session.http_client",
    "plimsoll_optimal.planner",
    "plimsoll_optimal.spread_repair",
    "plimsoll.planning.upstream.planner",
    "plimsoll.scheduling.extenders.client",
    "roadstead.cluster",
)


class Nursery:
    """Starts processes; one for a run. A fork of the process that opened it may use it, too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = ""
        self._opener = self._user = self._connected = 0  # processes
        self._line: Any = None
        self.door: socket.socket | None = None  #: Readable when somebody waits for the nursery to start.

    def open(self) -> None:
        """Open its door, unless it is open: the one that opened it starts it when somebody waits there."""
        if self._opener:
            return
        self._folder, self._opener = tempfile.mkdtemp(prefix="nursery-"), os.getpid()
        commands = Path(self._folder) / "bin"
        commands.mkdir()
        program = commands / ".program"
        text = Path(__file__).with_name("forked_command.py").read_text(encoding="utf-8")
        program.write_text(f"#!{sys.executable} -IS\n{text}", encoding="utf-8")
        program.chmod(0o755)
        for name in COMMANDS:
            (commands / name).symlink_to(program.name)
        self.door = socket.socket(socket.AF_UNIX)
        self.door.bind(self._address)
        self.door.listen(64)
        atexit.register(self.close)

    def start(self) -> None:
        """Start it, unless it runs; in the process that opened it."""
        if self.door is None:
            return
        with self.door as door:
            command = [sys.executable, "-P", __file__, str(door.fileno()), f"{self._folder}/bin"]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, cwd=ROOT, pass_fds=[door.fileno()]
            )
        self.door = None

    def ask(self, **request: Any) -> Any:
        """Its answer to one request."""
        with self._lock:
            self._use()
            if self._connected != os.getpid():
                with socket.socket(socket.AF_UNIX) as one:
                    one.connect(self._address)
                    self._line, self._connected = Connection(one.detach()), os.getpid()
            self._line.send_bytes(ascii(request).encode())
            return json.loads(self._line.recv_bytes())

    def spent_s(self) -> float:
        """Seconds of processor time of all that this process has started by it."""
        if self._user != os.getpid():
            return 0.0
        return float(self.ask(spent=os.environ.get(WORKER)))

    def leave(self) -> None:
        """Give up what a fork has inherited: the opener alone starts and ends the nursery."""
        if self.door is not None:
            self.door.close()
            self.door = None
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def close(self) -> None:
        """End it, in the process that opened it."""
        if self._opener != os.getpid():
            return
        if self._line is not None:
            self._line.close()
        if self.door is not None:
            self.door.close()
        if self._process is not None:
            self._process.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def commands(self) -> Path:
        """The folder of the commands, which go first on the PATH of a program that starts some."""
        self._use()
        return Path(self._folder) / "bin"

    def _use(self) -> None:
        self.open()
        self._user = os.getpid()
        if self._opener == self._user:
            self.start()

    @property
    def _address(self) -> str:
        return f"{self._folder}/socket"


NURSERY = Nursery()


class Forked:
    """``python -m PROGRAM ARGS``, with the methods of subprocess.Popen that tests need.

    Args:
        program: A module with a command: ``plimsoll``, ``roadstead`` or a server of the tests.
        args: The arguments of the command.
        output: Where its output goes; the errors, too, unless they have a file of their own.
        errors: Where its errors go.
        environment: What differs from the environment of the tests.
    """

    def __init__(
        self,
        program: str,
        *args: str,
        output: Path,
        errors: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.returncode: int | None = None
        output.touch()
        self.pid: int = NURSERY.ask(
            args=[program, *args],
            output=str(output),
            errors=str(errors or output),
            environment={**os.environ, **(environment or {})},
        )

    def poll(self) -> int | None:
        """The exit status, None while it runs; the negative number of the signal that ended it."""
        if self.returncode is None:
            self.returncode = NURSERY.ask(ended=self.pid)
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Wait for the exit status.

        Raises:
            subprocess.TimeoutExpired: It runs on.
        """
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended
                _until_ended(self.pid, timeout)
        status = self.poll()
        if status is None:
            raise subprocess.TimeoutExpired("a forked process", timeout)
        return status

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


def _until_ended(process: int, timeout: float) -> None:
    """Wait until a process ends, or the time is over."""
    handle = os.pidfd_open(process)
    try:
        select.select([handle], [], [], timeout)
    finally:
        os.close(handle)


class Children:
    """What one connection has started.

    Attributes:
        worker: The process of the tests that counts the processor time as its own (tests/costs.py).
    """

    def __init__(self) -> None:
        self.worker: str | None = None
        self._running: set[int] = set()
        self._statuses: dict[int, int] = {}
        self._spent_s = 0.0

    def add(self, process: int) -> None:
        """Note one that has started."""
        self._running.add(process)

    def look(self, options: int = os.WNOHANG) -> None:
        """Reap those that have ended."""
        for each in [*self._running]:
            pid, status, used = os.wait4(each, options)
            if pid:
                self._running.discard(each)
                self._statuses[each] = os.waitstatus_to_exitcode(status)
                self._spent_s += used.ru_utime + used.ru_stime

    def status_of(self, process: int) -> int | None:
        """Its exit status, None while it runs."""
        self.look()
        return self._statuses.get(process)

    def end(self) -> None:
        """End those that run: the process that started them has ended, or forgot them."""
        for each in self._running:
            os.kill(each, signal.SIGKILL)
        self.look(0)

    def spent_s(self) -> float:
        """Seconds of processor time of all of them, and of the children that these have waited for."""
        self.look()
        return self._spent_s + sum(map(spent_by, self._running))


def spent_by(process: int) -> float:
    """Seconds of processor time of a process and of the children that it has waited for; 0 if it ended."""
    try:
        line = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    return sum(map(int, line.rpartition(")")[2].split()[11:15])) / os.sysconf("SC_CLK_TCK")


def serve(door: socket.socket) -> Any:
    """Answer requests until standard input ends; return what to run in a child, None in the nursery."""
    children: dict[Connection, Children] = {}
    before: Counter[str | None] = Counter()  # seconds of processor time of connections that have ended
    while True:
        ready, _, _ = select.select([sys.stdin, door, *children], [], [])
        if sys.stdin in ready:
            return None
        if door in ready:
            children[Connection(door.accept()[0].detach())] = Children()
        for line, own in [(line, own) for line, own in children.items() if line in ready]:
            try:
                request = ast.literal_eval(line.recv_bytes().decode())
                streams = received(line) if "folder" in request else []
            except (EOFError, ConnectionError):
                line.close()
                children.pop(line).end()
                before[own.worker] += own.spent_s()  # type: ignore[assignment] # a Counter of seconds
                continue
            own.worker = request.get("environment", {}).get(WORKER, own.worker)
            if "ended" in request:
                answer: Any = own.status_of(request["ended"])
            elif "spent" in request:
                alike = (each for each in children.values() if each.worker == request["spent"])
                answer = before[request["spent"]] + sum(each.spent_s() for each in alike)
            elif answer := os.fork():
                own.add(answer)
            else:
                for each in children:
                    each.close()
                return {**request, "streams": streams or opened(request)}
            for stream in streams:
                os.close(stream)
            line.send_bytes(json.dumps(answer).encode())


def received(line: Connection) -> list[int]:
    """The standard streams that follow a request."""
    with socket.socket(fileno=os.dup(line.fileno())) as one:
        return socket.recv_fds(one, 1, 3)[1]


def opened(request: dict[str, Any]) -> list[int]:
    """The standard streams of a command whose output goes to files."""
    paths = (request["output"], request["errors"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    return [nothing, *(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT) for path in paths)]


def become(
    args: list[str], streams: list[int], environment: dict[str, str], folder: str = "", **_: str
) -> None:
    """Turn this process into the one that runs a command: a module's, or in a folder one of COMMANDS."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for source, target in zip(streams, range(3), strict=True):
        os.dup2(source, target)
        os.close(source)
    os.environ.clear()
    os.environ.update(environment)
    if "coverage" in sys.modules:
        sys.path.append(str(ROOT / "tests"))
        importlib.import_module("coverage_by_file").record()
    if added := environment.get("PYTHONPATH"):
        sys.path[:0] = added.split(os.pathsep)
        sys.modules["plimsoll.policies.extensions"]._installed.cache_clear()  # packages of its own
    for name in ("kubernetes_asyncio.config", "kubernetes_asyncio.config.kube_config"):  # has read it once
        if module := sys.modules.get(name):
            vars(module)["KUBE_CONFIG_DEFAULT_LOCATION"] = os.environ.get("KUBECONFIG", "~/.kube/config")
    if not folder:
        sys.argv = args
        sys.path.append(str(ROOT / "tests"))
        runpy.run_module(args[0], run_name="__main__", alter_sys=True)
        return
    os.chdir(folder)
    sys.stdout.reconfigure(line_buffering=True)
    command, *rest = args
    program = Path(sys.executable).with_name(command)
    sys.executable = str(Path(sys.argv[2]) / "python")
    if command != "python":
        sys.argv = [str(program), *rest]
        runpy.run_path(str(program), run_name="__main__")
    elif rest[0] == "-m":
        sys.argv = rest[1:]
        sys.path.insert(0, folder)
        runpy.run_module(rest[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = rest
        sys.path.insert(0, str(Path(rest[0]).parent))
        runpy.run_path(rest[0], run_name="__main__")


async def warm() -> None:
    """Fill the caches that every operator and every cluster with our kinds would fill for itself."""
    from plimsoll.api.crds import crd  # noqa: PLC0415 - where a distribution without it is installed alone
    from plimsoll.api.v1alpha1 import KINDS  # noqa: PLC0415
    from plimsoll.preflight.definitions import judged_definitions  # noqa: PLC0415
    from roadstead.cluster import DevCluster  # noqa: PLC0415

    wanted = {kind.definition.name: crd(kind) for kind in KINDS}
    served = {"conditions": [{"type": "Established", "status": "True"}]}
    found = judged_definitions({name: {**each, "status": served} for name, each in wanted.items()})
    assert {each.level for each in found} == {"ok"}, "else the schemas were not compared"
    async with DevCluster(port=None) as cluster:
        for each in wanted.values():
            cluster.api.create("customresourcedefinitions.apiextensions.k8s.io", each)


def status_of(end: SystemExit) -> int:
    """The exit status that an interpreter makes of it."""
    if end.code is None or isinstance(end.code, int):
        return (end.code or 0) & 255
    sys.stderr.write(f"{end.code}\n")
    return 1


def leave(status: int) -> None:
    """End as an interpreter does, but free nothing: that would copy all memory that the nursery shares."""
    threading._shutdown()  # type: ignore[attr-defined] # waits for threads; Python has no public way
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


def build_models() -> None:
    """Build what is built at its first use: models of pydantic, structs of msgspec, the entry points.

    Kubeconfigs, which a library reads with yaml.safe_load, libyaml reads ten times as fast.
    """
    models = [sys.modules["pydantic"].BaseModel]
    for model in models:
        models += model.__subclasses__()
        if model.__module__.startswith("plimsoll."):
            model.model_rebuild()
    structs = [sys.modules["msgspec"].Struct]
    for struct in structs:
        structs += struct.__subclasses__()
        if struct.__module__.startswith("plimsoll."):
            with contextlib.suppress(TypeError, NameError):  # is never decoded
                sys.modules["msgspec"].json.Decoder(struct)
    sys.modules["plimsoll.policies.extensions"].installed("plimsoll.plugins")
    vars(sys.modules["yaml"])["SafeLoader"] = sys.modules["yaml"].CSafeLoader


if __name__ == "__main__":
    for name in PRELOADED:
        with contextlib.suppress(ModuleNotFoundError):  # where one distribution is installed alone
            __import__(name)
    if set(PRELOADED) <= sys.modules.keys():
        build_models()
        asyncio.run(warm())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as door:
        wanted = serve(door)
    if wanted is not None:
        status = 1
        try:
            become(**wanted)
            status = 0
        except SystemExit as end:
            status = status_of(end)
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        except BaseException:  # noqa: BLE001 - as an interpreter does
            traceback.print_exc()
        leave(status)
