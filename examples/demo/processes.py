"""The demo's two processes: the development cluster and the operator, started, logged, ended by pid."""

import asyncio
import contextlib
import signal
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

#: Seconds that a process gets to end after SIGTERM.
GRACE_S = 10.0


class ProcessError(Exception):
    """A process did not start, or ended when it should not."""


class Process:
    """``python -m ARGS`` with its output in a file."""

    def __init__(self, log: Path, *args: str) -> None:
        self.log = log
        self._args = args
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        with self.log.open("wb") as output:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", *self._args),
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for the story alone; it ends its processes in order
            )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), GRACE_S)
        except TimeoutError:
            process.kill()
            await process.wait()

    def check(self) -> None:
        """Make sure that it still runs.

        Raises:
            ProcessError: It has ended; the last lines of its log say why.
        """
        if self._process is not None and self._process.returncode is not None:
            lines = self.log.read_text(errors="replace").splitlines()[-10:]
            raise ProcessError(
                f"{self._args[0]} ended with {self._process.returncode}; the end of {self.log}:\n"
                + "\n".join(lines)
            )

    async def until_exists(self, path: Path, timeout_s: float) -> None:
        """Wait for a file that the process writes when it is ready.

        Raises:
            ProcessError: The process ended, or the time ran out.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not path.exists():  # noqa: ASYNC240 - a local file, looked for at start
                    self.check()
                    await asyncio.sleep(0.05)
                return
        raise ProcessError(f"{self._args[0]} was not ready after {timeout_s:.0f} s; see {self.log}")
