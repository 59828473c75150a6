"""docs/cli/lint.md has every rule, under the anchor that reports name."""

from pathlib import Path

from pages.lint import page
from plimsoll.inspection.lint.rules import RULES

PAGE = Path(__file__).parents[2] / "docs/cli/lint.md"


def test_the_page_is_written_from_the_rules() -> None:
    """Make docs writes it."""
    present = PAGE.read_text(encoding="utf-8")

    assert present == page(present), "run make docs"


def test_every_rule_has_an_anchor() -> None:
    """The anchor is the id."""
    for rule in RULES:
        assert f"\n### {rule.id}\n" in PAGE.read_text(encoding="utf-8")
