"""To which distribution a test file belongs."""

import subprocess

import pytest

from distributions import ROOT
from suites import STANDS_ON, TOOLS, Imports, all_below, home


@pytest.mark.parametrize(
    ("reached", "expected"),
    [
        ({"plimsoll-core"}, "plimsoll-core"),
        ({"plimsoll-core", "plimsoll-testing"}, "plimsoll-core"),
        ({"plimsoll-core", "plimsoll-client", "plimsoll-testing"}, "plimsoll-client"),
        ({"plimsoll-client", "plimsoll", "roadstead"}, "plimsoll"),
        ({"roadstead"}, "roadstead"),
        ({"plimsoll", "kubectl-plimsoll"}, None),
        ({"plimsoll-optimal", "plimsoll-client"}, None),
        (set(), None),
    ],
)
def test_a_test_belongs_to_the_highest_distribution(reached: set[str], expected: str | None) -> None:
    """Unless that does not require the others: then it tests how they meet."""
    assert home(reached) == expected


def test_the_distributions_are_those_of_the_repository() -> None:
    """Each has a suite, but for the tools of tests."""
    folders = {folder for folder, _ in {**STANDS_ON, **TOOLS}.values()}

    assert {each for each in folders if not (ROOT / each).is_dir()} == set()
    assert all_below("plimsoll") == {"plimsoll", "plimsoll-client", "plimsoll-core", "dra-cel"}


def test_imports_are_followed_through_modules_of_tests() -> None:
    """And fixtures count."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    imports = Imports(listed.stdout.splitlines())

    assert imports.reached("tests/cel/test_types.py") == {"dra-cel"}
    assert imports.reached("tests/e2e/test_audit_and_notices.py") >= {"roadstead", "plimsoll"}
