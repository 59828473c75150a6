"""The documentation site: its outline, the source that Sphinx gets, and the checks of what was built."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plimsoll.pages.page_parts import STYLE, asset
from website.built import far_questions, faults, read
from website.pages import START, all_pages, children, linked, outline, parts
from website.questions import CLICKS, distances, questions
from website.stage import MissingTargetError, stage, staged_text

ROOT = Path(__file__).parents[2]


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """A repository with a start page, two shelves, one of them with lists, and a page with a folder."""
    for name, text in {
        START: "# Start\n\n## Shelves\n\n- [Operate](operate.md): first\n- [Commands](cli.md): then\n",
        "docs/operate.md": "# Operate\n\n## Guides\n\n- [Install](install.md#kubectl)\n\n"
        "## Facts\n\n- [Scope](scope.md)\n",
        "docs/scope.md": "# Scope\n",
        "docs/install.md": "# Install\n\nSee [commands](cli.md), [k9s](../contrib/k9s), `contrib/k9s`.\n",
        "docs/cli.md": "# Commands\n\n[plan](cli/plan.md)\n",
        "docs/cli/plan.md": "```text\n[not](a-link.md)\n```\n\n[start](../../README.md) ![x](y.svg)\n",
        "contrib/k9s": "",
        "SECURITY.md": "# Security\n\n[plan](docs/cli/plan.md#out)\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_site_has_the_colours_of_the_other_pages() -> None:
    """By light and by dark; the site, the live page and reports are one product."""
    ours = asset(STYLE)
    site = (ROOT / "tools/website/static/tokens.css").read_text(encoding="utf-8")
    named = {
        "background-primary": "paper",
        "background-secondary": "panel",
        "background-border": "line",
        "foreground-primary": "ink",
        "foreground-secondary": "quiet",
        "brand-primary": "accent",
        "brand-content": "accent",
    }

    for theirs, token in named.items():
        light, dark = re.findall(rf"--{token}: (#\w+);", ours)
        assert re.findall(rf"--color-{theirs}: (#\w+);", site) == [light, dark, dark], token


def test_every_page_has_its_place_once() -> None:
    """A new page needs a line on a shelf of docs/README.md, or a folder whose first page it stands below."""
    found = outline(ROOT)

    assert sorted([START, *found]) == sorted(all_pages(ROOT)), f"list each page once on a shelf of {START}"


def test_a_shelf_calls_pages_by_their_titles() -> None:
    """The sidebar has the titles, and a reader looks there for what the shelf has named."""
    named = [
        (words, page)
        for shelf in (ROOT / "docs/operate.md", ROOT / "docs/write-plugins.md")
        for words, page in re.findall(
            r"^- \[([^\]]+)\]\(([^()\s]+)\)", shelf.read_text(encoding="utf-8"), re.MULTILINE
        )
    ]

    assert len(named) > 40
    for words, page in named:
        assert (ROOT / "docs" / page).read_text(encoding="utf-8").startswith(f"# {words}\n")


def test_every_question_is_answered_within_three_clicks() -> None:
    """By links in the text and the tables of contents, without the list of questions."""
    links = {page: {*linked(ROOT, page), *children(ROOT, page)} for page in all_pages(ROOT)}
    links[START] |= {page for part in parts(ROOT) for page in part.pages}
    links["docs/questions.md"] = set()
    clicks = distances(START, links)
    asked = questions(ROOT)

    assert len(asked) >= 10
    assert [each for each, page, _ in asked if clicks.get(page, CLICKS + 1) > CLICKS] == []


def test_links_are_adapted(pages: Path) -> None:
    """To where the pages are in the site; what is only in the repository is named."""
    assert "[commands](cli.md), k9s (`contrib/k9s` in the repository), `contrib/k9s`." in staged_text(
        pages, "docs/install.md"
    )
    assert "[not](a-link.md)" in staged_text(pages, "docs/cli/plan.md")
    assert "[start](../index.md) ![x](y.svg)" in staged_text(pages, "docs/cli/plan.md")
    assert "(../cli/plan.md#out)" in staged_text(pages, "SECURITY.md")


def test_readers_are_not_told_how_a_page_is_written() -> None:
    """Contributors read that in the repository."""
    told = "make docs"
    generated = [page for page in all_pages(ROOT) if f"`{told}`" in (ROOT / page).read_text(encoding="utf-8")]
    staged = {page: staged_text(ROOT, page) for page in generated}

    assert len(generated) > 20
    assert [page for page, text in staged.items() if re.search(rf"[Ww]ritten\s+by\s+`{told}`", text)] == []
    assert "the values of a map." in staged["docs/reference/kinds/podgroup.md"]


def test_lists_become_tables_of_contents(pages: Path) -> None:
    """Those of the shelves, on the start page, and of a page with a folder."""
    start = staged_text(pages, START)

    assert ":caption: Operate: guides\n:hidden:\n\noperate\ninstall\n" in start
    assert ":caption: Operate: facts\n:hidden:\n\nscope\n" in start
    assert ":caption: Commands\n:hidden:\n\ncli\n" in start
    assert ":hidden:\n\ncli/plan\n" in staged_text(pages, "docs/cli.md")
    assert "toctree" not in staged_text(pages, "docs/install.md")


def test_a_link_to_nothing_is_an_error(pages: Path) -> None:
    """Sphinx would not notice: only links inside the site are its business."""
    (pages / "docs/install.md").write_text("[gone](../contrib/gone)\n", encoding="utf-8")

    with pytest.raises(MissingTargetError, match=r"docs/install\.md links to contrib/gone"):
        staged_text(pages, "docs/install.md")


def test_files_of_pages_that_are_gone_are_deleted(tmp_path: Path) -> None:
    """Else the site keeps them."""
    (tmp_path / "gone.md").write_text("# Gone\n", encoding="utf-8")
    names = stage(ROOT, tmp_path)

    assert "gone.md" not in {file.name for file in tmp_path.rglob("*")}
    assert {
        "index.md",
        "pictures/report.webp",
        "benchmarks/engine-by-nodes.svg",
        "project/security.md",
    } <= set(names)


def test_what_is_wrong_in_the_built_site_is_said(tmp_path: Path) -> None:
    """Dead links, missing anchors, flags with a dash, and whatever is loaded from elsewhere."""
    (tmp_path / "index.html").write_text(
        '<link rel="stylesheet" href="https://fonts.example/x.css"><script src="//cdn.example/x.js"></script>'
        '<a href="a.html#there"></a><a href="a.html#gone"></a><a href="b.html"></a><a href="https://x.example/">x</a>',
        encoding="utf-8",
    )
    flags = "<p>kubectl drain \u2013force, or --force; 3 \u2013 4, one \u2013 two</p>"
    (tmp_path / "a.html").write_text(f'<h1 id="there"></h1><p role="heading">x</p>{flags}', encoding="utf-8")
    (tmp_path / "_static").mkdir()
    options = "const DOCUMENTATION_OPTIONS = {\n    SHOW_SEARCH_SUMMARY: true,\n};"
    (tmp_path / "_static/documentation_options.js").write_text(options, encoding="utf-8")
    (tmp_path / "x.css").write_text("@font-face { src: url(https://fonts.example/f) }", encoding="utf-8")

    assert sorted(faults(tmp_path, read(tmp_path))) == [
        "a.html has 1 headings without a level",
        "a.html has \u2013force, which may have been a flag",
        "index.html links to a.html#gone, and a.html has no such anchor",
        "index.html links to b.html, which does not exist",
        "index.html loads //cdn.example/x.js",
        "index.html loads https://fonts.example/x.css",
        "the search fetches pages for summaries, which a browser refuses in a folder",
        "x.css loads something from elsewhere",
    ]


def test_a_far_answer_is_said(tmp_path: Path) -> None:
    """Four clicks are too many, and the list of questions is no way."""
    (tmp_path / "index.html").write_text('<a href="questions.html"></a>', encoding="utf-8")
    every = "".join(
        f'<a href="{page.removeprefix("docs/")[:-3]}.html"></a>' for _, page, _ in questions(ROOT)
    )
    (tmp_path / "questions.html").write_text(every, encoding="utf-8")

    assert len(far_questions(ROOT, read(tmp_path))) == len(questions(ROOT))
