"""Answers as JSON and YAML, colours and progress: on a terminal only, the latter after a second."""

from __future__ import annotations

import io
import json
import re

import pytest
import yaml
from click.exceptions import Exit
from pydantic import BaseModel, Field

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.cli import progress
from plimsoll.cli.colours import tone_of
from plimsoll.cli.output import View, print_answer
from plimsoll.cli.tables import Column, Table
from plimsoll.commands.options import Options
from plimsoll.commands.repeated_answers import PERIOD_S, watch
from plimsoll.inspection.history.answer import PastMoveOutcome
from plimsoll.load.states import LoadState


class Reading(BaseModel):
    """An answer."""

    node_name: str = Field(serialization_alias="nodeName")
    problem: str | None = None


READING = Reading(node_name="knoten-ä")
VIEW: View = ["All is well.", "", Table(("NODE",), [("knoten-ä",)])]


@pytest.mark.parametrize(
    ("output", "parsed"),
    [
        ("json", json.loads),
        ("yaml", yaml.safe_load),
    ],
)
def test_programs_get_names_as_on_the_wire(
    output: str, parsed: object, capsys: pytest.CaptureFixture[str]
) -> None:
    print_answer(READING, VIEW, Options(output=output))
    assert parsed(capsys.readouterr().out) == {"nodeName": "knoten-ä"}  # type: ignore[operator] # a function


def test_people_get_lines_and_tables(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(READING, VIEW, Options(output="table"))
    assert capsys.readouterr().out == "All is well.\n\nNODE\nknoten-ä\n"


def test_a_template_is_filled(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(READING, VIEW, Options(output="jsonpath=on {.nodeName}"))
    assert capsys.readouterr().out == "on knoten-ä"


NEWS: View = ["2 moves", Table((Column("OUTCOME", status=True), "POD"), [("Failed", "a"), ("Settled", "b")])]


@pytest.mark.parametrize(
    ("color", "environment", "terminal", "expected"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"TERM": "dumb"}, True, False),
        ("never", {}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
    ],
)
def test_colours_are_for_terminals_that_want_them(
    color: str,
    environment: dict[str, str],
    terminal: bool,
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As no-color.org says; the words are the same without them."""
    text = io.StringIO()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout", text)
    monkeypatch.setattr(text, "isatty", lambda: terminal)

    print_answer(READING, NEWS, Options(output="table", color=color))

    shown = text.getvalue()
    assert ("\x1b[" in shown) is expected
    assert re.sub(r"\x1b\[\d+m", "", shown) == "2 moves\nOUTCOME   POD\nFailed    a\nSettled   b\n"
    if expected:
        assert "\x1b[31mFailed\x1b[0m" in shown
        assert "\x1b[32mSettled\x1b[0m" in shown


def test_every_phase_outcome_and_level_that_is_news_has_a_colour() -> None:
    """A new one would be shown as if it did not matter; a dry run's prediction and an open move do not."""
    words = {str(each) for kind in (Phase, PastMoveOutcome) for each in kind}
    words |= {each.name.lower() for each in LoadState}
    words -= {"Predicted", "Open", "info"}

    assert {each for each in words if not tone_of(each)} == set()


def drawn(monkeypatch: pytest.MonkeyPatch, *, terminal: bool, is_shown: bool) -> str:
    """What half of a hundred pods draws, before the second is over or after it."""
    text = io.StringIO()
    monkeypatch.setattr("sys.stderr", text)
    monkeypatch.setattr(text, "isatty", lambda: terminal)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    with progress.progress("pods", "placing") as bar:
        bar("reading", 1, 100)
        if is_shown and terminal:
            bar.show()
        bar("reading", 50, 100)
    return text.getvalue()


def test_progress_shows_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is faster, or is piped, draws nothing; a step in which nothing is counted is named."""
    assert progress.PATIENCE_S == 1.0
    shown = drawn(monkeypatch, terminal=True, is_shown=True)
    assert "50/100" in shown
    assert "placing" in shown
    assert drawn(monkeypatch, terminal=True, is_shown=False) == ""
    assert drawn(monkeypatch, terminal=False, is_shown=True) == ""


def test_a_watched_answer_is_shown_when_it_changes(capsys: pytest.CaptureFixture[str]) -> None:
    """Piped, with an empty line between two; the exit code of one answer does not end it."""
    answers = iter(["a", "a", "b", ""])

    def answer() -> None:
        text = next(answers)
        if not text:
            raise KeyboardInterrupt
        print(text)  # noqa: T201 - what a command does
        raise Exit(2)

    rests: list[float] = []
    with pytest.raises(KeyboardInterrupt):
        watch(answer, rests.append)

    assert capsys.readouterr().out == "a\n\nb\n"
    assert min(rests) >= PERIOD_S
