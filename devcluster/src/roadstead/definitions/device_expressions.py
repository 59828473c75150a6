"""Checks selectors of devices, which are expressions in the Common Expression Language.

Expressions are only compiled; the scheduler evaluates them. Costs are not estimated (docs/adr/0004).

Source: Kubernetes v1.36 ``staging/src/k8s.io/dynamic-resource-allocation/cel/compile.go``.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from cel_expr_python import cel

from roadstead.definitions import cel_library
from roadstead.definitions.cel_library import Function
from roadstead.definitions.rules import EXTENSIONS, compilation_fault

#: The fields of a device: variables with qualified names, so that the checker knows their types.
_DEVICE = {
    "device.driver": "string",
    "device.attributes": "map<string, map<string, dyn>>",
    "device.capacity": "map<string, map<string, kubernetes.Quantity>>",
    "device.allowMultipleAllocations": "bool",
}
_SEMVER = cel.Type.AbstractType("kubernetes.Semver")
_EXTENSIONS = '{"extensions": [{"name": "two-var-comprehensions"}]}'
#: Functions of the API server whose names the library uses for other functions.
_UNDECLARED = re.compile(r"'(indexOf|lastIndexOf)' applied to '\(list|undeclared reference to 'format'")
_ASKED = re.compile(r"has\(\s*device\.\w+\s*\)|\bdevice\b(?!\s*\.)")
_KEPT = 256


def _unused(*_: object) -> None:
    """Expressions are compiled and never evaluated."""


def _versions() -> list[Function]:
    """The functions of semantic versions, which only expressions about devices have."""
    text, yes_or_no, number = cel.Type.STRING, cel.Type.BOOL, cel.Type.INT
    found = [
        Function(name, result, parameters, _unused, member=False)
        for name, result in (("semver", _SEMVER), ("isSemver", yes_or_no))
        for parameters in ((text,), (text, yes_or_no))
    ]
    found += [Function(name, number, (_SEMVER,), _unused) for name in ("major", "minor", "patch")]
    compared = (("compareTo", number), ("isGreaterThan", yes_or_no), ("isLessThan", yes_or_no))
    return found + [Function(name, result, (_SEMVER, _SEMVER), _unused) for name, result in compared]


@cache
def _environment(*, typed: bool) -> cel.Env:
    """Where expressions are compiled.

    Args:
        typed: whether the types of a device's fields are known; otherwise it may have any field.
    """
    fields = {name: cel.Type(declared) for name, declared in _DEVICE.items()}
    return cel.NewEnv(
        config=cel.NewEnvConfigFromYaml(_EXTENSIONS),
        variables=fields if typed else {"device": cel.Type.DYN},
        functions=cel_library.checked(*_versions()),
        extensions=list(EXTENSIONS),
    )


@lru_cache(maxsize=_KEPT)
def device_expression_fault(expression: str) -> str:
    """Why an expression cannot select devices, "" if it can."""
    # The library treats a typed field as a variable: ``has`` does not apply to it, and no device contains it.
    typed = _ASKED.search(expression) is None
    try:
        result = _environment(typed=typed).compile(expression).return_type()
    except RuntimeError as error:
        return "" if _UNDECLARED.search(str(error)) else compilation_fault(error)
    if result in (cel.Type.BOOL, cel.Type.DYN):
        return ""
    return f"must evaluate to bool or the unknown type, not {result.name().lower()}"
