"""Reads the typical questions of docs/questions.md and counts clicks between pages."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path

from website.pages import all_pages, as_page, resolved

QUESTIONS_PAGE = "docs/questions.md"
CLICKS = 3
_ROW = re.compile(r"^\| \d+ \| (.+?) \| .*?\[[^\]]*\]\(([^()\s]+)\) \|$", re.MULTILINE)


def questions(root: Path) -> list[tuple[str, str, str]]:
    """Returns each question, the page of its answer from the repository's root, and its anchor or ""."""
    known = set(all_pages(root))
    found = []
    for question, address in _ROW.findall((root / QUESTIONS_PAGE).read_text(encoding="utf-8")):
        page = as_page(resolved(QUESTIONS_PAGE, address), known)
        if page is None:
            raise ValueError(f"{QUESTIONS_PAGE} links to {address}, which is no page of the site")
        found.append((question, page, address.partition("#")[2]))
    return found


def distances(start: str, links: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """Returns how many links each page is away from a start page; pages out of reach are missing."""
    clicks = {start: 0}
    queue = deque([start])
    while queue:
        page = queue.popleft()
        for target in links.get(page, ()):
            if target not in clicks:
                clicks[target] = clicks[page] + 1
                queue.append(target)
    return clicks
