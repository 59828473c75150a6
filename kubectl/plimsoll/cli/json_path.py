r"""Templates of ``-o jsonpath=…`` as kubectl has them: text, paths in braces, and ranges.

``{.moves[*].pod}``, ``{.moves[?(@.phase=="Failed")].pod}``, ``{range .moves[*]}{.pod}{"\n"}{end}``. The
results of a path are separated by spaces; what does not exist is left out. Recursive descent, unions and
slices are refused: libraries for JSONPath know neither templates nor ranges, and jq does the rest.

Source: https://kubernetes.io/docs/reference/kubectl/jsonpath/ (v1.36).
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from plimsoll.commands.errors import UserError

_PIECE = re.compile(r'\{((?:[^{}"\']|"[^"]*"|\'[^\']*\')*)\}|([^{}]+)')
_STEP = re.compile(
    r"""\.(?P<field>[\w-]+)|\[['"](?P<quoted>[^'"]+)['"]\]|\[(?P<index>-?\d+)\]|(?P<all>\[\*\]|\.\*)"""
    r"""|\[\?\(@(?P<path>(?:\.[\w-]+)+)\s*(?P<sign>==|!=)\s*(?P<value>"[^"]*"|'[^']*'|[\w.-]+)\)\]"""
)


def rendered(template: str, document: object) -> str:
    """The template filled from a document.

    Raises:
        UserError: The template cannot be read, or kubectl alone would understand it.
    """
    pieces, end = [], 0
    for found in _PIECE.finditer(template):
        if found.start() != end:
            break
        end = found.end()
        pieces.append((True, found[1].strip()) if found[2] is None else (False, found[2]))
    if end != len(template):
        raise _error(template[end:], "a brace has no partner")
    return "".join(_filled(pieces, document))


def _filled(pieces: Sequence[tuple[bool, str]], document: object) -> Iterator[str]:
    place = 0
    while place < len(pieces):
        is_expression, text = pieces[place]
        place += 1
        if not is_expression:
            yield text
        elif text.startswith(("range ", "range\t")):
            end = _end(pieces, place)
            for each in _values(text[5:].strip(), document):
                yield from _filled(pieces[place:end], each)
            place = end + 1
        elif text[:1] in ('"', "'"):
            yield text[1:-1].encode("latin-1", "backslashreplace").decode("unicode_escape")
        else:
            yield " ".join(_shown(each) for each in _values(text, document))


def _end(pieces: Sequence[tuple[bool, str]], place: int) -> int:
    """Where the range ends whose content begins here."""
    depth = 1
    for at in range(place, len(pieces)):
        is_expression, text = pieces[at]
        depth += is_expression and text.startswith("range ")
        depth -= is_expression and text == "end"
        if not depth:
            return at
    raise _error(pieces[place - 1][1], "the range has no {end}")


def _values(path: str, document: object) -> list[Any]:
    rest = path.removeprefix("$").removeprefix("@")
    found: list[Any] = [document]
    if rest == ".":
        return found
    place = 0
    while place < len(rest):
        step = _STEP.match(rest, place)
        if step is None:
            raise _error(path, f"{rest[place:]} is no field, index, [*] or filter; jq knows more")
        found = [each for value in found for each in _stepped(step, value)]
        place = step.end()
    return found


def _stepped(step: re.Match[str], value: Any) -> Iterator[Any]:
    if name := step["field"] or step["quoted"]:
        if isinstance(value, dict) and name in value:
            yield value[name]
    elif step["index"]:
        place = int(step["index"])
        if isinstance(value, list) and -len(value) <= place < len(value):
            yield value[place]
    elif step["all"]:
        yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    else:
        wanted = step["value"].strip("\"'")
        for each in value if isinstance(value, list) else ():
            has = [_shown(one) for one in _values(step["path"], each)]
            if (has == [wanted]) == (step["sign"] == "=="):
                yield each


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _error(where: str, why: str) -> UserError:
    return UserError(f"-o jsonpath: {where!r}: {why}; write it as '{{.items[*].name}}'")
