"""Measures of structure: each returns its offenders as lines of text."""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from structure.imports import circles_of, graph_of
from structure.sources import Module, classes

#: Names of modules that say nothing.
DRAWERS = frozenset(("utils", "util", "helpers", "helper", "common", "misc", "manager", "base"))
#: Reads of these attributes look at what a library or the language left optional, and not at a capability.
LIBRARY = {
    "_labelnames": "prometheus-client keeps the names of labels in private attributes",
    "_ssl": "aiohttp keeps a connector's TLS context in a private attribute",
    "_user": "kubernetes-asyncio keeps the user of a kubeconfig in a private attribute",
    "exec_plugin_expiry": "kubernetes-asyncio sets it only for users with an exec plugin",
    "args_model": "a registry checks what it is given, and says what is missing",
    "name": "likewise",
    "clone": "data in a cycle state may be of any type",
    "CLOCK_BOOTTIME": "the platform may lack it",
}


def doubled_classes(modules: Sequence[Module]) -> list[str]:
    """Public class names that are defined more than once."""
    counts = Counter(node.name for module in modules for node in classes(module))
    return [name for name, count in counts.items() if count > 1]


def circles(modules: Sequence[Module]) -> list[str]:
    """Modules that import one another."""
    return [name for circle in circles_of(graph_of(modules)) for name in circle]


def drawers(modules: Iterable[Module]) -> list[str]:
    """Modules and packages whose name says nothing."""
    return [module.name for module in modules if module.name.rpartition(".")[2] in DRAWERS]


def probes(modules: Iterable[Module]) -> list[str]:
    """Attributes that ``getattr`` or ``hasattr`` look for by a constant name, as ``module:attribute``."""
    return sorted({f"{module.name}:{name}" for module in modules for name in _probed(module)})


def _probed(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        match node:
            case ast.Call(
                func=ast.Name(id="getattr" | "hasattr"), args=[_, ast.Constant(value=str(name)), *_]
            ):
                if name not in LIBRARY:
                    yield name


def late_callbacks(modules: Sequence[Module]) -> list[str]:
    """Assignments from outside to an attribute that is called; the constructor should take it."""
    called = {
        node.target.attr
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Attribute)
        and ast.unparse(node.annotation).startswith(("Callable[", "list[Callable["))
    }
    return [
        f"{module.name}:{target.attr}"
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Assign)
        for each in node.targets
        for target in (each.elts if isinstance(each, ast.Tuple) else [each])
        if isinstance(target, ast.Attribute) and target.attr in called and ast.unparse(target.value) != "self"
    ]
