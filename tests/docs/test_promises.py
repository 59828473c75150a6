"""docs/promises.md has a row for every promise of SECURITY.md, and names what exists."""

import re
from pathlib import Path

import pytest

from docs.claims import PAGES, claims, claims_of

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/promises.md").read_text(encoding="utf-8")
SECURITY = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_every_promise_of_security_md_has_a_row() -> None:
    """By the words in bold with which it begins."""
    claims = {each.rstrip(" ,:.") for each in re.findall(r"^- \*\*(.*?)\*\*", SECURITY, re.MULTILINE)}
    rows = set(
        re.findall(r"^\| (.*?) \|", TEXT.partition("## SECURITY.md")[2].partition("\n## ")[0], re.MULTILINE)
    )

    assert claims - rows == set()
    assert len(claims) > 30


def test_what_rows_name_exists() -> None:
    """Tests, invariants, planted bugs and targets of fuzzing."""
    paths = set(re.findall(r"`((?:devcluster/)?tests/[\w/.]+)`", TEXT))
    planted = "".join(
        each.read_text(encoding="utf-8") for each in (ROOT / "tests/simulation/planted").glob("*.py")
    )
    targets = "".join(each.read_text(encoding="utf-8") for each in (ROOT / "tests/fuzzing").rglob("*.py"))
    names = set(re.findall(r"`([a-z_-]+)`", TEXT))
    unknown = {
        name
        for name in names
        if not (ROOT / f"tests/promises/{name}.py").exists()
        and f"\ndef {name}(" not in planted
        and f'"{name}"' not in targets
    }

    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert unknown == set()


def test_every_planted_bug_is_named() -> None:
    """Each breaks some promise."""
    planted = "".join(
        each.read_text(encoding="utf-8")
        for each in (ROOT / "tests/simulation/planted").glob("*.py")
        if each.stem != "surgery"
    )
    bugs = set(re.findall(r"^def ([a-z]\w+)\(operator: Operator\)", planted, re.MULTILINE))

    assert {bug for bug in bugs if f"`{bug}`" not in TEXT} == set()
    assert len(bugs) > 20


def rows() -> list[list[str]]:
    """Page, first words and tests of each sentence."""
    table = TEXT.partition("## Sentences without")[2].splitlines()
    return [[cell.strip() for cell in each.strip("|").split("|")] for each in table if each.startswith("| ")][
        2:
    ]


@pytest.mark.parametrize("page", PAGES)
def test_each_sentence_without_exceptions_has_a_row(page: str) -> None:
    """And each row has its sentence, in the order of the page."""
    assert [words for where, words, _ in rows() if where == page] == claims_of(page)


def test_each_such_sentence_is_tested_advice_or_a_limit() -> None:
    for _, words, tests in rows():
        assert tests in ("advice", "a limit") or re.findall(r"`tests/[\w/.]+`", tests), words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("It never waits. It rests.", ["It never waits."], id="a sentence"),
        pytest.param("* **Ends.** They [only](x.md) `end`\n* other", ["Ends. They only end"], id="an item"),
        pytest.param("| `a_b` | only here |\n| c | d |", ["a b only here"], id="a row"),
        pytest.param("`x --only-y`; the only replica\n```\nnever\n```\n", [], id="options, names and code"),
    ],
)
def test_sentences_are_collected(text: str, found: list[str]) -> None:
    assert [*claims(text)] == found
