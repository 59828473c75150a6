"""The folders of the product's distributions."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]

#: Folders from which packages are imported, one for each distribution, those at the bottom first.
PRODUCT = ("cel", "core", "client", "optimal", "operator", "kubectl")

#: The same with the package for authors' tests.
FOLDERS = (*PRODUCT, "testing")


def modules(root: Path = ROOT) -> Iterator[Path]:
    """The modules of the product below a root, sorted within each distribution."""
    for folder in PRODUCT:
        yield from sorted((root / folder).glob("*/**/*.py"))


def dotted(path: Path, root: Path = ROOT) -> str:
    """The name of a module as imports have it; a package is without ``__init__``."""
    parts = path.relative_to(root).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def inner(path: str) -> str:
    """The path of a module without its folder at the root and without ``plimsoll``: ``engine/attempt.py``."""
    return path.partition("/")[2].removeprefix("plimsoll/")


def package_of(path: str) -> str:
    """The package of a module that is given by its path from the root, such as ``engine``; "" outside."""
    folder, _, rest = path.partition("/")
    return inner(path).partition("/")[0] if folder in FOLDERS and "/" in rest else ""
