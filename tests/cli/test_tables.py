"""Tables: aligned as kubectl's, nothing cut, folded on a narrow terminal only."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some
from rich.cells import cell_len

from plimsoll.cli.tables import Column, Table
from plimsoll.commands.printable import printable

TABLE = Table(
    ("POD", Column("CPU", right=True), Column("NODE", wide=True), "REASON"),
    [("web-1", 5, "node-1", "it is above the threshold of its policy"), ("a", 1200, "", None)],
    folds=True,
)


def test_columns_are_aligned_and_rows_end_without_blanks() -> None:
    assert list(TABLE.lines()) == [
        "POD      CPU   REASON",
        "web-1      5   it is above the threshold of its policy",
        "a       1200   <none>",
    ]


def test_wide_columns_are_shown_when_asked_for() -> None:
    assert next(iter(TABLE.lines(wide=True))) == "POD      CPU   NODE     REASON"


def test_a_narrow_terminal_folds_the_last_column() -> None:
    assert list(TABLE.lines(width=40))[1:3] == [
        "web-1      5   it is above the threshold",
        "               of its policy",
    ]
    assert list(TABLE.lines(width=30, wide=True)) == list(TABLE.lines(wide=True))  # prose needs more room


def test_columns_fold_where_the_last_one_does_not_suffice() -> None:
    """The widest first, and never numbers; every line is as wide as the terminal at most."""
    table = Table(
        ("POD", Column("MILLI", right=True), "NODE"), [("shop/web-frontend-7d9f-x2x", 12345678, "node-1")]
    )

    assert list(table.lines(width=34)) == [
        "POD                 MILLI   NODE",
        "shop/web-front   12345678   node-1",
        "end-7d9f-x2x",
    ]
    assert max(map(len, table.lines(width=34))) <= 34
    assert len(list(table.lines(width=34, wide=True))) == 2


def test_prose_and_then_names_fold_on_a_terminal_that_is_narrower_still() -> None:
    """Only where all columns were asked for does prose keep its line."""
    table = Table(
        ("POD", "REASON"), [("shop/web-frontend-7d9f-x2x", "it is above the threshold")], folds=True
    )

    assert max(map(len, table.lines(width=40))) <= 40
    assert len(list(table.lines(width=40, wide=True))) == 2


def test_wide_characters_take_two_columns() -> None:
    assert list(Table(("A", "B"), [("日本", "x"), ("a", "y")]).lines()) == [
        "A      B",
        "日本   x",
        "a      y",
    ]


@given(some.lists(some.tuples(some.text(), some.text()), min_size=1), some.integers(0, 100))
def test_every_word_of_every_cell_is_shown(rows: list[tuple[str, str]], width: int) -> None:
    """Whatever the width, and whatever a cluster has in its names: one line a row, no control characters."""
    table = Table(("ONE", "TWO"), rows, folds=True)
    piped = list(table.lines())

    assert len(piped) == len(rows) + 1
    assert all(printable(line) == " ".join(line.split()) for line in piped)
    folded = list(table.lines(width=width))
    assert sorted("".join("".join(folded).split())) == sorted("".join("".join(piped).split()))
    assert all(cell_len(line.rstrip()) == cell_len(line) for line in piped)


def test_what_moves_the_cursor_is_shown_as_text() -> None:
    assert printable("a\x1b[2Jb\u202ec\r\nd\te") == "a\\x1b[2Jb\\u202ec d e"
