"""Sphinx's settings: MyST for Markdown, Furo for looks, nothing that a page loads from elsewhere (ADR 37)."""

import re
from pathlib import Path
from typing import Any

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

#: A summary would be fetched from the page that was found, which a browser refuses to a page in a folder.
html_show_search_summary = False
html_search_scorer = str(Path(__file__).with_name("scorer.js"))

#: What Sphinx leaves out for those who hear the page or have no pointer: levels of headings, and a way by Tab
#: into what scrolls.
REACHED = (
    (re.compile(r'role="heading">'), 'role="heading" aria-level="2">'),
    (re.compile(r"<pre>"), '<pre tabindex="0">'),
    (re.compile(r'<div class="(table-wrapper[^"]*)">'), r'<div class="\1" tabindex="0">'),
)


def reach(app: Any, failed: Exception | None) -> None:
    """Adds to every page what Sphinx leaves out."""
    for page in Path(app.outdir).rglob("*.html") if failed is None else ():
        text = page.read_text(encoding="utf-8")
        for found, better in REACHED:
            text = found.sub(better, text)
        page.write_text(text, encoding="utf-8")


def setup(app: Any) -> None:
    """Called by Sphinx, which is installed in .site alone."""
    app.connect("build-finished", reach)
