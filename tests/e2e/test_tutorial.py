"""docs/tutorial.md, carried out: each command as it is written, in one shell."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from deploy.tools import ROOT, tool

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,  # a cluster and an operator, each an interpreter of its own
    pytest.mark.timeout(600),
]

PAGE = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
FILE = re.compile(r"^```yaml\n# (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)

#: What ends the programs that the page starts, also when a command fails.
PREAMBLE = "set -uo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n"


def script() -> str:
    """The page's commands as one script: each is printed before it runs, and the first that fails ends it."""
    lines = [PREAMBLE]
    for block in COMMANDS.findall(PAGE):
        for command in re.findall(r"^\$ (.+)$", block, re.MULTILINE):
            quoted = command.replace("'", "'\\''")
            background = command.endswith("&")
            lines.append(f"echo '$ {quoted}'\n{command}" + ("\n" if background else " || exit 1\n"))
    return "".join(lines)


def left_in(folder: Path) -> list[str]:
    """The files and folders that are visible."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


async def test_each_command_does_what_the_page_says(tmp_path: Path) -> None:
    """In a folder of its own that has the examples, as a checkout does."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for name, content in FILE.findall(PAGE):
        (tmp_path / name).write_text(content, encoding="utf-8")
    programs = (str(Path(sys.executable).parent), str(Path(tool("kubectl")).parent), os.environ["PATH"])
    process = await asyncio.create_subprocess_exec(
        *("bash", "-c", script()),
        cwd=tmp_path,
        env={**os.environ, "PATH": ":".join(programs), "COLUMNS": "160", "HOME": str(tmp_path)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        said, _ = await asyncio.wait_for(process.communicate(), 300)
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGTERM)
    text = said.decode()

    assert process.returncode == 0, text
    answers = dict(re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE))
    assert (
        "RemovePodsViolatingNodeTaints"
        in answers["plimsoll plan -f tutorial-rebalance.yaml || test $? -eq 2"]
    )
    assert "Settled" in answers["kubectl get evictions.plimsoll.dev"]
    assert "Insufficient cpu" in answers["plimsoll explain pod default/big"]
    assert left_in(tmp_path) == ["examples"]


def test_every_command_is_one_line() -> None:
    """A console block has nothing but commands, so none is left out."""
    lines = [line for block in COMMANDS.findall(PAGE) for line in block.splitlines()]

    assert [line for line in lines if not line.startswith("$ ")] == []
    assert len(lines) > 25
