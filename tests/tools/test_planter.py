"""``make planted`` plants faults in rare branches, one at a time, and says which test finds each."""

import ast
import subprocess
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from coverage_map import CoverageMap, Measured
from planter import faults
from planter.__main__ import row, summary
from planter.faults import Fault, Place, place_of, planted
from planter.rare_branches import drawn, sites
from planter.slips import slips
from planter.trials import Outcome, Scratch, Trials

ROOT = Path(__file__).parents[2]
BOOK = '''class Book:
    def add(self, pod):
        """Adds it; a second time for "a < b" does nothing."""
        if pod.uid in self.pods and pod.is_bound:
            if self.room < 0:
                self.reset()
                return None
            self.total -= 1
        else:
            self.pods[pod.uid] = pod
        return self.total

    def count(self):
        while self.left:
            self.left -= 1
'''
PATH = "client/plimsoll/cluster/book.py"
FEW, MANY = frozenset({"tests/cluster/test_book.py", "tests/e2e/test_all.py"}), frozenset("abcdef")


def changes(source: str) -> list[tuple[str, str, str]]:
    return [
        (slip.kind, ast.unparse(slip.node), slip.text)
        for node in ast.walk(ast.parse(source))
        for slip in slips(node)
    ]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("if a:\n  b", [("condition negated", "a", "not a")], id="a condition"),
        pytest.param("if not a:\n  b", [("condition negated", "not a", "a")], id="a negative condition"),
        pytest.param("while True:\n  b", [], id="no condition"),
        pytest.param("x = a if b else c", [("condition negated", "b", "(not b)")], id="an expression"),
        pytest.param("x = a and (b or c)", [
            ("second condition dropped", "a and (b or c)", "a"),
            ("second condition dropped", "b or c", "b"),
        ], id="conditions"),
        pytest.param("x = (a or b) and c", [
            ("second condition dropped", "(a or b) and c", "(a or b)"),
            ("second condition dropped", "a or b", "a"),
        ], id="conditions in parentheses"),
        pytest.param("x = a.name == n and a.namespace == s", [
            ("namespace dropped", "a.name == n and a.namespace == s", "(a.name == n)"),
        ], id="a namespace"),
        pytest.param("x = any(y)", [("all for any", "any", "all")], id="any"),
        pytest.param("x = min(y, default=0)", [
            ("max for min", "min", "max"), ("wrong default", "0", "1"),
        ], id="a minimum and its default"),
        pytest.param("x = a.get(b, True)", [("wrong default", "True", "False")], id="a default"),
        pytest.param("x = a < b <= c", [
            ("boundary", "a < b <= c", "(a <= b <= c)"), ("boundary", "a < b <= c", "(a < b < c)"),
        ], id="orders"),
        pytest.param("x = a.uid == b.uid", [("name for uid", "a.uid == b.uid", "(a.name == b.name)"),
], id="uid"),
        pytest.param("x = a[b.uid]", [("name for uid", "a[b.uid]", "a[b.name]")], id="a key"),
        pytest.param("x = a.uid == b", [], id="a uid against a value"),
        pytest.param("x = [a for a in b if a]", [("filter left out", "a", "True")], id="a filter"),
        pytest.param("for a in b:\n  continue\n  break", [
            ("break for continue", "continue", "break"), ("continue for break", "break", "continue"),
        ], id="ends of a turn"),
        pytest.param("a.b = c\nd = e\nf[g] += 1\ndel h\ni.reset()\nj()\nk.info()\n'l'", [
            ("statement left out", each, "pass") for each in ("a.b = c", "f[g] += 1", "del h", "i.reset()")
        ], id="statements"),
    ],
)  # fmt: skip
def test_a_slip_looks_right(source: str, expected: Any) -> None:
    assert changes(source) == expected


def test_an_early_return_is_removed_where_the_function_goes_on() -> None:
    (slip,) = [
        each
        for each in changes("def f():\n  if a:\n    b()\n    return c")
        if each[0] == "early return removed"
    ]

    assert slip == ("early return removed", "return c", "pass")


def test_a_rare_branch_is_one_that_few_test_files_reach_under_a_condition() -> None:
    """The condition that leads to it counts, and nothing that always runs."""
    lines = {
        4: MANY,
        5: FEW,
        6: frozenset("a"),
        7: frozenset("a"),
        8: FEW,
        10: MANY,
        11: FEW,
        14: FEW,
        15: MANY,
    }

    found = [
        (each.scope, each.slip.node.lineno, each.slip.kind, each.line)
        for each in sites(Measured(BOOK, lines), 2)
    ]

    assert found == [
        ("Book.add", 4, "condition negated", 5),
        ("Book.add", 4, "second condition dropped", 5),
        ("Book.add", 5, "condition negated", 6),
        ("Book.add", 7, "early return removed", 6),
        ("Book.add", 5, "boundary", 6),
        ("Book.add", 6, "statement left out", 6),
        ("Book.add", 8, "statement left out", 8),
    ]


def known(*packages: str) -> CoverageMap:
    """The same module in each package, all of it rare."""
    lines = dict.fromkeys(range(1, 16), FEW)
    return {
        f"core/plimsoll/{package}/{name}.py": Measured(BOOK, lines) for package in packages for name in "abcd"
    }


@pytest.mark.parametrize("seed", range(6))
def test_faults_are_spread_over_packages_and_kinds(seed: int) -> None:
    found = drawn(known("kube", "load", "api"), count=9, seed=seed, most=2)

    assert Counter(each.package for each in found) == {"kube": 3, "load": 3, "api": 3}
    assert len({(each.package, each.kind) for each in found}) == 9


def test_a_seed_draws_the_same_faults_and_another_one_others() -> None:
    first, again, other = (drawn(known("kube", "load"), count=5, seed=seed, most=2) for seed in (1, 1, 2))

    assert first == again != other


def test_there_may_be_fewer_faults_than_wanted() -> None:
    """One package, and one fault for each function."""
    assert len(drawn(known("kube", "load"), count=99, seed=1, most=2, package="load")) == 8
    assert drawn(known("kube"), count=5, seed=1, most=1) == []


BOUNDARY = Fault(
    PATH, "Book.add", "boundary", ("if self.room < 0:",), ("if self.room <= 0:",),
    ('"""Adds it; a second time for "a < b" does nothing."""', "if pod.uid in self.pods and pod.is_bound:"),
    ("self.reset()", "return None"),
)  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / PATH).parent.mkdir(parents=True)
    (tmp_path / PATH).write_text(BOOK)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        pytest.param(PATH, BOOK, 5, id="where it was"),
        pytest.param(PATH, f"\n\n\n{BOOK}", 8, id="further down"),
        pytest.param(PATH, BOOK.replace("    ", "        "), 5, id="further in"),
        pytest.param(
            PATH,
            f"{BOOK}if self.room < 0:\n    self.reset()\n    return None\n",
            5,
            id="the place that is more like it",
        ),
        pytest.param("client/plimsoll/records/books.py", BOOK, 5, id="in another module"),
        pytest.param(PATH, BOOK.replace("self.room <", "self.left <"), None, id="another line"),
        pytest.param(PATH, "x\nif self.room < 0:\n    pass\n", None, id="a line that is like it by chance"),
    ],
)
def test_a_fault_finds_its_place_in_a_tree_that_has_changed(
    tree: Any, path: Any, text: Any, line: Any
) -> None:
    (tree / PATH).write_text("")
    (tree / path).parent.mkdir(exist_ok=True)
    (tree / path).write_text(text)

    place = place_of(BOUNDARY, tree)

    assert place == (line and Place(path, line))
    if place is not None:
        assert planted(BOUNDARY, place.line, text) == text.replace(
            "        if self.room < 0", "        if self.room <= 0"
        )


def test_a_drawn_fault_can_be_kept_and_planted_anywhere_in_a_module(tmp_path: Any) -> None:
    """Each one is where it was drawn, is valid Python, and changes nothing else."""
    source = BOOK.replace(
        "self.room < 0", "(self.room\n                < 0 and 'ä') or (\n                any(self.pods))"
    )
    found = [
        each
        for seed in range(9)
        for each in drawn({PATH: Measured(source, dict.fromkeys(range(20), FEW))}, count=2, seed=seed, most=2)
    ]
    (tmp_path / PATH).parent.mkdir(parents=True)
    (tmp_path / PATH).write_text(source)
    faults.write(found, tmp_path / "new" / "faults.json")

    assert faults.read(tmp_path / "new" / "faults.json") == found
    for each in found:
        place = place_of(each, tmp_path)
        assert place is not None
        changed = planted(each, place.line, source)
        ast.parse(changed)
        assert changed != source
        assert planted(replace(each, old=each.new, new=each.old), place.line, changed) == source


@dataclass(slots=True)
class Played(Scratch):
    """Tests that fail as listed: with the fault, or without it as well."""

    path: str = PATH
    finding: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    ran: list[str] = field(default_factory=list)

    def failing(self, test: str, cap_s: float) -> str:
        """Play it."""
        is_planted = "self.room <= 0" in (self.folder / self.path).read_text()
        self.ran.append(f"{test} {'with' if is_planted else 'without'}")
        return test if test in self.broken or (is_planted and test in self.finding) else ""


NEAR, OTHER, SLOW = "tests/cluster/test_book.py", "tests/api/test_book.py", "tests/e2e/test_all.py"
COVERED = {PATH: Measured(BOOK, {5: frozenset({SLOW, OTHER, NEAR}), 6: frozenset({OTHER, SLOW})})}


@pytest.fixture
def played(tree: Path) -> Played:
    for each in (NEAR, OTHER, SLOW):
        (tree / each).parent.mkdir(parents=True)
        (tree / each).touch()
    return Played(tree, tree)


def test_tests_that_reach_the_branch_come_first_and_slow_ones_after_the_others(played: Any) -> None:
    """It survives when all have run."""
    verdict = Trials(played, COVERED, cap_s=9).of(BOUNDARY)

    assert played.ran == [f"{OTHER} with", f"{SLOW} with", f"{NEAR} with"]
    assert (verdict.outcome, verdict.place, verdict.left) == (Outcome.SURVIVED, Place(PATH, 5), 0)
    assert (
        row(verdict) == "| cluster | client/plimsoll/cluster/book.py:5 | boundary | survived 3 test files |"
    )


def test_a_fault_of_a_module_that_has_moved_is_tried_where_it_is_now(played: Any) -> None:
    new = "client/plimsoll/records/books.py"
    (played.folder / new).parent.mkdir()
    (played.folder / PATH).rename(played.folder / new)

    verdict = Trials(Played(played.root, played.folder, path=new), {new: COVERED[PATH]}, cap_s=9).of(BOUNDARY)

    assert (verdict.outcome, len(verdict.ran), verdict.place) == (Outcome.SURVIVED, 3, Place(new, 5))


def test_no_further_test_runs_when_one_has_found_it(played: Any) -> None:
    played.finding = {SLOW}

    verdict = Trials(played, COVERED, cap_s=9).of(BOUNDARY)

    assert played.ran == [f"{OTHER} with", f"{SLOW} with", f"{SLOW} without"]
    assert (verdict.outcome, verdict.by, verdict.left) == (Outcome.CAUGHT, SLOW, 1)
    assert row(verdict) == f"| cluster | client/plimsoll/cluster/book.py:5 | boundary | {SLOW} |"
    assert (played.folder / PATH).read_text() == BOOK


def test_a_test_that_fails_without_the_fault_finds_nothing(played: Any) -> None:
    """It runs once without faults, however many it covers."""
    played.broken = {OTHER}
    trials = Trials(played, COVERED, cap_s=9)

    assert [trials.of(BOUNDARY).outcome for _ in range(2)] == [Outcome.SURVIVED] * 2
    assert played.ran.count(f"{OTHER} without") == 1


def test_what_there_was_no_time_for_is_counted(played: Any) -> None:
    verdict = Trials(played, COVERED, cap_s=0).of(replace(BOUNDARY, equivalent="there is no room below 0"))

    assert played.ran == []
    assert row(verdict).endswith("| survived 0 test files, 3 not run; equivalent: there is no room below 0 |")


def test_a_fault_whose_code_is_gone_is_not_tried(played: Any) -> None:
    (played.folder / PATH).write_text("")

    verdict = Trials(played, COVERED, cap_s=9).of(BOUNDARY)

    assert (verdict.outcome, played.ran) == (Outcome.GONE, [])
    assert row(verdict) == "| cluster | client/plimsoll/cluster/book.py | boundary | gone |"
    assert summary([verdict]).startswith(
        "Of 1 faults 0 were caught, 0 survived (0 of them equivalent), the code of 1 is gone"
    )


def test_tests_run_in_a_copy_of_the_tree(tree: Any, tmp_path_factory: Any) -> None:
    """The checkout stays as it is, and what is not committed yet is tested, too."""
    (tree / NEAR).parent.mkdir(parents=True)
    (tree / NEAR).write_text(
        "import pytest\n\nfrom plimsoll.cluster.book import Book\n\n"
        "@pytest.mark.parametrize('text', ['a - b :: [c d]'])\ndef test_room(text):\n    book = Book()\n"
        "    book.left = 3\n    book.count()\n    assert book.left == 0\n"
    )
    for package in ("plimsoll", "plimsoll/cluster"):
        (tree / "client" / package / "__init__.py").touch()
    (tree / ".gitignore").write_text("*.log\n")
    (tree / "long.log").touch()
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    scratch = Scratch(tree, tmp_path_factory.mktemp("scratch") / "tree")
    scratch.make()
    fault = Fault(PATH, "Book.count", "boundary", ("while self.left:",), ("while self.left > 1:",), ("",), ())

    assert not (scratch.folder / "long.log").exists()
    with scratch.with_fault(fault, Place(PATH, 14)):
        assert (tree / PATH).read_text() == BOOK
        found = scratch.failing(NEAR, cap_s=30)
        assert found == f"{NEAR}::test_room[a - b :: [c d]]"
        assert scratch.failing(found, cap_s=30) == found
    assert scratch.failing(found, cap_s=30) == ""


def test_the_list_that_is_kept_spans_the_product() -> None:
    """Over nearly all packages, at different places."""
    kept = faults.read(ROOT / "tools" / "planter" / "faults.json")

    assert len({(each.path, each.scope) for each in kept}) == len(kept) >= 50
    assert len({each.package for each in kept}) >= 27
