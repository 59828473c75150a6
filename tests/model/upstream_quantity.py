"""Reference implementation of kube-scheduler's quantities, digit by digit.

Two forms, as in ``apimachinery/pkg/api/resource``: an integer of 64 bits with a power of ten, and a decimal
number without end. Written without regard to speed, from the rules and not from our code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MAX, SIZE = 2**63 - 1, 2**64
POWERS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
NATIVE = ("cpu", "memory", "ephemeral-storage")


def wrapped(number: int) -> int:
    """The lowest 64 bits, with a sign."""
    return (number + SIZE // 2) % SIZE - SIZE // 2


def divided(number: int, by: int) -> int:
    """A quotient that is rounded up."""
    return -(-number // by)


@dataclass(frozen=True)
class Quantity:
    """``number`` times ten to the power of ``exponent``."""

    number: int
    exponent: int
    is_long: bool = False

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Read what the API server has let in."""
        text = text.lstrip("+")
        body = text.rstrip("numkKMGTPEi")
        suffix = text[len(body) :]
        if "e" in body.lower():
            body, _, power = body.lower().partition("e")
            exponent = int(power)
        else:
            exponent = 0 if suffix in BINARY else POWERS[suffix]
        whole, _, fraction = body.partition(".")
        whole = whole.lstrip("0") or "0"
        number, digits = int(whole + fraction), len(whole) + len(fraction)
        if suffix in BINARY:
            bits = BINARY[suffix]
            if not fraction and digits + bits * 3 // 10 < 15:
                return cls(number << bits, 0)
            nanos = divided((number << bits) * 10**9, 10 ** len(fraction))
            return cls(MAX, 0, is_long=True) if nanos > MAX * 10**9 else cls(nanos, -9, is_long=True)
        exponent -= len(fraction)
        if digits <= 18 and exponent >= -9:
            return cls(number, exponent)
        shift = exponent + 9
        return cls(number * 10**shift if shift >= 0 else divided(number, 10**-shift), -9, is_long=True)

    def to(self, exponent: int) -> Any:
        """The number that stands before a smaller power of ten."""
        return self.number * 10 ** (self.exponent - exponent)

    def __add__(self, other: Quantity) -> Quantity:
        """A sum becomes long when it does not fit; only a zero of the short form vanishes."""
        if other.number == 0 and not other.is_long:
            return self
        if self.number == 0 and not self.is_long:
            return other
        exponent = min(self.exponent, other.exponent)
        one, two = self.to(exponent), other.to(exponent)
        is_long = self.is_long or other.is_long or max(one, two, one + two) > MAX
        return Quantity(one + two, exponent, is_long)

    def or_larger(self, other: Quantity) -> Quantity:
        """The other one where it is larger; comparing with a long one makes it long."""
        exponent = min(self.exponent, other.exponent)
        if other.to(exponent) <= self.to(exponent):
            return self
        return Quantity(other.number, other.exponent, other.is_long or self.is_long)

    def value(self, exponent: int) -> int:
        """What is counted, in units of ten to the power of ``exponent``."""
        apart = self.exponent - exponent
        if not self.is_long:
            size = self.number * 10**apart if apart >= 0 else divided(self.number, 10**-apart)
            return size if size <= MAX else 0
        if apart > 18:
            return wrapped(wrapped(self.number) * -(2**63))
        return wrapped(wrapped(self.number) * 10**apart if apart >= 0 else divided(self.number, 10**-apart))


Amounts = dict[str, Quantity]


def parsed(texts: dict[str, str] | None) -> Amounts:
    """A list of resources."""
    return {name: Quantity.parse(text) for name, text in (texts or {}).items()}


def add(total: Any, more: Amounts) -> None:
    """Sum by resource."""
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def raise_to(total: Amounts, floor: Amounts) -> None:
    """The larger by resource."""
    for name, amount in floor.items():
        total[name] = total[name].or_larger(amount) if name in total else amount


def requests(pod: dict[str, Any]) -> dict[str, int]:
    """What kube-scheduler counts for a pod on a node: cpu in milli, everything else in units."""
    spec = pod["spec"]
    granted = {each["name"]: each for each in (pod.get("status") or {}).get("containerStatuses") or ()}
    total: Amounts = {}
    for container in spec["containers"]:
        taken = parsed(container.get("resources", {}).get("requests"))
        status = granted.get(container["name"])
        if status is not None and status.get("resources") is not None:
            raise_to(taken, parsed(status["resources"].get("requests")))
            raise_to(taken, parsed(status.get("allocatedResources")))
        add(total, taken)
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        taken = parsed(container.get("resources", {}).get("requests"))
        if container.get("restartPolicy") == "Always":
            add(total, taken)
            add(sidecars, taken)
            taken = dict(sidecars)
        else:
            add(taken, sidecars)
        raise_to(peak, taken)
    raise_to(total, peak)
    add(total, parsed(spec.get("overhead")))
    return {name: value_of(name, amount) for name, amount in total.items()}


def value_of(resource: str, amount: Any) -> Any:
    """An amount in the unit of its resource."""
    return amount.value(-3 if resource == "cpu" else 0)
