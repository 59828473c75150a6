"""Finds of the prose check in one file: place, problem and suggestion."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prose.glossary import glossary_problems
from prose.metric_help import metric_help_problems
from prose.modules import first_line_problem, module_name_problem, retired_classes
from prose.phrases import banned_in
from prose.texts import as_words, texts_of

GLOSSARY = Path("docs/glossary.md")


@dataclass(frozen=True, slots=True, order=True)
class Find:
    """One thing to change.

    Attributes:
        path: from the root of the repository.
        line: from 1.
        rule: a phrase's name, or "module name", "first line", "metric help", "glossary", "class name".
        found: what is written there, or what is wrong with it.
        instead: a suggestion; may be empty.
    """

    path: Path
    line: int
    rule: str
    found: str
    instead: str = ""

    def __str__(self) -> str:
        hint = f" -> {self.instead}" if self.instead else ""
        return f"{self.path}:{self.line}: {self.rule}: {self.found}{hint}"


@dataclass(frozen=True, slots=True)
class Excuse:
    """An exception from the rules.

    Attributes:
        where: a path from the root of the repository, or the beginning of one.
        reason: why its phrases are not judged.
    """

    where: str
    reason: str


#: Files whose phrases are not judged.
EXCUSES = (
    Excuse("tools/prose/", "the rules name what they ban"),
    Excuse("tests/tools/test_prose", "puts bad sentences back to see the check fail"),
)


def finds_in(path: Path, source: str) -> Iterator[Find]:
    """Everything to change in a file; ``path`` is relative to the root of the repository."""
    if not any(path.as_posix().startswith(excuse.where) for excuse in EXCUSES):
        yield from _phrases(path, source)
    if path == GLOSSARY:
        for line, problem in glossary_problems(source):
            yield Find(path, line, "glossary", problem)
    if path.suffix == ".py":
        yield from _module(path, ast.parse(source))


def _phrases(path: Path, source: str) -> Iterator[Find]:
    for phrase, _ in banned_in(as_words(path.stem)):
        yield Find(path, 1, phrase.name, path.name, phrase.instead)
    for text in texts_of(path, source):
        for phrase, match in banned_in(text.words):
            line = text.line + text.words.count("\n", 0, match.start())
            yield Find(path, line, phrase.name, _around(text.words, *match.span()), phrase.instead)


def _around(text: str, start: int, end: int) -> str:
    """A match with some words on either side, on one line."""
    before, after = text[max(0, start - 30) : start], text[end : end + 20]
    before = before.split(" ", 1)[-1] if start > len(before) else before
    return " ".join(f"{before}[{text[start:end]}]{after}".split())


def _module(path: Path, tree: ast.Module) -> Iterator[Find]:
    if problem := module_name_problem(path):
        yield Find(path, 1, "module name", problem)
    docstring = ast.get_docstring(tree)
    if docstring is not None and (problem := first_line_problem(docstring)):
        yield Find(path, 1, "first line", docstring.splitlines()[0], problem)
    for line, name, better in retired_classes(tree) if "plimsoll" in path.parts else ():
        yield Find(path, line, "class name", name, better)
    for line, ending in metric_help_problems(tree):
        yield Find(path, line, "metric help", "labels are not named", f"ends with {ending!r}")
