"""Evaluates the expressions of admission policies.

Objects are plain JSON values in expressions. ``Object{...}`` and ``JSONPatch{...}``, which construct typed
values in an API server, are maps here: no type is checked, and a field that the schema does not have is found
when the result is merged.

Source: apiserver v1.36 ``pkg/admission/plugin/policy``, ``pkg/cel/mutation``. Costs are not estimated
(docs/adr/0004).
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cel_expr_python import cel

from roadstead.admission import authorizer
from roadstead.definitions import cel_library
from roadstead.definitions.rules import EXTENSIONS, compilation_fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from roadstead.values.resources import Obj

#: The variables of every expression; one without a value is null.
NAMES = ("object", "oldObject", "request", "params", "namespaceObject", "authorizer", "variables")
_TOKEN = re.compile(
    r"""(?P<text>[rRbB]{0,2}(?:'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|//[^\n]*)"""
    r"""|(?P<construct>(?<![\w.])(?:Object(?:\s*\.\s*\w+)*|JSONPatch)\s*\{)"""
    r"""|(?P<open>[{(\[])|(?P<close>[})\]])|(?P<comma>,)|(?P<key>\??\s*[A-Za-z_]\w*\s*:)|(?P<name>\w+)""",
    re.DOTALL,
)
_RESERVED = re.compile(r"__(\w+?)__")
_ESCAPES = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}
_VARIABLE = re.compile(r"\bvariables\s*\.\s*(\w+)")
_RAISED = "OUT_OF_RANGE: "
_MISSING = re.compile(r'Key not found in map : "?(.*?)"?$')


class FailedError(Exception):
    """An expression could not be evaluated.

    Attributes:
        cause: why, without the expression.
    """

    def __init__(self, sentence: str, cause: str = "") -> None:
        super().__init__(sentence)
        self.cause = cause or sentence


def without_types(expression: str) -> str:
    """The expression with maps in place of what ``Object{...}`` and ``JSONPatch{...}`` construct."""
    depth: list[bool] = []  # for each open bracket, whether a construction
    parts: list[str] = []
    end, wants_key = 0, False
    for found in _TOKEN.finditer(expression):
        between, text = expression[end : found.start()], found[0]
        end = found.end()
        wants_key = wants_key and not between.strip(" \t\r\n?")
        match found.lastgroup:
            case "construct":
                depth.append(True)
                text, wants_key = "{", True
            case "open":
                depth.append(False)
                wants_key = False
            case "close":
                if depth:
                    depth.pop()
                wants_key = False
            case "comma":
                wants_key = bool(depth) and depth[-1]
            case "key":
                if wants_key:
                    optional = "?" if text.startswith("?") else ""
                    name = _unescaped(text.strip("?: \t\r\n"))
                    text = f'{optional}"{name}":'
                wants_key = False
            case "name":
                wants_key = False
            case _:
                wants_key = wants_key and text.startswith("//")
        parts += [between, text]
    return "".join([*parts, expression[end:]])


def _unescaped(name: str) -> str:
    """The name of a field that is escaped in expressions."""
    return _RESERVED.sub(lambda found: _ESCAPES.get(found[1], found[1]), name)


def _escaped_key(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


_FUNCTIONS = (
    cel_library.Function(
        "jsonpatch.escapeKey", cel.Type.STRING, (cel.Type.STRING,), _escaped_key, member=False
    ),
    *authorizer.FUNCTIONS,
)


@functools.cache
def _environment() -> cel.Env:
    return cel.NewEnv(
        variables=dict.fromkeys(NAMES, cel.Type.DYN),
        functions=cel_library.evaluated(*_FUNCTIONS),
        extensions=list(EXTENSIONS),
    )


@functools.lru_cache(maxsize=512)
def _program(expression: str) -> cel.Expression:
    return _environment().compile(without_types(expression))


@functools.cache
def _checker(*, asks: bool) -> cel.Env:
    names = [name for name in NAMES if name != "authorizer"]
    return cel.NewEnv(
        variables=dict.fromkeys(names, cel.Type.DYN) | (authorizer.TYPES if asks else {}),
        functions=cel_library.checked(*_FUNCTIONS),
        extensions=list(EXTENSIONS),
    )


#: The results that a place allows, as upstream calls them and as they are without types.
_RESULTS = {
    "bool": (("BOOL", "DYN"), "bool"),
    "string": (("STRING",), "string"),
    "Object": (("MAP", "DYN"), "Object"),
    "JSONPatch": (("LIST", "DYN"), "list(JSONPatch)"),
}


def policy_fault(expression: str, wanted: str) -> str:
    """Why a policy's expression is rejected; "" for a valid one.

    Args:
        expression: the expression.
        wanted: "bool", "string", "Object" or "JSONPatch"; "" for any type. A string is a message,
            which cannot use ``authorizer``.
    """
    try:
        result = _checker(asks=wanted != "string").compile(without_types(expression)).return_type().name()
    except RuntimeError as error:
        return compilation_fault(error)
    kinds, named = _RESULTS.get(wanted, ((), ""))
    if not kinds or result.partition("<")[0].upper() in kinds:
        return ""
    return f"must evaluate to {named} but got {result.lower()}"


@dataclass(slots=True)
class Evaluation:
    """The evaluation of one policy for one write.

    Args:
        known: the values of ``object`` and so on.
        variables: the policy's own ones; each is evaluated when an expression names it.
    """

    known: Mapping[str, Any]
    variables: Iterable[Obj] = ()
    _values: dict[str, Any] = field(default_factory=dict)
    _faults: dict[str, FailedError] = field(default_factory=dict)

    def value(self, expression: str) -> Any:
        """The value of an expression.

        Raises:
            FailedError: it cannot be compiled or evaluated.
        """
        self._evaluate_variables(expression)
        try:
            answer = _program(expression).eval(
                data={**dict.fromkeys(NAMES), **self.known, "variables": self._values}
            )
        except RuntimeError as error:
            raise FailedError(f"compilation error: {error}") from error
        if answer.type() == cel.Type.ERROR:
            found = _MISSING.search(str(answer.value()))
            if found and found[1] in self._faults and "variables" in expression:
                why = f'composited variable "{found[1]}" fails to evaluate: {self._faults[found[1]].cause}'
            else:
                # What a function of ours raises is the whole message upstream.
                why = f"no such key: {found[1]}" if found else str(answer.value()).removeprefix(_RAISED)
            raise FailedError(f"expression '{expression}' resulted in error: {why}", why)
        return answer.plain_value()

    def meets(self, spec: Obj) -> bool:
        """Whether all ``matchConditions`` of a policy's spec hold.

        Raises:
            FailedError: one cannot be compiled or evaluated.
        """
        return all(self.value(each["expression"]) for each in spec.get("matchConditions") or ())

    def _evaluate_variables(self, expression: str) -> None:
        wanted = set(_VARIABLE.findall(expression)) - self._values.keys() - self._faults.keys()
        for one in self.variables if wanted else ():
            if one["name"] in wanted:
                try:
                    self._values[one["name"]] = self.value(one["expression"])
                except FailedError as error:
                    self._faults[one["name"]] = error
