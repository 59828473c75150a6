"""Reads modules as syntax trees, each once in a process."""

import ast
import gc
from collections.abc import Iterable
from functools import cache
from pathlib import Path


def syntax_trees(paths: Iterable[Path]) -> dict[Path, ast.Module]:
    """The trees of modules' files, which are not to be changed.

    The collector of garbage is off meanwhile: it took two thirds of the time.

    Raises:
        SyntaxError: A file is no Python.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return {path: syntax_tree(path) for path in paths}
    finally:
        if was_enabled:
            gc.enable()


@cache
def syntax_tree(path: Path) -> ast.Module:
    """The tree of one module's file."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """All nodes of a tree that lives as long as the process, such as a module's."""
    return tuple(ast.walk(tree))
