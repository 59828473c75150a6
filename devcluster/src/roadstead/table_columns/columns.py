"""Defines columns of tables and the cells that many kinds share.

Source: kubernetes v1.36 ``pkg/printers/internalversion/printers.go``; apimachinery ``util/duration``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roadstead.schemas.formats import instant

if TYPE_CHECKING:
    from roadstead.values.resources import Obj

#: Renders a cell from an object and the time of printing.
Cell = Callable[["Obj", dt.datetime], Any]

NONE, UNKNOWN, UNSET = "<none>", "<unknown>", "<unset>"


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        cell: renders its value.
        type: "string", "integer", "number", "boolean" or "date".
        priority: 0 for always, 1 for ``-o wide``.
    """

    name: str
    cell: Cell
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""

    @property
    def definition(self) -> Obj:
        """As in ``columnDefinitions``."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


def wide(name: str, cell: Cell) -> Column:
    """A column that is shown with ``-o wide``."""
    return Column(name, cell, priority=1)


def at(obj: Any, *steps: str, default: Any = None) -> Any:
    """The value at a path of fields."""
    for step in steps:
        if not isinstance(obj, dict) or obj.get(step) is None:
            return default
        obj = obj[step]
    return obj


def field(*steps: str, default: Any = "") -> Cell:
    """A cell with the value at a path of fields."""
    return lambda obj, _now: at(obj, *steps, default=default)


_MINUTE, _HOUR, _DAY = 60, 3600, 24 * 3600
_YEAR = 365 * _DAY


def human_duration(seconds: float) -> str:
    """A length of time in one or two units, as kubectl prints it."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    whole = max(whole, 0)
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 10 * _MINUTE:
        return _two(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole, _HOUR, "h", _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole, _DAY, "d", _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _two(whole, _YEAR, "y", _DAY, "d")
    return f"{whole // _YEAR}y"


def _two(whole: int, large: int, large_sign: str, small: int, small_sign: str) -> str:
    rest = whole % large // small
    return f"{whole // large}{large_sign}" + (f"{rest}{small_sign}" if rest else "")


def since(moment: str | None, now: dt.datetime) -> str:
    """The age of a moment."""
    if not moment:
        return UNKNOWN
    then = instant(moment)
    return UNKNOWN if then is None else human_duration((now - then).total_seconds())


def age(obj: Obj, now: dt.datetime) -> str:
    """The age of an object."""
    return since(obj["metadata"].get("creationTimestamp"), now)


NAME = Column("Name", field("metadata", "name"), format="name")
AGE = Column("Age", age)
CREATED = Column("Created At", field("metadata", "creationTimestamp"), type="date")


def labels(given: dict[str, str] | None) -> str:
    """Labels as ``a=b,c=d``."""
    return ",".join(f"{key}={value}" for key, value in sorted((given or {}).items())) or NONE


def selector(given: Obj | None) -> str:
    """A label selector in the form of the command line."""
    if given is None:
        return NONE
    terms = [f"{key}={value}" for key, value in sorted((given.get("matchLabels") or {}).items())]
    for one in given.get("matchExpressions") or []:
        values = ",".join(sorted(one.get("values") or []))
        terms.append(
            {
                "In": f"{one['key']} in ({values})",
                "NotIn": f"{one['key']} notin ({values})",
                "Exists": one["key"],
            }.get(one["operator"], f"!{one['key']}")
        )
    return ",".join(terms) or NONE


def _template_containers(obj: Obj) -> list[Obj]:
    template = at(obj, "spec", "jobTemplate", "spec", "template") or at(obj, "spec", "template")
    return at(template, "spec", "containers", default=[]) or []


CONTAINERS = wide("Containers", lambda obj, _: ",".join(one["name"] for one in _template_containers(obj)))
IMAGES = wide("Images", lambda obj, _: ",".join(one.get("image", "") for one in _template_containers(obj)))
SELECTOR = wide("Selector", lambda obj, _: selector(at(obj, "spec", "selector")))
