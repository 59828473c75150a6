"""docs/cached-answers.md names every module that advances or reads a clock, and only modules that exist."""

import importlib
import re
from pathlib import Path

import pytest

import distributions

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "cached-answers.md").read_text(encoding="utf-8")
CLOCK = re.compile(
    r"\.(?:node_tick|node_mark|epoch|budget_version|changed_since|nodes_changed_since)\b"
    r"|\bobjects\.version\b|\.tick\b"
)
NAMED = re.compile(r"`((?:cluster|engine|model|planning|plugins|scheduling|toolkit)\.[a-z_.]+)`")


def touching() -> list[str]:
    """Modules of the product in which a clock is read or advanced."""
    return sorted(
        distributions.dotted(path).removeprefix("plimsoll.")
        for path in distributions.modules()
        if CLOCK.search(path.read_text(encoding="utf-8"))
    )


@pytest.mark.parametrize("module", touching())
def test_who_touches_a_clock_is_named(module: str) -> None:
    """So that a reader of the page has seen all of them."""
    assert f"`{module}`" in PAGE


@pytest.mark.parametrize("module", sorted(set(NAMED.findall(PAGE))))
def test_modules_that_are_named_exist(module: str) -> None:
    """Each can be imported."""
    importlib.import_module(f"plimsoll.{module}")


def test_tests_that_are_named_exist() -> None:
    """The laws that hold the page."""
    paths = re.findall(r"`(tests/[\w/]+\.py)`", PAGE)

    assert paths
    assert [path for path in paths if not (ROOT / path).is_file()] == []
