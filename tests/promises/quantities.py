"""Quantities of Kubernetes, and requests of pods, read by functions of this package alone."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from promises.commits import Obj

SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{letter: Fraction(1000 ** (power + 1)) for power, letter in enumerate("kMGTPE")},
    **{f"{letter}i": Fraction(1024 ** (power + 1)) for power, letter in enumerate("KMGTPE")},
}

MOST = 2**63 - 1

Amounts = dict[str, int]

#: A number, then a suffix or an exponent: ``1E`` is an exa, ``1E3`` a thousand.
QUANTITY = re.compile(
    r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:([eE][+-]?[0-9]+)|([numkMGTPE]|[KMGTPE]i|))"
)


def milli(text: Any) -> int:
    """A quantity in thousandths, rounded up as the API server does.

    Raises:
        ValueError: It is no quantity.
    """
    found = QUANTITY.fullmatch(str(text))
    if found is None:
        raise ValueError(f"no quantity: {text}")
    number, exponent, suffix = found.groups()
    scale = Fraction(f"1{exponent}") if exponent else SUFFIXES[suffix]
    exact = Fraction(number) * scale * 1000
    return -(-exact.numerator // exact.denominator)


def requests(pod: Obj) -> dict[str, int]:
    """What a pod takes of a node, in thousandths; itself counts as one of ``pods``.

    Containers and sidecars run together, as do an init container and the sidecars that were started earlier;
    the larger of both counts, per resource. Requests of the whole pod replace those of its containers, and
    overhead comes on top. A total that 64 bits do not hold counts as nothing: the API library's arithmetic
    wraps around there.
    """
    return {name: amount for name, amount in _total(pod).items() if _is_held(name, amount)}


def counts_all(pod: Obj) -> bool:
    """Whether 64 bits hold all that a pod requests."""
    return all(_is_held(name, amount) for name, amount in _total(pod).items())


def _is_held(name: str, amount: int) -> bool:
    """Cpu is counted in thousandths, other resources in units."""
    return amount <= MOST * (1 if name == "cpu" else 1000)


def _total(pod: Obj) -> Amounts:
    spec = pod["spec"]
    running = _summed(_asked(container) for container in spec["containers"])
    sidecars: dict[str, int] = {}
    starting: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        together = _summed((sidecars, _asked(container)))
        if container.get("restartPolicy") == "Always":
            sidecars = together
        starting = _larger(starting, together)
    total = _larger(_summed((running, sidecars)), starting)
    total.update(_asked(spec))
    overhead = {name: milli(text) for name, text in (spec.get("overhead") or {}).items()}
    return _summed((total, overhead, {"pods": 1000}))


def _asked(holder: Obj) -> dict[str, int]:
    asked = (holder.get("resources") or {}).get("requests") or {}
    return {name: milli(text) for name, text in asked.items()}


def _summed(amounts: Any) -> dict[str, int]:
    total: dict[str, int] = {}
    for each in amounts:
        for name, amount in each.items():
            total[name] = total.get(name, 0) + amount
    return total


def _larger(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}
