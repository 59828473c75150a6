"""Quantities of Kubernetes, and requests of pods, read by functions of this package alone."""

from __future__ import annotations

import re
from typing import Any

from promises.commits import Obj

UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def milli(text: Any) -> int:
    """A quantity in thousandths."""
    found = re.fullmatch(r"([0-9.]+)(m|k|M|G|Ki|Mi|Gi|)", str(text))
    if found is None:
        raise ValueError(f"no quantity: {text}")
    number, unit = found.groups()
    return round(float(number) * (1 if unit == "m" else 1000 * UNITS[unit]))


def requests(pod: Obj) -> dict[str, int]:
    """What a pod takes of a node, in thousandths; itself counts as one of ``pods``."""
    total = {"pods": 1000}
    for container in pod["spec"]["containers"]:
        for name, text in (container.get("resources", {}).get("requests") or {}).items():
            total[name] = total.get(name, 0) + milli(text)
    return total
