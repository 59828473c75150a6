"""Views and pages show every answer: with everything, with nothing, and with each field changed by itself.

PLIMSOLL_WRITE_GOLDEN=1 writes the files; a change of a view shows in them which answers it concerns.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import itertools
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, get_type_hints

import pytest

import plimsoll.cli.views
from cli.answer_variants import made, variants
from cli.golden_files import check, shown
from plimsoll.cli import reports
from plimsoll.cli.tables import Table
from plimsoll.inspection.history.answer import History
from plimsoll.simulation.report import ReplayReport

#: Columns of terminals; None without one.
WIDTHS = (None, 60, 120, 140)
#: Public functions of views that take no answer.
NO_ANSWER = {"age_text", "headed", "gain_of", "note_lines", "unknown_lines"}
#: Answers that no command gives: a node without the plugins of the others, a resource that no node has.
IMPOSSIBLE = re.compile(r"^(\.placed\.scores\[0\]\.plugins has|\.utilisation\[0\]\.allocatable = 0$)")


def functions() -> Iterator[Callable[..., Any]]:
    """The public functions of all modules of views."""
    for module in pkgutil.iter_modules(plimsoll.cli.views.__path__, "plimsoll.cli.views."):
        for name, function in inspect.getmembers(importlib.import_module(module.name), inspect.isfunction):
            if function.__module__ == module.name and not name.startswith("_") and name not in NO_ANSWER:
                yield function


def forms(function: Callable[..., Any]) -> list[dict[str, Any]]:
    """Each combination of what the view can be wanted with, such as wide."""
    values: dict[str, Sequence[Any]] = {
        name: WIDTHS if name == "width" else (True, False)
        for name, each in inspect.signature(function).parameters.items()
        if each.kind is each.KEYWORD_ONLY
    }
    return [dict(zip(values, each, strict=True)) for each in itertools.product(*values.values())]


def narrow(shown: Any) -> Iterator[str]:
    """The headings that are always there."""
    if isinstance(shown, Table):
        yield next(iter(shown.lines())) if not shown.title else [*shown.lines()][1]
    elif isinstance(shown, Iterable) and not isinstance(shown, str):
        for each in shown:
            yield from narrow(each)


VIEWS = [
    pytest.param(each, id=f"{each.__module__.rpartition('.')[2]}-{each.__name__}") for each in functions()
]


@pytest.mark.parametrize("view", VIEWS)
def test_each_field_of_an_answer_shows_as_before(
    view: Callable[..., Any], request: pytest.FixtureRequest
) -> None:
    first = next(iter(inspect.signature(view).parameters))
    kind = get_type_hints(view)[first]
    shows: list[Callable[[Any], Any]] = [partial(view, **form) for form in forms(view)]
    check("views", request.node.callspec.id, "text", described(kind, shows))


@pytest.mark.parametrize("page", [reports.history_report, reports.replay_report])
def test_each_field_of_an_answer_is_in_its_page_as_before(
    page: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["plimsoll", "the command"])
    kind = {"history_report": History, "replay_report": ReplayReport}[page.__name__]
    check("views", page.__name__, "text", described(kind, [page]))


def described(kind: Any, shows: list[Callable[[Any], Any]]) -> str:
    """The lines for the whole answer and for the bare one, and how those of each variant differ."""
    lines = []
    for full in (True, False):
        base = made(kind, "answer", 0, full=full)
        before = [read(show, base) for show in shows]
        lines += [f"=== with {'everything' if full else 'nothing'}", *itertools.chain(*before)]
        lines += ["=== its headings if narrow", *narrow(shows[0](base))] if full else []
        for change, answer in variants(kind, base, "answer", full=full):
            if IMPOSSIBLE.search(change):
                continue
            after = [read(show, answer) for show in shows]
            differing = dict.fromkeys(
                each for pair in zip(before, after, strict=True) for each in differences(*pair)
            )
            lines += [f"--- answer{change}", *differing] if differing else []
    return "\n".join(lines) + "\n"


def read(show: Callable[[Any], Any], answer: Any) -> list[str]:
    """The lines of an answer; the width of columns is left out."""
    return [re.sub(" {3,}", "   ", each.rstrip()) for each in shown(show(answer))]


def differences(before: list[str], after: list[str]) -> Iterator[str]:
    """Lines that go or come; of more than six, the first, the last and how many there are."""
    changed = [each for each in difflib.unified_diff(before, after, n=0, lineterm="") if each[0] != "@"][2:]
    if len(changed) > 6:
        changed = [*changed[:3], f"  ({len(changed)} lines)", *changed[-2:]]
    yield from changed
