"""Computes with quantities ("500m", "1Gi") as exact integers; sums the requests of a pod.

Source: apimachinery v1.36 ``api/resource/quantity.go``; component-helpers v1.36
``resource/helpers.go`` (the effective request of a pod with init containers and sidecars).
"""

import functools
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

Obj = dict[str, Any]
Number = TypeVar("Number", int, Decimal)
Amounts = dict[str, int]
"""Resource name to amount, in thousandths of its unit (milli-cores, milli-bytes, milli-pods)."""

_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?\d+))?"
)


@functools.lru_cache(maxsize=8192)
def milli(quantity: str | float) -> int:
    """A quantity in thousandths, rounded up as the API server does.

    Raises:
        ValueError: it is not a quantity.
    """
    found = _QUANTITY.fullmatch(str(quantity))
    if not found:
        raise ValueError(f"{quantity!r} is no quantity; write it like 500m, 2 or 1Gi")
    number, suffix = Fraction(found["number"]), found["suffix"] or ""
    if suffix in _BINARY:
        number *= _BINARY[suffix]
    else:
        number *= Fraction(10) ** (int(found["exponent"]) if found["exponent"] else _DECIMAL[suffix])
    return -int(-number * 1000 // 1)


def amounts(quantities: Obj | None) -> Amounts:
    """A resource list in thousandths."""
    return {name: milli(quantity) for name, quantity in (quantities or {}).items()}


def pod_requests(pod: Obj) -> Amounts:
    """The requests of a pod in thousandths; the pod itself counts as one of ``pods``.

    Containers and sidecars (init containers with restartPolicy Always) add up; each other init
    container runs together with the sidecars before it; the greater of both counts, and the overhead.
    Requests at pod level, where they are set, replace the sum.
    """
    spec: Obj = pod["spec"]
    running = concurrent_requests(spec, _container_requests)
    running.update(amounts((spec.get("resources") or {}).get("requests")))
    _add(running, amounts(spec.get("overhead")))
    running["pods"] = 1000
    return running


def concurrent_requests(spec: Obj, amounts_of: Callable[[Obj], dict[str, Number]]) -> dict[str, Number]:
    """The resources that a pod's containers need concurrently, with its init containers one after another.

    Args:
        spec: Of the pod, or of a template.
        amounts_of: The resources of one container, in a new dict.
    """
    running: dict[str, Number] = {}
    for container in spec.get("containers") or ():
        _add(running, amounts_of(container))
    sidecars: dict[str, Number] = {}
    starting: dict[str, Number] = {}
    for container in spec.get("initContainers") or ():
        wanted = amounts_of(container)
        if container.get("restartPolicy") == "Always":
            _add(running, wanted)
            _add(sidecars, wanted)
            wanted = sidecars
        else:
            _add(wanted, sidecars)
        _raise_to(starting, wanted)
    _raise_to(running, starting)
    return running


def _container_requests(container: Obj) -> Amounts:
    return amounts((container.get("resources") or {}).get("requests"))


def _add(total: dict[str, Number], more: Mapping[str, Number]) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _raise_to(total: dict[str, Number], least: Mapping[str, Number]) -> None:
    for name, amount in least.items():
        total[name] = max(total.get(name, amount), amount)
