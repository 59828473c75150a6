"""Checks environment variables, and references to fields of the pod.

Source: Kubernetes v1.36 ``pkg/apis/core/validation/validation.go``: ``ValidateEnv``, ``ValidateEnvFrom``;
``pkg/apis/core/pods/helpers.go`` (``ConvertDownwardAPIFieldLabel``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import (
    config_key,
    invalid,
    label_name,
    missing,
    one_of,
    required,
    subdomain_name,
)
from roadstead.kinds.checks.metadata import qualified_name_faults
from roadstead.kinds.podspec.mounts import backstep_causes
from roadstead.schemas import quantity_forms

if TYPE_CHECKING:
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

_SUBSCRIPTED = re.compile(r"(.+)\['(.*)'\]")
#: Fields of a pod that selectors know, and those that a variable or a file may show.
_FIELDS = {
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
}
_IN_VARIABLES = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
IN_FILES = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_RESOURCES = tuple(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_HUGE = ("requests.hugepages-", "limits.hugepages-")
_SIZES = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_SIZED = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}


def variable_name_faults(name: str) -> list[str]:
    """Faults of a string as the name of a variable."""
    faults = [] if name else ["environment variable name must not be empty"]
    if any(not " " <= sign <= "~" or sign == "=" for sign in name):
        message = (
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
        )
        faults.append(message)
    return faults


def environment_causes(container: Obj, at: str) -> list[Cause]:
    """Faults of a container's variables."""
    causes: list[Cause] = []
    for index, variable in enumerate(container.get("env") or ()):
        here, name = f"{at}.env[{index}]", variable.get("name", "")
        if not name:
            causes.append(required(f"{here}.name"))
        else:
            causes += [invalid(f"{here}.name", name, fault) for fault in variable_name_faults(name)]
        if variable.get("valueFrom") is not None:
            causes += _source_causes(variable["valueFrom"], variable.get("value", ""), f"{here}.valueFrom")
    for index, source in enumerate(container.get("envFrom") or ()):
        here = f"{at}.envFrom[{index}]"
        if prefix := source.get("prefix"):
            causes += [invalid(f"{here}.prefix", prefix, fault) for fault in variable_name_faults(prefix)]
        given = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        for kind in given:
            name = source[kind].get("name", "")
            causes += (
                subdomain_name(f"{here}.{kind}.name", name) if name else [required(f"{here}.{kind}.name")]
            )
        if not given:
            causes.append(invalid(f"{at}.envFrom", "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            message = "may not have more than one field specified at a time"
            causes.append(invalid(f"{at}.envFrom", "", message))
    return causes


def _source_causes(source: Obj, value: str, at: str) -> list[Cause]:
    causes: list[Cause] = []
    if source.get("fieldRef") is not None:
        causes += field_causes(source["fieldRef"], f"{at}.fieldRef", _IN_VARIABLES)
    if source.get("resourceFieldRef") is not None:
        causes += resource_field_causes(source["resourceFieldRef"], f"{at}.resourceFieldRef")
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if source.get(kind) is not None:
            causes += subdomain_name(f"{at}.{kind}.name", source[kind].get("name", ""))
            key = source[kind].get("key", "")
            causes += config_key(f"{at}.{kind}.key", key) if key else [required(f"{at}.{kind}.key")]
    if source.get("fileKeyRef") is not None:
        causes += _file_key_causes(source["fileKeyRef"], f"{at}.fileKeyRef")
    kinds = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
    given = sum(source.get(kind) is not None for kind in kinds)
    if not given:
        message = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        causes.append(invalid(at, "", f"must specify one of: {message}"))
    elif value:
        causes.append(invalid(at, "", "may not be specified when `value` is not empty"))
    elif given > 1:
        causes.append(invalid(at, "", "may not have more than one field specified at a time"))
    return causes


def _file_key_causes(reference: Obj, at: str) -> list[Cause]:
    key, volume, path = (reference.get(field, "") for field in ("key", "volumeName", "path"))
    causes = (
        [invalid(f"{at}.key", key, fault) for fault in variable_name_faults(key)]
        if key
        else [required(f"{at}.key")]
    )
    causes += label_name(f"{at}.volumeName", volume) if volume else [required(f"{at}.volumeName")]
    return causes + (backstep_causes(path, f"{at}.path") if path else [required(f"{at}.path")])


def field_causes(reference: Obj, at: str, allowed: tuple[str, ...]) -> list[Cause]:
    """Faults of a reference to one of the pod's own fields."""
    version, path = reference.get("apiVersion", ""), reference.get("fieldPath", "")
    if not version:
        return [required(f"{at}.apiVersion")]
    if not path:
        return [required(f"{at}.fieldPath")]
    subscripted = _SUBSCRIPTED.fullmatch(path)
    base, subscript = (subscripted[1], subscripted[2]) if subscripted else (path, "")
    why = ""
    if version != "v1":
        why = f"unsupported pod version: {version}"
    elif subscripted and base not in ("metadata.annotations", "metadata.labels"):
        why = f'field label does not support subscript: "{path}"'
    elif not subscripted and path != "spec.host" and path not in _FIELDS:
        why = f"field label not supported: {path}"
    if why:
        return [invalid(f"{at}.fieldPath", path, f"error converting fieldPath: {why}")]
    if subscripted:
        key = subscript.lower() if base == "metadata.annotations" else subscript
        return [invalid(at, key, fault) for fault in qualified_name_faults(key)]
    return one_of(f"{at}.fieldPath", "spec.nodeName" if path == "spec.host" else path, allowed)


def resource_field_causes(reference: Obj, at: str, *, in_file: bool = False) -> list[Cause]:
    """Faults of a reference to a container's requests or limits."""
    causes: list[Cause] = []
    name = reference.get("resource", "")
    if in_file and not reference.get("containerName"):
        causes.append(required(f"{at}.containerName"))
    elif not name:
        causes.append(required(f"{at}.resource"))
    elif not name.startswith(_HUGE):
        causes += one_of(f"{at}.resource", name, _RESOURCES)
    divisor = reference.get("divisor", "0")
    if not quantity_forms.value(divisor):
        return causes
    resource = name.partition(".")[2] if name in _RESOURCES else ""
    if resource == "cpu" and divisor not in ("1m", "1"):
        message = "only divisor's values 1m and 1 are supported with the cpu resource"
        causes.append(invalid(f"{at}.divisor", name, message))
    sized = "hugepages" if name.startswith(_HUGE) else _SIZED.get(resource)
    if sized and divisor not in _SIZES:
        message = f"only divisor's values {', '.join(_SIZES)} are supported with the {sized} resource"
        causes.append(invalid(f"{at}.divisor", name, message))
    return causes


def file_reference_causes(container: Obj, at: str, volumes: list[Obj]) -> list[Cause]:
    """Faults of variables from files: their volume must exist and be an emptyDir."""
    sources = {volume.get("name"): volume for volume in volumes}
    causes: list[Cause] = []
    for index, variable in enumerate(container.get("env") or ()):
        reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
        if reference is None:
            continue
        here, name = f"{at}.env[{index}].valueFrom.fileKeyRef.volumeName", reference.get("volumeName", "")
        if name not in sources:
            causes.append(missing(here, name))
        elif sources[name].get("emptyDir") is None:
            causes.append(invalid(here, name, "referenced volume must be of type emptyDir"))
    return causes
