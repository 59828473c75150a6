"""Prints figures of size for people to judge: ``make figures``; none of them fails a build.

Code lines are lines that are neither blank nor a comment nor part of a docstring.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median

from distributions import FOLDERS, ROOT
from structure.sources import Module, below, classes

#: Beyond these, what a figure is about is printed as well.
LONG, FULL, WIDE = 400, 15, 8


def code_lines(path: Path, tree: ast.Module) -> int:
    """The code lines of a module."""
    prose: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        if (
            isinstance(first, ast.Expr)
            and isinstance(first.value, ast.Constant)
            and isinstance(first.value.value, str)
        ):
            prose.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines = path.read_text(encoding="utf-8").splitlines()
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in prose
        for number, line in enumerate(lines, 1)
    )


def wide_constructors(modules: Iterable[Module]) -> Iterator[tuple[str, int]]:
    """Constructors with many parameters, and how many."""
    for module in modules:
        for node in classes(module):
            for function in node.body:
                if isinstance(function, ast.FunctionDef) and function.name == "__init__":
                    arguments = function.args
                    count = len(arguments.posonlyargs + arguments.args + arguments.kwonlyargs) - 1
                    if count > WIDE:
                        yield f"{module.name}.{node.name}", count


def report(folder: str, modules: tuple[Module, ...]) -> Iterator[str]:
    """The figures of one distribution."""
    written = [module for module in modules if module.tree.body]
    code = sum(code_lines(module.path, module.tree) for module in written)
    middle = median(module.lines for module in written if not module.package)
    yield f"{folder:14} {code:7,} code lines in {len(written):4} modules; the median has {middle:.0f} lines"
    folders = Counter(module.folder for module in modules if not module.package)
    found = [
        *((f"{module.name} has {module.lines} lines") for module in modules if module.lines > LONG),
        *((f"{name} has {count} modules") for name, count in folders.items() if count > FULL),
        *((f"{name} takes {count} parameters") for name, count in wide_constructors(modules)),
    ]
    yield from (f"          {line}" for line in sorted(found))


if __name__ == "__main__":
    for each in (*FOLDERS, "devcluster/src", "tests"):
        sys.stdout.write("\n".join(report(each, below(ROOT / each))) + "\n")
