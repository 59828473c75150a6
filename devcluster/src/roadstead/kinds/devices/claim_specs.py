"""Sets defaults in the spec of a claim and checks it: requests, constraints, configuration.

Source: Kubernetes v1.36 ``pkg/apis/resource/v1/defaults.go``, ``pkg/apis/resource/validation/validation.go``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import orjson

from roadstead.kinds.checks.fields import (
    invalid,
    label_name,
    not_among,
    one_of,
    required,
    subdomain_name,
    too_long,
)
from roadstead.kinds.devices.names import (
    EFFECTS,
    Requests,
    attribute_name,
    driver_name,
    each,
    label_key,
    label_value,
    repeated,
    request_names,
    request_references,
)

if TYPE_CHECKING:
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

#: The most requests, constraints, selectors, configurations and results of a claim.
MOST = 32
MOST_ALTERNATIVES = 8
LONGEST_TEXT = 10 * 1024
"""Bytes of an expression, and of a driver's parameters."""

#: Why an expression about a device cannot be used, "" if it can.
ExpressionFault = Callable[[str], str]


def default_claim_spec(spec: Obj) -> None:
    """One device of a class is what a request asks for by default; the requests are shown, given or not."""
    devices = spec.setdefault("devices", {})
    devices.setdefault("requests", None)
    for request in devices["requests"] or ():
        for asked in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if asked is None:
                continue
            if asked.setdefault("allocationMode", "ExactCount") == "ExactCount":
                asked.setdefault("count", 1)
            default_tolerations(asked)


def default_tolerations(holder: Obj) -> None:
    """A toleration without an operator tolerates one value."""
    for toleration in holder.get("tolerations") or ():
        toleration.setdefault("operator", "Equal")


def claim_spec_causes(spec: Obj, at: str, fault: ExpressionFault) -> list[Cause]:
    """Faults of a claim's spec."""
    claim, here = spec["devices"], f"{at}.devices"
    known = request_names(claim)
    requests = claim.get("requests") or []
    causes = each(requests, f"{here}.requests", MOST, lambda one, path: _request_causes(one, path, fault))
    causes += repeated((one.get("name", "") for one in requests), f"{here}.requests", MOST)
    causes += each(
        claim.get("constraints") or [],
        f"{here}.constraints",
        MOST,
        lambda one, path: _constraint_causes(one, path, known),
    )
    return causes + each(
        claim.get("config") or [],
        f"{here}.config",
        MOST,
        lambda one, path: (
            request_references(one.get("requests") or [], f"{path}.requests", known, MOST)
            + configuration_causes(one, path)
        ),
    )


def _request_causes(request: Obj, at: str, fault: ExpressionFault) -> list[Cause]:
    causes = label_name(f"{at}.name", request.get("name", ""))
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or []
    rule = "exactly one of `exactly` or `firstAvailable` is required"
    if exactly is None and not alternatives:
        return [*causes, required(at, rule)]
    if exactly is not None and alternatives:
        return [*causes, invalid(at, None, f"{rule}, but multiple fields are set")]
    if exactly is not None:
        return causes + _asked_causes(exactly, f"{at}.exactly", fault)
    here = f"{at}.firstAvailable"
    causes += each(
        alternatives,
        here,
        MOST_ALTERNATIVES,
        lambda one, path: label_name(f"{path}.name", one.get("name", "")) + _asked_causes(one, path, fault),
    )
    return causes + repeated((one.get("name", "") for one in alternatives), here, MOST_ALTERNATIVES)


def _asked_causes(asked: Obj, at: str, fault: ExpressionFault) -> list[Cause]:
    """Faults of a request or of an alternative."""
    name = asked.get("deviceClassName", "")
    causes = subdomain_name(f"{at}.deviceClassName", name) if name else [required(f"{at}.deviceClassName")]
    causes += selector_causes(asked.get("selectors") or [], f"{at}.selectors", fault)
    mode, count = asked.get("allocationMode", ""), asked.get("count", 0)
    if mode == "All":
        if count:
            message = "must not be specified when allocationMode is 'All'"
            causes.append(invalid(f"{at}.count", count, message))
    elif mode != "ExactCount":
        causes.append(not_among(f"{at}.allocationMode", mode, ("All", "ExactCount")))
    elif count <= 0:
        causes.append(invalid(f"{at}.count", count, "must be greater than zero"))
    for index, toleration in enumerate(asked.get("tolerations") or ()):
        causes += _toleration_causes(toleration, f"{at}.tolerations[{index}]")
    return causes


def selector_causes(selectors: list[Obj], at: str, fault: ExpressionFault) -> list[Cause]:
    """Faults of selectors of devices."""

    def of_one(selector: Obj, here: str) -> list[Cause]:
        if selector.get("cel") is None:
            return [required(f"{here}.cel")]
        expression, where = selector["cel"].get("expression", ""), f"{here}.cel.expression"
        if len(expression.encode()) > LONGEST_TEXT:
            return [too_long(where, LONGEST_TEXT)]
        detail = fault(expression)
        return [invalid(where, expression, detail)] if detail else []

    return each(selectors, at, MOST, of_one)


def _toleration_causes(toleration: Obj, at: str) -> list[Cause]:
    causes = label_key(f"{at}.key", toleration["key"]) if toleration.get("key") else []
    operator, value = toleration["operator"], toleration.get("value", "")
    if operator == "Equal":
        causes += label_value(f"{at}.value", value)
    elif operator != "Exists":
        causes.append(not_among(f"{at}.operator", operator, ("Equal", "Exists")))
    elif value:
        causes.append(invalid(f"{at}.value", value, "must be empty for operator `Exists`"))
    effect = toleration.get("effect")
    return causes + (one_of(f"{at}.effect", effect, EFFECTS) if effect else [])


def _constraint_causes(constraint: Obj, at: str, known: Requests) -> list[Cause]:
    causes = request_references(constraint.get("requests") or [], f"{at}.requests", known, MOST)
    kinds = ("matchAttribute", "distinctAttribute")
    given = [kind for kind in kinds if constraint.get(kind) is not None]
    if len(given) != 1:
        message = 'exactly one of "matchAttribute" or "distinctAttribute" is required'
        return [*causes, required(at, f"{message}, but multiple fields are set")]
    return causes + attribute_name(f"{at}.{given[0]}", constraint[given[0]], needs_domain=True)


def configuration_causes(config: Obj, at: str) -> list[Cause]:
    """Faults of configuration for a driver."""
    opaque, here = config.get("opaque"), f"{at}.opaque"
    if opaque is None:
        return [required(here)]
    causes = driver_name(f"{here}.driver", opaque.get("driver", ""))
    return causes + raw_causes(opaque.get("parameters"), f"{here}.parameters")


def raw_causes(value: Any, at: str) -> list[Cause]:
    """Faults of an object that only a driver understands."""
    if value is None:
        return [required(at)]
    if len(orjson.dumps(value)) > LONGEST_TEXT:
        return [too_long(at, LONGEST_TEXT)]
    return [] if isinstance(value, dict) else [invalid(at, "<value omitted>", "must be a valid JSON object")]
