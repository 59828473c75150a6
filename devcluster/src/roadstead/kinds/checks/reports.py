"""Checks reports of components in a status: conditions, and addresses of interfaces.

Source: apimachinery v1.36 ``pkg/apis/meta/v1/validation/validation.go`` (ValidateConditions),
``pkg/util/validation/ip.go`` (IsValidInterfaceAddress).
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import duplicate, invalid, one_of, required, too_long
from roadstead.kinds.checks.metadata import qualified_name_faults

if TYPE_CHECKING:
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

_STATES = ("False", "True", "Unknown")
_LONGEST_REASON, _LONGEST_MESSAGE = 1024, 32 * 1024
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_REASON_FAULT = (
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  "
    "or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
    f"'{_REASON.pattern}')"
)


def conditions_causes(conditions: list[Obj], at: str) -> list[Cause]:
    """Faults of conditions, of which each type may occur once."""
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        kind, here = condition.get("type", ""), f"{at}[{index}]"
        if kind in seen:
            causes.append(duplicate(f"{here}.type", kind))
        seen.add(kind)
        causes += _condition_causes(condition, here)
    return causes


def _condition_causes(condition: Obj, at: str) -> list[Cause]:
    kind, reason = condition.get("type", ""), condition.get("reason", "")
    causes = [invalid(f"{at}.type", kind, fault) for fault in qualified_name_faults(kind)]
    causes += one_of(f"{at}.status", condition.get("status", ""), _STATES)
    generation = condition.get("observedGeneration", 0)
    if generation < 0:
        message = "must be greater than or equal to zero"
        causes.append(invalid(f"{at}.observedGeneration", generation, message))
    if not condition.get("lastTransitionTime"):
        causes.append(required(f"{at}.lastTransitionTime"))
    if not reason:
        causes.append(required(f"{at}.reason"))
    elif not _REASON.fullmatch(reason):
        causes.append(invalid(f"{at}.reason", reason, _REASON_FAULT))
    if len(reason.encode()) > _LONGEST_REASON:
        causes.append(too_long(f"{at}.reason", _LONGEST_REASON))
    if len(condition.get("message", "").encode()) > _LONGEST_MESSAGE:
        causes.append(too_long(f"{at}.message", _LONGEST_MESSAGE))
    return causes


def interface_address(at: str, text: str) -> list[Cause]:
    """Faults of the address of an interface with its prefix, which must be in canonical form."""
    try:
        found = ipaddress.ip_interface(text if "/" in text and "%" not in text else "")
    except ValueError:
        message = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        return [invalid(at, text, message)]
    mapped = found.ip.ipv4_mapped if found.version == 6 else None
    canonical = found.with_prefixlen
    if mapped is not None:
        canonical = f"{mapped}/{max(found.network.prefixlen - 96, 0)}"
    return [] if text == canonical else [invalid(at, text, f'must be in canonical form ("{canonical}")')]
