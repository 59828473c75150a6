"""Inputs that broke a parser once hold now, and targets read their seeds; ``make fuzz`` looks for more."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzzing.cases import CASES, Case
from fuzzing.target import Target
from fuzzing.targets.table import TARGETS
from fuzzing.told_session import LOOPS

KNOWN = {each.name: each for each in TARGETS}

#: Seeds of each target that are read here: these are to show that it works.
SEEDS = 2


@pytest.fixture(autouse=True, scope="module")
def closed_loops() -> Iterator[None]:
    """Close the event loop of the targets."""
    yield
    LOOPS.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.target)
def test_cases_that_broke_a_parser_hold(case: Case) -> None:
    """Each was found by fuzzing, made small, and mended."""
    KNOWN[case.target].attempt(case.data)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_targets_read_their_seeds(target: Target) -> None:
    """A target that refuses its own seeds looks at nothing."""
    for seed in target.seeds()[:SEEDS]:
        target.attempt(seed)


def test_the_table_of_the_documentation_has_all_targets() -> None:
    """With what each reads."""
    text = (Path(__file__).parents[2] / "docs/survival/fuzzing.md").read_text(encoding="utf-8")

    assert [each.name for each in TARGETS if f"| `{each.name}` | {each.reads} |" not in text] == []
