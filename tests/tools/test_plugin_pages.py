"""Plugin pages are written from docstrings; a docstring that lacks a section is refused."""

import itertools
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
from pydantic import Field

from engine.toys import Room
from pages.plugins import PageError, file_name, main, page, pages
from plimsoll.framework import NoArgs, PluginArgs
from plimsoll.plugins import IN_TREE
from plimsoll_power_saving import PowerSaving

NUMBERS = itertools.count()
PAGES = Path(__file__).parents[2] / "docs" / "plugins"


def test_the_pages_in_the_docs_are_those_that_the_code_writes() -> None:
    """After a change of a docstring or of arguments, run `make docs`."""
    there = {path.name: path.read_text(encoding="utf-8") for path in PAGES.glob("*.md")}

    assert there == pages()


@pytest.mark.parametrize("plugin", IN_TREE, ids=lambda plugin: plugin.name)
def test_a_page_is_named_as_its_module(plugin: Any) -> None:
    """One name, four spellings."""
    assert file_name(plugin) == plugin.__module__.rsplit(".", 1)[-1] + ".md"


def test_a_page_of_somebody_elses_plugin() -> None:
    """Formula as a block, arguments as a table, points as they are spelled in a profile."""
    text = page(PowerSaving)

    assert text.startswith("# PowerSaving\n\nOnly important pods wake a sleeping node")
    assert "- Extension points: `preFilter`, `filter`, `score`, `preBind`\n" in text
    assert "```text\nfeasible[n] = not asleep[n] or pod.priority >= args.wake_priority\n" in text
    assert "| `timeoutSeconds` | number, > 0 | `10` | How long a node may take to wake. |" in text
    assert '| `wakeUrl` | string | `""` |' in text


def a_plugin(docstring: Any, args: Any = NoArgs) -> Any:
    """A plugin whose module says this of it."""
    module = ModuleType(f"thing_{next(NUMBERS)}", docstring)
    sys.modules[module.__name__] = module

    class Thing(Room):
        __module__ = module.__name__
        name: ClassVar = "Thing"
        args_model: ClassVar = args

    return Thing


WHOLE = """Thing: does a thing.

Formula::

    x = 1

Units: none.
Edges: none.
Source: ours.
Differs: not at all.
"""


class Undescribed(PluginArgs):
    weight: int = Field(default=1)


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        pytest.param(a_plugin("Another: x."), 'must begin with "Thing: "', id="another-name"),
        pytest.param(a_plugin(WHOLE.replace("Edges", "Corners")), "lacks Edges", id="section"),
        pytest.param(a_plugin(WHOLE, Undescribed), "Thing.weight has no description", id="argument"),
    ],
)
def test_what_is_missing_is_named(plugin: Any, problem: Any) -> None:
    """So that it is written before it is read."""
    with pytest.raises(PageError, match=problem):
        page(plugin)


def test_pages_of_former_plugins_are_removed(tmp_path: Any) -> None:
    """The folder holds what there is, and nothing else."""
    (tmp_path / "former_plugin.md").write_text("# FormerPlugin")

    main(tmp_path)

    assert {path.name for path in tmp_path.iterdir()} == set(pages())
