"""Collects the files of an image: this interpreter, its library, installed packages and their libraries.

No shell, no package manager, no compiler: an image that consists of these files can run Python programs and
nothing else. Runs in the first stage of the Dockerfile and in tests/deploy, with the packages of
requirements-build.lock.

    CONTENT="plimsoll[optimal,devices]" python assemble.py ROOT INSTALLED

ROOT is the folder that becomes the image's root; INSTALLED is a folder that ``pip install --target`` filled.
Of what lies there the distributions that CONTENT names are kept, and what they require; "kubectl-plimsoll"
makes the files of the command line's archive. What each part weighs, and why it is there, is in
docs/adr/0038.
"""

import hashlib
import marshal
import os
import re
import shutil
import site
import subprocess
import sys
import sysconfig
from collections import deque
from collections.abc import Iterable, Iterator
from importlib import metadata, util
from pathlib import Path
from types import CodeType

import api_client
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

#: Parts of the standard library that an operator does not import.
DEVELOPMENT = (
    "config-*", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "site-packages", "test", "tests", "tkinter",
    "turtledemo", "turtle.py", "_ctypes_test*", "_test*", "_tkinter*", "_xx*", "xxlimited*", "nis.*",
    "curses", "_curses*", "readline*", "sqlite3", "_sqlite3*", "dbm", "_dbm*", "_gdbm*", "dist-packages",
    "sitecustomize.py", "distutils", "unittest", "doctest.py", "msilib", "EXTERNALLY-MANAGED",
)  # fmt: skip
#: Parts of packages that only their authors need.
AUTHORS = (
    "__pycache__",
    "tests",
    "*_test.py",
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
#: Files that nothing imports: extensions of the CEL library, each of which holds its engine once more; what
#: numpy tests itself with; colours for several hundred languages; lists of files, which are not all there.
UNUSED = (
    "cel_expr_python/ext",
    "numpy/_core/_simd*",
    "numpy/_core/_*_tests*",
    "numpy/random/lib",
    "numpy/testing",
    "pygments/lexers/*",
    "*.dist-info/RECORD",
)
USED = tuple(f"pygments/lexers/{name}.py" for name in ("__init__", "_mapping", "data", "python", "special"))
#: Where packages lie in every image, whichever interpreter it has: others copy theirs to them.
PACKAGES = "usr/local/lib/python{}/site-packages"
#: Who may be found on the system; those that are there are taken along.
SYSTEM = ("etc/ld.so.cache", "etc/nsswitch.conf", "etc/ssl/certs/ca-certificates.crt")
USER = 65532
#: Imports what is imported below a folder, and writes the files of all modules, and the code of many.
IMPORTING = """
import marshal, sys
from importlib.machinery import SourceFileLoader
codes, get_code = {}, SourceFileLoader.get_code
def keep(self, name):
    codes[self.path] = code = get_code(self, name)
    return code
SourceFileLoader.get_code = keep
sys.path.insert(0, sys.argv[1])
import plimsoll.commands.program
try:
    import plimsoll.app.process
except ImportError:
    import plimsoll.inspection.state
files = {getattr(each, "__file__", None) or "" for each in sys.modules.values()}
marshal.dump(([each for each in files if each.endswith(".py")], codes), sys.stdout.buffer)
"""


def libraries(files: Iterable[Path]) -> Iterator[Path]:
    """The shared libraries that these files load, directly or not, as the dynamic linker finds them."""
    command = ["ldd", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - of this stage
    for path in dict.fromkeys(re.findall(r"(?:=> |^\s*)(/\S+) \(0x", done.stdout, re.MULTILINE)):
        yield Path(path)


def imported(packages: Path) -> dict[Path, CodeType]:
    """The source files that ``plimsoll run`` imports, with their code, which is compiled for that once."""
    command = [sys.executable, "-ISBc", IMPORTING, str(packages)]
    done = subprocess.run(command, capture_output=True, check=True)  # noqa: S603 - itself
    files, codes = marshal.loads(done.stdout)  # noqa: S302 - our own
    # Those that the interpreter has loaded before it ran the program, or brings itself, are few.
    return {
        Path(file): codes.get(file) or compile(Path(file).read_bytes(), file, "exec", dont_inherit=True)
        for file in sorted(files)
    }


def placed(code: CodeType, file: str) -> CodeType:
    """The code of a file that is elsewhere when it runs."""
    constants = tuple(placed(each, file) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_filename=file, co_consts=constants)


def bytecode(source: bytes, code: CodeType) -> bytes:
    """A file of bytecode that the interpreter takes without looking at the source (PEP 552)."""
    flags = (0b01).to_bytes(4, "little")  # by its hash, unchecked
    return util.MAGIC_NUMBER + flags + util.source_hash(source) + marshal.dumps(code)


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


def required(installed: Path, wanted: Iterable[str]) -> set[str]:
    """The distributions that these requirements bring, by their names as PEP 503 has them."""
    known = {canonicalize_name(each.name): each for each in metadata.distributions(path=[str(installed)])}
    asked, seen = deque(Requirement(each) for each in wanted), set[tuple[str, str]]()
    while asked:
        one = asked.popleft()
        name = canonicalize_name(one.name)
        for extra in ("", *sorted(one.extras)):
            if (name, extra) in seen or name not in known:
                continue
            seen.add((name, extra))
            further = map(Requirement, known[name].requires or ())
            asked += (
                each for each in further if each.marker is None or each.marker.evaluate({"extra": extra})
            )
    return {name for name, _ in seen}


def drop(packages: Path, installed: Path, kept: set[str]) -> None:
    """Remove other distributions, as the records of where they were installed list the files."""
    for each in metadata.distributions(path=[str(installed)]):
        if canonicalize_name(each.name) not in kept:
            for file in each.files or ():
                (packages / file).unlink(missing_ok=True)
    for folder in sorted(packages.rglob("*/"), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


def slim(folder: Path) -> None:
    """Remove symbols for debuggers from shared libraries, and second copies of a library in one folder."""
    strip = shutil.which("strip")
    seen: dict[tuple[Path, bytes], Path] = {}
    files = sorted(path for path in folder.rglob("*.so*") if is_loaded(path))
    # Libraries that were moved into a wheel do not survive it: their segments are no longer aligned.
    own = [str(file) for file in files if not file.parent.name.endswith(".libs")]
    if strip is not None and own:
        subprocess.run([strip, "--strip-debug", *own], check=True)  # noqa: S603 - of this stage
    for file in files:
        key = (file.parent, hashlib.sha256(file.read_bytes()).digest())
        if (first := seen.setdefault(key, file)) is not file:
            file.unlink()
            file.symlink_to(first.name)


def install(packages: Path, installed: Path, wanted: Iterable[str]) -> None:
    """Copy the packages that these requirements bring, without what nothing imports."""
    kept = {installed / name for name in USED}
    unused = {path for name in UNUSED for path in installed.glob(name)} - kept | api_client.unused(installed)
    authors = shutil.ignore_patterns(*AUTHORS)

    def ignored(folder: str, names: list[str]) -> set[str]:
        return authors(folder, names) | {name for name in names if Path(folder, name) in unused}

    shutil.copytree(installed, packages, ignore=ignored)
    drop(packages, installed, required(installed, wanted))
    api_client.prune(packages)
    slim(packages)


def assemble(root: Path, installed: Path, wanted: Iterable[str]) -> None:
    """Fill ``root``."""
    root.mkdir(parents=True)
    for link in ("lib", "lib64"):
        if (system := Path("/", link)).is_symlink():
            target = system.readlink()
            (root / target).mkdir(parents=True, exist_ok=True)
            (root / link).symlink_to(target)

    version = sysconfig.get_python_version()
    interpreter = Path(sys.base_prefix, "bin", f"python{version}")
    put(interpreter, root)
    (root / interpreter.relative_to("/")).with_name("python").symlink_to(interpreter.name)
    library = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix}))
    inside = root / library.relative_to("/")
    shutil.copytree(
        library, inside, ignore=shutil.ignore_patterns("__pycache__", *DEVELOPMENT), symlinks=True
    )
    packages = root / PACKAGES.format(version)
    packages.parent.mkdir(parents=True, exist_ok=True)
    install(packages, installed, wanted)
    # Where this interpreter looks: the same folder, or a link to it.
    own = root / site.getsitepackages([sys.base_prefix])[0].lstrip("/")
    if own != packages:
        own.parent.mkdir(parents=True, exist_ok=True)
        own.symlink_to(Path("/", packages.relative_to(root)))
    # A start costs three times the CPU without bytecode, and a read-only root cannot keep it. Of the standard
    # library nothing else is kept, as in Python's embeddable package; packages keep sources, for tracebacks.
    for path, code in imported(packages).items():
        is_standard = path.is_relative_to(library)
        file = inside / path.relative_to(library) if is_standard else path
        compiled = Path(file.with_suffix(".pyc") if is_standard else util.cache_from_source(str(file)))
        compiled.parent.mkdir(exist_ok=True)
        compiled.write_bytes(bytecode(file.read_bytes(), placed(code, f"/{file.relative_to(root)}")))
        if is_standard:
            file.unlink()

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
    content = os.environ.get("CONTENT", "plimsoll[optimal,devices]")
    assemble(Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute(), content.split())
