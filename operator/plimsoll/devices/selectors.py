"""Evaluates the selectors of classes and requests on devices."""

from plimsoll.devices.allocator import AllocationError
from plimsoll.devices.cel.selectors import CompiledSelectorError, selector
from plimsoll.devices.pools import PooledDevice
from plimsoll.devices.requests import Expression


def is_selected(expression: Expression, device: PooledDevice) -> bool:
    """Whether an expression holds of a device.

    Raises:
        AllocationError: It does not compile, or fails on this device.
    """
    try:
        return selector(expression.text).matches(device.view)
    except CompiledSelectorError as error:
        raise AllocationError(f"{expression.where}: {error}") from error
