"""Pages whose console blocks are executed: ``$ plimsoll …`` and, below it, all that it prints.

A yaml block whose first line is ``# FILE`` is that file. PLIMSOLL_WRITE_GOLDEN=1 writes the outputs.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from cli.commands import say

PAGES = Path(__file__).parents[2] / "docs" / "cli"
_FILE = re.compile(r"```yaml\n# (\S+)\n(.*?)```", re.DOTALL)
_BLOCK = re.compile(r"```console\n\$ plimsoll ([^\n]*)\n(.*?)```", re.DOTALL)


def check_page(name: str, dump: str, folder: Path) -> int:
    """Execute a page against a dump of a cluster; the number of commands in it."""
    page = PAGES / name
    text = page.read_text(encoding="utf-8")
    for file, content in _FILE.findall(text):
        (folder / file).write_text(content, encoding="utf-8")
    printed = {}
    for command, expected in _BLOCK.findall(text):
        words = [str(folder / word) if (folder / word).is_file() else word for word in shlex.split(command)]
        said = say(*words, "--from", dump)
        printed[command] = (said.out + said.err, expected)
    if os.environ.get("PLIMSOLL_WRITE_GOLDEN"):
        page.write_text(
            _BLOCK.sub(lambda found: f"```console\n$ plimsoll {found[1]}\n{printed[found[1]][0]}```", text),
            encoding="utf-8",
        )
        return len(printed)
    for command, (out, expected) in printed.items():
        assert out == expected, command
    return len(printed)
