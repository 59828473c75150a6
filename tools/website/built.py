"""Checks the built site: ``python -m website.built build/site``.

Every link inside it leads to a page and an anchor that exist, no page loads anything from elsewhere, flags
have their two hyphens, and each question of docs/questions.md is answered within three clicks of
the start page.
"""

from __future__ import annotations

import posixpath
import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from website.pages import staged_name
from website.questions import CLICKS, QUESTIONS_PAGE, distances, questions

ROOT = Path(__file__).parents[2]
START = "index.html"

#: Attributes that make a browser load something; those of links are followed on a click only.
LOADED = {
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("object", "data"),
    ("link", "href"),
}


#: What typographers make of a flag such as --force.
DASHED = re.compile(r"(?:^|[\s(])[\u2013\u2014][a-z][a-z-]*")


@dataclass(slots=True)
class Page(HTMLParser):
    """A page of HTML: what it links to, what it loads, its anchors, and its words that begin with a dash.

    Attributes:
        flat: Headings without a level, which those who hear the page need.
    """

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    dashed: list[str] = field(default_factory=list)
    flat: int = 0

    def __post_init__(self) -> None:
        HTMLParser.__init__(self)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keeps the addresses and anchors of a tag, and counts headings without a level."""
        self.flat += ("role", "heading") in attrs and all(name != "aria-level" for name, _ in attrs)
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif tag == "a" and name == "href" and value:
                self.links.append(value)
            elif (tag, name) in LOADED and value:
                self.loads.append(value)

    def handle_data(self, data: str) -> None:
        """Keeps words that begin with a dash."""
        self.dashed += [each.strip(" (\n") for each in DASHED.findall(data)]


def read(site: Path) -> dict[str, Page]:
    """Reads every page of a site, by its path."""
    pages = {}
    for file in sorted(site.rglob("*.html")):
        page = Page()
        page.feed(file.read_text(encoding="utf-8"))
        pages[file.relative_to(site).as_posix()] = page
    return pages


def faults(site: Path, pages: dict[str, Page]) -> list[str]:
    """Returns a sentence for each dead link, each thing loaded from elsewhere and each flag with a dash."""
    found = []
    for name, page in pages.items():
        if page.flat:
            found.append(f"{name} has {page.flat} headings without a level")
        found += [f"{name} has {word}, which may have been a flag" for word in page.dashed]
        for address in [*page.links, *page.loads]:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in page.loads and parts.scheme != "data":
                    found.append(f"{name} loads {address}")
                continue
            target = followed(name, address)
            if target not in pages:
                if not (site / target).is_file():
                    found.append(f"{name} links to {address}, which does not exist")
            elif parts.fragment and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{name} links to {address}, and {target} has no such anchor")
    for sheet in sorted(site.rglob("*.css")):
        text = sheet.read_text(encoding="utf-8")
        if any(
            each in text
            for each in ("url(http", 'url("http', "url('http", "url(//", '@import "http', "@import url(")
        ):
            found.append(f"{sheet.relative_to(site)} loads something from elsewhere")
    options = site / "_static/documentation_options.js"
    if options.is_file() and "SHOW_SEARCH_SUMMARY: true" in options.read_text(encoding="utf-8"):
        found.append("the search fetches pages for summaries, which a browser refuses in a folder")
    return found


def far_questions(root: Path, pages: dict[str, Page]) -> list[str]:
    """Returns a sentence for each question whose answer is further from the start page than three clicks.

    The list of questions itself is no way: a reader who does not know it finds the answers as well.
    """
    links = {
        name: {followed(name, each) for each in page.links if not urlsplit(each).scheme} & pages.keys()
        for name, page in pages.items()
    }
    links[staged_name(QUESTIONS_PAGE).removesuffix(".md") + ".html"] = set()
    clicks = distances(START, links)
    found = []
    for question, page, anchor in questions(root):
        target = staged_name(page).removesuffix(".md") + ".html"
        if clicks.get(target, CLICKS + 1) > CLICKS:
            found.append(f"{question}: {target} is more than {CLICKS} clicks from the start")
        elif anchor and anchor not in pages[target].anchors:
            found.append(f"{question}: {target} has no anchor {anchor}")
    return found


def followed(name: str, address: str) -> str:
    """Returns the path of the page that a link leads to."""
    path = unquote(urlsplit(address).path)
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    built = read(folder)
    wrong = faults(folder, built) + far_questions(ROOT, built)
    sys.exit("\n".join(wrong) if wrong else 0)
