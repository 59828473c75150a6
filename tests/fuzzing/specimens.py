"""Specimens are documents with every field that a type of the model reads, as seeds."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import inspect

#: What fields of some names hold.
_USUAL: dict[str, Any] = {
    "operator": "In",
    "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110", "example.com/gpu": "2"},
    "allocatable": {"cpu": "3900m", "memory": "7Gi", "pods": "110"},
    "requests": {"cpu": "100m", "memory": "64Mi"},
    "limits": {"cpu": "1", "memory": "128Mi"},
    "whenUnsatisfiable": "DoNotSchedule",
    "topologyKey": "topology.kubernetes.io/zone",
    "effect": "NoSchedule",
    "phase": "Running",
    "resourceVersion": "7",
    "uid": "11111111-2222-3333-4444-555555555555",
    "maxUnavailable": "25%",
    "minAvailable": 1,
}


def document(kind: type, **metadata: str) -> bytes:
    """One document of a kind; ``metadata`` are members of its metadata."""
    made = _value(inspect.type_info(kind), kind.__name__, 0)
    if metadata:
        made["metadata"] = {**made.get("metadata", {}), **metadata}
    return msgspec.json.encode(made)


def _value(type_: inspect.Type, name: str, depth: int) -> Any:  # noqa: C901, PLR0911, PLR0912 - one case for each type
    if name in _USUAL and depth:
        return _USUAL[name]
    match type_:
        case inspect.StructType(fields=fields):
            return {each.encode_name: _value(each.type, each.encode_name, depth + 1) for each in fields}
        case inspect.UnionType(types=types):
            return _value(next(each for each in types if not isinstance(each, inspect.NoneType)), name, depth)
        case inspect.DictType(value_type=value_type):
            return {"app": _value(value_type, "value", depth + 1)}
        case inspect.VarTupleType(item_type=item_type) | inspect.ListType(item_type=item_type):
            return [_value(item_type, name, depth + 1)]
        case inspect.TupleType(item_types=item_types):
            return [_value(each, name, depth + 1) for each in item_types]
        case inspect.BoolType():
            return True
        case inspect.IntType():
            return 3
        case inspect.FloatType():
            return 1.5
        case inspect.DateTimeType():
            return "2026-01-01T00:00:00Z"
        case inspect.LiteralType(values=values) | inspect.EnumType(cls=values):
            return next(iter(values))
        case inspect.StrType():
            return name.lower()
        case _:
            return {"a": 1}
