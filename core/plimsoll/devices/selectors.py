"""Evaluates the selectors of classes and requests, once for all devices that are equal to them."""

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from plimsoll.devices import cel
from plimsoll.devices.pools import PooledDevice
from plimsoll.devices.requests import Expression
from plimsoll.devices.search_limits import AllocationError, StepLimit
from plimsoll.model.kinds.resource_slice import Device, DeviceAttribute

if TYPE_CHECKING:
    from dra_cel import DeviceView

#: Number of cached results for groups of devices, of short expressions and of those with more characters.
KEPT, FEW, LONG = 65_536, 4_096, 512


class SelectorAnswer(NamedTuple):
    """The result of an expression for a device.

    Attributes:
        matches: The verdict; False if the evaluation failed.
        units: The cost of the evaluation.
        error: Why it failed, or "".
    """

    matches: bool
    units: int
    error: str = ""


def is_selected(expression: Expression, device: PooledDevice, steps: StepLimit) -> bool:
    """Whether an expression is true for a device.

    Raises:
        AllocationError: It does not compile, fails on this device, or the search has no steps left for it.
    """
    answer = answer_of(expression.text, device)
    if answer.error:
        steps.count_for(answer.units)
        raise AllocationError(f"{expression.where}: {answer.error}", expression.claim)
    steps.take_for(answer.units)
    return answer.matches


def answer_of(expression: str, device: PooledDevice) -> SelectorAnswer:
    """The result of an expression for a device, shared by devices that agree in all that it can read."""
    if not cel.is_installed():
        return SelectorAnswer(matches=False, units=0, error=cel.MISSING)
    reads = cel.compiled(expression).reads
    if reads is None or not device.is_sound:
        return evaluated(expression, device.view)
    driver, published = device.id.driver, device.device
    names = reads.names(driver)
    attributes = tuple(map(published.attributes.get, names.attributes)) if names.attributes else ()
    capacity = tuple(_amount(published, name) for name in names.capacity) if names.capacity else ()
    of_group = _kept if len(expression) <= LONG else _few_kept
    return of_group(expression, driver, published.allow_multiple_allocations, attributes, capacity)


def _amount(device: Device, name: str) -> str | None:
    has = device.capacity.get(name)
    return None if has is None else str(has.value)


def _of_group(
    expression: str,
    driver: str,
    allow_multiple: bool,
    attributes: tuple[DeviceAttribute | None, ...],
    capacity: tuple[str | None, ...],
) -> SelectorAnswer:
    """The result for all devices that have these values, as the expression reads no others."""
    reads = cel.compiled(expression).reads
    assert reads is not None
    names = reads.names(driver)
    view = cel.view_of(
        driver,
        {
            name: each.value
            for name, each in zip(names.attributes, attributes, strict=True)
            if each is not None and each.value is not None
        },
        {name: text for name, text in zip(names.capacity, capacity, strict=True) if text is not None},
        allow_multiple,
    )
    return evaluated(expression, view)


_kept = lru_cache(maxsize=KEPT)(_of_group)
_few_kept = lru_cache(maxsize=FEW)(_of_group)


def evaluated(expression: str, view: "DeviceView") -> SelectorAnswer:
    """The result of an expression for a view."""
    return SelectorAnswer(*cel.evaluated(expression, view))
