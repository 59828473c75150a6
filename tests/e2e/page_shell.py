"""Pages whose console blocks are executed, in order, in one shell.

A line that begins with ``$ `` is a command. What stands below it, up to the next one, is stated of its
output: each line must come, in this order, and … is whatever varies; spaces count as one. A yaml block whose
first line is ``# FILE`` is that file. A page names commands that cannot be executed here in blocks of
``text``, below a line that says why (:data:`NOT_EXECUTED`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import textwrap
from dataclasses import dataclass
from pathlib import Path

from deploy.tools import tool
from forked import NURSERY

_FILE = re.compile(r"^ *```yaml\n *# (\S+)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^( *)```console\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_TEXT = re.compile(r"^([^\n]*)\n\s*\n *```text\n", re.MULTILINE)

#: The last paragraph before a block of text begins with this.
NOT_EXECUTED = "*Not executed by a test:"

#: Ends the programs that a page starts, also when a command fails.
PREAMBLE = "set -uo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n"

#: Seconds that a page gets.
PATIENCE_S = 300.0


@dataclass(frozen=True, slots=True)
class ShownCommand:
    """A command, and what the page says that it prints."""

    command: str
    stated: tuple[str, ...]

    def missing(self, printed: str) -> str:
        """The first stated line that did not come, "" when all came in their order."""
        lines = iter([" ".join(line.split()) for line in printed.splitlines()])
        for stated in self.stated:
            parts = [re.escape(" ".join(part.split())) for part in stated.split("…")]
            wanted = re.compile(r"\s*\S*.*?\s*".join(parts) if len(parts) > 1 else parts[0])
            if not any(wanted.search(line) for line in lines):
                return stated
        return ""


def shown_commands(page: str) -> list[ShownCommand]:
    """The commands of a page, in order."""
    found: list[ShownCommand] = []
    for indent, block in _BLOCK.findall(page):
        lines = [line.removeprefix(indent) for line in block.splitlines()]
        for line in lines:
            if line.startswith("$ "):
                found.append(ShownCommand(line[2:], ()))
            elif line.strip():
                last = found.pop()
                found.append(ShownCommand(last.command, (*last.stated, line)))
    return found


def named_files(page: str) -> dict[str, str]:
    """The files that readers of a page save, and their contents."""
    return {name: textwrap.dedent(content) for name, content in _FILE.findall(page)}


def unmarked(page: str) -> list[str]:
    """Lines before blocks of text that do not say why these are not executed."""
    return [line for line in _TEXT.findall(page) if not line.strip().startswith(NOT_EXECUTED)]


async def execute(page: str, folder: Path, *, kubeconfig: Path | None = None) -> str:
    """Run the commands of a page in a folder, and compare what they print; all that was printed.

    Args:
        page: Its text.
        folder: Where the shell runs; the named files are written there.
        kubeconfig: For kubectl and plimsoll, where the page does not set its own.
    """
    for name, content in named_files(page).items():
        (folder / name).write_text(content, encoding="utf-8")
    shown = shown_commands(page)
    lines = [PREAMBLE]
    for number, each in enumerate(shown):
        quoted = each.command.replace("'", "'\\''")
        failing = "" if each.command.endswith("&") else " || exit 1"
        lines.append(f"echo '@@{number} $ {quoted}'\n{each.command}{failing}\n")
    programs = (str(NURSERY.commands), str(Path(tool("kubectl")).parent), os.environ["PATH"])
    more = {"KUBECONFIG": str(kubeconfig)} if kubeconfig is not None else {}
    printed_to = folder / ".printed"
    with printed_to.open("wb") as sink:
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", "".join(lines)),
            cwd=folder,
            env={**os.environ, "PATH": ":".join(programs), "COLUMNS": "160", "HOME": str(folder), **more},
            stdout=sink,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), PATIENCE_S)
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGTERM)
    text = printed_to.read_text(encoding="utf-8")
    assert process.returncode == 0, text
    for number, each in enumerate(shown):
        _, _, printed = text.partition(f"@@{number} $ ")
        missing = each.missing(printed.partition("\n")[2].partition(f"@@{number + 1} $ ")[0])
        assert not missing, f"{each.command}\ndid not print\n{missing}\nbut\n{text}"
    return text
