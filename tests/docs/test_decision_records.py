"""Decision records have unique numbers in name and title, and links to them are valid."""

import re
from pathlib import Path

from distributions import FOLDERS

ROOT = Path(__file__).parents[2]
RECORDS = sorted((ROOT / "docs/adr").glob("*.md"))


def test_each_has_a_number_of_its_own() -> None:
    """From 1 on, without a gap; the title begins with it."""
    numbers = [int(path.name[:4]) for path in RECORDS]
    titles = [path.read_text(encoding="utf-8").partition(". ")[0] for path in RECORDS]

    assert numbers == list(range(1, len(RECORDS) + 1))
    assert titles == [f"# {number}" for number in numbers]


def test_each_has_a_status_and_both_ends_say_what_they_change() -> None:
    """A record that amends another is named there as well."""
    inverse = {"amends": "amended by", "extends": "extended by", "supersedes": "superseded by"}
    statuses = {}
    for path in RECORDS:
        third = path.read_text(encoding="utf-8").split("\n")[2]
        assert re.match(r"Status: (proposed|accepted|superseded by|withdrawn)", third), path.name
        statuses[path.name] = third.removeprefix("Status: ").split("; ")
    says = {
        (name, verb, other)
        for name, clauses in statuses.items()
        for clause in clauses
        for verb in (*inverse, *inverse.values())
        if clause.startswith(verb)
        for other in re.findall(r"\]\((\d{4}[-\w]*\.md)\)", clause)
    }
    back = {(other, inverse.get(verb, verb), name) for name, verb, other in says if verb in inverse}
    assert back == {each for each in says if each[1] in inverse.values()}


def test_what_names_one_means_one_that_exists() -> None:
    """In code as a path with its number, in pages as a link."""
    names = {path.stem for path in RECORDS} | {path.name[:4] for path in RECORDS}
    named = set()
    for folder, pattern in (*((each, "*.py") for each in FOLDERS), ("docs", "*.md"), ("tests", "*.py")):
        for path in (ROOT / folder).rglob(pattern):
            named |= set(re.findall(r"\badr/(\d{4}[-\w]*)", path.read_text(encoding="utf-8")))

    assert named <= names
