"""Answers as JSON and YAML, and progress: on a terminal only, after two seconds."""

from __future__ import annotations

import io
import json

import pytest
import yaml
from pydantic import BaseModel, Field

from plimsoll.cli import progress
from plimsoll.cli.output import View, print_answer
from plimsoll.cli.tables import Table


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
    print_answer(READING, VIEW, output)
    assert parsed(capsys.readouterr().out) == {"nodeName": "knoten-ä"}  # type: ignore[operator] # a function


def test_people_get_lines_and_tables(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(READING, VIEW, "table")
    assert capsys.readouterr().out == "All is well.\n\nNODE\nknoten-ä\n"


def drawn(monkeypatch: pytest.MonkeyPatch, seconds: float, *, terminal: bool) -> str:
    """What half of a hundred pods draws so many seconds after the start."""
    import plimsoll.cli.views.progress_bars  # noqa: F401, PLC0415 - rich keeps the clock that it finds as it is imported

    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    text = io.StringIO()
    monkeypatch.setattr("sys.stderr", text)
    monkeypatch.setattr(text, "isatty", lambda: terminal)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    with progress.progress("pods") as bar:
        bar("reading", 1, 100)
        now[0] = seconds
        bar("reading", 50, 100)
    return text.getvalue()


def test_progress_shows_after_two_seconds_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is faster, or is piped, draws nothing."""
    assert "50/100" in drawn(monkeypatch, 2.5, terminal=True)
    assert "pods/s" in drawn(monkeypatch, 2.5, terminal=True)
    assert drawn(monkeypatch, 1.5, terminal=True) == ""
    assert drawn(monkeypatch, 2.5, terminal=False) == ""
