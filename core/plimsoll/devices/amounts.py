"""Computes amounts of capacities and counters in billionths, and the consumption by a request for capacity.

Capacities of a device are found by their full names, ``domain/name``: a driver may publish one, and a claim
request it, without the driver's domain.

Source: Kubernetes v1.36, ``structured/internal/incubating/consumable_capacity.go``; names as in v1.38.
"""

from collections.abc import Mapping
from typing import Protocol, TypeAlias, TypeVar

from plimsoll.model.kinds.resource_slice import (
    AmountText,
    CapacityPolicy,
    CapacityRange,
    DeviceCapacity,
)
from plimsoll.model.quantity import QuantityError, nanos

Amounts: TypeAlias = Mapping[str, int]
"""Billionths of each name."""

BILLION = 10**9

ValueT = TypeVar("ValueT")


class _HasValue(Protocol):
    @property
    def value(self) -> AmountText: ...


def amount_of(text: AmountText) -> int:
    """Billionths; 0 for an invalid quantity, which the API server never accepts."""
    try:
        return nanos(text)
    except QuantityError:
        return 0


def amounts_of(written: Mapping[str, _HasValue]) -> Amounts:
    """The amounts of counters or capacities."""
    return {name: amount_of(each.value) for name, each in written.items()}


def by_full_name(published: Mapping[str, ValueT], driver: str) -> dict[str, ValueT]:
    """Values by ``domain/name``; of two spellings of one name the one with the domain counts."""
    found = {name: value for name, value in published.items() if "/" in name}
    for name, value in published.items():
        if "/" not in name:
            found.setdefault(f"{driver}/{name}", value)
    return found


def written(amount: int) -> str:
    """Billionths as a quantity."""
    whole, rest = divmod(amount, BILLION)
    return f"{amount}n" if rest else str(whole)


def consumed(capacity: Mapping[str, DeviceCapacity], wanted: Amounts) -> Amounts | None:
    """The consumption of each capacity of a device by a request; None if the device cannot serve it.

    Args:
        capacity: The device's capacities with their policies, by full name.
        wanted: The requested capacities, by full name.
    """
    if not wanted.keys() <= capacity.keys():
        return None
    taken = {}
    for name, has in capacity.items():
        whole, policy = amount_of(has.value), has.request_policy
        asked = wanted.get(name)
        amount = _taken(whole, policy, asked)
        if policy is not None and asked is not None and _breaks(policy, amount):
            return None
        if amount > whole:
            return None
        taken[name] = amount
    return taken


def _taken(whole: int, policy: CapacityPolicy | None, asked: int | None) -> int:
    if asked is None:
        return whole if policy is None or policy.default is None else amount_of(policy.default)
    if policy is None:
        return asked
    if policy.valid_range is not None:
        return _stepped(policy.valid_range, asked)
    if policy.valid_values:
        values = sorted(amount_of(each) for each in policy.valid_values)
        return next((each for each in values if each >= asked), asked)
    return asked


def _stepped(allowed: CapacityRange, asked: int) -> int:
    least = amount_of(allowed.min)
    if asked < least:
        return least
    if allowed.step is None:
        return asked
    # In whole numbers, as upstream: fractions are rounded up first.
    step, start = _whole(amount_of(allowed.step)), _whole(least)
    if step <= 0:
        return asked
    return (start + -(-(_whole(asked) - start) // step) * step) * BILLION


def _breaks(policy: CapacityPolicy, amount: int) -> bool:
    """Whether the policy forbids that amount."""
    if policy.default is not None and amount == amount_of(policy.default):
        return False
    if policy.valid_range is not None:
        allowed = policy.valid_range
        return allowed.max is not None and amount > amount_of(allowed.max)
    return bool(policy.valid_values) and amount not in {amount_of(each) for each in policy.valid_values}


def _whole(amount: int) -> int:
    return -(-amount // BILLION)
