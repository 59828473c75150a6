"""Leaves out of kubernetes-asyncio what plimsoll does not call: all but a fiftieth of it.

Plimsoll decodes with models of its own and calls a few methods of a few APIs (docs/adr/0001); the library
imports all of its 850 modules whenever one is wanted. What stays is found by reading plimsoll's source: the
classes that it names as ``client.NAME``, the classes that fields of these have, and methods of these names.
Docstrings go. Runs in the first stage of the Dockerfile.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

LIBRARY = "kubernetes_asyncio"
IMPORT = re.compile(rf"^from {LIBRARY}\.client\.(api|models)\.(\w+) import (\w+)\s*$", re.MULTILINE)
#: What a class that was left out says, where plugins of other packages want it.
REFUSAL = f"""

def __getattr__(name):
    raise AttributeError(
        f"{{name}} of {LIBRARY} is not in this image, which has what plimsoll calls; "
        "copy the whole library into an image of your own"
    )
"""


def used_names(plimsoll: Path) -> set[str]:
    """The attributes that plimsoll's modules name where they import the library: classes, methods, others."""
    found = set()
    for module in plimsoll.rglob("*.py"):
        text = module.read_text(encoding="utf-8")
        if LIBRARY in text:
            found |= {node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)}
    return found


def with_fields(names: Iterable[str], sources: dict[str, Path]) -> set[str]:
    """These classes and those that their fields have, and so on.

    Args:
        names: Names; those that are no classes of ``sources`` are passed over.
        sources: The module of each class that may be left out.
    """
    kept: set[str] = set()
    waiting = [name for name in names if name in sources]
    while waiting:
        if (name := waiting.pop()) not in kept:
            kept.add(name)
            waiting += [each for each in fields_of(sources[name]) if each in sources]
    return kept


def fields_of(module: Path) -> Iterator[str]:
    """The classes of a model's fields, as ``openapi_types`` has them; none for an API."""
    found = re.search(r"openapi_types = \{(.*?)\}", module.read_text(encoding="utf-8"), re.DOTALL)
    for kind in re.findall(r": '([^']+)'", found[1] if found else ""):
        yield from re.findall(r"\w+", kind)


def without_docstrings(tree: ast.Module) -> ast.Module:
    """The same program."""
    for node in ast.walk(tree):
        has_body = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if has_body and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def with_methods(tree: ast.Module, names: set[str]) -> ast.Module:
    """An API's module with these methods and its constructor only."""
    for each in tree.body:
        if isinstance(each, ast.ClassDef):
            each.body = [
                part
                for part in each.body
                if not isinstance(part, ast.FunctionDef)
                or part.name.removesuffix("_with_http_info") in names | {"__init__"}
            ]
    return tree


def unused(packages: Path) -> set[Path]:
    """The modules of the library's classes that plimsoll does not use, in a folder that has both."""
    client = packages / LIBRARY / "client"
    sources = classes(client)
    kept = with_fields(used_names(packages / "plimsoll"), sources)
    modules = {each for folder in ("api", "models") for each in (client / folder).glob("[!_]*.py")}
    return modules - {sources[name] for name in kept}


def classes(client: Path) -> dict[str, Path]:
    """The module of each class that may be left out."""
    main = (client / "__init__.py").read_text(encoding="utf-8")
    return {name: client / folder / f"{module}.py" for folder, module, name in IMPORT.findall(main)}


def prune(packages: Path) -> None:
    """Remove what is left of the modules that were left out: imports; and methods that are not called."""
    client = packages / LIBRARY / "client"
    kept = {name for name, module in classes(client).items() if module.exists()}
    names = used_names(packages / "plimsoll")
    for init in (client, client / "api", client / "models"):
        file = init / "__init__.py"
        text = IMPORT.sub(lambda line: line[0] if line[3] in kept else "", file.read_text(encoding="utf-8"))
        file.write_text(text + REFUSAL, encoding="utf-8")
    for module in client.rglob("*.py"):
        tree = without_docstrings(ast.parse(module.read_text(encoding="utf-8")))
        if module.parent.name == "api":
            tree = with_methods(tree, names)
        module.write_text(ast.unparse(tree), encoding="utf-8")
