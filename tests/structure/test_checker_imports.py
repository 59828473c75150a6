"""The checker of survival shares no code with what it judges, and has neither clock nor I/O of its own."""

import ast
import sys
from pathlib import Path

import pytest

PROMISES = Path(__file__).parents[1] / "promises"
MODULES = sorted(path for path in PROMISES.glob("*.py") if not path.name.startswith("test_"))

#: Modules of the standard library that would make a verdict depend on more than the commits.
FORBIDDEN = frozenset(("asyncio", "os", "random", "socket", "subprocess", "threading", "time"))


def imported(source: str) -> set[str]:
    """The packages that a module imports, wherever it does."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or ".")
    return {name.partition(".")[0] for name in found}


def strangers(source: str) -> set[str]:
    """Those of them that the checker must not import."""
    return {
        name
        for name in imported(source)
        if name != "promises" and (name not in sys.stdlib_module_names or name in FORBIDDEN)
    }


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.stem))
def test_the_checker_imports_itself_and_the_standard_library(path: Path) -> None:
    """So a fault of the operator cannot hide in what judges it."""
    assert strangers(path.read_text(encoding="utf-8")) == set()


def test_strangers_are_found() -> None:
    """In a function, too."""
    source = "import json\nfrom promises.view import View\ndef late():\n  import time, plimsoll.model.pod\n"

    assert strangers(source) == {"time", "plimsoll"}
    assert len(MODULES) > 5
