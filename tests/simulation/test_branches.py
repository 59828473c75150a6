"""The table of branches that simulated seeds reach."""

from __future__ import annotations

from simulation.branches import Line, report

LINES = [
    Line("operator/plimsoll/app/process.py", 7, "if failure:", 2, 1),
    Line("operator/plimsoll/app/process.py", 9, "for each in ended:", 2, 2),
    Line("core/plimsoll/engine/gangs/placement.py", 3, "if found:", 2, 0),
]


def test_the_least_reached_package_comes_first_and_lines_with_an_exit_left_are_listed() -> None:
    assert list(report(LINES)) == [
        "| Package | Branches | Reached by a seed |",
        "| --- | ---: | ---: |",
        "| engine | 2 | 0 % |",
        "| app | 4 | 75 % |",
        "",
        "core/plimsoll/engine/gangs/placement.py:3: 0 of 2: if found:",
        "operator/plimsoll/app/process.py:7: 1 of 2: if failure:",
    ]
