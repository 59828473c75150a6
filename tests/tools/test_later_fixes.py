"""Each later fix of upstream is on its page, and has field cases that name where it comes from."""

from pathlib import Path

import pytest

from pages.later_fixes import page
from plimsoll.plugins import DEFAULT_PLUGINS
from recordings.later_fixes import LATER_FIXES, LaterFix

ROOT = Path(__file__).parents[2]


def test_the_page_is_written_from_the_list() -> None:
    """Make docs writes it."""
    present = (ROOT / "docs/later-fixes.md").read_text(encoding="utf-8")

    assert present == page(present), "run make docs"


@pytest.mark.parametrize("fix", LATER_FIXES, ids=lambda fix: f"{fix.plugin}-{fix.origin[0]}")
def test_a_fix_has_cases_with_its_origin(fix: LaterFix) -> None:
    """A number of the fix stands in the origin of each."""
    assert fix.plugin in DEFAULT_PLUGINS
    assert fix.field_cases
    for case in fix.field_cases:
        origin = (
            (ROOT / f"tests/cases/{case}.input.yaml").read_text(encoding="utf-8").partition("\nabout:")[0]
        )
        assert any(str(number) in origin for number in fix.origin)


def test_a_recording_is_named_once() -> None:
    """One fix explains it."""
    named = [case for fix in LATER_FIXES for case in fix.recordings]

    assert len(named) == len(set(named))
