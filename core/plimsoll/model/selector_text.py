"""Label selectors as kubectl and policies write them: ``pool=general,zone in (a,b),!legacy``.

Source: Kubernetes v1.36, ``apimachinery/pkg/labels/selector.go`` (Parse).
"""

import re

from plimsoll.model.selectors import (
    EVERYTHING,
    Requirement,
    Selector,
    SelectorError,
    compile_requirement,
    shown,
)

_TOKEN = re.compile(r"\s*(?:(==|!=|=|!|,|\(|\)|<|>)|([^\s=!,()<>]+))")
_OPERATORS = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_SETS = {"in": "In", "notin": "NotIn"}


def parse_selector(text: str) -> Selector:
    """Compile a selector in text form; the empty text selects everything.

    Raises:
        SelectorError: The text is no selector.
    """
    tokens = _tokens(text)
    if not tokens:
        return EVERYTHING
    requirements = []
    position = 0
    while True:
        requirement, position = _requirement(text, tokens, position)
        requirements.append(requirement)
        if position == len(tokens):
            return Selector(tuple(requirements))
        if tokens[position] != ",":
            raise _unexpected(text, tokens, position, "a comma or the end")
        position += 1


def _tokens(text: str) -> list[str]:
    tokens = []
    position = 0
    stripped = text.rstrip()
    while position < len(stripped):
        found = _TOKEN.match(stripped, position)
        if found is None:
            raise SelectorError(f'unable to parse the selector "{shown(text)}" at character {position + 1}')
        tokens.append(found.group(1) or found.group(2))
        position = found.end()
    return tokens


def _requirement(text: str, tokens: list[str], position: int) -> tuple[Requirement, int]:
    if _at(tokens, position) == "!":
        key, position = _word(text, tokens, position + 1, "a label key")
        return compile_requirement(key, "DoesNotExist", ()), position
    key, position = _word(text, tokens, position, "a label key")
    sign = _at(tokens, position)
    if sign in ("", ","):
        return compile_requirement(key, "Exists", ()), position
    if sign in _OPERATORS:
        value, position = _value(tokens, position + 1)
        return compile_requirement(key, _OPERATORS[sign], (value,)), position
    if sign in _SETS:
        values, position = _values(text, tokens, position + 1)
        return compile_requirement(key, _SETS[sign], values), position
    raise _unexpected(text, tokens, position, "an operator (=, ==, !=, in, notin, >, <)")


def _values(text: str, tokens: list[str], position: int) -> tuple[tuple[str, ...], int]:
    if _at(tokens, position) != "(":
        raise _unexpected(text, tokens, position, "an opening parenthesis")
    values = []
    position += 1
    while True:
        value, position = _value(tokens, position)
        values.append(value)
        sign = _at(tokens, position)
        position += 1
        if sign == ")":
            return tuple(values), position
        if sign != ",":
            raise _unexpected(text, tokens, position - 1, "a comma or a closing parenthesis")


def _value(tokens: list[str], position: int) -> tuple[str, int]:
    """The value at that position; where a separator stands instead, the empty value."""
    token = _at(tokens, position)
    return ("", position) if token in ("", ",", ")") else (token, position + 1)


def _word(text: str, tokens: list[str], position: int, expected: str) -> tuple[str, int]:
    token = _at(tokens, position)
    if not token or not set(token).isdisjoint("=!,()<>"):
        raise _unexpected(text, tokens, position, expected)
    return token, position + 1


def _at(tokens: list[str], position: int) -> str:
    return tokens[position] if position < len(tokens) else ""


def _unexpected(text: str, tokens: list[str], position: int, expected: str) -> SelectorError:
    found = _at(tokens, position)
    instead = f'found "{shown(found)}"' if found else "it ends"
    return SelectorError(f'unable to parse the selector "{shown(text)}": expected {expected}, {instead}')
