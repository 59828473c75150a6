"""Checks security contexts of pods and containers.

Fields for Windows only are not checked.

Source: Kubernetes v1.36 ``pkg/apis/core/validation/validation.go``: ``validatePodSpecSecurityContext``,
``ValidateSecurityContext``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import duplicate, invalid, one_of, required
from roadstead.kinds.podspec.mounts import descending_causes

if TYPE_CHECKING:
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

_LAST_ID = 2**31 - 1
_SYSCTL_FORM = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_SYSCTL = re.compile(_SYSCTL_FORM)
_SYSCTL_LONGEST = 253
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_ONLY_LOCAL = "can only be set when {} type is Localhost"
_NEEDS_LOCAL = "must be set when {} type is Localhost"


def _id_causes(context: Obj, at: str, *fields: str) -> list[Cause]:
    return [
        invalid(f"{at}.{field}", context[field], f"must be between 0 and {_LAST_ID}, inclusive")
        for field in fields
        if context.get(field) is not None and not 0 <= context[field] <= _LAST_ID
    ]


def pod_security_causes(spec: Obj, at: str) -> list[Cause]:
    """Faults of the security context of a pod."""
    context, here = spec.get("securityContext") or {}, f"{at}.securityContext"
    causes = _id_causes(context, here, "fsGroup", "runAsUser", "runAsGroup")
    causes += [
        invalid(f"{here}.supplementalGroups[{index}]", group, f"must be between 0 and {_LAST_ID}, inclusive")
        for index, group in enumerate(context.get("supplementalGroups") or ())
        if not 0 <= group <= _LAST_ID
    ]
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        message = "ShareProcessNamespace and HostPID cannot both be enabled"
        causes.append(invalid(f"{here}.shareProcessNamespace", value=True, detail=message))
    causes += _sysctl_causes(spec, context, f"{here}.sysctls")
    for field, words in (
        ("fsGroupChangePolicy", ("Always", "OnRootMismatch")),
        ("supplementalGroupsPolicy", ("Merge", "Strict")),
        ("seLinuxChangePolicy", ("Recursive",)),
    ):
        if context.get(field) is not None:
            causes += one_of(f"{here}.{field}", context[field], words)
    return causes + _profile_causes(context, here)


def _sysctl_causes(spec: Obj, context: Obj, at: str) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, one in enumerate(context.get("sysctls") or ()):
        here, name = f"{at}[{index}].name", one.get("name", "")
        if not name:
            causes.append(required(here))
        elif len(name) > _SYSCTL_LONGEST or not _SYSCTL.fullmatch(name):
            message = f"must have at most {_SYSCTL_LONGEST} characters and match regex {_SYSCTL_FORM}"
            causes.append(invalid(here, name, message))
        elif name in seen:
            causes.append(duplicate(here, name))
        seen.add(name)
        dotted = name.replace("/", ".")
        if spec.get("hostNetwork") and dotted.startswith("net."):
            causes.append(invalid(here, name, "may not be specified when 'hostNetwork' is true"))
        elif spec.get("hostIPC") and dotted.startswith(
            ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")
        ):
            causes.append(invalid(here, name, "may not be specified when 'hostIPC' is true"))
    return causes


def container_security_causes(context: Obj, at: str, *, host_users: bool) -> list[Cause]:
    """Faults of the security context of a container."""
    causes = _id_causes(context, at, "runAsUser", "runAsGroup")
    mount = context.get("procMount")
    if mount is not None:
        causes += one_of(f"{at}.procMount", mount, ("Default", "Unmasked"))
        if mount == "Unmasked" and host_users:
            causes.append(invalid(f"{at}.procMount", mount, "`hostUsers` must be false to use `Unmasked`"))
    if context.get("allowPrivilegeEscalation") is False:
        refused = "cannot set `allowPrivilegeEscalation` to false and "
        if context.get("privileged"):
            causes.append(invalid(at, context, f"{refused}`privileged` to true"))
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            causes.append(invalid(at, context, f"{refused}`capabilities.Add` CAP_SYS_ADMIN"))
    return causes + _profile_causes(context, at)


def _profile_causes(context: Obj, at: str) -> list[Cause]:
    """Faults of the seccomp and AppArmor profiles."""
    causes: list[Cause] = []
    for field, name in (("seccompProfile", "seccomp"), ("appArmorProfile", "AppArmor")):
        profile = context.get(field)
        if profile is None:
            continue
        here, kind, local = f"{at}.{field}", profile.get("type", ""), profile.get("localhostProfile")
        if not kind:
            causes.append(required(f"{here}.type", f"type is required when {field} is set"))
        else:
            causes += one_of(f"{here}.type", kind, _PROFILES)
        if kind == "Localhost":
            causes += _local_causes(local, f"{here}.localhostProfile", name)
        elif local is not None and field == "seccompProfile":
            shown = {"Type": kind, "LocalhostProfile": local}
            causes.append(invalid(f"{here}.localhostProfile", shown, _ONLY_LOCAL.format(name)))
        elif local is not None and kind in _PROFILES:
            causes.append(invalid(f"{here}.localhostProfile", local, _ONLY_LOCAL.format(name)))
    return causes


def _local_causes(local: str | None, at: str, name: str) -> list[Cause]:
    if local is None:
        return [required(at, _NEEDS_LOCAL.format(name))]
    if name == "seccomp":
        return descending_causes(local, at)
    if local != local.strip():
        return [invalid(at, local, "must not be padded with whitespace")]
    return [] if local else [required(at, _NEEDS_LOCAL.format(name))]
