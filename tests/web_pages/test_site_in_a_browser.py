"""The judge of the site's pages finds faults that were planted, and the site's own additions are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from web_pages.browser import needs_chromium
from website.conf import beginnings, reach, show_beginnings
from website.judged import astray, findings

if TYPE_CHECKING:
    from pathlib import Path

ROW = '<tr class="row-even"><td><p><code class="x"><span class="pre">{}</span></code></p></td><td>t</td></tr>'


class App:
    """As much of Sphinx as is asked for."""

    def __init__(self, outdir: Path) -> None:
        self.outdir = str(outdir)


@needs_chromium
def test_a_picture_without_words_and_a_page_that_is_too_wide_are_found(tmp_path: Path) -> None:
    page = '<html lang="en"><title>t</title><main><h1>t</h1><img src="x.png"><p style="width: 1500px">t</p>'
    (tmp_path / "a.html").write_text(page, encoding="utf-8")

    found = list(findings(tmp_path, pages={"a": "a.html"}))

    assert found[0].startswith("a.html at 1440 px, light: image-alt: <img")
    assert "a.html scrolls sideways at 390 px" in found


@needs_chromium
def test_a_search_that_leads_astray_is_found(tmp_path: Path) -> None:
    """Its question, what it finds, and what it should."""
    results = '<ul class="search"><li><a href="a.html#x">A</a><p>t</p><li><a href="b.html">B</a><p>t</p></ul>'
    (tmp_path / "search.html").write_text(f'<div id="search-results">{results}</div>', encoding="utf-8")

    assert list(astray(tmp_path, {"is it a": "a.html"})) == []
    (said,) = astray(tmp_path, {"is it b": "b.html"})
    assert said.startswith("the search for 'is it b' finds ")
    assert said.endswith("/a.html#x first, instead of b.html")


def test_a_field_has_an_anchor_and_its_depth(tmp_path: Path) -> None:
    """In references of our kinds alone, and once, however often the site is built."""
    page = tmp_path / "reference" / "kinds" / "a.html"
    page.parent.mkdir(parents=True)
    page.write_text(
        f'<table class="docutils">{ROW.format("spec.windows[].schedule")}</table>', encoding="utf-8"
    )
    other = tmp_path / "b.html"
    other.write_text(ROW.format("spec.never"), encoding="utf-8")

    for _ in range(2):
        reach(App(tmp_path), None)

    text = page.read_text(encoding="utf-8")
    assert text.count('<tr class="depth-2" id="spec.windows[].schedule">') == 1
    assert 'href="#spec.windows%5B%5D.schedule"' in text
    assert other.read_text(encoding="utf-8") == ROW.format("spec.never")


def test_a_result_shows_how_its_page_begins(tmp_path: Path) -> None:
    """Neither the state of a decision nor a picture; markup of a page stays text."""
    (tmp_path / "a.html").write_text(
        "<h1>A</h1><p>Status: accepted</p><p>It <b>is</b> &lt;so&gt;.</p>", encoding="utf-8"
    )
    (tmp_path / "b.html").write_text(f"<h1>B</h1>\n<ol><li><p>{'word ' * 90}</p></li></ol>", encoding="utf-8")
    (tmp_path / "search.html").write_text("<body></body>", encoding="utf-8")

    assert beginnings(tmp_path)["a.html"] == "It is <so>."
    assert len(beginnings(tmp_path)["b.html"]) < 190
    for _ in range(2):
        show_beginnings(App(tmp_path), None)
    search = (tmp_path / "search.html").read_text(encoding="utf-8")
    assert search.count("const BEGINNINGS") == 1
    assert "<so>" not in search


def test_a_result_about_a_section_shows_how_that_begins(tmp_path: Path) -> None:
    """With a paragraph or a command, of pages that answer questions; else as its page begins."""
    command = '<div class="highlight-console"><div><pre>$ x pod</pre></div></div>'
    below = '<section id="below"><h3>B</h3><p>Below.</p></section>'
    sections = (
        f'<section id="moved"><h2>Why moved?<a>#</a></h2>{command}</section>'
        f'<section id="listed"><h2>List</h2><ul><li>x</li></ul>{below}</section>'
    )
    for name in ("everyday-questions.html", "metrics.html"):
        (tmp_path / name).write_text(f"<h1>Q</h1><p>Each.</p>{sections}", encoding="utf-8")

    assert beginnings(tmp_path) == {
        "everyday-questions.html": "Each.",
        "everyday-questions.html#moved": "$ x pod",
        "everyday-questions.html#below": "Below.",
        "metrics.html": "Each.",
    }
