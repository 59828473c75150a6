"""docs/benchmarks.md shows the kept results, and every table of it can be measured."""

import pytest

from book import page
from book.__main__ import KEPT, PAGE, PICTURES, ROOT
from book.results import Circumstances, Measured, read
from book.tables import Plot, Table, declared

TABLES = declared()


def test_the_page_is_what_the_kept_results_make() -> None:
    assert PAGE.read_text(encoding="utf-8") == page.page(TABLES, read(KEPT)), "make benchmarks ARGS=--page"


def test_every_kept_table_is_declared_and_has_its_pictures() -> None:
    kept = read(KEPT)
    assert kept
    assert set(kept) <= {table.name for table in TABLES}
    wanted = {f"{plot.name}.svg" for table in TABLES if table.name in kept for plot in table.plots}
    assert {file.name for file in PICTURES.glob("*.svg")} == wanted


@pytest.mark.parametrize("table", TABLES, ids=[table.name for table in TABLES])
def test_a_table_has_results_for_its_columns(table: Table) -> None:
    for command in table.commands:
        assert (ROOT / command.split()[0]).exists()
        assert "{output}" in command
    measured = read(KEPT).get(table.name)
    for result in measured.results if measured else ():
        assert {column.key for column in table.columns} <= result.keys()


def test_a_table_without_results_says_how_to_measure_it() -> None:
    assert "make benchmarks ONLY=engine" in page.page(TABLES, {})


def test_a_picture_has_a_line_for_each_value_of_its_keys() -> None:
    circumstances = Circumstances(commit="c", machine="m", python="3", day="2026-01-01", load=0)
    results = tuple(
        {"nodes": nodes, "family": family, "us": nodes} for nodes in (10, 1000) for family in "ab"
    )
    plot = Plot(name="p", title="<growth>", x="nodes", y="us", lines=("family",))
    drawn = page.picture(plot, Measured(table="t", circumstances=circumstances, results=results))
    assert drawn.count("color-") >= 2
    assert "&lt;growth&gt;" in drawn
    assert "http://" not in drawn.replace("http://www.w3.org", "")
