"""Compiles and evaluates ``x-kubernetes-validations``: rules in the Common Expression Language.

A rule is checked against the types of its schema when the definition is written, and evaluated for every
value of that schema when a resource is written. A rule about ``oldSelf`` is evaluated only where there is an
old value to compare with, unless it takes ``oldSelf`` as an optional.

Source: apiextensions-apiserver v1.36 ``pkg/apiserver/schema/cel``. Costs are not estimated (docs/adr/0004).
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson
from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_encoders, ext_math, ext_optional, ext_strings

from roadstead.definitions import cel_library
from roadstead.definitions.cel_types import Types, cel_value, declared, with_resource_fields
from roadstead.schemas import field_errors
from roadstead.schemas.field_errors import OMITTED, below
from roadstead.schemas.structural import EMBEDDED, old_item_finder, values_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

RULES = "x-kubernetes-validations"
#: The longest message of an expression, in bytes.
_LONGEST_MESSAGE = 5 * 1024
_STRING = re.compile(r"""[rR]?('''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")""", re.DOTALL)
_OLD_SELF = re.compile(r"(?<![.\w])oldSelf\b")
_FAULT = re.compile(r"^ERROR: .*?(?=^ERROR: |\Z)", re.MULTILINE | re.DOTALL)
#: Comparisons of numbers of different types, which the API server allows and the checker rejects.
_NUMBERS_COMPARED = re.compile(
    r"found no matching overload for '_[<>]=?_' applied to '\((int|uint|double), (int|uint|double)\)'"
)
EXTENSIONS = (
    ext_optional.ExtOptional(),
    ext_strings.ExtStrings(),
    ext_math.ExtMath(),
    ext_bindings.ExtBindings(),
    ext_encoders.ExtEncoders(),
)
_OPTIONAL_OLD = "oldSelf__given"


def mentions_old(expression: str) -> bool:
    """Whether an expression uses the old value."""
    return _OLD_SELF.search(_STRING.sub("''", expression)) is not None


def _with_optional_old(expression: str, *, given: bool) -> str:
    """The expression with ``oldSelf`` bound to an optional; the line break ends a comment."""
    old = f"optional.of({_OPTIONAL_OLD})" if given else "optional.none()"
    return f"cel.bind(oldSelf, {old}, ({expression}\n))"


class _Evaluation:
    """The environment in which checked expressions are evaluated."""

    def __init__(self) -> None:
        names = ("self", "oldSelf", _OPTIONAL_OLD)
        self.environment = cel.NewEnv(
            variables=dict.fromkeys(names, cel.Type.DYN),
            functions=cel_library.evaluated(),
            extensions=list(EXTENSIONS),
        )

    def program(self, expression: str) -> cel.Expression:
        return self.environment.compile(expression, disable_check=True)


_evaluation: list[_Evaluation] = []


def _program(expression: str) -> cel.Expression:
    if not _evaluation:
        _evaluation.append(_Evaluation())
    return _evaluation[0].program(expression)


@dataclass(frozen=True, slots=True)
class Rule:
    """One compiled rule."""

    source: Obj
    uses_old: bool
    optional_old: bool
    field_path: str
    program: cel.Expression
    program_without_old: cel.Expression | None
    message: cel.Expression | None

    @property
    def described(self) -> str:
        """The rule in messages."""
        return str(self.source.get("message") or self.source["rule"]).strip()

    @property
    def default_message(self) -> str:
        """The message without a message expression."""
        message = str(self.source.get("message", "")).strip()
        return message or f"failed rule: {self.source['rule'].strip()}"


@dataclass(slots=True)
class Rules:
    """The rules of a schema and of the schemas below it; branches without rules are omitted."""

    schema: Obj
    typed: Obj
    rules: list[Rule] = field(default_factory=list)
    properties: dict[str, Rules] = field(default_factory=dict)
    values: Rules | None = None
    items: Rules | None = None

    def causes(self, value: Any, old: Any = None, path: str = "", *, update: bool = False) -> list[Cause]:
        """Causes for which the rules reject a value.

        Args:
            value: the value of this schema.
            old: the previous value, or None.
            path: the path of the value.
            update: whether an unchanged value is skipped, because it may be older than the rule.
        """
        if value is None:
            return []
        causes = self._own_causes(value, old, path, update=update) if self.rules else []
        if isinstance(value, dict):
            before = old if isinstance(old, dict) else {}
            for name, item in value.items():
                inner = self.properties.get(name)
                if inner is not None:
                    causes += inner.causes(item, before.get(name), below(path, name), update=update)
                elif self.values is not None:
                    causes += self.values.causes(item, before.get(name), f"{path}[{name}]", update=update)
        elif isinstance(value, list) and self.items is not None:
            find = old_item_finder(self.schema, old)
            for index, item in enumerate(value):
                causes += self.items.causes(item, find(item), f"{path}[{index}]", update=update)
        return causes

    def _own_causes(self, value: Any, old: Any, path: str, *, update: bool) -> list[Cause]:
        unchanged = update and old is not None and value == old
        data: dict[str, Any] = {}
        causes = []
        for rule in self.rules:
            if rule.uses_old and old is None and not rule.optional_old:
                continue
            if unchanged and not rule.uses_old:
                continue
            if not data:
                data["self"] = cel_value(value, self.typed)
                if old is not None:
                    data["oldSelf"] = data[_OPTIONAL_OLD] = cel_value(old, self.typed)
            cause = self._verdict(rule, data, value, path)
            if cause is not None:
                causes.append(cause)
        return causes

    def _verdict(self, rule: Rule, data: dict[str, Any], value: Any, path: str) -> Cause | None:
        without_old = rule.program_without_old if _OPTIONAL_OLD not in data else None
        result = (without_old or rule.program).eval(data=data)
        where = path or field_errors.NOWHERE
        if result.type() == cel.Type.ERROR:
            return field_errors.invalid(
                where, self.schema.get("type", ""), _failure(str(result.value()), rule)
            )
        if result.value() is True:
            return None
        where = below(path, rule.field_path) if rule.field_path else where
        shown = OMITTED if self.schema.get("type") in ("object", "array") else value
        detail = _message(rule, data) or rule.default_message
        reason = rule.source.get("reason")
        if reason == "FieldValueForbidden":
            return field_errors.forbidden(where, detail)
        if reason == "FieldValueRequired":
            return field_errors.required(where, detail)
        if reason == "FieldValueDuplicate":
            return field_errors.duplicate(where, None if shown is OMITTED else shown)
        return field_errors.invalid(where, shown, detail)


def _message(rule: Rule, data: dict[str, Any]) -> str:
    """The result of the message expression; "" if it fails or is not printable."""
    if rule.message is None:
        return ""
    result = rule.message.eval(data=data)
    text = result.value()
    if result.type() == cel.Type.ERROR or not isinstance(text, str):
        return ""
    text = text.strip()
    return "" if "\n" in text or len(text.encode()) > _LONGEST_MESSAGE else text


_FAILURES = (
    (re.compile(r'Key not found in map : "?(.*?)"?$'), r"no such key: \1"),
    (re.compile(r"divide by zero"), "division by zero"),
    (re.compile(r"modulus by zero"), "modulus by zero"),
    (re.compile(r"No matching overloads found.*"), "no such overload"),
)


def _failure(error: str, rule: Rule) -> str:
    """The message for a rule whose evaluation failed."""
    text = re.sub(r"^[A-Z_]+: ", "", error)
    for pattern, replacement in _FAILURES:
        if pattern.search(text):
            text = pattern.sub(replacement, text)
            break
    if text.startswith("no such overload"):
        return (
            f"'{text}': call arguments did not match a supported operator, function or macro signature "
            f"for rule: {rule.described}"
        )
    return f"{text} evaluating rule: {rule.described}"


# -- compiling -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a rule is rejected: the path of its schema, its index, the member, and a message."""

    at: tuple[str, ...]
    index: int
    member: str
    value: Any
    sentence: str


class Compiler:
    """Compiles the rules of one version's schema.

    Attributes:
        rules: the compiled ones, or None.
        faults: the rejected ones.
    """

    def __init__(self, schema: Obj) -> None:
        self.faults: list[Fault] = []
        self._types = Types()
        # All types are made before the first check: a descriptor pool is frozen on first use.
        self._typed: dict[int, tuple[Obj, Any]] = {}
        self._declare(schema, root=True)
        self.rules = self._compile(schema, ())

    def _declare(self, schema: Obj, *, root: bool = False) -> None:
        if schema.get(RULES):
            resource = root or schema.get(EMBEDDED)
            typed = with_resource_fields(schema) if resource else schema
            self._typed[id(schema)] = (typed, self._types.shape(typed))
        for inner, _, _ in _below(schema):
            self._declare(inner)

    def _compile(self, schema: Obj, at: tuple[str, ...], *, blind: bool = False) -> Rules | None:
        """The rules of a schema; ``blind``: below a list whose old items cannot be matched."""
        typed, shape = self._typed.get(id(schema), (schema, None))
        found = Rules(schema, typed)
        if schema.get(RULES):
            if shape is None:
                self.faults.append(Fault(at, 0, "rule", "", "the schema has no type that rules can use"))
            else:
                self._compile_own(found, declared(shape), at, blind=blind)
        for inner, kind, name in _below(schema):
            keyed = schema.get("x-kubernetes-list-type") == "map"
            step = (kind, name) if name else (kind,)
            compiled = self._compile(inner, (*at, *step), blind=blind or (kind == "items" and not keyed))
            if compiled is None:
                continue
            if kind == "properties":
                found.properties[name] = compiled
            elif kind == "items":
                found.items = compiled
            else:
                found.values = compiled
        return found if found.rules or found.properties or found.items or found.values else None

    def _compile_own(self, found: Rules, own_type: cel.Type, at: tuple[str, ...], *, blind: bool) -> None:
        variables = {"self": own_type, "oldSelf": own_type}
        environment = cel.NewEnv(
            self._types.pool,
            variables=variables,
            functions=cel_library.checked(),
            extensions=list(EXTENSIONS),
        )
        optional = cel.NewEnv(
            self._types.pool,
            variables={"self": own_type, _OPTIONAL_OLD: own_type},
            functions=cel_library.checked(),
            extensions=list(EXTENSIONS),
        )
        for index, source in enumerate(found.schema[RULES]):
            text = source.get("rule", "")
            if not text.strip():
                continue  # rejected by the check of the schema
            optional_old = bool(source.get("optionalOldSelf"))
            uses_old = mentions_old(text)
            if uses_old and blind:
                self._refuse(
                    at,
                    index,
                    "rule",
                    text,
                    "oldSelf cannot be used on the uncorrelatable portion of the schema",
                )
            if optional_old and not uses_old:
                why = "may not be set if oldSelf is not used in rule"
                self._refuse(at, index, "optionalOldSelf", optional_old, why)
            checking = optional if optional_old else environment
            fault = self._fault(checking, text, cel.Type.BOOL, optional_old=optional_old)
            if fault:
                self._refuse(at, index, "rule", text, fault)
                continue
            message = source.get("messageExpression")
            if message:
                fault = self._fault(checking, message, cel.Type.STRING, optional_old=optional_old)
                if fault:
                    fault = fault.replace("cel expression", "messageExpression", 1)
                    self._refuse(at, index, "messageExpression", message, fault)
                    continue
            found.rules.append(_ready(source, uses_old=uses_old, optional_old=optional_old))

    def _refuse(self, at: tuple[str, ...], index: int, member: str, value: Any, sentence: str) -> None:
        self.faults.append(Fault(at, index, member, value, sentence))

    @staticmethod
    def _fault(environment: cel.Env, text: str, wanted: cel.Type, *, optional_old: bool) -> str:
        """The fault of an expression, "" for a valid one."""
        expression = _with_optional_old(text, given=True) if optional_old else text
        try:
            given = environment.compile(expression).return_type()
        except RuntimeError as error:
            return compilation_fault(error)
        if given in (wanted, cel.Type.DYN) or (given == wanted):
            return ""
        kind = "bool" if wanted == cel.Type.BOOL else "string"
        return f"cel expression must evaluate to a {kind}"


def compilation_fault(error: RuntimeError) -> str:
    """The compilation error of an expression; "" if the API server would accept it."""
    text = str(error).removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")
    found = _FAULT.findall(text) or [text]
    faults = [one.strip() for one in found if not _NUMBERS_COMPARED.search(one)]
    return f"compilation failed: {' '.join(faults)}" if faults else ""


#: Number of schemas whose compiled rules are cached.
_KEPT = 64


def compiled_rules(schema: Obj) -> Compiler:
    """The compiled rules of a schema: used when it is checked, and when it is served."""
    return _compiled(orjson.dumps(schema))


@functools.lru_cache(maxsize=_KEPT)
def _compiled(text: bytes) -> Compiler:
    return Compiler(orjson.loads(text))


def _ready(source: Obj, *, uses_old: bool, optional_old: bool) -> Rule:
    text = source["rule"]
    message = source.get("messageExpression")
    return Rule(
        source,
        uses_old,
        optional_old,
        normalised_path(source.get("fieldPath", "")),
        _program(_with_optional_old(text, given=True) if optional_old else text),
        _program(_with_optional_old(text, given=False)) if optional_old else None,
        _program(message) if message else None,
    )


_PATH_STEP = re.compile(r"\.([^.\[\]]+)|\['((?:\\.|[^'\\])*)'\]")


def path_steps(path: str) -> list[str] | None:
    """The field names of a rule's fieldPath, None for a malformed one."""
    steps, end = [], 0
    for found in _PATH_STEP.finditer(path):
        if found.start() != end:
            return None
        end = found.end()
        steps.append(found[1] or re.sub(r"\\(.)", r"\1", found[2]))
    return steps if steps and end == len(path) else None


def normalised_path(path: str) -> str:
    """A fieldPath in causes: without the first dot."""
    return ".".join(path_steps(path.strip()) or ()) if path else ""


def _below(schema: Obj) -> Iterator[tuple[Obj, str, str]]:
    """The schemas directly below a schema, with their member and their name in it."""
    for name, inner in (schema.get("properties") or {}).items():
        yield inner, "properties", name
    if isinstance(schema.get("items"), dict):
        yield schema["items"], "items", ""
    values = values_schema(schema)
    if values is not None:
        yield values, "additionalProperties", ""
