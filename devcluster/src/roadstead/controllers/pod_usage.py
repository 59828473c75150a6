"""Reads what a pod is said to use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.schemas.quantities import Amounts, amounts, pod_requests

if TYPE_CHECKING:
    from roadstead.values.resources import Obj

USAGE = "roadstead.test/usage"
IDLE: Amounts = {"cpu": 1, "memory": 16 * 2**20 * 1000}
"""The usage of a pod without requests, in thousandths: a milli-core and 16 MiB."""


def pod_usage(pod: Obj) -> Amounts:
    """The usage of a pod in thousandths of a core and of a byte; a malformed annotation counts as absent."""
    requested = pod_requests(pod)
    used = {name: requested.get(name) or idle for name, idle in IDLE.items()}
    usage = (pod["metadata"].get("annotations") or {}).get(USAGE, "")
    pairs = (part.partition("=") for part in usage.split(",") if part)
    try:
        used |= amounts({name.strip(): quantity.strip() for name, _, quantity in pairs})
    except ValueError:
        return used
    return {name: used[name] for name in IDLE}
