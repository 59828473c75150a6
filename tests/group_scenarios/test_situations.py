"""The page on groups has the table of the situations that are played, and counts them as the table does."""

from __future__ import annotations

import re
from pathlib import Path

from group_scenarios.situations import SITUATIONS
from group_scenarios.table import BEGIN, COLUMNS, END, table

PAGE = (Path(__file__).parents[2] / "docs" / "groups-side-by-side.md").read_text(encoding="utf-8")
EVERY = [each for part in SITUATIONS.values() for each in part]


def rows(text: str) -> list[list[str]]:
    """The cells of a table, but for its second line."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[:1] + lines[2:]]


def written() -> list[list[str]]:
    """The table of the page."""
    return rows(PAGE.partition(BEGIN)[2].partition(END)[0])


def test_the_page_has_a_row_for_each_situation_in_their_order() -> None:
    nothing = {each.title: "" for each in EVERY}
    expected = rows(table(SITUATIONS, dict.fromkeys(COLUMNS, nothing)))

    assert [row[0] for row in written()] == [row[0] for row in expected]
    assert written()[0] == expected[0]


def test_a_title_names_one_situation() -> None:
    """Outcomes are kept by title."""
    assert len({each.title for each in EVERY}) == len(EVERY)


def test_a_situation_has_nodes_and_ends_with_a_look() -> None:
    for each in EVERY:
        assert each.nodes, each.title
        assert all(cpu > 0 for cpu, _, _ in each.nodes.values()), each.title
        assert each.steps[-1].__qualname__.startswith("_looking."), each.title


def test_the_page_counts_what_its_table_shows() -> None:
    text = " ".join(PAGE.split())
    played = re.search(r"plays (\d+) situations", text)
    told = re.search(r"(\d+) go as told with kube-scheduler and (\d+) with Plimsoll", text)
    ticks = [sum(row[column] == "✓" for row in written()[1:]) for column in (1, 2)]

    assert played is not None
    assert told is not None
    assert int(played[1]) == len(EVERY)
    assert [int(told[1]), int(told[2])] == ticks
