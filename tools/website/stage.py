"""Writes the source that Sphinx reads: ``python -m website.stage build/site-source``.

Pages are copied with their links adapted and their tables of contents appended, so that the Markdown of the
repository needs no directive of Sphinx and reads well by itself.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path

from website.pages import (
    LINK,
    START,
    all_pages,
    as_page,
    children,
    linked,
    parts,
    prose_lines,
    resolved,
    staged_name,
)

ROOT = Path(__file__).parents[2]
#: For contributors, who read generated pages in the repository.
WRITTEN = re.compile(r"Written\s+by\s+`make docs`\s+from\s[^:]+:\s+change\s+(?:that|those)\.\s?")
PICTURES = (".svg", ".png", ".webp")


class MissingTargetError(Exception):
    """A page links to a file that does not exist."""


def staged_text(root: Path, page: str) -> str:
    """Returns a page as Sphinx gets it."""
    known = set(all_pages(root))
    lines = []
    for line, prose in prose_lines((root / page).read_text(encoding="utf-8")):
        lines.append(
            LINK.sub(lambda found: _adapted(root, page, known, found[1], found[2], found[3]), line)
            if prose
            else line
        )
    return WRITTEN.sub("", "\n".join(lines)) + _contents(root, page)


def stage(root: Path, folder: Path) -> list[str]:
    """Writes the source of the site into a folder and returns the names of what it wrote.

    Files that are as before keep their time, so that Sphinx reads only what changed; files of pages that are
    gone are deleted.
    """
    texts = {staged_name(page): staged_text(root, page).encode() for page in all_pages(root)}
    for picture in sorted((root / "docs").rglob("*")):
        if picture.suffix in PICTURES:
            texts[picture.relative_to(root / "docs").as_posix()] = picture.read_bytes()
    for present in sorted(folder.rglob("*")):
        if present.is_file() and present.relative_to(folder).as_posix() not in texts:
            present.unlink()
    for name, content in texts.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.is_file() or file.read_bytes() != content:
            file.write_bytes(content)
    return sorted(texts)


def _adapted(root: Path, page: str, known: set[str], picture: str, text: str, address: str) -> str:
    """A link as it is valid in the site; what is only in the repository becomes its path in words."""
    path = resolved(page, address)
    if path is None or picture:
        return f"{picture}[{text}]({address})"
    target = as_page(path, known)
    if target is None:
        if not (root / path).exists():
            raise MissingTargetError(f"{page} links to {path}, which does not exist")
        named = path in text.replace("`", "")
        return f"`{path}`" if named else f"{text} (`{path}` in the repository)"
    _, hash_mark, anchor = address.partition("#")
    start = posixpath.dirname(staged_name(page)) or "."
    return f"[{text}]({posixpath.relpath(staged_name(target), start)}{hash_mark}{anchor})"


def _contents(root: Path, page: str) -> str:
    """The tables of contents of a page, as directives; a list that the page has already is hidden."""
    if page == START:
        return "".join(_toctree(page, part.pages, part.heading, hidden=True) for part in parts(root))
    below = children(root, page)
    return _toctree(page, below, "", hidden=set(below) <= set(linked(root, page))) if below else ""


def _toctree(page: str, below: tuple[str, ...] | list[str], caption: str, *, hidden: bool) -> str:
    start = posixpath.dirname(staged_name(page)) or "."
    options = [
        ":maxdepth: 1",
        *([f":caption: {caption}"] if caption else []),
        *([":hidden:"] if hidden else []),
    ]
    names = [posixpath.relpath(staged_name(each), start).removesuffix(".md") for each in below]
    return "\n" + "\n".join(["```{toctree}", *options, "", *names, "```"]) + "\n"


if __name__ == "__main__":
    destination = Path(sys.argv[1])
    stage(ROOT, destination)
