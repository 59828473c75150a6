"""Reads the pages of the site and their order from docs/README.md, its shelves, and the folders."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

#: The start page, whose list items are the shelves. Sections of a shelf are parts of the site, and their list
#: items are the pages of a part.
START = "docs/README.md"

#: Pages outside docs/ that the site shows, and the names that they get there.
OTHERS = {
    "SECURITY.md": "project/security.md",
    "SCOPE.md": "project/scope.md",
    "ADOPTERS.md": "project/adopters.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "devcluster/README.md": "project/devcluster.md",
    "devcluster/KNOWN_DIFFERENCES.md": "project/devcluster-differences.md",
    "deploy/chart/README.md": "project/chart.md",
    "testing/README.md": "project/plimsoll-testing.md",
}

#: A link in Markdown: "!" of a picture, text, address.
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
_FENCE = re.compile(r"^\s*(```+|~~~+)")
_PART = re.compile(r"^## (.+)$")
_ITEM = re.compile(r"^- \[([^\]]+)\]\(([^()\s#]+)[^()]*\)")
_ELSEWHERE = re.compile(r"^[a-z]+:")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the site: its heading, and its pages as paths from the repository's root."""

    heading: str
    pages: tuple[str, ...]


def prose_lines(text: str) -> list[tuple[str, bool]]:
    """Returns each line, and whether it is prose: outside of fenced blocks."""
    lines = []
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        inside = bool(fence) or found is not None
        lines.append((line, not inside))
        if found is not None and not fence:
            fence = found[1]
        elif found is not None and found[1].startswith(fence) and line.strip() == found[1]:
            fence = ""
    return lines


def resolved(page: str, address: str) -> str | None:
    """Returns what a page's link points to, from the repository's root; None for anchors and addresses."""
    path = address.partition("#")[0]
    if _ELSEWHERE.match(address) or not path:
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path))


def linked(root: Path, page: str) -> list[str]:
    """Returns the pages of the site that a page links to, in order, each once."""
    known = set(all_pages(root))
    text = (root / page).read_text(encoding="utf-8")
    found = []
    for line, prose in prose_lines(text):
        for picture, _, address in LINK.findall(line) if prose else ():
            target = None if picture else as_page(resolved(page, address), known)
            if target is not None and target != page:
                found.append(target)
    return list(dict.fromkeys(found))


def as_page(path: str | None, known: set[str]) -> str | None:
    """Returns the page that a path shows: itself, the README.md of a folder, or the page next to a folder."""
    if path is None:
        return None
    if path == "README.md":
        return START
    return next((each for each in (path, f"{path}/README.md", f"{path}.md") if each in known), None)


@cache
def all_pages(root: Path) -> Sequence[str]:
    """Returns every page of the site, as paths from the repository's root; looked for once in a process."""
    own = sorted(path.relative_to(root).as_posix() for path in (root / "docs").rglob("*.md"))
    return own + sorted(OTHERS)


def parts(root: Path) -> list[Part]:
    """Returns the parts of the site, shelf by shelf: a shelf without lists is a part of one page."""
    found: list[Part] = []
    for _, shelf, page in _listed(root, START):
        headings: dict[str, list[str]] = {}
        for heading, _, each in _listed(root, page):
            headings.setdefault(f"{shelf}: {heading[:1].lower()}{heading[1:]}", []).append(each)
        for heading, pages in (headings or {shelf: []}).items():
            first = [page] if all(page not in part.pages for part in found) else []
            found.append(Part(heading, (*first, *pages)))
    return found


def _listed(root: Path, page: str) -> list[tuple[str, str, str]]:
    """Returns of each list item of a page the heading above, the words of its link, and where that leads."""
    known = set(all_pages(root))
    found = []
    heading = ""
    for line, prose in prose_lines((root / page).read_text(encoding="utf-8")):
        above, item = _PART.match(line), _ITEM.match(line)
        if above is not None and prose:
            heading = above[1]
        elif item is not None and prose:
            target = as_page(resolved(page, item[2]), known)
            if target is None:
                raise ValueError(f"{page} lists {item[2]}, which is no page of the site")
            found.append((heading, item[1], target))
    return found


def children(root: Path, page: str) -> list[str]:
    """Returns the pages below a page: those of its folder.

    ``X/README.md`` stands before the other pages of X, and ``X.md`` before those of X. Linked pages come
    first, in the order of the links.
    """
    if page in (START, *OTHERS):
        return []
    folder = posixpath.dirname(page) if page.endswith("/README.md") else page.removesuffix(".md")
    below = [each for each in all_pages(root) if posixpath.dirname(each) == folder and each != page]
    ordered = [each for each in linked(root, page) if each in below]
    return ordered + [each for each in below if each not in ordered]


def outline(root: Path) -> list[str]:
    """Returns all pages that the parts reach through their folders, in order."""
    found: list[str] = []
    left = [page for part in reversed(parts(root)) for page in reversed(part.pages)]
    while left:
        page = left.pop()
        found.append(page)
        left.extend(reversed(children(root, page)))
    return found


def staged_name(page: str) -> str:
    """Returns the path of a page in the site's source."""
    if page == START:
        return "index.md"
    return OTHERS.get(page) or os.path.relpath(page, "docs")
