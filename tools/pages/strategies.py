"""A page for each strategy and evictor from its docstring and arguments, as plugins have theirs.

``python -m pages.strategies``; ``make docs`` writes them, and a test fails when they lag.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pages.plugins import SECTIONS, arguments_of, file_name, sections_of
from plimsoll.strategies import EVICTORS, IN_TREE


def page(source: type[Any]) -> str:
    """The page of one strategy or evictor, in Markdown.

    Raises:
        PageError: Its docstring lacks a section, or an argument has no description.
    """
    summary, found = sections_of(source)
    kind = getattr(source, "kind", None)
    role = f"Strategy, runs with the `{kind}` ones" if kind else "Evictor"
    lines = [f"# {source.name}", "", summary, "", f"- {role}"]
    for title in SECTIONS:
        lines += ["", f"## {title}", "", *found[title]]
    lines += ["", "## Arguments", "", *arguments_of(source)]
    return "\n".join(lines).rstrip() + "\n"


def index(sources: Iterable[type[Any]]) -> str:
    """The page that lists the others."""
    rows = [
        f"| [{source.name}]({file_name(source)}) | {getattr(source, 'kind', 'evictor')} |"
        f" {sections_of(source)[0]} |"
        for source in sources
    ]
    return (
        "# Strategies\n\n"
        "The in-tree strategies, sources of candidates for moves, and the evictor that protects pods.\n"
        "Names, arguments and validation are those of descheduler v1alpha2; a page whose *Source* says so"
        " is of our own.\n"
        "Written by `make docs` from docstrings and arguments: change those.\n"
        "A strategy of your own: [writing a strategy](../writing-a-strategy.md).\n\n"
        "| Strategy | Runs with | What it does |\n| --- | --- | --- |\n" + "\n".join(rows) + "\n"
    )


def pages() -> dict[str, str]:
    """All pages by file name."""
    known: tuple[type[Any], ...] = (*IN_TREE, *EVICTORS)
    return {"README.md": index(known)} | {file_name(source): page(source) for source in known}


def main(folder: Path) -> None:
    """Write the pages into a folder, and remove pages of strategies that are no more."""
    folder.mkdir(parents=True, exist_ok=True)
    written = pages()
    for stale in set(folder.glob("*.md")) - {folder / name for name in written}:
        stale.unlink()
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/strategies"))
