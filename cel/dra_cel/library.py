"""Loads the CEL library when the first expression is compiled: its parser, checker and regular expressions.

It takes 25 ms of CPU and 11 MB. Where it is missing, every selector has an error that says so.
"""

from __future__ import annotations

import functools
from typing import Any

from dra_cel import declarations

MISSING = "the package cel-expr-python, which parses selectors, is not installed: install dra-cel with pip"


class MissingLibraryError(Exception):
    """The library is not installed."""

    def __init__(self) -> None:
        super().__init__(MISSING)


@functools.cache
def _binding() -> Any:
    try:
        from cel_expr_python import cel  # noqa: PLC0415 - slow to import
    except ImportError as error:
        raise MissingLibraryError from error
    return cel


@functools.cache
def checker(*, typed: bool = True) -> Any:
    """The environment in which expressions are compiled.

    Args:
        typed: whether the checker knows the types of the device's fields. Only ``has(device.driver)``,
            which the library takes for the field itself, needs a device without.
    """
    cel = _binding()
    variables = {"device": cel.Type.DYN}
    if typed:
        variables |= {name: cel.Type(declared) for name, declared in declarations.DEVICE.items()}
    return cel.NewEnv(config=cel.NewEnvConfigFromYaml(declarations.environment()), variables=variables)


@functools.cache
def _expression(text: str) -> Any:
    """An expression about a text ``s`` and a pattern ``p``, in an environment of its own."""
    cel = _binding()
    config = cel.NewEnvConfigFromYaml('{"extensions": [{"name": "optional"}, {"name": "regex"}]}')
    return cel.NewEnv(config=config, variables={"s": cel.Type.STRING, "p": cel.Type.STRING}).compile(text)


class PatternError(Exception):
    """The pattern is not a valid regular expression of RE2."""


def _evaluated(expression: str, text: str, pattern: str) -> Any:
    result = _expression(expression).eval(data={"s": text, "p": pattern})
    if result.type() == _binding().Type.ERROR:
        raise PatternError(str(result.value()).removeprefix("INVALID_ARGUMENT: "))
    return result.plain_value()


def matches(text: str, pattern: str) -> bool:
    """Whether a regular expression of RE2 matches somewhere, in time linear in the text.

    Raises:
        PatternError: the pattern is not valid.
    """
    return bool(_evaluated("s.matches(p)", text, pattern))


def found(text: str, pattern: str) -> str:
    """The first match, "" for none; the pattern has no groups that capture.

    Raises:
        PatternError: the pattern is not valid.
    """
    return str(_evaluated("regex.extract(s, p).orValue('')", text, pattern))


def all_found(text: str, pattern: str) -> list[str]:
    """All matches that are not empty; the pattern has no groups that capture.

    Raises:
        PatternError: the pattern is not valid.
    """
    return list(_evaluated("regex.extractAll(s, p)", text, pattern))
