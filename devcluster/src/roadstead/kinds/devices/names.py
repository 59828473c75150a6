"""Checks the names in objects of resource.k8s.io: of drivers, pools, devices, attributes and requests.

Source: Kubernetes v1.36 ``pkg/apis/resource/validation/validation.go``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from roadstead.kinds.checks.fields import duplicate, invalid, label_name, required, too_long, too_many
from roadstead.kinds.checks.metadata import label_value_faults, qualified_name_faults, subdomain_faults

if TYPE_CHECKING:
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

LONGEST_DRIVER = 63
LONGEST_POOL = 253
LONGEST_ID = 32
EFFECTS = ("NoExecute", "NoSchedule", "None")
#: Names of a claim's requests, each with those of its alternatives.
Requests = dict[str, frozenset[str]]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_IDENTIFIER_FAULT = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
    "characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is "
    "'[A-Za-z_][A-Za-z0-9_]*')"
)
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_REFERENCE_FAULT = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)


def each(items: list[Any], at: str, most: int, check: Callable[[Any, str], list[Cause]]) -> list[Cause]:
    """Faults of the items of a list; a list that is too long is not checked."""
    if len(items) > most:
        return [too_many(at, len(items), most)]
    return [cause for index, one in enumerate(items) for cause in check(one, f"{at}[{index}]")]


def repeated(keys: Iterable[Any], at: str, most: int) -> list[Cause]:
    """Faults of a list whose keys must be unique; ``each`` has rejected a list that is too long."""
    listed = list(keys)
    if len(listed) > most:
        return []
    return [duplicate(f"{at}[{index}]", key) for index, key in enumerate(listed) if key in listed[:index]]


def driver_name(at: str, name: str) -> list[Cause]:
    """Faults of a driver's name: a DNS subdomain of at most 63 bytes."""
    if not name:
        return [required(at)]
    causes = [too_long(at, LONGEST_DRIVER)] if len(name) > LONGEST_DRIVER else []
    return causes + [invalid(at, name, fault) for fault in subdomain_faults(name.lower())]


def pool_name(at: str, name: str) -> list[Cause]:
    """Faults of a pool's name: DNS subdomains, separated by slashes."""
    if not name:
        return [required(at)]
    causes = [too_long(at, LONGEST_POOL)] if len(name) > LONGEST_POOL else []
    return causes + [invalid(at, part, fault) for part in name.split("/") for fault in subdomain_faults(part)]


def identifier(at: str, name: str) -> list[Cause]:
    """Faults of the last part of an attribute's or a capacity's name."""
    causes = [too_long(at, LONGEST_ID)] if len(name) > LONGEST_ID else []
    return causes if _IDENTIFIER.fullmatch(name) else [*causes, invalid(at, name, _IDENTIFIER_FAULT)]


def attribute_name(at: str, name: str, *, needs_domain: bool = False) -> list[Cause]:
    """Faults of the name of an attribute or a capacity, such as "gpu.example.com/model" or "model".

    A name with more than one slash is accepted unchanged, as upstream does.
    """
    parts = name.split("/")
    causes: list[Cause] = []
    if len(parts) == 1:
        causes = identifier(at, name)
    elif len(parts) == 2:
        domain, own = parts
        causes = driver_name(at, domain) if domain else [invalid(at, "", "the domain must not be empty")]
        causes += identifier(at, own) if own else [invalid(at, "", "the name must not be empty")]
    if needs_domain and "/" not in name:
        message = "a fully qualified name must be a domain and a name separated by a slash"
        causes.append(invalid(at, name, message))
    return causes


def request_names(claim: Obj) -> Requests:
    """The names of the requests in a claim's ``devices``."""
    return {
        one.get("name", ""): frozenset(inner.get("name", "") for inner in one.get("firstAvailable") or ())
        for one in claim.get("requests") or ()
    }


def request_reference(at: str, name: str, known: Requests) -> list[Cause]:
    """Faults of a reference to a request, or to an alternative as "request/alternative"."""
    parts = name.split("/")
    if len(parts) > 2:
        return [invalid(at, name, _REFERENCE_FAULT)]
    causes = [cause for part in parts for cause in label_name(at, part)]
    if parts[0] not in known or (len(parts) == 2 and parts[1] not in known[parts[0]]):
        causes.append(invalid(at, name, _REFERENCE_FAULT))
    return causes


def request_references(given: list[str], at: str, known: Requests, most: int) -> list[Cause]:
    """Faults of a list of such references."""
    causes = each(given, at, most, lambda name, here: request_reference(here, name, known))
    return causes + repeated(given, at, most)


def share_uid(at: str, uid: str | None) -> list[Cause]:
    """Faults of a ``shareID``."""
    if uid is None or _UID.fullmatch(uid):
        return []
    message = (
        "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase "
        "hexadecimal characters"
    )
    return [invalid(at, uid, message)]


def label_key(at: str, key: str) -> list[Cause]:
    """Faults of a label's key, of which also taints and conditions are made."""
    return [invalid(at, key, fault) for fault in qualified_name_faults(key)]


def label_value(at: str, value: str) -> list[Cause]:
    """Faults of a label's value."""
    return [invalid(at, value, fault) for fault in label_value_faults(value)]
