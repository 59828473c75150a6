"""docs/cli/json.md: every kind of answer with its fields, as the models have them."""

from __future__ import annotations

from pathlib import Path

from pages import answers

PAGE = Path(__file__).parents[2] / "docs/cli/json.md"


def test_the_page_is_as_the_models_are() -> None:
    """``make docs`` writes it."""
    assert PAGE.read_text(encoding="utf-8") == answers.page()
