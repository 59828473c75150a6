"""Checks probes and lifecycle hooks of containers.

Source: Kubernetes v1.36 ``pkg/apis/core/validation/validation.go``: ``validateProbe``, ``validateHandler``,
``validateLifecycle``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from roadstead.kinds.checks.fields import forbidden, invalid, not_negative, one_of, port_number, required

if TYPE_CHECKING:
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

_HEADER = re.compile(r"[-A-Za-z0-9]+")
_HEADER_FAULT = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used "
    "for validation is '[-A-Za-z0-9]+')"
)
_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_PORT_SIGNS = re.compile(r"[-a-z0-9]+")


def port_name_faults(name: str) -> list[str]:
    """Faults of a string as the name of a port."""
    faults = ["must be no more than 15 characters"] if len(name) > 15 else []
    if not _PORT_SIGNS.fullmatch(name):
        faults.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search(r"[a-z]", name):
        faults.append("must contain at least one letter (a-z)")
    if "--" in name:
        faults.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        faults.append("must not begin or end with a hyphen")
    return faults


def port_causes(port: Any, at: str) -> list[Cause]:
    """Faults of a port's number or name."""
    if isinstance(port, str):
        return [invalid(at, port, fault) for fault in port_name_faults(port)]
    return port_number(at, port or 0)


def probe_causes(container: Obj, at: str, grace: int | None) -> list[Cause]:
    """Faults of a container's hooks and probes.

    Args:
        container: the container.
        at: its path.
        grace: the pod's grace period in seconds.
    """
    causes: list[Cause] = []
    for name in ("postStart", "preStop"):
        hook = (container.get("lifecycle") or {}).get(name)
        if hook is not None:
            causes += _handler_causes(hook, f"{at}.lifecycle.{name}", grace, hook=True)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is None:
            continue
        here = f"{at}.{name}"
        causes += _handler_causes(probe, here, grace)
        for field in _COUNTS:
            causes += not_negative(f"{here}.{field}", probe.get(field))
        own = probe.get("terminationGracePeriodSeconds")
        if own is not None and own <= 0:
            causes.append(invalid(f"{here}.terminationGracePeriodSeconds", own, "must be greater than 0"))
        if name == "readinessProbe" and own is not None:
            message = "must not be set for readinessProbes"
            causes.append(invalid(f"{here}.terminationGracePeriodSeconds", own, message))
        if name != "readinessProbe" and probe.get("successThreshold") != 1:
            causes.append(invalid(f"{here}.successThreshold", probe.get("successThreshold", 0), "must be 1"))
    return causes


def _handler_causes(handler: Obj, at: str, grace: int | None, *, hook: bool = False) -> list[Cause]:
    causes: list[Cause] = []
    kinds = ("exec", "httpGet", "tcpSocket", "sleep" if hook else "grpc")
    given = [kind for kind in kinds if handler.get(kind) is not None]
    if not given:
        return [required(at, "must specify a handler type")]
    action, here = handler[given[0]], f"{at}.{given[0]}"
    match given[0]:
        case "exec":
            causes += [] if action.get("command") else [required(f"{here}.command")]
        case "httpGet":
            causes += _http_causes(action, here)
        case "sleep":
            seconds = action.get("seconds", 0)
            if grace is not None and not 0 <= seconds <= grace:
                message = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                causes.append(invalid(here, seconds, message))
        case _:
            causes += port_causes(action.get("port", 0), f"{here}.port")
    message = "may not specify more than 1 handler type"
    return causes + [forbidden(f"{at}.{kind}", message) for kind in given[1:]]


def _http_causes(action: Obj, at: str) -> list[Cause]:
    causes = [] if action.get("path") else [required(f"{at}.path")]
    causes += port_causes(action.get("port", 0), f"{at}.port")
    causes += one_of(f"{at}.scheme", action.get("scheme"), ("HTTP", "HTTPS"))
    return causes + [
        invalid(f"{at}.httpHeaders", header.get("name", ""), _HEADER_FAULT)
        for header in action.get("httpHeaders") or ()
        if not _HEADER.fullmatch(header.get("name", ""))
    ]
