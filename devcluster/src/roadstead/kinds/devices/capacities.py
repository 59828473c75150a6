"""Checks the capacities of devices and the policies by which they may be requested in part.

Source: Kubernetes v1.36 ``pkg/apis/resource/validation/validation.go`` (validateRequestPolicy). A step of
zero is rejected here; upstream divides by it and breaks the connection.
"""

from __future__ import annotations

from decimal import ROUND_CEILING
from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import forbidden, invalid, required, too_many
from roadstead.kinds.devices.names import attribute_name, repeated
from roadstead.schemas.quantity_forms import value, written

if TYPE_CHECKING:
    from decimal import Decimal

    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

_MOST_VALUES = 10


def capacity_causes(capacities: Obj, at: str, *, shared: bool) -> list[Cause]:
    """Faults of a device's capacities.

    Args:
        capacities: keyed by name.
        at: the path of the map.
        shared: whether the device may be allocated several times.
    """
    causes: list[Cause] = []
    for name, capacity in capacities.items():
        causes += attribute_name(at, name)
        policy, here = capacity.get("requestPolicy"), f"{at}[{name}].requestPolicy"
        if policy is None:
            continue
        if not shared:
            causes.append(forbidden(here, "allowMultipleAllocations must be true"))
        else:
            causes += _policy_causes(policy, capacity["value"], here)
    return causes


def _policy_causes(policy: Obj, most: str, at: str) -> list[Cause]:
    values, span = policy.get("validValues") or [], policy.get("validRange")
    if values and span is not None:
        message = (
            'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same '
            "time"
        )
        return [forbidden(at, message)]
    kind = "validValues" if values else "validRange"
    if not values and span is None:
        return []
    if policy.get("default") is None:
        return [required(f"{at}.default", f"required when {kind} is defined")]
    if values:
        return _values_causes(values, policy["default"], most, f"{at}.{kind}")
    return _range_causes(span or {}, policy["default"], most, f"{at}.{kind}")


def _values_causes(values: list[str], default: str, most: str, at: str) -> list[Cause]:
    causes = [
        invalid(f"{at}[{index + 1}]", values[index + 1], "values must be sorted in ascending order")
        for index in range(len(values) - 1)
        if value(values[index]) > value(values[index + 1])
    ]
    if len(values) > _MOST_VALUES:
        causes.append(too_many(at, len(values), _MOST_VALUES))
    else:
        causes += [
            invalid(f"{at}[{index}]", one, f"option is larger than capacity value: {most}")
            for index, one in enumerate(values)
            if value(one) > value(most)
        ]
        causes += repeated((str(_whole(one)) for one in values), at, _MOST_VALUES)
    if value(default) not in map(value, values):
        causes.append(invalid(at, default, "default value is not valid according to the requestPolicy"))
    return causes


def _range_causes(span: Obj, default: str, most: str, at: str) -> list[Cause]:
    least = span.get("min")
    if least is None:
        return [required(f"{at}.min", "required when validRange is defined")]
    causes: list[Cause] = []
    if value(least) > value(most):
        causes.append(invalid(f"{at}.min", least, f"min is larger than capacity value: {most}"))
    if value(default) < value(least):
        causes.append(invalid(f"{at}.min", default, f"default is less than min: {least}"))
    largest, step = span.get("max"), span.get("step")
    if largest is not None:
        if value(least) > value(largest):
            causes.append(invalid(f"{at}.max", least, f"min is larger than max: {largest}"))
        if value(largest) > value(most):
            causes.append(invalid(f"{at}.max", largest, f"max is larger than capacity value: {most}"))
        if value(default) > value(largest):
            causes.append(invalid(f"{at}.max", default, f"default is more than max: {largest}"))
    if step is None:
        return causes
    if not _whole(step):
        return [*causes, invalid(f"{at}.step", step, "must not be zero")]
    first: Decimal = value(least) + value(step)
    if first > value(most):
        shown = written(first, least)
        causes.append(invalid(f"{at}.step", step, f"one step {shown} is larger than capacity value: {most}"))
    return causes + [
        invalid(f"{at}.step", one, f"value is not a multiple of a given step ({step}) from ({least})")
        for one in (default, largest)
        if one is not None and (_whole(one) - _whole(least)) % _whole(step)
    ]


def _whole(quantity: str) -> int:
    """A quantity in whole units, rounded up."""
    return int(value(quantity).to_integral_value(ROUND_CEILING))
