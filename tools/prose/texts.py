"""Reads the texts of a file: comments, docstrings, messages and names of code; whole documents."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_CODE_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)[^`]+\1(?!`)")
_COMMENT = re.compile(r"^[ \t]*#+[:!]? ?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of prose.

    Attributes:
        line: of its first character, from 1.
        words: what it says; line breaks are those of the file.
    """

    line: int
    words: str


def texts_of(path: Path, source: str) -> Iterator[Text]:
    """All prose of a file, by its kind."""
    if path.suffix == ".py":
        tree = ast.parse(source)
        yield from _comments(source)
        yield from _strings(tree)
        yield from _names(tree)
    elif path.suffix == ".md":
        yield Text(1, _CODE_SPAN.sub(lambda span: re.sub(r"\S", "`", span.group()), source))
    else:
        yield Text(1, _COMMENT.sub("", source))


def _comments(source: str) -> Iterator[Text]:
    """Comments; those on consecutive lines are one text."""
    start, last, lines = 0, -1, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        row, words = token.start[0], token.string.lstrip("#:! ")
        if row != last + 1 and lines:
            yield Text(start, "\n".join(lines))
            lines = []
        if not lines:
            start = row
        lines.append(words)
        last = row
    if lines:
        yield Text(start, "\n".join(lines))


def _strings(tree: ast.AST) -> Iterator[Text]:
    """Docstrings and messages: strings of more than one word, with ``{}`` for what is filled in."""
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside.update(id(part) for part in node.values)
            words = "".join(
                part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else "{}"
                for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            words = node.value
        else:
            continue
        if " " in words.strip():
            yield Text(node.lineno, _CODE_SPAN.sub("``", words))


def _names(tree: ast.AST) -> Iterator[Text]:
    """Names where they are defined, as words."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield Text(node.lineno, as_words(node.name))
            case ast.arg():
                yield Text(node.lineno, as_words(node.arg))
            case ast.Name(ctx=ast.Store()):
                yield Text(node.lineno, as_words(node.id))
            case ast.Attribute(ctx=ast.Store()):
                yield Text(node.lineno, as_words(node.attr))


def as_words(name: str) -> str:
    """An identifier as words: ``told_of`` and ``ToldOf`` are "told of"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").strip().lower()
