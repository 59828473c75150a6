"""Lists the test files that the changes since a commit affect, nearest first.

A test file is affected when it imports what has changed, directly or through other modules; or, for a file
that is no Python module, when it names that file; or when it reads all files of a kind. ``make quick`` runs
what this prints.

The distance of a test file is the number of imports between it and the change. After ``make coverage`` the
test files that covered a changed line come first (tools/coverage_map.py). Left out are the tests that start
processes (``tests/e2e`` and ``tests/deploy``), unless they have changed themselves, name a changed file that
is neither a module nor a page, or are the only ones that covered a changed line.
"""

import argparse
import ast
import difflib
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import coverage_map
from distributions import FOLDERS

ROOT = Path(__file__).parents[1]
#: Where modules are imported from, as in pyproject.toml.
SOURCES = (*FOLDERS, "devcluster/src", "devcluster/tests", "tests", "tools", "examples/sample-plugin/src")
SLOW = ("tests/e2e/", "tests/deploy/")
#: Folders of tests that read all files of a kind, by where these begin and end.
READERS = {**{(f"{each}/", ".py"): "tests/structure/" for each in FOLDERS}, ("docs/", ".md"): "tests/docs/"}
#: A change of these affects every test.
EVERYWHERE = ("pyproject.toml", "conftest.py", "tests/conftest.py")


def module_of(path: str) -> str:
    """The name by which the Python file at a path is imported."""
    source = max((each for each in SOURCES if path.startswith(f"{each}/")), key=len, default="")
    parts = path.removeprefix(f"{source}/").removesuffix(".py").split("/")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> set[str]:
    """The names that a Python file imports, and the packages that importing them loads."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.update((node.module, *(f"{node.module}.{each.name}" for each in node.names)))
    return found


def distances(importers: Mapping[str, Iterable[str]], changed: Iterable[str]) -> dict[str, int]:
    """The files that the changed files reach through their importers, with the number of steps."""
    reached = dict.fromkeys(changed, 0)
    front = list(reached)
    while front:
        following = []
        for each in front:
            for importer in importers.get(each, ()):
                if importer not in reached:
                    reached[importer] = reached[each] + 1
                    following.append(importer)
        front = following
    return reached


def is_test(path: str) -> bool:
    """Whether pytest collects a file."""
    return Path(path).name.startswith("test_") and path.endswith(".py")


def importers_of(modules: Iterable[str], root: Path) -> dict[str, set[str]]:
    """The modules that import each one."""
    file_of = {module_of(each): each for each in modules}
    importers = defaultdict(set)
    for importer in file_of.values():
        for name in imports_of(root / importer):
            if name in file_of:
                importers[file_of[name]].add(importer)
    return importers


def tests_naming(tests: Iterable[str], changed: Iterable[str], root: Path) -> set[str]:
    """The tests that name a changed file; those that start processes do not count for a page."""
    names = {Path(each).name for each in changed if not each.endswith(".py")}
    pages = {each for each in names if each.endswith(".md")}
    found = set()
    for each in tests if names else ():
        text = (root / each).read_text(encoding="utf-8")
        if any(name in text for name in (names - pages if each.startswith(SLOW) else names)):
            found.add(each)
    return found


def readers_of(tests: Iterable[str], changed: Iterable[str]) -> list[str]:
    """The tests that read all files of a kind, of which one has changed."""
    folders = tuple(
        folder
        for (begin, end), folder in READERS.items()
        if any(each.startswith(begin) and each.endswith(end) for each in changed)
    )
    return [each for each in tests if each.startswith(folders)]


def changed_lines(before: str, now: str) -> set[int]:
    """The numbers of the lines that are no longer there, and of those around the lines that are new."""
    found: set[int] = set()
    lines = difflib.SequenceMatcher(None, before.splitlines(), now.splitlines(), autojunk=False)
    for kind, begin, end, _, _ in lines.get_opcodes():
        if kind == "insert":
            found.update((begin, begin + 1))
        elif kind != "equal":
            found.update(range(begin + 1, end + 1))
    return found


def covering(
    found: coverage_map.CoverageMap, tests: Iterable[str], changed: Iterable[str], root: Path
) -> set[str]:
    """The test files that covered a changed line; one that starts processes where no other did."""
    known = frozenset(tests)
    kept: set[str] = set()
    for each in changed:
        if (measured := found.get(each)) is not None:
            for line in changed_lines(measured.text, (root / each).read_text(encoding="utf-8")):
                those = known & measured.tests.get(line, frozenset())
                kept |= {test for test in those if not test.startswith(SLOW)} or those
    return kept


def affected(
    files: Iterable[str],
    changed: Iterable[str],
    root: Path = ROOT,
    found: coverage_map.CoverageMap | None = None,
) -> list[str]:
    """The test files and documents that the changed files affect, nearest first.

    Args:
        files: All files of the repository.
        changed: Those that have changed or are new.
        root: The folder of the repository.
        found: Which test files covered which lines, if that is known.
    """
    modules = [each for each in files if each.endswith(".py")]
    tests = [each for each in modules if is_test(each)]
    changed = set(changed)
    if changed & set(EVERYWHERE):
        return sorted(each for each in tests if not each.startswith(SLOW))
    pages = {each for each in changed if each.endswith(".md")}
    first = changed | tests_naming(tests, changed, root)
    steps = distances(importers_of(modules, root), first)
    for each in readers_of(tests, changed):
        steps.setdefault(each, 1)
    # A conftest.py, which no module imports, affects its folder.
    for each in [each for each in steps if each.endswith("/conftest.py")]:
        for test in tests:
            if test.startswith(each.removesuffix("conftest.py")):
                steps.setdefault(test, steps[each] + 1)
    covered = covering(found or {}, tests, changed, root)
    reached = [each for each in steps if is_test(each) or each in pages]
    kept = covered | {each for each in reached if each in first or not each.startswith(SLOW)}
    near = covered | changed

    def order(each: str) -> tuple[object, ...]:
        return each not in near, each.startswith(SLOW), steps.get(each, len(steps)), each

    return sorted(kept, key=order)


def _git(*args: str) -> list[str]:
    done = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603, S607 - git is the user's
    return done.stdout.splitlines()


def main() -> None:
    """Print them, one a line, and on the other stream how many there would have been."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("since", help="a commit, such as main: the changes of this branch and of its files")
    parser.add_argument("--most", type=int, default=1000, metavar="FILES", help="print the nearest ones only")
    options = parser.parse_args()
    (base,) = _git("merge-base", "HEAD", options.since)
    files = [each for each in _git("ls-files", "-co", "--exclude-standard") if (ROOT / each).exists()]
    changed = {*_git("diff", "--name-only", base), *_git("ls-files", "-o", "--exclude-standard")}
    found = affected(files, changed & set(files), found=coverage_map.read(ROOT / coverage_map.PLACE))
    nearest = found[: options.most]
    sys.stdout.writelines(f"{each}\n" for each in nearest)
    sys.stderr.write(f"{len(found)} test files are affected; the nearest {len(nearest)} run\n")


if __name__ == "__main__":
    main()
