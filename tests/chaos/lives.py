"""Lives are the processes that an operator's Deployment would start: when one has ended, the next begins."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chaos.certificates import Authority
from chaos.faults import ChaosFaults
from chaos.passage import Passages
from chaos.preload import NAME, Control
from chaos.proxy import Mood, Proxy, Upstream
from e2e.operator_process import Operator, free_port
from roadstead.cluster import kubeconfig

#: The last line of an empty log.
NOTHING = "nothing"

#: Seconds until a container that has ended is started again, and those that SIGTERM takes at most.
RESTART_S, STOP_S = 1.0, 60.0


@dataclass(frozen=True, slots=True)
class Version:
    """A version of the operator.

    Attributes:
        command: Before ``run`` and its options.
        environment: Variables beyond those of this process.
    """

    name: str
    command: Sequence[str] = (sys.executable, "-m", "plimsoll")
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all lives of a run share.

    Attributes:
        authority: Issues what the proxies show.
        library: What operators preload; None where it cannot be compiled.
        versions: Of the operator.
    """

    folder: Path
    upstream: Upstream
    authority: Authority
    faults: ChaosFaults
    passages: Passages
    library: Path | None
    versions: Sequence[Version]


@dataclass(slots=True)
class Life:
    """One process.

    Attributes:
        control: Of its wall clock, and whether it resolves names; None where nothing is preloaded.
        expected: How a fault ends it: "", "killed" or "stopped".
    """

    name: str
    url: str
    proxy: Proxy
    http: Operator
    log: Path
    kubeconfig: Path
    control: Control | None
    process: subprocess.Popen[bytes] = field(init=False)
    expected: str = ""
    is_paused: bool = False

    def renew_token(self) -> str:
        """Accept another token from now on, and no earlier one; its file shows it later."""
        token = secrets.token_hex(16)
        self.proxy.tokens = {token}
        return token

    def show_token(self, authority: bytes, token: str = "") -> None:
        """Write the kubeconfig in one step, with a token that is accepted."""
        token = token or self.renew_token()
        part = self.kubeconfig.with_suffix(".part")
        part.write_text(kubeconfig(self.url, token, certificate=authority))
        part.replace(self.kubeconfig)

    @property
    def pid(self) -> int:
        """Of the process, which leads a group of its own."""
        return self.process.pid

    def memory_mb(self) -> float:
        """What it occupies (Linux); 0 when it has ended."""
        with contextlib.suppress(OSError):
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
            return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
        return 0.0

    def files(self) -> int:
        """How many files and sockets it has open (Linux)."""
        with contextlib.suppress(OSError):
            return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))
        return 0


@dataclass(slots=True)
class Replica:
    """One replica: one life after the other.

    Attributes:
        ends: How each life has ended.
        wrong: What no fault explains.
        version: Of the next life, as an index.
    """

    name: str
    around: Surroundings
    life: Life | None = None
    count: int = 0
    ends: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    is_wanted: bool = True
    version: int = 0

    async def live(self) -> None:
        """Start one process after the other, until cancelled."""
        try:
            while self.is_wanted:
                life = self.life = await self._born()
                while life.process.poll() is None:  # noqa: ASYNC110 - a process has no event
                    await asyncio.sleep(0.1)
                await self._buried(life)
                if self.is_wanted:
                    await asyncio.sleep(RESTART_S)
        finally:
            if self.life is not None:
                end_group(self.life.process)
                await self.life.proxy.stop()

    async def _born(self) -> Life:
        self.count += 1
        around, name = self.around, f"{self.name}.{self.count}"
        version = around.versions[self.version % len(around.versions)]
        proxy = Proxy(name, around.upstream, around.authority.context, around.faults, around.passages)
        url = await proxy.start()
        control = None if around.library is None else Control.at(around.folder / f"{name}.control")
        environment = {**os.environ, **version.environment}
        if control is not None and around.library is not None:
            url = url.replace("127.0.0.1", NAME)
            environment |= control.environment(around.library)
        path = around.folder / f"{name}.kubeconfig"
        log = around.folder / f"{name}.log"
        http = Operator(path, log)
        command = [*version.command, "run", "--kubeconfig", str(path), "--bind-address", "127.0.0.1"]
        command += ["--log-format", "text", "--metrics-port", str(http.metrics_port)]
        command += ["--health-port", str(free_port())]
        life = Life(name, url, proxy, http, log, path, control)
        life.show_token(around.authority.certificate)
        with log.open("wb") as sink:
            life.process = subprocess.Popen(
                command, stdout=sink, stderr=subprocess.STDOUT, start_new_session=True, env=environment
            )
        return life

    async def _buried(self, life: Life) -> None:
        status = life.process.returncode
        await life.proxy.stop()
        last = last_line(life.log)
        self.ends.append(f"{life.name}: {life.expected or 'by itself'}, status {status}: {last}")
        is_young = status == -signal.SIGTERM and last == NOTHING  # Python was starting
        if life.expected == "stopped" and status != 0 and not is_young:
            self.wrong.append(f"{life.name} ended with status {status} after SIGTERM: {last}")
        if not life.expected and status != 1:
            self.wrong.append(f"{life.name} ended by itself with status {status}: {last}")
        if life.expected != "killed":  # a container's processes all die with its first
            await asyncio.sleep(RESTART_S)
            if end_group(life.process):
                self.wrong.append(f"{life.name} left processes behind")
        end_group(life.process)

    # -- what faults do ----------------------------------------------------------------------------------

    def kill(self) -> bool:
        """SIGKILL."""
        return self._signal(signal.SIGKILL, "killed")

    def stop(self) -> bool:
        """SIGTERM; the pod's kubelet would send SIGKILL after its grace period."""
        if not self._signal(signal.SIGTERM, "stopped"):
            return False
        assert self.life is not None
        asyncio.get_running_loop().call_later(STOP_S, self._has_stopped, self.life)
        return True

    def _has_stopped(self, life: Life) -> None:
        if life.process.poll() is None:
            self.wrong.append(f"{life.name} had not ended {STOP_S:.0f} s after SIGTERM")
            life.process.kill()

    def pause(self, seconds: float) -> bool:
        """SIGSTOP, and SIGCONT later."""
        life = self.life
        if life is None or life.is_paused or not self._signal(signal.SIGSTOP):
            return False
        life.is_paused = True
        asyncio.get_running_loop().call_later(seconds, self.resume, life)
        return True

    def resume(self, life: Life) -> None:
        """SIGCONT."""
        if life.is_paused and life.process.poll() is None:
            life.process.send_signal(signal.SIGCONT)
        life.is_paused = False

    def be(self, mood: Mood) -> bool:
        """Treat its connections so from now on."""
        if self.life is None:
            return False
        self.life.proxy.mood = mood
        if mood is not Mood.SWALLOWS:
            self.life.proxy.cut_all()
        return True

    def change_version(self) -> bool:
        """SIGTERM; the next life is of another version."""
        if len(self.around.versions) < 2 or not self.stop():
            return False
        self.version += 1
        return True

    def expire_token(self) -> Callable[[], None] | None:
        """Let the token expire; the result writes its successor into the file of the same life."""
        life = self.life
        if life is None:
            return None
        token = life.renew_token()

        def written() -> None:
            if life.proxy.tokens == {token}:
                life.show_token(self.around.authority.certificate, token)

        return written

    def control(self, *, ahead_s: int | None = None, no_names: bool | None = None) -> bool:
        """Step its wall clock, or change whether it resolves names; new connections have to."""
        if self.life is None or self.life.control is None:
            return False
        self.life.control.write(ahead_s=ahead_s, no_names=no_names)
        if no_names:
            self.life.proxy.cut_all()
        return True

    def _signal(self, number: signal.Signals, expected: str = "") -> bool:
        life = self.life
        if life is None or life.process.poll() is not None or life.expected or life.is_paused:
            return False
        life.expected = expected
        life.process.send_signal(number)
        return True


def end_group(process: subprocess.Popen[bytes]) -> bool:
    """End a process and what it has started; whether there was any of that left when it had ended."""
    had_ended = process.poll() is not None
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    process.wait()
    return had_ended


def last_line(log: Path) -> str:
    """What a process said last."""
    return (log.read_text(errors="replace").splitlines() or [NOTHING])[-1]
