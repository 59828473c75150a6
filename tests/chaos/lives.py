"""Lives are the processes that an operator's Deployment would start: when one has ended, the next begins."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chaos.faults import ChaosFaults
from chaos.passage import Passages
from chaos.proxy import Mood, Proxy, Upstream
from e2e.operator_process import Operator, free_port
from roadstead.certificates import Identity
from roadstead.cluster import kubeconfig

#: The last line of an empty log.
NOTHING = "nothing"

#: Seconds until a container that has ended is started again, and those that SIGTERM takes at most.
RESTART_S, STOP_S = 1.0, 60.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all lives of a run share.

    Attributes:
        command: Before ``run`` and its options.
        options: After them.
    """

    folder: Path
    upstream: Upstream
    identity: Identity
    faults: ChaosFaults
    passages: Passages
    command: Sequence[str] = (sys.executable, "-m", "plimsoll")
    options: Sequence[str] = ()


@dataclass(slots=True)
class Life:
    """One process.

    Attributes:
        expected: How a fault ends it: "", "killed" or "stopped".
    """

    name: str
    process: subprocess.Popen[bytes]
    proxy: Proxy
    http: Operator
    log: Path
    expected: str = ""
    is_paused: bool = False

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
    """

    name: str
    around: Surroundings
    life: Life | None = None
    count: int = 0
    ends: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    is_wanted: bool = True

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
        proxy = Proxy(name, around.upstream, around.identity.context, around.faults, around.passages)
        url = await proxy.start()
        path = around.folder / f"{name}.kubeconfig"
        path.write_text(kubeconfig(url, "chaos", certificate=around.identity.certificate))
        log = around.folder / f"{name}.log"
        http = Operator(path, log)
        command = [*around.command, "run", "--kubeconfig", str(path), "--bind-address", "127.0.0.1"]
        command += ["--log-format", "text", "--metrics-port", str(http.metrics_port)]
        command += ["--health-port", str(free_port()), *around.options]
        with log.open("wb") as sink:
            process = subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT, start_new_session=True)
        return Life(name, process, proxy, http, log)

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
