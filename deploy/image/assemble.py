"""Collects the files of an image: this interpreter, its library, installed packages and their libraries.

No shell, no package manager, no compiler: an image that consists of these files can run Python programs and
nothing else. Runs in the first stage of the Dockerfile and in tests/deploy; needs the standard library only.

    python assemble.py ROOT INSTALLED

ROOT is the folder that becomes the image's root; INSTALLED is a folder that ``pip install --target`` filled.
"""

import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

#: Parts of the standard library that an operator does not import.
DEVELOPMENT = (
    "config-*", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "site-packages", "test", "tests", "tkinter",
    "turtledemo", "turtle.py", "_ctypes_test*", "_test*", "_tkinter*", "_xx*", "xxlimited*", "nis.*",
    "curses", "_curses*", "readline*", "sqlite3", "_sqlite3*", "dbm", "_dbm*", "_gdbm*",
)  # fmt: skip
#: Parts of packages that only their authors need.
AUTHORS = (
    "__pycache__",
    "tests",
    "*.pyi",
    "*.pxd",
    "*.pyx",
    "*.c",
    "*.h",
    "*.a",
    "*.md",
    "f2py",
    "distutils",
    "bin",
)
#: Packages that nothing imports: extensions of the CEL library, each of which holds its engine once more.
UNUSED = ("cel_expr_python/ext",)
#: Who may be found on the system; those that are there are taken along.
SYSTEM = ("etc/ld.so.cache", "etc/nsswitch.conf", "etc/ssl/certs/ca-certificates.crt")
USER = 65532


def libraries(files: Iterable[Path]) -> Iterator[Path]:
    """The shared libraries that these files load, directly or not, as the dynamic linker finds them."""
    for file in files:
        command = ["ldd", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - of this stage
        for path in re.findall(r"(?:=> |^\s*)(/\S+) \(0x", done.stdout, re.MULTILINE):
            yield Path(path)


def imported(packages: Path) -> list[Path]:
    """The source files that ``plimsoll run`` imports."""
    code = f"import sys; sys.path.insert(0, {str(packages)!r}); import plimsoll.cli, plimsoll.app.process\n"
    code += "for each in list(sys.modules.values()): print(getattr(each, '__file__', None))"
    command = [sys.executable, "-ISBc", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - itself
    return sorted({Path(line) for line in done.stdout.splitlines() if line.endswith(".py")})


def is_loaded(path: Path) -> bool:
    """Whether the dynamic linker reads this file."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as opened:
        return opened.read(4) == b"\x7fELF"


def put(path: Path, root: Path) -> None:
    """Copy a file to the same place under ``root``, as what it is and not as a link."""
    target = root / path.parent.resolve().relative_to("/") / path.name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path.resolve(), target)


def assemble(root: Path, installed: Path) -> None:
    """Fill ``root``."""
    root.mkdir(parents=True)
    for link in ("lib", "lib64"):
        if (system := Path("/", link)).is_symlink():
            target = system.readlink()
            (root / target).mkdir(parents=True, exist_ok=True)
            (root / link).symlink_to(target)

    interpreter = Path(sys.base_prefix, "bin", f"python{sysconfig.get_python_version()}")
    put(interpreter, root)
    (root / interpreter.relative_to("/")).with_name("python").symlink_to(interpreter.name)
    library = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix}))
    inside = root / library.relative_to("/")
    shutil.copytree(
        library, inside, ignore=shutil.ignore_patterns("__pycache__", *DEVELOPMENT), symlinks=True
    )
    packages = inside / "site-packages"
    shutil.copytree(installed, packages, ignore=shutil.ignore_patterns(*AUTHORS))
    for name in UNUSED:
        shutil.rmtree(packages / name)
    # A start costs three times the CPU without bytecode, and a read-only root cannot keep it.
    for path in imported(packages):
        file = inside / path.relative_to(library) if path.is_relative_to(library) else path
        py_compile.compile(
            str(file),
            dfile=f"/{file.relative_to(root)}",
            doraise=True,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )

    for path in libraries([path for path in root.rglob("*") if is_loaded(path)]):
        if not path.is_relative_to(root):
            put(path, root)
    for name in SYSTEM:
        if (path := Path("/", name)).exists():
            put(path, root)
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc/passwd").write_text(f"plimsoll:x:{USER}:{USER}::/:/nonexistent\n", encoding="ascii")
    (root / "etc/group").write_text(f"plimsoll:x:{USER}:\n", encoding="ascii")


if __name__ == "__main__":
    assemble(Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute())
