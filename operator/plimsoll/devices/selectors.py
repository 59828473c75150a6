"""Evaluates the selectors of classes and requests on devices."""

from plimsoll.devices.cel.selectors import CompiledSelectorError, selector
from plimsoll.devices.pools import PooledDevice
from plimsoll.devices.requests import Expression
from plimsoll.devices.search_limits import AllocationError, StepLimit


def is_selected(expression: Expression, device: PooledDevice, steps: StepLimit) -> bool:
    """Whether an expression holds of a device.

    Raises:
        AllocationError: It does not compile, fails on this device, or the search has no steps left for it.
    """
    try:
        answer, units = selector(expression.text).evaluated(device.view)
    except CompiledSelectorError as error:
        steps.count_for(error.units)
        raise AllocationError(f"{expression.where}: {error}", expression.claim) from error
    steps.take_for(units)
    return answer
