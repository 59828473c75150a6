"""Measures of structure: each returns its offenders as lines of text."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from structure.imports import circles_of, graph_of
from structure.sources import Module, classes

#: Lines of a module that states no reason to be longer.
LONGEST = 400
#: How a docstring states the reason.
REASON = "Longer than 400 lines because"
#: Parameters of a constructor, without ``self``.
MOST_PARAMETERS = 8
#: Modules of a folder, its ``__init__`` not counted.
MOST_MODULES = 15
#: Folders that may have more, and why.
LARGE_FOLDERS = {
    "plimsoll.model.columns": "one count over the rows of nodes, one file",
    "plimsoll.plugins": "one plugin, one file; none imports another",
    "plimsoll.strategies": "one strategy, one file; none imports another",
}
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


def long_modules(modules: Iterable[Module]) -> list[str]:
    """Modules that are too long and do not say why."""
    return [
        module.name
        for module in modules
        if module.lines > LONGEST and REASON not in (ast.get_docstring(module.tree) or "").replace("\n", " ")
    ]


def median_length(modules: Iterable[Module]) -> float:
    """Lines of the module in the middle."""
    return median(module.lines for module in modules)


def wide_constructors(modules: Iterable[Module]) -> list[str]:
    """Constructors with too many parameters; fields of values are not judged."""
    return [
        f"{module.name}.{node.name}"
        for module in modules
        for node in classes(module)
        for function in node.body
        if isinstance(function, ast.FunctionDef)
        and function.name == "__init__"
        and len(function.args.posonlyargs + function.args.args + function.args.kwonlyargs) - 1
        > MOST_PARAMETERS
    ]


def full_folders(modules: Iterable[Module]) -> list[str]:
    """Folders with too many modules."""
    folders = Counter(module.folder for module in modules if not module.package)
    return [name for name, count in folders.items() if count > MOST_MODULES and name not in LARGE_FOLDERS]


def drawers(modules: Iterable[Module]) -> list[str]:
    """Modules and packages whose name says nothing."""
    return [module.name for module in modules if module.name.rpartition(".")[2] in DRAWERS]


def probes(modules: Iterable[Module]) -> list[str]:
    """Attributes that ``getattr`` or ``hasattr`` look for by a constant name, as ``module:attribute``."""
    return sorted({f"{module.name}:{name}" for module in modules for name in _probed(module)})


def _probed(module: Module) -> Iterator[str]:
    for node in module.nodes:
        match node:
            case ast.Call(
                func=ast.Name(id="getattr" | "hasattr"), args=[_, ast.Constant(value=str(name)), *_]
            ):
                if name not in LIBRARY:
                    yield name


def exports(module: Module) -> list[str]:
    """The names in ``__all__``, or those that the package imports."""
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets
        ):
            return list(ast.literal_eval(node.value))
    found: dict[str, list[str]] = defaultdict(list)
    for node in module.tree.body:
        if isinstance(node, ast.ImportFrom):
            found[module.name].extend(alias.asname or alias.name for alias in node.names)
    return found[module.name]


def late_callbacks(modules: Sequence[Module]) -> list[str]:
    """Assignments from outside to an attribute that is called; the constructor should take it."""
    called = {
        node.target.attr
        for module in modules
        for node in module.nodes
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Attribute)
        and ast.unparse(node.annotation).startswith(("Callable[", "list[Callable["))
    }
    return [
        f"{module.name}:{target.attr}"
        for module in modules
        for node in module.nodes
        if isinstance(node, ast.Assign)
        for each in node.targets
        for target in (each.elts if isinstance(each, ast.Tuple) else [each])
        if isinstance(target, ast.Attribute) and target.attr in called and ast.unparse(target.value) != "self"
    ]
