"""Presents devices of ResourceSlices to dra-cel, the evaluator of selectors.

The evaluator is an extra (``plimsoll[devices]``), imported when the first selector is met: an operator whose
cluster has no devices never loads it. Without it every selector has the error :data:`MISSING`.
"""

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from plimsoll.model.kinds.resource_claim import ResourceClaim
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

#: Characters of expressions that are compiled for one pod, as many as the largest claim has. A compiled one
#: takes fifty bytes for each.
MOST = 1_572_864

#: Seconds after which a pod that has not asked again loses its turn; it usually asks within ten.
PATIENCE_S = 120.0

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

    return _turns.selectors.get(expression) or selector(expression)


def is_too_much(expressions: Iterable[str]) -> bool:
    """Whether one attempt must not compile them all."""
    if not is_installed():
        return False
    from dra_cel import is_compiled  # noqa: PLC0415 - as above

    kept = _turns.selectors
    waiting = (each for each in dict.fromkeys(expressions) if each not in kept and not is_compiled(each))
    return sum(map(len, waiting)) > COMPILED


def why_not_yet(expressions: Iterable[str], now: float) -> str:
    """Compile as many as one attempt may, if not all; returns why they cannot be evaluated, or "".

    Args:
        expressions: All that a pod's claims have.
        now: The time of the attempt, in seconds.
    """
    texts = frozenset(expressions)
    if not is_too_much(texts):
        _turns.end(texts)
        return ""
    characters = sum(map(len, texts))
    if characters > MOST:
        return (
            f"the selectors of the pod's claims and of their classes have {characters:,} characters of CEL,"
            f" and at most {MOST:,} are compiled for a pod"
        )
    return _turns.compile_some(texts, characters, now)


def let_go(claim: ResourceClaim) -> None:
    """Release what was compiled for a claim that has gone, or was replaced."""
    _turns.let_go(
        each.cel.expression
        for request in claim.spec.devices.requests
        for asked in (request.exactly, *request.first_available)
        if asked is not None
        for each in asked.selectors
        if each.cel is not None
    )


class _Turns:
    """Compiles for one pod at a time what no attempt may compile alone, until that pod was tried.

    Attributes:
        selectors: Those of the pod that had the last turn, by expression.
    """

    def __init__(self) -> None:
        self.selectors: dict[str, Selector] = {}
        self._whose: frozenset[str] = frozenset()
        #: by the expressions of a pod, when it last asked; the first one is compiled
        self._asked_at: dict[frozenset[str], float] = {}

    def compile_some(self, texts: frozenset[str], characters: int, now: float) -> str:
        """Compile a part if it is the pod's turn; returns how far it is."""
        from dra_cel import Selector, is_compiled, selector  # noqa: PLC0415 - as above

        self._asked_at = {each: at for each, at in self._asked_at.items() if now - at < PATIENCE_S}
        self._asked_at[texts] = now
        if next(iter(self._asked_at)) != texts:
            return (
                f"the selectors of the pod's claims have {characters:,} characters of CEL, which are compiled"
                " after those of another pod"
            )
        if self._whose != texts:
            self._whose, self.selectors = texts, {}
        left = COMPILED
        for each in sorted(texts - self.selectors.keys()):
            is_known = is_compiled(each)
            left -= 0 if is_known else len(each)
            if left < 0:
                break
            self.selectors[each] = selector(each) if is_known else Selector(each)
        done = sum(map(len, self.selectors))
        said = f"of the {characters:,} characters of CEL in the selectors of the pod's claims"
        return f"{said} {done:,} are compiled; the next attempts compile the others"

    def end(self, texts: frozenset[str]) -> None:
        """Give the turn to the next pod."""
        if self._asked_at:
            self._asked_at.pop(texts, None)

    def let_go(self, texts: Iterable[str]) -> None:
        """Release what was compiled for a claim that has gone, and the turn of its pod."""
        if not self._asked_at and not self.selectors:
            return
        gone = frozenset(texts)
        self._asked_at = {each: at for each, at in self._asked_at.items() if each.isdisjoint(gone)}
        if not self._whose.isdisjoint(gone):
            self._whose, self.selectors = frozenset(), {}


_turns = _Turns()


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
