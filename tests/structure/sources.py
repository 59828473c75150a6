"""Reads the modules of a distribution as syntax trees, for measures of its structure."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from distributions import FOLDERS, inner
from syntax_trees import nodes, syntax_trees

ROOT = Path(__file__).parents[2]
PRODUCT = tuple(ROOT / each for each in FOLDERS)


@dataclass(frozen=True)
class Module:
    """A module.

    Attributes:
        name: dotted, without ``__init__``.
        package: whether it is a package's ``__init__``.
        lines: how long it is.
        tree: its syntax tree.
        path: its file.
    """

    name: str
    package: bool
    lines: int
    tree: ast.Module
    path: Path = Path()

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the tree."""
        return nodes(self.tree)

    @property
    def place(self) -> str:
        """Its path without its distribution, and without ``plimsoll``, which is that of nearly all."""
        return inner(self.path.relative_to(ROOT).as_posix())

    @property
    def folder(self) -> str:
        """The package that it is in; a package is in itself."""
        return self.name if self.package else self.name.rpartition(".")[0]


def product() -> tuple[Module, ...]:
    """The modules of Plimsoll's distributions."""
    return tuple(module for root in PRODUCT for module in below(root))


def distributions() -> list[tuple[Module, ...]]:
    """The modules of Plimsoll, and of each distribution that knows nothing of it."""
    apart = [ROOT / "cel", ROOT / "devcluster" / "src"]
    ours = tuple(module for root in PRODUCT if root not in apart for module in below(root))
    return [ours, *map(below, apart)]


@cache
def below(root: Path) -> tuple[Module, ...]:
    """The modules below a folder; none where it is absent."""
    return tuple(_modules(root)) if root.is_dir() else ()


def _modules(root: Path) -> Iterator[Module]:
    for path, tree in syntax_trees(sorted(root.rglob("*.py"))).items():
        parts = path.relative_to(root).with_suffix("").parts
        package = parts[-1] == "__init__"
        yield Module(
            ".".join(parts[:-1] if package else parts),
            package,
            path.read_text(encoding="utf-8").count("\n"),
            tree,
            path,
        )


def classes(module: Module) -> Iterator[ast.ClassDef]:
    """The public classes at a module's top level."""
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node
