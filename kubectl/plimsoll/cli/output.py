"""Prints answers: as tables and lines for people, as JSON or YAML for programs.

Colours and folding are for terminals only; piped output is plain and complete.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from plimsoll.cli.colours import FIRST, is_coloured, painted
from plimsoll.cli.tables import Table, terminal_width
from plimsoll.commands.options import Format, Options

if TYPE_CHECKING:
    from pydantic import BaseModel

#: An answer for people: tables, and lines between them. The first line is the answer in a sentence.
View = Sequence[Table | str]


def print_answer(answer: "BaseModel", view: View, options: Options) -> None:
    """Print an answer in the format that ``-o`` names.

    Args:
        answer: The answer for programs.
        view: The answer for people; a line may be empty.
        options: With one of :class:`Format`.
    """
    form, _, template = options.output.partition("=")
    if form == Format.JSON:
        import json  # noqa: PLC0415 - for this format alone

        print_lines([json.dumps(content_of(answer), indent=2, ensure_ascii=False)])
    elif form == Format.YAML:
        import yaml  # noqa: PLC0415 - for this format alone

        print_lines([yaml.safe_dump(content_of(answer), sort_keys=False, allow_unicode=True).rstrip()])
    elif form == Format.JSONPATH:
        from plimsoll.cli.json_path import rendered  # noqa: PLC0415 - for this format alone

        sys.stdout.write(rendered(template, content_of(answer)))
    elif form == Format.NAME:
        print_lines(answer.names())  # type: ignore[attr-defined] # of verbs with this format
    else:
        print_view(view, wide=form == Format.WIDE, colour=options.color)


def content_of(answer: "BaseModel") -> object:
    """The answer as in JSON: its kind, and names as on the wire; fields that are None are left out."""
    from plimsoll.answers.answer import API_VERSION, Answer  # noqa: PLC0415 - with the answer

    content = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
    is_whole = isinstance(answer, Answer)
    return ({"apiVersion": API_VERSION, "kind": type(answer).__name__} if is_whole else {}) | content


def print_view(view: View, *, wide: bool = False, colour: str = "auto") -> None:
    """Print tables and lines."""
    width = terminal_width() if sys.stdout.isatty() else None
    coloured = is_coloured(colour)
    for number, part in enumerate(view):
        if not isinstance(part, str):
            print_lines(part.lines(wide=wide, width=width, is_coloured=coloured))
        else:
            print_lines([painted(part, FIRST) if coloured and not number else part])


def print_lines(lines: Iterable[str]) -> None:
    """Write lines to stdout, and flush them: a pipe would keep them from its reader."""
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()
