"""docs/cli.md: all commands, flags and exit codes, as they are."""

from __future__ import annotations

import os
import re
from pathlib import Path

from plimsoll.commands.errors import ExitCode
from plimsoll.commands.options import Flag
from plimsoll.commands.program import VERBS, load
from plimsoll.commands.verbs import VerbGroup

PAGE = Path(__file__).parents[2] / "docs/cli.md"
HEAD = "| Command | What it does |\n| --- | --- |\n"


def table() -> str:
    """A row for each command; the name leads to its page, if it has one."""
    rows = []
    for entry in map(load, VERBS):
        page = PAGE.parent / "cli" / f"{entry.name}.md"
        name = f"[`{entry.name}`](cli/{entry.name}.md)" if page.is_file() else f"`{entry.name}`"
        rows.append(f"| {name} | {entry.help if isinstance(entry, VerbGroup) else entry.summary} |\n")
    return HEAD + "".join(rows)


def test_the_page_lists_all_commands() -> None:
    """In the order of the help; PLIMSOLL_WRITE_GOLDEN=1 writes the table."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(re.escape(HEAD) + r"(?:\|.*\n)*", text)
    assert found is not None
    if os.environ.get("PLIMSOLL_WRITE_GOLDEN"):
        PAGE.write_text(text.replace(found[0], table()), encoding="utf-8")
    assert found[0] == table()


def test_the_page_has_all_flags_and_exit_codes() -> None:
    text = PAGE.read_text(encoding="utf-8")

    for flag in Flag:
        _, option = flag.value
        assert f"`{flag.attribute.replace('_', '-')}`" in text.replace("`--", "`"), option
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)] == list(ExitCode)
