"""Arguments of DefaultEvictor that name protections, one that has none, and a parser of Go's durations."""

import re
from datetime import timedelta
from fractions import Fraction

from pydantic import Field, StrictInt, StrictStr

from plimsoll.framework import ClusterObjects, PluginArgs, PodInfo
from plimsoll.framework.descheduling.proposals import Refusal

DEFAULTS = ("SystemCriticalPods", "FailedBarePods", "PodsWithLocalStorage", "DaemonSetPods")

EXTRAS = ("PodsWithPVC", "PodsWithoutPDB", "PodsWithResourceClaims")

#: Maximum length of a duration in characters: parsing takes time that grows with its cube.
LONGEST = 128

_DURATION = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|[µμ]s|ms|s|m|h)")

_SECONDS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),  # the micro sign
    "μs": Fraction(1, 10**6),  # the Greek letter
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}


class PriorityThresholdArg(PluginArgs):
    """A priority, as a number or as the name of a PriorityClass."""

    value: StrictInt | None = Field(default=None, description="Pods of this priority and above stay.")
    name: StrictStr = Field(default="", description="PriorityClass; pods of its value and above stay.")


class StorageClassArg(PluginArgs):
    """The name of a StorageClass."""

    name: StrictStr = Field(default="", description="Name of the StorageClass.")


class PodsWithPVCArg(PluginArgs):
    """Narrows PodsWithPVC to claims of some classes."""

    protected_storage_classes: tuple[StorageClassArg, ...] = Field(
        default=(), description="Only claims of these classes protect; none means claims of any class."
    )


class ProtectionsConfigArg(PluginArgs):
    """Arguments of single protections."""

    pods_with_pvc: PodsWithPVCArg | None = Field(
        default=None, alias="PodsWithPVC", description="Arguments of the protection PodsWithPVC."
    )


class PodProtectionsArg(PluginArgs):
    """Which protections are on."""

    default_disabled: tuple[StrictStr, ...] = Field(
        default=(), description=f"Default protections to switch off: {', '.join(DEFAULTS)}."
    )
    extra_enabled: tuple[StrictStr, ...] = Field(
        default=(), description=f"Further protections to switch on: {', '.join(EXTRAS)}."
    )
    config: ProtectionsConfigArg | None = Field(default=None, description="Arguments of single protections.")


def not_replaced(pod: PodInfo, objects: ClusterObjects) -> Refusal | None:
    """Why no other pod would replace this one: controllers that are being deleted make none."""
    found = objects.controller_of(pod.pod)
    if found is None or found.metadata.deletion_timestamp is None:
        return None
    kind = type(found).__name__
    return Refusal("OwnerLeaving", f"{kind} {found.name} is being deleted, and replaces no pod")


def duration(text: str) -> timedelta:
    """A duration in Go's format: ``300ms``, ``1h30m``, ``0``; at most 292 years, which fill 64 bits.

    Differs: upstream accepts texts of any length.

    Raises:
        ValueError: The text is not a duration.
    """
    sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
    if rest == "0":
        return timedelta(0)
    terms = _DURATION.findall(rest) if len(text) <= LONGEST else ()
    if not terms or "".join(number + unit for number, unit in terms) != rest:
        raise ValueError(
            f'"{text[:LONGEST]}" is not a duration; write a number with a unit, such as 10m or 1h30m'
        )
    seconds = sum((Fraction(number) * _SECONDS[unit] for number, unit in terms), Fraction(0))
    if int(seconds * 10**9) > 2**63 - (sign > 0):
        raise ValueError(f'"{text}" is too long a duration; 2562047h is the most')
    return timedelta(seconds=float(sign * seconds))
