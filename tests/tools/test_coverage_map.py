"""The map of ``make coverage`` says which test files cover which lines of functions."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage

import coverage_map
from coverage_map import Measured, file_of, lines_of_functions, measured

DOOR = '''"""A door."""
LOCKED = False


def opened():
    """Opens it."""
    if LOCKED:
        return False
    return True


class Handle:
    side = "left"

    def turn(self):
        return self.side
'''
ROOT = Path(__file__).parents[2]
CONFIGURATION = """[run]
branch = true
source_pkgs = house
parallel = true
patch = fork, subprocess, _exit
"""
#: Opens the door here, in a fork, and as a program.
TESTS = {
    "test_here.py": "from house import door\ndef test_it():\n    assert door.opened()\n",
    "test_fork.py": (
        "import os\nfrom house import door\ndef test_it():\n    if not os.fork():\n"
        "        door.Handle().turn()\n        os._exit(0)\n    os.wait()\n"
    ),
    "test_program.py": (
        "import subprocess, sys\ndef test_it():\n"
        "    subprocess.run([sys.executable, '-c', 'from house import door; door.opened()'], check=True)\n"
    ),
}


@pytest.fixture
def house(tmp_path: Path) -> Path:
    for name, text in {
        "house/__init__.py": "",
        "house/door.py": DOOR,
        ".coveragerc": CONFIGURATION,
        **TESTS,
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_lines_that_run_when_a_module_is_imported_say_nothing_of_a_test() -> None:
    assert lines_of_functions(DOOR) == {6, 7, 8, 9, 16}


def test_a_line_is_covered_by_the_files_whose_tests_run_it_in_whatever_process(house: Any) -> None:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE", "PLIMSOLL"))
    }
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    environment["PYTHONPATH"] = os.pathsep.join((str(house), str(ROOT / "tests")))

    command = [sys.executable, "-m", "coverage", "run", "-m", "pytest", "-q", "-p", "coverage_by_file"]
    subprocess.run(command, cwd=house, env=environment, check=True, capture_output=True)
    coverage = Coverage(str(house / ".coverage"), config_file=False)
    coverage.combine([str(house)])

    both = frozenset({"test_here.py", "test_program.py"})
    page = house / "page.md"  # whose blocks run as tests: coverage.py measures them under the page's name
    page.write_text("It isn't Python.\n")
    coverage.get_data().add_arcs({str(page): [(-1, 1)]})
    found = measured(coverage.get_data(), house)
    assert found["house/door.py"].tests == {7: both, 9: both, 16: frozenset({"test_fork.py"})}
    assert "page.md" not in found


@pytest.mark.parametrize(
    "context", ["b.py", "a.py|b.py"], ids=["of a process", "of a fork of another file's"]
)
def test_a_process_covers_for_the_file_whose_tests_it_serves(context: str) -> None:
    assert file_of(context) == "b.py"


def test_what_is_written_is_read(tmp_path: Any) -> None:
    found = {
        "door.py": Measured(DOOR, {7: frozenset("ab"), 9: frozenset("ab"), 16: frozenset("c")}),
        "x.py": Measured("", {}),
    }

    coverage_map.write(found, tmp_path / "new" / "map.json.gz")

    assert coverage_map.read(tmp_path / "new" / "map.json.gz") == found
    assert coverage_map.read(tmp_path / "none.json.gz") == {}
