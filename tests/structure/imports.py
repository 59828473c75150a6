"""The import graph of a distribution, and its circles."""

import ast
from collections.abc import Iterator, Mapping, Sequence

from structure.sources import Module


def graph_of(modules: Sequence[Module]) -> dict[str, set[str]]:
    """What each module imports of the distribution, ``TYPE_CHECKING`` blocks included."""
    names = {module.name for module in modules}
    return {module.name: set(_imported(module, names)) - {module.name} for module in modules}


def _imported(module: Module, names: set[str]) -> Iterator[str]:
    for node in module.nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom):
            source = _absolute(module, node)
            inside = {f"{source}.{alias.name}" for alias in node.names} & names
            yield from inside
            if source in names and len(inside) < len(node.names):
                yield source


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    folder = module.folder.split(".")
    kept = folder[: len(folder) - node.level + 1]
    return ".".join([*kept, *([node.module] if node.module else [])])


def circles_of(graph: Mapping[str, set[str]]) -> list[frozenset[str]]:
    """The strongly connected components of more than one module (Tarjan, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[frozenset[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in graph[name]:
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            position = stack.index(name)
            component = frozenset(stack[position:])
            del stack[position:]
            if len(component) > 1:
                found.append(component)

    for name in graph:
        if name not in index:
            visit(name)
    return found
