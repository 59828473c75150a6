"""``make mutants`` tries copies of modules with one slip each against the tests that reach it."""

import ast
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import distributions
from distributions import package_of
from mutants.__main__ import nearest
from mutants.equivalents import PLACE, Equivalent, Equivalents
from mutants.functions import Functions
from mutants.hunt import Outcome, Verdict
from mutants.mutant import (
    Mutant,
    drawn,
    found_again,
    is_sound,
    listed,
    modules,
    mutants_of,
    shares,
    text_with,
)
from mutants.results import Results
from mutants.typed import complaint
from planter import faults

ROOT = Path(__file__).parents[2]
PATH = "client/plimsoll/cluster/book.py"
#: The folder of the lists of faults.
PLANTER = ROOT / "tools/planter"


def changes(source: str) -> set[tuple[str, str, str]]:
    return {
        (each.operator, each.before, each.after)
        for each in mutants_of(PATH, source)
        if is_sound(each, source)
    }


def function(*lines: str, head: str = "def f(self, pod):") -> str:
    return "\n".join((head, *(f"    {each}" for each in lines), ""))


@pytest.mark.parametrize(
    ("line", "change"),
    [
        pytest.param("return a < b", ("comparison", "return (a >= b)"), id="the opposite"),
        pytest.param("return a < b", ("boundary", "return (a <= b)"), id="the boundary"),
        pytest.param("return a and b", ("boolean", "return (a or b)"), id="or for and"),
        pytest.param("return a and b", ("second condition dropped", "return a"), id="a condition less"),
        pytest.param(
            "return a.namespace == b.namespace and c",
            ("second condition dropped", "return (a.namespace == b.namespace)"),
            id="a condition after the namespace",
        ),
        pytest.param(
            "return a == b and a.namespace == b.namespace",
            ("namespace dropped", "return (a == b)"),
            id="the namespace of a comparison",
        ),
        pytest.param(
            "return self.by_name[(pod.namespace, pod.name)]",
            ("namespace dropped", 'return self.by_name[("", pod.name)]'),
            id="the namespace of a key",
        ),
        pytest.param("return a.uid == b.uid", ("name for uid", "return (a.name == b.name)"), id="a name"),
        pytest.param("return a + b", ("arithmetic", "return (a - b)"), id="a sum"),
        pytest.param("self.a += b", ("arithmetic", "self.a -= b"), id="a sum in place"),
        pytest.param("return f(3)", ("constant", "return f((4))"), id="a number"),
        pytest.param("return f(True)", ("constant", "return f(False)"), id="a truth"),
        pytest.param("return self.a", ("return", "return None"), id="nothing is returned"),
        pytest.param("self.release(pod)", ("undo left out", "pass"), id="no release"),
        pytest.param("del self.pods[pod]", ("undo left out", "pass"), id="no deletion"),
        pytest.param("self.since = None", ("reset left out", "pass"), id="no reset"),
        pytest.param("self.pods_by_node[pod.node] = pod", ("index not renewed", "pass"), id="an index"),
        pytest.param("self.by_node.add(pod)", ("index not renewed", "pass"), id="a set as an index"),
        pytest.param("self.count += 1", ("statement left out", "pass"), id="a statement"),
        pytest.param("return all(pods)", ("any for all", "return any(pods)"), id="any for all"),
        pytest.param("return seconds * 1000", ("unit", "return (seconds)"), id="a factor"),
        pytest.param("return a > self.wait_s", ("unit", "return a > (self.wait_s * 1000)"), id="a unit"),
        pytest.param("f(seconds=a)", ("unit", "f(seconds=(a * 60))"), id="minutes"),
        pytest.param("return clock.now()", ("other clock", "return clock.monotonic()"), id="a clock"),
    ],
)
def test_operators(line: str, change: tuple[str, str]) -> None:
    assert (change[0], line, change[1]) in changes(function(line))


def test_an_undo_is_whatever_runs_after_a_failure() -> None:
    source = function("try:", "    self.send()", "except OSError:", "    self.waits = self.time", "    raise")
    assert ("undo left out", "self.waits = self.time", "pass") in changes(source)


def test_an_event_is_ignored_where_its_handler_begins() -> None:
    source = function("self.pods.append(pod)", head="def note_pod(self, pod) -> None:")
    assert ("event ignored", "self.pods.append(pod)", "return") in changes(source)


def test_writes_change_places_where_the_second_uses_what_the_first_wrote() -> None:
    source = function("self.count = pod", "self.told.send(self.count)", "self.other.append(pod)")
    swapped = [each for each in changes(source) if each[0] == "order of two writes"]
    assert [each[2] for each in swapped] == ["self.told.send(self.count); self.count = pod"]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param('"""A text: a < b."""', id="a docstring"),
        pytest.param('log.info("of %s", a < b)', id="a log line"),
        pytest.param('raise ValueError(f"{a + 1}")', id="an error"),
        pytest.param('return f"{a + 1}" "b"', id="a text"),
    ],
)
def test_what_is_said_has_no_mutants(line: str) -> None:
    assert {kind for kind, _, _ in changes(function(line, "return x"))} == {"return"}


def test_what_runs_at_an_import_and_what_is_declared_only_have_no_mutants() -> None:
    assert not changes("LIMIT = 3 + 4\nclass Port:\n    def wait(self, s: int = 3) -> None:\n        ...\n")


def test_a_mutant_has_the_lines_of_its_module() -> None:
    source = (
        function("return (", "    a", "    and b", ")", "", head="def f(a, b):") + "def g():\n    return 1\n"
    )
    for each in mutants_of(PATH, source):
        if is_sound(each, source):
            last = ast.parse(text_with(each, source)).body[-1]
            assert last.lineno == 7, each


@pytest.mark.parametrize(
    ("path", "homes"),
    [
        pytest.param(
            "core/plimsoll/engine/gangs/placement.py",
            ("tests/engine/gangs/", "tests/engine/"),
            id="a package",
        ),
        pytest.param("kubectl/plimsoll/cli/views/top.py", ("tests/cli/views/", "tests/cli/"), id="a folder"),
        pytest.param("optimal/plimsoll_optimal/milp.py", ("tests/planning/optimal/",) * 2, id="elsewhere"),
    ],
)
def test_the_tests_of_a_module_lie_in_the_folder_of_its_package(path: str, homes: tuple[str, str]) -> None:
    assert Mutant(path, 1, 1, "constant", "", "", 0, 0, "").homes == homes


def test_each_package_has_a_folder_of_tests() -> None:
    paths = [each.relative_to(ROOT).as_posix() for each in distributions.modules(ROOT)]
    inside = [each for each in paths if not package_of(each).endswith(".py")]
    wanted = {Mutant(each, 1, 1, "", "", "", 0, 0, "").homes[1] for each in inside}
    assert {each for each in wanted if not (ROOT / each).is_dir()} == set()


TEXTS = {
    f"client/plimsoll/{package}/module.py": "\n".join(
        function(f"return a{place} < b and c.namespace == d", head=f"def f{place}(a{place}, b, c, d):")
        for place in range(size)
    )
    for package, size in (("small", 3), ("middle", 20), ("large", 60))
}


def test_a_seed_draws_the_same_mutants_again_and_another_seed_others() -> None:
    assert drawn(TEXTS, 20, 1) == drawn(TEXTS, 20, 1) != drawn(TEXTS, 20, 2)


def test_a_sample_takes_from_each_package_by_its_size_and_once_from_a_line() -> None:
    sample = drawn(TEXTS, 40, 1)
    counts = Counter(each.package for each in sample)
    assert len({(each.path, each.line) for each in sample}) == sum(counts.values())
    assert counts["large"] > counts["middle"] > counts["small"] == 3


def test_known_mutants_are_not_drawn() -> None:
    first = drawn(TEXTS, 20, 1)
    again = drawn(TEXTS, 20, 1, frozenset(each.key for each in first))
    assert not {each.key for each in first} & {each.key for each in again}


def test_mutants_are_found_again_where_their_lines_moved_and_not_where_they_are_gone() -> None:
    path, text = next(iter(TEXTS.items()))
    moved = [replace(each, line=each.line + 2, last=each.last + 2) for each in mutants_of(path, text)]
    found = found_again(mutants_of(path, text), {path: f"\n\n{text}"})
    assert {each.key: each.line for each in found} == {each.key: each.line for each in moved}
    assert not found_again(moved, {path: "def f(): pass\n"})


def test_listed_faults_are_mutants_where_their_lines_are_now() -> None:
    wanted = faults.read(PLANTER / "second_time.json")
    found = listed(wanted, ROOT)
    assert len(found) == len(wanted)
    for each in found:
        text = (ROOT / each.path).read_text(encoding="utf-8")
        assert is_sound(each, text)
        assert each.after in text_with(each, text)
        assert text_with(each, text).splitlines()[: each.line - 1] == text.splitlines()[: each.line - 1]
    gone = replace(wanted[0], old=("no module has this",))
    assert not listed([gone], ROOT)


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        pytest.param(30, {"a": 5, "b": 25}, id="some"),
        pytest.param(1, {"a": 0, "b": 1}, id="one"),
        pytest.param(0, {"a": 0, "b": 0}, id="none"),
    ],
)
def test_shares(count: int, expected: dict[str, int]) -> None:
    assert shares({"a": 10, "b": 200}, count) == expected


@pytest.fixture
def planted_book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A product of one module."""
    module = tmp_path / "client/plimsoll/cluster/planted_book.py"
    module.parent.mkdir(parents=True)
    module.write_text(
        "from functools import cached_property, wraps\n"
        "def told(function):\n"
        "    @wraps(function)\n"
        "    def telling(*args):\n"
        "        return function(*args)\n"
        "    return telling\n"
        "class Book:\n"
        "    room = 3\n"
        "    def has(self, wanted):\n"
        "        return self.room > wanted\n"
        "    @cached_property\n"
        "    def half(self):\n"
        "        return self.room * 2\n"
        "    @told\n"
        "    def free(self, used):\n"
        "        return [each for each in (self.room - used,) if each][0]\n"
    )
    monkeypatch.syspath_prepend(module.parent)
    return module


def test_a_planted_mutant_is_in_every_function_that_exists(planted_book: Path) -> None:
    import planted_book as module  # type: ignore[import-not-found]  # noqa: PLC0415 - a module of this test

    path = "client/plimsoll/cluster/planted_book.py"
    book, has = module.Book(), module.Book().has
    functions = Functions(planted_book.parents[3])
    assert (has(2), book.free(1)) == (True, 2)
    for each in mutants_of(path, planted_book.read_text()):
        if (
            each.after in ("return (self.room <= wanted)", "return (self.room // 2)")
            or "self.room + used" in each.after
        ):
            assert functions.plant(each) == 1
    assert (has(2), book.half, book.free(1)) == (False, 1, 4)
    del sys.modules["planted_book"]


@pytest.mark.slow  # mypy reads what builtins are
def test_mypy_is_asked_about_the_module_and_not_about_the_mutants_own_words(tmp_path: Path) -> None:
    """An equal amount is another one; None is not, and "if True" is said by the mutant alone."""
    path = tmp_path / PATH
    path.parent.mkdir(parents=True)
    text = "# mypy: enable-error-code=redundant-expr\ndef few(all: list[int]) -> int:\n"
    text += "    found = [each for each in all if each > 3]\n    return len(found)\n"
    path.write_text(text)
    found = {each.operator: each for each in mutants_of(PATH, text) if is_sound(each, text)}

    said = {name: complaint(found[name], tmp_path, tmp_path / "cache") for name in PROBED}

    assert [name for name, why in said.items() if why] == ["return"]
    assert 'got "None", expected "int"' in said["return"]


#: Operators whose mutants mypy is asked about: a wrong type, words of the mutant alone, another value.
PROBED = ("return", "filter left out", "boundary")


def mutant(line: int = 2, package: str = "cluster") -> Mutant:
    path = f"client/plimsoll/{package}/book.py"
    return Mutant(path, line, line, "boundary", f"return a < {line}", f"return (a <= {line})", 0, 0, "")


def test_the_tests_of_a_mutant_are_those_nearest_by_imports_and_then_those_of_its_package() -> None:
    """Without dear tests of other packages, and those that neither import it nor lie in its folder."""
    importers = {
        "client/plimsoll/cluster/book.py": {
            "tests/cluster/test_a.py",
            "tests/load/test_book.py",
            "client/plimsoll/cluster/cache.py",
        },
        "client/plimsoll/cluster/cache.py": {
            "tests/load/test_b.py",
            "tests/cluster/test_cache.py",
            "tests/soak/test_long.py",
        },
    }
    tests = {each for all_ in importers.values() for each in all_ if each.startswith("tests/")}
    tests |= {"tests/cluster/test_other.py", "tests/api/test_apart.py"}

    assert nearest(tests, mutant(), importers) == [
        "tests/load/test_book.py",
        "tests/cluster/test_a.py",
        "tests/cluster/test_cache.py",
        "tests/load/test_b.py",
        "tests/cluster/test_other.py",
    ]


def test_results_are_by_package_the_worst_first_without_those_that_are_equivalent(tmp_path: Path) -> None:
    wanted = [mutant(2), mutant(3), *(mutant(line, "load") for line in (4, 5, 6, 7))]
    results = Results(tmp_path / "results.json", Equivalents({wanted[4].key: "the same"}), list[str]().append)
    ends = ("caught", "caught", "survived", "caught", None, "refused by types")
    for each, outcome in zip(wanted, ends, strict=True):
        if outcome:
            results.tell(Verdict(each, Outcome(outcome)))
    rows = [each for each in results.summary(wanted).splitlines() if each.startswith("|")]
    assert rows[2:] == [
        "| load | 1 | 1 | 1 | 1 | 67 % |",
        "| cluster | 2 | 0 | 0 | 0 | 100 % |",
        "| all | 3 | 1 | 1 | 1 | 80 % |",
    ]
    assert results.percent(wanted) == 80
    again = Results(results.place, Equivalents({}), print)
    assert again.waiting(wanted) == [wanted[4]]
    again.forget_survivors()
    assert again.waiting(wanted) == [wanted[2], wanted[4]]


def test_equivalent_mutants_are_known_by_text_wherever_they_move(tmp_path: Path) -> None:
    place = tmp_path / "equivalents.json"
    entry = Equivalent(mutant().path, "boundary", "return a < 2", "return (a <= 2)", "a is odd")
    place.write_bytes(msgspec.json.encode([entry]))
    moved = replace(mutant(), line=70, last=70)
    assert Equivalents.read(place).why(moved) == "a is odd"


def test_listed_equivalents_are_mutants_that_exist_each_with_a_reason() -> None:
    entries = msgspec.json.decode(PLACE.read_bytes(), type=list[Equivalent])
    texts = modules(ROOT)
    for path in {each.path for each in entries}:
        known = {each.key for each in mutants_of(path, texts[path])}
        for each in entries:
            if each.path == path:
                assert (each.path, each.operator, each.before, each.after) in known
                assert len(each.why.split()) > 3


PRODUCT = """
class Book:
    def __init__(self):
        self.room = 3

    def has(self, wanted):
        return self.room > wanted

    def drain(self):
        while self.room > 0:
            self.room -= 1
        return self.room

    def never(self):
        return self.room < 1
"""
TESTS = """
import pytest
from plimsoll.cluster.book import Book

@pytest.fixture(scope="module")
def book():
    return Book()

def test_has(book):
    assert book.has(2)

def test_drain():
    assert Book().drain() == 0
"""


PROGRAM = """
import os, pytest
from pathlib import Path
from mutants.mutant import is_sound, mutants_of
from mutants.reach import Reach
from mutants import hunt as hunts
from mutants.hunt import Hunt, Limits
hunts.PATIENCE_S = hunts.UNMEASURED_S = 0.3  # the loop that does not end is waited for several times
root, path = Path("{root}"), "{path}"
text = (root / path).read_text()
wanted = [each for each in mutants_of(path, text) if is_sound(each, text)]
def tell(end):
    print(end.mutant.line, end.mutant.after, "|", end.outcome, end.by, flush=True)
errors = os.dup(2)
def progress(line):
    os.write(errors, line.encode() + b"\\n")
near = lambda _: ["tests/cluster/test_book.py"]
hunt = Hunt(Reach(root, root / "reach"), wanted, Limits(0, 2, 6, 60), 2, tell, progress, near)
pytest.main(["-q", "-s", "-W", "ignore", "-p", "hypothesis_suite", str(root / "tests")], plugins=[hunt])
"""


@pytest.mark.slow  # a session of pytest of its own
def test_mutants_are_tried_in_forks_of_a_session(tmp_path: Path) -> None:
    """Caught, caught because it does not end, survived, and not reached."""
    module, tests = tmp_path / PATH, tmp_path / "tests/cluster/test_book.py"
    for path, text in ((module, PRODUCT), (tests, TESTS)):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    for package in (module.parent, module.parents[1]):
        (package / "__init__.py").touch()
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = client\naddopts = --import-mode=importlib\n")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(root=tmp_path, path=PATH))
    (tmp_path / "hypothesis_suite.py").write_text(
        "from hypothesis import settings\nsettings.register_profile('suite', settings())\n"
    )
    sources = (tmp_path, ROOT / "tools", ROOT / "tests")
    done = subprocess.run(
        [sys.executable, program],
        cwd=tmp_path,
        env={"PYTHONPATH": ":".join(map(str, sources)), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    found = dict(each.split(" | ") for each in done.stdout.splitlines() if " | " in each)
    assert found["7 return (self.room <= wanted)"].startswith("caught tests/cluster/test_book.py::test_has")
    assert found["7 return (self.room >= wanted)"].strip() == "survived"
    assert found["11 self.room += 1"] == "caught does not end: tests/cluster/test_book.py::test_drain"
    assert found["15 return (self.room >= 1)"].strip() == "not reached"
