"""Sphinx's settings: MyST for Markdown, Furo for looks, nothing that a page loads from elsewhere (ADR 37)."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

project = "Plimsoll"
author = "The Plimsoll authors"
extensions = ["myst_parser"]
exclude_patterns = ["benchmarks/results.jsonl"]

#: Anchors as GitHub makes them, so that links with # work in both places; a link to none is a warning.
myst_heading_anchors = 4
nitpicky = True

#: Flags in sentences and tables stay flags: --force is no dash and a word.
smartquotes = False

html_theme = "furo"
html_title = "Plimsoll"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
html_last_updated_fmt = None
html_theme_options = {"top_of_page_buttons": [], "navigation_with_keys": True}
html_static_path = ["static"]
html_css_files = ["narrow.css", "tokens.css"]
html_js_files = [("versions.js", {"type": "module"})]

#: A summary would be fetched from the page that was found, which a browser refuses to a page in a folder.
#: What stands under a result instead is how its page begins (:func:`beginnings`).
html_show_search_summary = False
html_search_scorer = str(Path(__file__).with_name("scorer.js"))

#: What Sphinx leaves out for those who hear the page or have no pointer: levels of headings, and a way by Tab
#: into what scrolls.
REACHED = (
    (re.compile(r'role="heading">'), 'role="heading" aria-level="2">'),
    (re.compile(r"<pre>"), '<pre tabindex="0">'),
    (re.compile(r'<div class="(table-wrapper[^"]*)">'), r'<div class="\1" tabindex="0">'),
)


#: The first cell of a row in a reference of fields.
FIELD = re.compile(
    r'<tr class="row-(?:odd|even)"><td><p><code class="([^"]*)">'
    r'<span class="pre">([^<]+)</span></code></p></td>'
)


def reach(app: Any, failed: Exception | None) -> None:
    """Adds to every page what Sphinx leaves out, and to each field of our kinds its anchor and depth."""
    for page in Path(app.outdir).rglob("*.html") if failed is None else ():
        text = page.read_text(encoding="utf-8")
        for found, better in REACHED:
            text = found.sub(better, text)
        if page.parent.name == "kinds":
            text = FIELD.sub(field, text.replace('<table class="docutils', '<table class="fields docutils'))
        page.write_text(text, encoding="utf-8")


#: The first paragraph of a page that says something, and how much of it a search result shows.
FIRST = re.compile(r"</h1>.*?<p>(?!Status:|<img|<a class=\"reference internal image)(.*?)</p>", re.DOTALL)
SHOWN = 180

#: A section with what it begins with, a paragraph or a command; of pages whose titles are what readers ask.
SECTION = re.compile(
    r'<section id="([^"]+)">\s*<h([2-4])>(?:(?!<section).)*?</h\2>'
    r"\s*(?:<p>|<div class=\"highlight[^>]*>(?:(?!<section).)*?<pre[^>]*>)(.*?)</(?:p|pre)>",
    re.DOTALL,
)
ASKED = re.compile(r"(how-to|cli)/|(everyday-questions|install|tutorial|cli)\.html")

#: Puts the beginning of a page or section under each result, also under those that come later.
UNDER_RESULTS = """<script>
const BEGINNINGS = @beginnings@;
new MutationObserver(() => {
  for (const link of document.querySelectorAll("#search-results li > a:only-child")) {
    const { pathname, hash } = new URL(link.href);
    const name = Object.keys(BEGINNINGS).find((each) => pathname.endsWith(`/${each}`));
    const shown = document.createElement("p");
    shown.className = "context";
    shown.textContent = BEGINNINGS[name + hash] || BEGINNINGS[name] || "";
    link.after(shown);
  }
}).observe(document.getElementById("search-results"), { childList: true, subtree: true });
</script>
</body>"""


def beginnings(folder: Path) -> dict[str, str]:
    """How each page begins, by its path, and the sections of pages that answer what readers ask."""
    found = {}
    for page in sorted(folder.rglob("*.html")):
        name, text = page.relative_to(folder).as_posix(), page.read_text(encoding="utf-8")
        if first := FIRST.search(text):
            found[name] = _shortened(first[1])
        for anchor, _, begins in SECTION.findall(text) if ASKED.match(name) else ():
            found[f"{name}#{anchor}"] = _shortened(begins)
    return found


def _shortened(html: str) -> str:
    words = " ".join(unescape(re.sub(r"<[^>]+>", "", html)).split())
    return words if len(words) <= SHOWN else words[:SHOWN].rpartition(" ")[0] + " \u2026"


def show_beginnings(app: Any, failed: Exception | None) -> None:
    """Gives the page of search results what stands under each."""
    page = Path(app.outdir) / "search.html"
    if failed is None and page.is_file() and "BEGINNINGS" not in (text := page.read_text(encoding="utf-8")):
        said = json.dumps(beginnings(Path(app.outdir))).replace("<", "\\u003c")
        page.write_text(
            text.replace("</body>", UNDER_RESULTS.replace("@beginnings@", said)), encoding="utf-8"
        )


def field(found: re.Match[str]) -> str:
    """A row whose field can be linked to; its depth is for the style sheet."""
    look, name = found.groups()
    way, dot, last = name.rpartition(".")
    shown = f'<code class="{look}"><span class="way">{way}{dot}</span><span class="pre">{last}</span></code>'
    link = f'<a class="field" href="#{quote(name)}">{shown}</a>'
    return f'<tr class="depth-{min(name.count("."), 6)}" id="{name}"><td><p>{link}</p></td>'


def setup(app: Any) -> None:
    """Called by Sphinx, which is installed in .site alone."""
    app.connect("build-finished", reach)
    app.connect("build-finished", show_beginnings)
