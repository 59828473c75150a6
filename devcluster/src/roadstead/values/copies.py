"""Copies JSON values."""

from __future__ import annotations

from typing import Any, TypeVar, cast

Value = TypeVar("Value")


def copied(value: Value) -> Value:
    """A deep copy of a JSON value; strings and numbers are shared."""
    result: Any = value
    if isinstance(value, dict):
        result = {
            key: copied(item) if isinstance(item, (dict, list)) else item for key, item in value.items()
        }
    elif isinstance(value, list):
        result = [copied(item) if isinstance(item, (dict, list)) else item for item in value]
    return cast("Value", result)
