"""The pages of the strategies say what the code says."""

from pathlib import Path
from typing import Any

import pytest

from pages.plugins import file_name
from pages.strategies import main, page, pages
from plimsoll.strategies import EVICTORS, IN_TREE

PAGES = Path(__file__).parents[2] / "docs" / "strategies"


def test_the_pages_in_the_docs_are_those_that_the_code_writes() -> None:
    """After a change of a docstring or of arguments, run `make docs`."""
    assert {path.name: path.read_text(encoding="utf-8") for path in PAGES.glob("*.md")} == pages()


@pytest.mark.parametrize("source", [*IN_TREE, *EVICTORS], ids=lambda source: source.name)
def test_a_page_is_named_as_its_module(source: Any) -> None:
    """One name, four spellings."""
    assert file_name(source) == source.__module__.rsplit(".", 1)[-1] + ".md"
    assert page(source).startswith(f"# {source.name}\n")


def test_stale_pages_go(tmp_path: Any) -> None:
    """A page of a strategy that is no more is removed."""
    (tmp_path / "gone.md").write_text("", encoding="utf-8")

    main(tmp_path)

    assert {path.name for path in tmp_path.iterdir()} == set(pages())
