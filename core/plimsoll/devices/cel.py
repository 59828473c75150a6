"""Presents devices of ResourceSlices to dra-cel, the evaluator of selectors.

The evaluator is an extra (``plimsoll[devices]``), imported when the first selector is met: an operator whose
cluster has no devices never loads it. Without it every selector has the error :data:`MISSING`.
"""

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from plimsoll.model.kinds.resource_slice import (
    AttributeValue,
    DeviceAttribute,
    DeviceCapacity,
    Version,
)

if TYPE_CHECKING:
    from dra_cel import DeviceView, Selector

#: Characters of expressions that one attempt compiles, at 5 µs each: 10 KiB take 50 ms, and a claim may have
#: 140 expressions of that size.
COMPILED = 65_536

MISSING = (
    "CEL compile error: selectors of devices need the package dra-cel, which is not installed:"
    " install plimsoll[devices]"
)


@cache
def is_installed() -> bool:
    """Whether selectors can be evaluated."""
    return find_spec("dra_cel") is not None


def compiled(expression: str) -> "Selector":
    """The selector of an expression, compiled the first time."""
    from dra_cel import selector  # noqa: PLC0415 - an extra

    return selector(expression)


def too_much(expressions: Iterable[str]) -> list[str]:
    """Those that are not compiled, if one attempt must not compile them all; else none."""
    if not is_installed():
        return []
    from dra_cel import is_compiled  # noqa: PLC0415 - as above

    waiting = [each for each in dict.fromkeys(expressions) if not is_compiled(each)]
    return waiting if sum(map(len, waiting)) > COMPILED else []


def compile_some(waiting: Iterable[str]) -> None:
    """Compile as many as one attempt may."""
    left = COMPILED
    for each in waiting:
        left -= len(each)
        if left < 0:
            return
        compiled(each)


def evaluated(expression: str, view: "DeviceView") -> tuple[bool, int, str]:
    """Whether an expression matches a device, the units that this cost, and why it failed, or ""."""
    from dra_cel import SelectorError  # noqa: PLC0415 - as above

    try:
        return *compiled(expression).evaluated(view), ""
    except SelectorError as error:
        return False, error.units, str(error)


def view_of(
    driver: str, attributes: Mapping[str, AttributeValue], capacity: Mapping[str, str], allow_multiple: bool
) -> "DeviceView":
    """A device as selectors see it; its capacity as written."""
    from dra_cel import DeviceView  # noqa: PLC0415 - as above
    from dra_cel import Version as SelectorVersion  # noqa: PLC0415 - as above

    values = {
        name: SelectorVersion(value) if isinstance(value, Version) else value
        for name, value in attributes.items()
    }
    return DeviceView(driver, values, capacity, allow_multiple)


def is_sound(attributes: Mapping[str, DeviceAttribute], capacity: Mapping[str, DeviceCapacity]) -> bool:
    """Whether all values of a device can be parsed; else every expression fails on it, whatever it reads."""
    versions = (each.version for each in attributes.values() if each.version is not None)
    return all(map(_is_version, versions)) and all(
        _is_quantity(str(each.value)) for each in capacity.values()
    )


@lru_cache(maxsize=4096)
def _is_version(text: str) -> bool:
    return not view_of("", {"": Version(text)}, {}, allow_multiple=False).error


@lru_cache(maxsize=4096)
def _is_quantity(text: str) -> bool:
    return not view_of("", {}, {"": text}, allow_multiple=False).error
