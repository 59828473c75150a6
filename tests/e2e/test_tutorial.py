"""docs/tutorial.md, carried out: each command as it is written, in one shell."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from deploy.tools import ROOT
from e2e.page_shell import execute, shown_commands

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,  # a cluster and an operator, each an interpreter of its own
]

PAGE = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")


def left_in(folder: Path) -> list[str]:
    """The files and folders that are visible."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


async def test_each_command_does_what_the_page_says(tmp_path: Path) -> None:
    """In a folder of its own that has the examples, as a checkout does."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")

    text = await execute(PAGE, tmp_path)

    answers = dict(re.findall(r"^@@\d+ \$ (.*)\n((?:(?!@@).*\n)*)", text, re.MULTILINE))
    assert (
        "RemovePodsViolatingNodeTaints"
        in answers["plimsoll plan -f tutorial-rebalance.yaml || test $? -eq 2"]
    )
    assert "Settled" in answers["kubectl get evictions.plimsoll.dev"]
    assert "Insufficient cpu" in answers["plimsoll explain pod default/big"]
    assert left_in(tmp_path) == ["examples"]


def test_every_command_is_one_line() -> None:
    """A console block has nothing but commands, so none is left out."""
    shown = shown_commands(PAGE)

    assert [each.stated for each in shown if each.stated] == []
    assert len(shown) > 25
